//! Sends messages to players: those that count are logged until they are
//! acknowledged, for disconnected players too.

use std::collections::BTreeSet;
use std::sync::Arc;

use frolic_protocol::ServerMessage;
use frolic_protocol::packet;
use frolic_world::PlayerNumber;

use super::{PlayerSession, PlayerSessions};
use crate::decoder::Encoding;
use crate::session::{ReliableMessage, Session};
use crate::sessions::Sessions;

/// A message on its way to several players, encoded once for all binary clients.
struct Parcel {
    message: Arc<ServerMessage>,
    packet: Arc<[u8]>,
    reliable: bool,
}

impl PlayerSessions {
    /// Sends a message to one player or to all. One that is not reliable is dropped
    /// for clients that do not keep up.
    pub fn deliver(
        &mut self,
        sessions: &mut Sessions,
        to: Option<PlayerNumber>,
        message: ServerMessage,
        reliable: bool,
    ) {
        let hidden_from = match &message {
            ServerMessage::Chat { player_id, .. } => self.hidden_from(player_id),
            _ => BTreeSet::new(),
        };
        let parcel = Parcel {
            packet: packet::single(&message).into(),
            message: Arc::new(message),
            reliable,
        };
        let mut send = |number: &PlayerNumber, player_session: &mut PlayerSession| {
            if !hidden_from.contains(number) {
                let connection_id = player_session.connection_id();
                let session = connection_id.and_then(|id| sessions.get_mut(id));
                parcel.send(player_session, session);
            }
        };
        match to {
            Some(number) => {
                if let Some(player_session) = self.by_number.get_mut(&number) {
                    send(&number, player_session);
                }
            }
            None => {
                for (number, player_session) in &mut self.by_number {
                    send(number, player_session);
                }
            }
        }
    }

    /// The players from whom the chat of `speaker` is hidden: one of the two has
    /// blocked the other.
    fn hidden_from(&self, speaker: &str) -> BTreeSet<PlayerNumber> {
        if speaker.is_empty() {
            return BTreeSet::new();
        }
        let number = self.of_player(speaker);
        let blocked = number
            .and_then(|number| self.get(number))
            .map(|player_session| &player_session.blocked);
        self.iter()
            .filter(|(_, player_session)| {
                let blocked =
                    blocked.is_some_and(|all| all.contains(&player_session.identity.player_id));
                blocked || player_session.blocked.contains(speaker)
            })
            .map(|(number, _)| number)
            .collect()
    }
}

impl Parcel {
    fn send(&self, player_session: &mut PlayerSession, session: Option<&mut Session>) {
        let takes = |session: &Session| self.reliable || !session.is_behind();
        if !session.as_deref().map_or(self.reliable, takes) {
            return;
        }
        if !self.message.is_counted() {
            if let Some(session) = session {
                session.send_packet_or(&self.packet, &self.message);
            }
            return;
        }
        let reliable = ReliableMessage {
            echo: player_session.answered(&self.message),
            message: self.message.clone(),
            packet: self.packet.clone(),
        };
        // A session that waits for its first snapshot gets the message after it.
        let mut session = session.filter(|session| !session.awaits_snapshot());
        let number = player_session.log.sent().wrapping_add(1);
        match &mut session {
            Some(session) if session.encoding == Encoding::Binary => {
                session.send_packet(&self.packet);
            }
            Some(session) => session.send_counted(&reliable, number),
            None => {}
        }
        player_session.log.push(reliable, self.packet.len());
        if session.is_some() {
            player_session.log.mark_all_written();
        }
    }
}
