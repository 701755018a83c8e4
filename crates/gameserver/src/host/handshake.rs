//! Letting a player in, for the first time or again.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use frolic_protocol::{ServerMessage, Welcome};
use frolic_world::{ClientView, PlayerNumber};

use super::{Host, Lingering};
use crate::link::{Encoding, LinkId};
use crate::metrics::KickCause;
use crate::session::{Session, SessionPlayer};

impl Host {
    /// Checks the ticket or the resume token, and brings the player in.
    pub(super) fn handshake(
        &mut self,
        link: LinkId,
        seq: Option<u32>,
        ticket: Option<String>,
        resume_token: Option<String>,
        name: Option<&str>,
    ) {
        let Some(session) = self.sessions.get_mut(&link) else {
            return;
        };
        if session.player.is_some() {
            // A ticket in the address has let them in already.
            session.answer(seq, Ok(()));
            return;
        }
        let ticket = ticket.or_else(|| session.ticket.take());
        let resumed = resume_token.and_then(|token| self.resume(&token));
        let number = match resumed {
            Some(number) => number,
            None => match self.admit(ticket.as_deref(), name) {
                Ok(number) => number,
                Err((code, message)) => {
                    if let Some(session) = self.sessions.get_mut(&link) {
                        session.answer(seq, Err((code, message.clone())));
                        session.kick(KickCause::Refused, &message);
                    }
                    return;
                }
            },
        };
        let resume_token = random_token();
        let Some(welcome) = self.welcome(number, &resume_token) else {
            return;
        };
        let presence = ServerMessage::Presence(self.world.players());
        let definitions = self.world.definitions();
        let manifest = ServerMessage::ScriptManifest(self.shelf.manifest().clone());
        let scene = self.scene_packet.clone();
        let Some(session) = self.sessions.get_mut(&link) else {
            return;
        };
        session.player = Some(SessionPlayer {
            number,
            resume_token,
            view: ClientView::new(number),
            verified: BTreeSet::new(),
            executed: 0,
            refused_inputs: 0,
        });
        session.slot.come_in();
        session.answer(seq, Ok(()));
        session.tell(&ServerMessage::Welcome(Box::new(welcome)));
        match session.encoding {
            Encoding::Binary => session.tell_packet(&scene),
            // NET-13: a full snapshot follows the welcome. Strangers draw what
            // snapshots tell; the scene file is for our own renderer.
            Encoding::Json => {
                let mut sight = self.world.sight();
                if let Some(player) = &mut session.player {
                    let text = player.view.json_snapshot(&self.world, &mut sight);
                    session.tell_text(&text);
                }
            }
        }
        for definition in &definitions {
            session.tell(definition);
        }
        session.tell(&presence);
        session.tell(&manifest);
        self.note_players();
    }

    /// The player of a resume token. The old connection may be gone, or not
    /// have noticed yet that it is: whoever holds the token takes over.
    fn resume(&mut self, token: &str) -> Option<PlayerNumber> {
        let number = match self.lingering.remove(token) {
            Some(Lingering { number, .. }) => number,
            None => {
                let holds = |session: &&mut Session| {
                    let player = session.player.as_ref();
                    !token.is_empty() && player.is_some_and(|p| p.resume_token == token)
                };
                let old = self.sessions.values_mut().find(holds)?;
                let number = old.player.take()?.number;
                old.kick(
                    KickCause::Replaced,
                    "this player continues on another connection",
                );
                number
            }
        };
        self.world.reconnect(number);
        Some(number)
    }

    fn admit(
        &mut self,
        ticket: Option<&str>,
        name: Option<&str>,
    ) -> Result<PlayerNumber, (&'static str, String)> {
        if self.draining {
            return Err(("draining", "this server is closing; join again".into()));
        }
        let here = self
            .sessions
            .values()
            .filter(|s| s.player.is_some())
            .count();
        if here as u32 >= self.settings.players_max {
            let message = "this world is full; join again to get another one".into();
            return Err(("world_full", message));
        }
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let identity = self
            .settings
            .admission
            .admit(ticket, name, now)
            .map_err(|error| (error.code(), error.to_string()))?;
        if let Some(number) = self.replace(&identity.player_id) {
            return Ok(number);
        }
        let number = self
            .world
            .join(identity.player_id.clone(), identity.name.clone());
        self.identities.insert(number, identity);
        Ok(number)
    }

    /// A player who is here already, or was until a moment ago, comes in again
    /// with a new ticket: the new connection takes the character over.
    fn replace(&mut self, player_id: &str) -> Option<PlayerNumber> {
        let mut known = self.identities.iter();
        let (&number, _) = known.find(|(_, identity)| identity.player_id == player_id)?;
        self.lingering.retain(|_, gone| gone.number != number);
        for session in self.sessions.values_mut() {
            if session.player.as_ref().is_some_and(|p| p.number == number) {
                session.player = None;
                session.kick(
                    KickCause::Replaced,
                    "you joined this world from another place",
                );
            }
        }
        self.world.reconnect(number);
        Some(number)
    }

    fn welcome(&self, number: PlayerNumber, resume_token: &str) -> Option<Welcome> {
        Some(Welcome {
            tick: self.world.tick(),
            entity_id: self.world.entity_of(number)?,
            player_id: self.identities.get(&number)?.player_id.clone(),
            player_number: number,
            world_id: self.settings.world_id.clone(),
            room_code: self.settings.room_code.clone(),
            tick_hz: self.world.tick_hz(),
            snapshot_hz: self.snapshot_hz(),
            resume_token: resume_token.to_owned(),
            server_time: self.server_time_ms(),
            revision: self.settings.revision.clone(),
            character: self.world.character_params(),
        })
    }
}

/// 128 bits nobody can guess.
fn random_token() -> String {
    let mut bytes = [0u8; 16];
    // Without the system's randomness no token may be handed out: an empty
    // one resumes nothing.
    match getrandom::fill(&mut bytes) {
        Ok(()) => hex::encode(bytes),
        Err(_) => String::new(),
    }
}
