//! Admits a player, for the first time or again.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

use frolic_protocol::message::Resumption;
use frolic_protocol::{ServerMessage, Welcome};
use frolic_world::{ClientView, JsonView, PlayerNumber, TerrainView};

use super::Host;
use crate::admission::{Identity, new_nonce};
use crate::incoming::{ConnectionId, Encoding};
use crate::metrics::KickCause;
use crate::player_sessions::{Place, PlayerSession};
use crate::session::{Counted, Reported, SessionPlayer, View};

/// What a client sends in its handshake.
#[derive(Default)]
pub(super) struct Introduction {
    pub ticket: Option<String>,
    pub resume_token: Option<String>,
    pub name: Option<String>,
    pub received: Option<u32>,
}

type Refusal = (&'static str, String);

/// The admitted player, and how they were admitted.
struct Entry {
    number: PlayerNumber,
    resumption: Resumption,
    /// The connection that their token refers to.
    token_nonce: Option<String>,
}

impl Host {
    /// Checks the ticket or the resume token, and admits the player.
    pub(super) fn handshake(
        &mut self,
        connection_id: ConnectionId,
        seq: Option<u32>,
        said: Introduction,
    ) {
        let Some(session) = self.sessions.get_mut(connection_id) else {
            return;
        };
        if session.player.is_some() {
            // A ticket in the URL has admitted them already.
            session.answer(seq, Ok(()));
            return;
        }
        if let Some(closing) = &self.closing {
            // The ticket or token is not used up: it is for another process.
            session.answer(seq, Err(("restarting", closing.reason.clone())));
            session.kick(KickCause::Stopped, &closing.reason);
            return;
        }
        let ticket = said.ticket.clone().or_else(|| session.ticket.take());
        match self.identify(connection_id, ticket.as_deref(), &said) {
            Ok(entry) => self.attach(connection_id, seq, entry, said.received),
            Err((code, message)) => {
                if let Some(session) = self.sessions.get_mut(connection_id) {
                    session.answer(seq, Err((code, message.clone())));
                    session.kick(KickCause::Refused, &message);
                }
            }
        }
    }

    fn identify(
        &mut self,
        connection_id: ConnectionId,
        ticket: Option<&str>,
        said: &Introduction,
    ) -> Result<Entry, Refusal> {
        let now = unix_s();
        let token = said.resume_token.as_deref().unwrap_or("");
        let claims = self.settings.admission.read_token(token, now);
        // A ticket of another player beside the token: the ticket is newer.
        let holder = self.settings.admission.holder(ticket, now);
        let claims = claims.filter(|claims| {
            let holder = holder.as_ref();
            holder.is_none_or(|holder| *holder == claims.identity.player_id)
        });
        if let Some(mut claims) = claims {
            let nonce = claims.nonce.clone();
            // The welcome of an earlier attempt may never have arrived, and with it
            // the next token.
            let known = self.player_sessions.of_nonce(&claims.nonce);
            if let Some(player_session) =
                known.and_then(|number| self.player_sessions.get_mut(number))
            {
                // A client with the newest token has read the welcome it came with.
                player_session.note_received();
            }
            let known = known.or_else(|| {
                let holder = holder.as_deref();
                self.player_sessions.before_nonce(holder, &claims.nonce)
            });
            let here = known.or_else(|| self.player_sessions.of_player(&claims.identity.player_id));
            // A player who left an earlier process, or was kicked from it, cannot
            // come back with a token of that time: they must join again, if they
            // may. A player who joins again with the token of a session that began
            // just before that process was killed, and was never persisted, still
            // continues that session.
            let returning = &self.settings.returning;
            let expected = returning.expects(&claims.identity.player_id);
            claims.admits &= here.is_some() || expected || holder.is_some();
            if claims.admits && here.is_none() {
                // Checked first, so that no token is used up in vain.
                self.has_room()?;
            }
            if known.is_some() || claims.admits {
                self.settings.admission.spend(claims.nonce.clone(), now);
            }
            // A ticket that was sent along is used up as well; what it says is
            // newer.
            let ticketed = holder.as_ref().filter(|_| known.is_some() || claims.admits);
            let ticketed = ticketed.and_then(|_| self.use_ticket(ticket, None, now).ok());
            if let Some(number) = known {
                if let Some(identity) = &ticketed {
                    self.dress(number, identity);
                }
                self.detach(number, "You continued this game on another connection.");
                self.metrics.resumed.fetch_add(1, Relaxed);
                return Ok(Entry {
                    number,
                    resumption: self.resumption_of(number),
                    token_nonce: Some(nonce),
                });
            }
            if claims.admits {
                // A player who joined this process in another way has other counts.
                // A session that began in the last moment may not have been
                // persisted: a client that counts sends everything again.
                let goes_on = here.is_none()
                    && !claims.session.is_empty()
                    && (self.settings.returning.knows(&claims) || said.received.is_some());
                let resumption = match goes_on {
                    true => Resumption::Restarted,
                    false => Resumption::New,
                };
                let identity = ticketed.unwrap_or(claims.identity);
                let session = goes_on.then_some(claims.session);
                let number = self.admit(connection_id, identity, Some(session))?;
                self.metrics.resumed.fetch_add(1, Relaxed);
                return Ok(Entry {
                    number,
                    resumption,
                    token_nonce: Some(nonce),
                });
            }
        }
        if let Err(refusal) = self.has_room() {
            // Checked first, so that no ticket is used up in vain.
            let here = holder.and_then(|id| self.player_sessions.of_player(&id));
            here.ok_or(refusal)?;
        }
        let identity = self.use_ticket(ticket, said.name.as_deref(), now)?;
        Ok(Entry {
            number: self.admit(connection_id, identity, None)?,
            resumption: Resumption::New,
            token_nonce: None,
        })
    }

    fn use_ticket(
        &mut self,
        ticket: Option<&str>,
        name: Option<&str>,
        now: u64,
    ) -> Result<Identity, Refusal> {
        let admission = &mut self.settings.admission;
        let identity = admission
            .admit(ticket, name, now)
            .map_err(|error| (error.code(), error.to_string()))?;
        self.metrics.tickets_used.fetch_add(1, Relaxed);
        Ok(identity)
    }

    fn has_room(&self) -> Result<(), Refusal> {
        if self.draining {
            return Err(("draining", "this server is closing; join again".into()));
        }
        // The places of players who may reconnect are reserved.
        if self.player_sessions.taken() >= self.settings.players_max {
            let message = "this world is full; join again to get another one".into();
            return Err(("world_full", message));
        }
        Ok(())
    }

    /// The number of an authenticated player. A player who is connected already, or
    /// was until a moment ago, takes over their character. `heir` marks a player of
    /// an earlier process, proven by its token, who continues with what that
    /// process persisted: in the session of that name, or without a name in a new
    /// one.
    fn admit(
        &mut self,
        connection_id: ConnectionId,
        identity: Identity,
        heir: Option<Option<String>>,
    ) -> Result<PlayerNumber, Refusal> {
        if let Some(number) = self.player_sessions.of_player(&identity.player_id) {
            self.dress(number, &identity);
            self.detach(number, "You opened this game somewhere else.");
            return Ok(number);
        }
        self.has_room()?;
        let saved = self.place_of(&identity);
        let (id, name) = (identity.player_id.clone(), identity.name.clone());
        let number = match &saved {
            Some(saved) => self.world.join_again(id, name, &saved.state),
            None => self.world.join(id, name),
        };
        self.dress(number, &identity);
        self.settings.blocks.ask(&identity.player_id);
        if let Some(friend) = &identity.beside {
            self.arrivals.push((number, friend.clone()));
        }
        let mut player_session = PlayerSession::new(identity, String::new(), connection_id);
        if let Some((saved, session)) = saved.zip(heir) {
            player_session.inherit(saved, session);
        }
        self.player_sessions.insert(number, player_session);
        Ok(number)
    }

    /// How a player with a known session resumes. A player who was brought over from
    /// another process and has not sent anything since is still restarted.
    fn resumption_of(&self, number: PlayerNumber) -> Resumption {
        match self
            .player_sessions
            .get(number)
            .and_then(|player_session| player_session.unconfirmed)
        {
            Some(Resumption::Restarted) => Resumption::Restarted,
            _ => Resumption::Resumed,
        }
    }

    /// Detaches a player from their previous connection, which may be closed, or
    /// not yet known to be.
    fn detach(&mut self, number: PlayerNumber, reason: &str) {
        let old = self
            .player_sessions
            .get(number)
            .and_then(PlayerSession::connection_id);
        if let Some(old) = old.and_then(|connection_id| self.sessions.get_mut(connection_id)) {
            old.player = None;
            old.send(&ServerMessage::Error {
                code: "replaced".to_owned(),
                message: reason.to_owned(),
            });
            old.kick(KickCause::Replaced, reason);
        }
        self.world.reconnect(number);
    }

    /// Attaches a connection to a player's session and sends it the initial
    /// state.
    fn attach(
        &mut self,
        connection_id: ConnectionId,
        seq: Option<u32>,
        entry: Entry,
        received: Option<u32>,
    ) {
        let number = entry.number;
        self.player_sessions
            .move_to(number, Place::Online(connection_id));
        self.world.set_connected(number, true);
        let Some(player_session) = self.player_sessions.get_mut(number) else {
            return;
        };
        let spent = std::mem::replace(&mut player_session.nonce, new_nonce());
        // The token that the client has; tokens issued after it may not have
        // arrived.
        player_session.last_nonce = entry.token_nonce.unwrap_or_else(|| spent.clone());
        let session = self.sessions.get(connection_id);
        let page = session.is_some_and(|session| session.encoding == Encoding::Binary);
        let (resumption, sent) = player_session.go_on(entry.resumption, received, page);
        self.settings.admission.spend(spent, unix_s());
        let Some(welcome) = self.welcome(number, resumption, sent) else {
            return;
        };
        let presence = ServerMessage::Presence(self.world.players());
        let weapons = self.world.weapons(number);
        let scene = self.scene_packet.clone();
        let (Some(session), Some(player_session)) = (
            self.sessions.get_mut(connection_id),
            self.player_sessions.get_mut(number),
        ) else {
            return;
        };
        let (is_json, delivery) = (
            session.encoding == Encoding::Json,
            session.connection.delivery(),
        );
        let player = SessionPlayer {
            number,
            // Third-party clients ask for the scene if they want to draw it. They
            // have no terrain generator either, so they ask for the chunks they
            // want.
            view: if is_json {
                View::Json(JsonView::new(number))
            } else {
                View::Binary(ClientView::new(number, delivery))
            },
            terrain: if is_json {
                TerrainView::asking(number)
            } else {
                TerrainView::new(number)
            },
            verified: BTreeSet::new(),
            executed: 0,
            verify_failed: false,
            refused_inputs: 0,
            has_received: false,
            counted: Counted::default(),
            reported: Reported::default(),
            scene: None,
        };
        session.permit.come_in();
        session.welcome(player, welcome);
        session.answer(seq, Ok(()));
        if !is_json {
            session.send_packet(&scene);
        }
        let manifest = ServerMessage::ScriptManifest(self.client_scripts.manifest(is_json));
        // Before the scripts, so that their first prints are reported too.
        let prints = self.client_prints.wants(&player_session.identity.player_id);
        let logs = prints.then_some(ServerMessage::LogsWanted { prints });
        for message in weapons.iter().chain(&logs).chain([&presence, &manifest]) {
            session.send(message);
        }
        if let Some(notice) = self.saving.for_newcomer() {
            session.send(&notice);
        }
        // What the last connection did not deliver, and what has been queued since;
        // a JSON client gets it after its first snapshot.
        if session.encoding == Encoding::Binary {
            session.send_unwritten(&mut player_session.log);
        }
        self.sessions.add_viewer(connection_id, number);
        self.came_or_went.push(number);
        self.note_players();
    }

    fn welcome(&self, number: PlayerNumber, resumption: Resumption, sent: u32) -> Option<Welcome> {
        let player_session = self.player_sessions.get(number)?;
        let admission = &self.settings.admission;
        Some(Welcome {
            tick: self.world.tick(),
            entity_id: self.world.entity_of(number)?,
            player_id: player_session.identity.player_id.clone(),
            player_number: number,
            world_id: self.settings.world_id.clone(),
            room_code: self.settings.room_code.clone(),
            tick_hz: self.world.tick_hz(),
            snapshot_hz: self.world.snapshot_hz(),
            resume_token: admission.token(
                &player_session.identity,
                &player_session.nonce,
                &player_session.session,
                unix_s(),
            ),
            server_time: self.server_time_ms(),
            revision: self.world.revision().to_owned(),
            character: self.world.character_params(),
            resumption,
            received: player_session.received,
            sent,
        })
    }

    /// Renews resume tokens, so that clients have a young one when this process
    /// dies.
    pub(super) fn renew_tokens(&mut self) {
        let (tick, tick_hz) = (self.world.tick(), self.world.tick_hz());
        if !tick.is_multiple_of(tick_hz) {
            return;
        }
        let second = tick / tick_hz;
        for (number, player_session) in self.player_sessions.iter() {
            // Spread over time: not all clients in the same second.
            let turn = second.wrapping_add(number).is_multiple_of(TOKEN_RENEWED_S);
            let Some(connection_id) = player_session.connection_id().filter(|_| turn) else {
                continue;
            };
            let admission = &self.settings.admission;
            let (nonce, named) = (&player_session.nonce, &player_session.session);
            let token = admission.token(&player_session.identity, nonce, named, unix_s());
            if let Some(session) = self.sessions.get_mut(connection_id) {
                session.send(&ServerMessage::ResumeToken { token });
            }
        }
    }
}

/// Interval between two resume tokens of a session; well below their lifetime.
const TOKEN_RENEWED_S: u32 = 60;

/// Seconds since 1970.
pub(super) fn unix_s() -> u64 {
    unix_ms() / 1000
}

pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}
