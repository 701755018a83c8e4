//! Admits a player, for the first time or again.

use std::time::{SystemTime, UNIX_EPOCH};

use frolic_protocol::message::Resumption;
use frolic_protocol::{ServerMessage, Welcome};
use frolic_world::{PlayerNumber, input};

use super::Host;
use super::social::dress;
use crate::admission::{Identity, ResumeClaims, new_nonce};
use crate::connection::ConnectionId;
use crate::decoder::Encoding;
use crate::metrics::KickCause;
use crate::player_sessions::{Place, PlayerSession};
use crate::session::SessionPlayer;

/// Interval between two resume tokens of a session; well below their lifetime.
const TOKEN_RENEWED_S: u32 = 60;

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

/// What a player who joins continues with from an earlier process, proven by its
/// token.
enum Heritage {
    /// Only their place.
    Place,
    /// Also the messages that were not delivered, in a new session.
    Undelivered,
    /// The session of this name.
    Session(String),
}

impl Host {
    /// Checks the ticket or the resume token, and admits the player.
    pub(super) fn handshake(
        &mut self,
        connection_id: ConnectionId,
        seq: Option<u32>,
        mut said: Introduction,
    ) {
        let Some(session) = self.sessions.get_mut(connection_id) else {
            return;
        };
        if session.player.is_some() {
            // A ticket in the URL has admitted them already.
            session.answer(seq, Ok(()));
            return;
        }
        if let Some(reason) = self.lifecycle.closing() {
            // The ticket or token is not used up: it is for another process.
            session.answer(seq, Err(("restarting", reason.to_owned())));
            session.kick(KickCause::Stopped, reason);
            return;
        }
        if said.ticket.is_none() {
            said.ticket = session.ticket.take();
        }
        match self.identify(connection_id, &said) {
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
        said: &Introduction,
    ) -> Result<Entry, Refusal> {
        let now = unix_s();
        let token = said.resume_token.as_deref().unwrap_or("");
        let claims = self.admission.read_token(token, now);
        let holder = self.admission.holder(said.ticket.as_deref(), now);
        // A ticket of another player beside the token: the ticket is newer.
        let claims = claims.filter(|claims| {
            let holder = holder.as_ref();
            holder.is_none_or(|holder| *holder == claims.identity.player_id)
        });
        if let Some(claims) = claims
            && let Some(entry) = self.resume(connection_id, claims, holder.as_deref(), said)?
        {
            return Ok(entry);
        }
        if let Err(refusal) = self.has_room() {
            // Checked first, so that no ticket is used up in vain.
            let here = holder.and_then(|id| self.players.of_player(&id));
            here.ok_or(refusal)?;
        }
        let identity = self.use_ticket(said, now)?;
        Ok(Entry {
            number: self.admit(connection_id, identity, Heritage::Place),
            resumption: Resumption::New,
            token_nonce: None,
        })
    }

    /// Admits the player of a resume token, if it still counts; `holder` is the
    /// player of the ticket beside it.
    fn resume(
        &mut self,
        connection_id: ConnectionId,
        claims: ResumeClaims,
        holder: Option<&str>,
        said: &Introduction,
    ) -> Result<Option<Entry>, Refusal> {
        let now = unix_s();
        let known = self.players.of_nonce(&claims.nonce);
        if let Some(player_session) = known.and_then(|number| self.players.get_mut(number)) {
            // A client with the newest token has read the welcome it came with.
            player_session.note_received();
        }
        // The welcome of an earlier attempt may never have arrived, and with it the
        // next token.
        let known = known.or_else(|| self.players.before_nonce(holder, &claims.nonce));
        let here = known.or_else(|| self.players.of_player(&claims.identity.player_id));
        // A player who left an earlier process, or was kicked from it, cannot come
        // back with a token of that time: they must join again, if they may. A
        // player who joins again with the token of a session that began just before
        // that process was killed, and was never persisted, still continues that
        // session.
        let expected = self
            .persister
            .returning()
            .expects(&claims.identity.player_id);
        let admits = claims.admits && (here.is_some() || expected || holder.is_some());
        if admits && here.is_none() {
            // Checked first, so that no token is used up in vain.
            self.has_room()?;
        }
        if known.is_none() && !admits {
            return Ok(None);
        }
        self.admission.spend(claims.nonce.clone(), now);
        // A ticket that was sent along is used up as well; what it says is newer.
        let ticketed = holder.and_then(|_| self.use_ticket(said, now).ok());
        self.telemetry.metrics().resumed.add(1);
        let (number, resumption) = if let Some(number) = known {
            if let Some(identity) = &ticketed {
                dress(&mut self.world, number, identity);
            }
            self.detach(number, "You continued this game on another connection.");
            let player_session = self.players.get(number);
            let resumption = player_session.map(PlayerSession::resumption);
            (number, resumption.unwrap_or(Resumption::Resumed))
        } else {
            // A player who joined this process in another way has other counts. A
            // session that began in the last moment may not have been persisted: a
            // client that counts sends everything again.
            let goes_on = here.is_none()
                && !claims.session.is_empty()
                && (self.persister.returning().knows(&claims) || said.received.is_some());
            let (resumption, heritage) = if goes_on {
                (Resumption::Restarted, Heritage::Session(claims.session))
            } else {
                (Resumption::New, Heritage::Undelivered)
            };
            let identity = ticketed.unwrap_or(claims.identity);
            (self.admit(connection_id, identity, heritage), resumption)
        };
        Ok(Some(Entry {
            number,
            resumption,
            token_nonce: Some(claims.nonce),
        }))
    }

    fn use_ticket(&mut self, said: &Introduction, now: u64) -> Result<Identity, Refusal> {
        let (ticket, name) = (said.ticket.as_deref(), said.name.as_deref());
        let identity = self
            .admission
            .admit(ticket, name, now)
            .map_err(|error| (error.code(), error.to_string()))?;
        self.telemetry.metrics().tickets_used.add(1);
        Ok(identity)
    }

    fn has_room(&self) -> Result<(), Refusal> {
        if self.lifecycle.is_draining() {
            return Err(("draining", "this server is closing; join again".into()));
        }
        // The places of players who may reconnect are reserved.
        if self.players.taken() >= self.identity.players_max {
            let message = "this world is full; join again to get another one".into();
            return Err(("world_full", message));
        }
        Ok(())
    }

    /// The number of an authenticated player, for whom there is room. A player who
    /// is connected already, or was until a moment ago, takes over their character.
    fn admit(
        &mut self,
        connection_id: ConnectionId,
        identity: Identity,
        heritage: Heritage,
    ) -> PlayerNumber {
        if let Some(number) = self.players.of_player(&identity.player_id) {
            dress(&mut self.world, number, &identity);
            self.detach(number, "You opened this game somewhere else.");
            return number;
        }
        let saved = self.persister.place_of(&identity);
        let number = self.world.apply(input::Join {
            id: identity.player_id.clone(),
            name: identity.name.clone(),
            saved: saved.as_ref().map(|saved| Box::new(saved.state.clone())),
        });
        dress(&mut self.world, number, &identity);
        self.social.joined(number, &identity);
        let mut player_session = PlayerSession::new(identity, String::new(), connection_id);
        match (saved, heritage) {
            (None, _) | (_, Heritage::Place) => {}
            (Some(saved), Heritage::Undelivered) => player_session.inherit(saved, None),
            (Some(saved), Heritage::Session(name)) => player_session.inherit(saved, Some(name)),
        }
        self.players.insert(number, player_session);
        number
    }

    /// Detaches a player from their previous connection, which may be closed, or
    /// not yet known to be.
    fn detach(&mut self, number: PlayerNumber, reason: &str) {
        let player_session = self.players.get(number);
        let old = player_session.and_then(PlayerSession::connection_id);
        if let Some(old) = old.and_then(|connection_id| self.sessions.get_mut(connection_id)) {
            old.player = None;
            old.send(&ServerMessage::Error {
                code: "replaced".to_owned(),
                message: reason.to_owned(),
            });
            old.kick(KickCause::Replaced, reason);
        }
        self.world.apply(input::Reconnect { player: number });
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
        self.players.move_to(number, Place::Online(connection_id));
        self.world.apply(input::Connected {
            player: number,
            connected: true,
        });
        let (Some(session), Some(player_session)) = (
            self.sessions.get_mut(connection_id),
            self.players.get_mut(number),
        ) else {
            return;
        };
        let spent = std::mem::replace(&mut player_session.nonce, new_nonce());
        // The token that the client has; tokens issued after it may not have
        // arrived.
        player_session.last_nonce = entry.token_nonce.unwrap_or_else(|| spent.clone());
        let is_json = session.encoding == Encoding::Json;
        let (resumption, sent) = player_session.go_on(entry.resumption, received, !is_json);
        self.admission.spend(spent, unix_s());
        let Some(entity_id) = self.world.entity_of(number) else {
            return;
        };
        let welcome = Welcome {
            tick: self.world.tick(),
            entity_id,
            player_id: player_session.identity.player_id.clone(),
            player_number: number,
            world_id: self.identity.world_id.clone(),
            room_code: self.identity.room_code.clone(),
            tick_hz: self.world.tick_hz(),
            snapshot_hz: self.world.snapshot_hz(),
            resume_token: player_session.token(&self.admission, unix_s()),
            server_time: self.telemetry.server_time_ms(),
            revision: self.world.revision().to_owned(),
            character: self.world.character_params(),
            resumption,
            received: player_session.received,
            sent,
        };
        let delivery = session.connection.delivery();
        session.permit.come_in();
        session.welcome(
            SessionPlayer::new(number, session.encoding, delivery),
            welcome,
        );
        session.answer(seq, Ok(()));
        if !is_json {
            session.send_packet(self.scene.packet());
        }
        let presence = ServerMessage::Presence(self.world.players());
        let manifest = ServerMessage::ScriptManifest(self.scripts.manifest(is_json));
        // Before the scripts, so that their first prints are reported too.
        let logs = self.reports.logs_wanted(&player_session.identity.player_id);
        let weapons = self.world.weapons(number);
        for message in weapons.iter().chain(&logs).chain([&presence, &manifest]) {
            session.send(message);
        }
        if let Some(notice) = self.persister.saving_notice() {
            session.send(&notice);
        }
        // What the last connection did not deliver, and what has been queued since;
        // a JSON client gets it after its first snapshot.
        if !is_json {
            session.send_unwritten(&mut player_session.log);
        }
        self.sessions.add_viewer(connection_id, number);
    }

    /// Renews resume tokens, so that clients have a young one when this process
    /// dies.
    pub(super) fn renew_tokens(&mut self) {
        let (tick, tick_hz) = (self.world.tick(), self.world.tick_hz());
        if !tick.is_multiple_of(tick_hz) {
            return;
        }
        let second = tick / tick_hz;
        for (number, player_session) in self.players.iter() {
            // Spread over time: not all clients in the same second.
            let turn = second.wrapping_add(number).is_multiple_of(TOKEN_RENEWED_S);
            let Some(connection_id) = player_session.connection_id().filter(|_| turn) else {
                continue;
            };
            let token = player_session.token(&self.admission, unix_s());
            if let Some(session) = self.sessions.get_mut(connection_id) {
                session.send(&ServerMessage::ResumeToken { token });
            }
        }
    }
}

/// Seconds since 1970.
pub(super) fn unix_s() -> u64 {
    unix_ms() / 1000
}

pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}
