//! Reliable messages: each is delivered exactly once, in order, across reconnects.

use frolic_protocol::message::Resumption;
use frolic_protocol::resume::SentLog;
use frolic_protocol::{ClientMessage, Welcome};

/// Counted messages that may leave at once; a server takes more than this
/// for a flood.
const BURST: f64 = 200.0;
/// And per second.
const PER_S: f64 = 150.0;

/// Bytes of messages that wait to be confirmed. A server confirms what it has
/// stored, a second or two after it was said.
pub(crate) const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// Both counts of a session, and what the server has not confirmed.
pub(crate) struct ReliableChannel {
    log: SentLog<ClientMessage>,
    received: u32,
    token: Option<String>,
    /// Whether there was a welcome on this line.
    open: bool,
    allowance: f64,
    refilled_ms: Option<f64>,
}

impl Default for ReliableChannel {
    fn default() -> Self {
        Self {
            log: SentLog::keeping(KEPT_BYTES_MAX),
            received: 0,
            token: None,
            open: false,
            allowance: 0.0,
            refilled_ms: None,
        }
    }
}

impl ReliableChannel {
    /// Keeps a message until it is confirmed. False when too many wait for
    /// that already.
    pub fn say(&mut self, message: ClientMessage, bytes: usize) -> bool {
        if !self.log.has_room(bytes) {
            return false;
        }
        self.log.push(message, bytes);
        true
    }

    /// The next message for the line, while there is one and it may leave.
    pub fn next(&mut self) -> Option<&ClientMessage> {
        if !self.open || self.allowance < 1.0 {
            return None;
        }
        let (_, message) = self.log.next_untold()?;
        self.allowance -= 1.0;
        Some(message)
    }

    /// Whether one more message may leave now that is not kept.
    pub fn spend(&mut self) -> bool {
        let may = self.open && self.allowance >= 1.0;
        self.allowance -= f64::from(u8::from(may));
        may
    }

    /// Lets more leave as time goes by.
    pub fn refill(&mut self, now_ms: f64) {
        let since_ms = now_ms - self.refilled_ms.unwrap_or(now_ms);
        self.refilled_ms = Some(now_ms);
        self.allowance = (self.allowance + since_ms.max(0.0) / 1000.0 * PER_S).min(BURST);
    }

    /// A counted message came.
    pub fn heard(&mut self) {
        self.received = self.received.wrapping_add(1);
    }

    /// How many have come.
    pub fn received(&self) -> u32 {
        self.received
    }

    /// The server has so many.
    pub fn confirmed(&mut self, received: u32) {
        if self.open {
            self.log.confirm(received);
        }
    }

    /// The token for the next handshake.
    pub fn token(&self) -> Option<&String> {
        self.token.as_ref()
    }

    /// A token that replaces the one before.
    pub fn set_token(&mut self, token: String) {
        self.token = Some(token);
    }

    /// What the server takes up again. Returns how many messages were lost
    /// in either direction.
    pub fn welcome(&mut self, welcome: &Welcome) -> u32 {
        self.open = true;
        self.allowance = BURST;
        self.token = Some(welcome.resume_token.clone());
        match welcome.resumption {
            Resumption::Resumed | Resumption::Restarted => {
                // It has heard them, and forgets them if it is killed before
                // it has stored what came of them.
                let lost_there = self.log.go_on(welcome.received);
                let lost_here = welcome.sent.saturating_sub(self.received);
                self.received = welcome.sent;
                lost_there + lost_here
            }
            Resumption::New => {
                self.log.restart(false);
                self.received = 0;
                0
            }
        }
    }

    /// The line is gone: nothing leaves until the next welcome.
    pub fn hang_up(&mut self) {
        self.open = false;
        self.refilled_ms = None;
    }
}
