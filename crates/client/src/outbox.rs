//! Outgoing reliable messages, in pieces of at most one WebSocket message each: a
//! server accepts no larger ones.

use std::collections::VecDeque;

use frolic_protocol::packet::CLIENT_MESSAGE_BYTES_MAX;

/// The bytes to write, split between messages and never within one.
#[derive(Default)]
pub(crate) struct Outbox {
    pieces: VecDeque<Vec<u8>>,
}

impl Outbox {
    /// Adds a packet of one message, which is not larger than a piece may be.
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

/// Whether both fit into one WebSocket message.
pub(crate) fn fits(piece: &[u8], more: &[u8]) -> bool {
    piece.len() + more.len() <= CLIENT_MESSAGE_BYTES_MAX
}
