//! Messages to players that the host has not taken yet.

use frolic_protocol::ServerMessage;

use crate::player::PlayerNumber;

/// A message to one player, or to all.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The player, or none for all.
    pub to: Option<PlayerNumber>,
    /// The message.
    pub message: ServerMessage,
    /// Whether delivery must be reliable.
    pub reliable: bool,
}

impl Outgoing {
    /// A message with reliable delivery.
    pub(crate) fn reliable(to: Option<PlayerNumber>, message: ServerMessage) -> Self {
        Self {
            to,
            message,
            reliable: true,
        }
    }
}

/// Messages in the order in which they are sent.
#[derive(Default)]
pub(crate) struct Outbox(Vec<Outgoing>);

impl Outbox {
    /// Sends a message to all players.
    pub fn broadcast(&mut self, message: ServerMessage) {
        self.send(None, message);
    }

    /// Sends a message to one player, or to all.
    pub fn send(&mut self, to: Option<PlayerNumber>, message: ServerMessage) {
        self.0.push(Outgoing::reliable(to, message));
    }

    /// Sends a message that may be lost.
    pub fn send_unreliable(&mut self, to: Option<PlayerNumber>, message: ServerMessage) {
        self.0.push(Outgoing {
            to,
            message,
            reliable: false,
        });
    }

    /// Sends a message that waited for something.
    pub fn release(&mut self, message: Outgoing) {
        self.0.push(message);
    }

    /// The messages since the last call.
    pub fn take(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.0)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Outgoing> {
        self.0.iter()
    }
}
