//! Reliable messages on their way out, in pieces of which each is one
//! WebSocket message at most: a server takes no longer ones.

use std::collections::VecDeque;

use frolic_protocol::packet::CLIENT_MESSAGE_BYTES_MAX;

/// What waits to be written, cut between messages and never within one.
#[derive(Default)]
pub(crate) struct Outbox {
    pieces: VecDeque<Vec<u8>>,
}

impl Outbox {
    /// Adds a packet of one message, which is not longer than a piece may be.
    pub fn push(&mut self, packet: Vec<u8>) {
        debug_assert!(packet.len() <= CLIENT_MESSAGE_BYTES_MAX);
        match self.pieces.back_mut() {
            Some(last) if fits(last, &packet) => last.extend_from_slice(&packet),
            _ => self.pieces.push_back(packet),
        }
    }

    /// The next piece.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        self.pieces.pop_front()
    }
}

/// Whether both may travel as one WebSocket message.
pub(crate) fn fits(piece: &[u8], more: &[u8]) -> bool {
    piece.len() + more.len() <= CLIENT_MESSAGE_BYTES_MAX
}
