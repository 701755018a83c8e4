//! Letting a player in, for the first time or again.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

use frolic_protocol::message::Resumption;
use frolic_protocol::{ServerMessage, Welcome};
use frolic_world::{ClientView, JsonView, PlayerNumber, TerrainView};

use super::Host;
use crate::admission::{Identity, new_nonce};
use crate::link::{ConnectionId, Encoding};
use crate::metrics::KickCause;
use crate::seats::{Place, Seat};
use crate::session::{Counted, Reported, SessionPlayer, View};

/// What a client says of itself.
#[derive(Default)]
pub(super) struct Introduction {
    pub ticket: Option<String>,
    pub resume_token: Option<String>,
    pub name: Option<String>,
    pub received: Option<u32>,
}

type Refusal = (&'static str, String);

/// Who was let in, and how.
struct Entry {
    number: PlayerNumber,
    resumption: Resumption,
    /// The connection that their token speaks of.
    token_nonce: Option<String>,
}

impl Host {
    /// Checks the ticket or the resume token, and brings the player in.
    pub(super) fn handshake(&mut self, link: ConnectionId, seq: Option<u32>, said: Introduction) {
        let Some(session) = self.sessions.get_mut(link) else {
            return;
        };
        if session.player.is_some() {
            // A ticket in the address has let them in already.
            session.answer(seq, Ok(()));
            return;
        }
        if let Some(closing) = &self.closing {
            // A ticket or a token is not used up: it is for another process.
            session.answer(seq, Err(("restarting", closing.reason.clone())));
            session.kick(KickCause::Stopped, &closing.reason);
            return;
        }
        let ticket = said.ticket.clone().or_else(|| session.ticket.take());
        match self.identify(link, ticket.as_deref(), &said) {
            Ok(entry) => self.seat(link, seq, entry, said.received),
            Err((code, message)) => {
                if let Some(session) = self.sessions.get_mut(link) {
                    session.answer(seq, Err((code, message.clone())));
                    session.kick(KickCause::Refused, &message);
                }
            }
        }
    }

    fn identify(
        &mut self,
        link: ConnectionId,
        ticket: Option<&str>,
        said: &Introduction,
    ) -> Result<Entry, Refusal> {
        let now = unix_s();
        let token = said.resume_token.as_deref().unwrap_or("");
        let claims = self.settings.admission.read_token(token, now);
        // Somebody else's ticket beside it: the ticket is the newer word.
        let holder = self.settings.admission.holder(ticket, now);
        let claims = claims.filter(|claims| {
            let holder = holder.as_ref();
            holder.is_none_or(|holder| *holder == claims.identity.player_id)
        });
        if let Some(mut claims) = claims {
            let nonce = claims.nonce.clone();
            // The welcome of an earlier attempt may never have arrived, and
            // with it the next token.
            let known = self.seats.of_nonce(&claims.nonce);
            if let Some(seat) = known.and_then(|number| self.seats.get_mut(number)) {
                // Who has the newest token has read the welcome it came with.
                seat.note_heard();
            }
            let known = known.or_else(|| {
                let holder = holder.as_deref();
                self.seats.before_nonce(holder, &claims.nonce)
            });
            let here = known.or_else(|| self.seats.of_player(&claims.identity.player_id));
            // Who left an earlier process, or was made to, does not come back
            // by a token of that time: they join again, if they may. Who does so
            // with the token of a session that began just before that process
            // was killed, and of which nothing was kept, still goes on with it.
            let returning = &self.settings.returning;
            let expected = returning.expects(&claims.identity.player_id);
            claims.admits &= here.is_some() || expected || holder.is_some();
            if claims.admits && here.is_none() {
                // A token must not be used up for nothing.
                self.has_room()?;
            }
            if known.is_some() || claims.admits {
                self.settings.admission.spend(claims.nonce.clone(), now);
            }
            // A ticket that came along is used up as well; what it says is newer.
            let ticketed = holder.as_ref().filter(|_| known.is_some() || claims.admits);
            let ticketed = ticketed.and_then(|_| self.use_ticket(ticket, None, now).ok());
            if let Some(number) = known {
                if let Some(identity) = &ticketed {
                    self.dress(number, identity);
                }
                self.unseat(number, "You continued this game on another connection.");
                self.metrics.resumed.fetch_add(1, Relaxed);
                return Ok(Entry {
                    number,
                    resumption: self.resumption_of(number),
                    token_nonce: Some(nonce),
                });
            }
            if claims.admits {
                // Who came to this process in another way has other counts. Of a
                // session that began in the last moment nothing may have been
                // kept: whoever counts says everything again.
                let goes_on = here.is_none()
                    && !claims.session.is_empty()
                    && (self.settings.returning.knows(&claims) || said.received.is_some());
                let resumption = match goes_on {
                    true => Resumption::Restarted,
                    false => Resumption::New,
                };
                let identity = ticketed.unwrap_or(claims.identity);
                let session = goes_on.then_some(claims.session);
                let number = self.admit(link, identity, Some(session))?;
                self.metrics.resumed.fetch_add(1, Relaxed);
                return Ok(Entry {
                    number,
                    resumption,
                    token_nonce: Some(nonce),
                });
            }
        }
        if let Err(refusal) = self.has_room() {
            // A ticket must not be used up for nothing.
            let here = holder.and_then(|id| self.seats.of_player(&id));
            here.ok_or(refusal)?;
        }
        let identity = self.use_ticket(ticket, said.name.as_deref(), now)?;
        Ok(Entry {
            number: self.admit(link, identity, None)?,
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
        // The places of those who may come back are theirs.
        if self.seats.taken() >= self.settings.players_max {
            let message = "this world is full; join again to get another one".into();
            return Err(("world_full", message));
        }
        Ok(())
    }

    /// The number of a player who has shown who they are. One who is here
    /// already, or was until a moment ago, takes their character over. Who is the
    /// `heir` of an earlier process, by its token, goes on with what that left:
    /// in the session of that name, or with none in a new one.
    fn admit(
        &mut self,
        link: ConnectionId,
        identity: Identity,
        heir: Option<Option<String>>,
    ) -> Result<PlayerNumber, Refusal> {
        if let Some(number) = self.seats.of_player(&identity.player_id) {
            self.dress(number, &identity);
            self.unseat(number, "You opened this game somewhere else.");
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
        let mut seat = Seat::new(identity, String::new(), link);
        if let Some((saved, session)) = saved.zip(heir) {
            seat.inherit(saved, session);
        }
        self.seats.insert(number, seat);
        Ok(number)
    }

    /// How a player comes back whose seat is known. Who was brought over from
    /// another process and has heard nothing since still is.
    fn resumption_of(&self, number: PlayerNumber) -> Resumption {
        match self.seats.get(number).and_then(|seat| seat.unheard) {
            Some(Resumption::Restarted) => Resumption::Restarted,
            _ => Resumption::Resumed,
        }
    }

    /// Takes a player from the connection they had, which may be gone, or not
    /// have noticed yet that it is.
    fn unseat(&mut self, number: PlayerNumber, reason: &str) {
        let old = self.seats.get(number).and_then(Seat::link);
        if let Some(old) = old.and_then(|link| self.sessions.get_mut(link)) {
            old.player = None;
            old.tell(&ServerMessage::Error {
                code: "replaced".to_owned(),
                message: reason.to_owned(),
            });
            old.kick(KickCause::Replaced, reason);
        }
        self.world.reconnect(number);
    }

    /// Gives a player's seat to a connection and tells it everything.
    fn seat(&mut self, link: ConnectionId, seq: Option<u32>, entry: Entry, received: Option<u32>) {
        let number = entry.number;
        self.seats.move_to(number, Place::Online(link));
        self.world.set_connected(number, true);
        let Some(seat) = self.seats.get_mut(number) else {
            return;
        };
        let spent = std::mem::replace(&mut seat.nonce, new_nonce());
        // The token that they have, whatever others were made of which they
        // may not have heard.
        seat.last_nonce = entry.token_nonce.unwrap_or_else(|| spent.clone());
        let session = self.sessions.get(link);
        let page = session.is_some_and(|session| session.encoding == Encoding::Binary);
        let (resumption, sent) = seat.go_on(entry.resumption, received, page);
        self.settings.admission.spend(spent, unix_s());
        let Some(welcome) = self.welcome(number, resumption, sent) else {
            return;
        };
        let presence = ServerMessage::Presence(self.world.players());
        let weapons = self.world.weapons(number);
        let scene = self.scene_packet.clone();
        let (Some(session), Some(seat)) = (self.sessions.get_mut(link), self.seats.get_mut(number))
        else {
            return;
        };
        let (is_json, delivery) = (session.encoding == Encoding::Json, session.line.delivery());
        let player = SessionPlayer {
            number,
            // Strangers ask for the scene if they want to draw it. And they have
            // no generator for the ground: they ask for what they want.
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
            heard: false,
            counted: Counted::default(),
            reported: Reported::default(),
            scene: None,
        };
        session.slot.come_in();
        session.welcome(player, welcome);
        session.answer(seq, Ok(()));
        if !is_json {
            session.tell_packet(&scene);
        }
        let manifest = ServerMessage::ScriptManifest(self.client_scripts.manifest(is_json));
        // Before the scripts: what they print first is wanted too.
        let prints = self.client_prints.wants(&seat.identity.player_id);
        let logs = prints.then_some(ServerMessage::LogsWanted { prints });
        for message in weapons.iter().chain(&logs).chain([&presence, &manifest]) {
            session.tell(message);
        }
        if let Some(notice) = self.saving.for_newcomer() {
            session.tell(&notice);
        }
        // What the last connection did not bring, and what has come up since;
        // a JSON client hears it behind its first snapshot.
        if session.encoding == Encoding::Binary {
            session.tell_rest(&mut seat.log);
        }
        self.sessions.add_viewer(link, number);
        self.came_or_went.push(number);
        self.note_players();
    }

    fn welcome(&self, number: PlayerNumber, resumption: Resumption, sent: u32) -> Option<Welcome> {
        let seat = self.seats.get(number)?;
        let admission = &self.settings.admission;
        Some(Welcome {
            tick: self.world.tick(),
            entity_id: self.world.entity_of(number)?,
            player_id: seat.identity.player_id.clone(),
            player_number: number,
            world_id: self.settings.world_id.clone(),
            room_code: self.settings.room_code.clone(),
            tick_hz: self.world.tick_hz(),
            snapshot_hz: self.world.snapshot_hz(),
            resume_token: admission.token(&seat.identity, &seat.nonce, &seat.session, unix_s()),
            server_time: self.server_time_ms(),
            revision: self.world.revision().to_owned(),
            character: self.world.character_params(),
            resumption,
            received: seat.received,
            sent,
        })
    }

    /// Renews resume tokens, so that one is young when this process dies.
    pub(super) fn renew_tokens(&mut self) {
        let (tick, tick_hz) = (self.world.tick(), self.world.tick_hz());
        if !tick.is_multiple_of(tick_hz) {
            return;
        }
        let second = tick / tick_hz;
        for (number, seat) in self.seats.iter() {
            // Spread: not everybody in the same second.
            let turn = second.wrapping_add(number).is_multiple_of(TOKEN_RENEWED_S);
            let Some(link) = seat.link().filter(|_| turn) else {
                continue;
            };
            let admission = &self.settings.admission;
            let (nonce, named) = (&seat.nonce, &seat.session);
            let token = admission.token(&seat.identity, nonce, named, unix_s());
            if let Some(session) = self.sessions.get_mut(link) {
                session.tell(&ServerMessage::ResumeToken { token });
            }
        }
    }
}

/// Between two resume tokens of a session; well below their lifetime.
const TOKEN_RENEWED_S: u32 = 60;

/// Seconds since 1970.
pub(super) fn unix_s() -> u64 {
    unix_ms() / 1000
}

pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}
