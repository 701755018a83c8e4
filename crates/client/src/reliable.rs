//! Reliable messages: each is delivered exactly once, in order, across reconnects.

use frolic_protocol::message::Resumption;
use frolic_protocol::resume::SentLog;
use frolic_protocol::{ClientMessage, Welcome};

/// Reliable messages that may be sent at once; a server treats more as a flood.
const BURST: f64 = 200.0;
/// And per second.
const PER_S: f64 = 150.0;

/// Limit of unacknowledged bytes. A server acknowledges what it has stored, a
/// second or two after it was sent.
pub(crate) const LOG_BYTES_MAX: usize = 1024 * 1024;

/// Both counts of a session, and what the server has not acknowledged.
pub(crate) struct ReliableChannel {
    log: SentLog<ClientMessage>,
    received: u32,
    token: Option<String>,
    /// Whether there was a welcome on this connection.
    open: bool,
    allowance: f64,
    refilled_ms: Option<f64>,
}

impl Default for ReliableChannel {
    fn default() -> Self {
        Self {
            log: SentLog::with_limit(LOG_BYTES_MAX),
            received: 0,
            token: None,
            open: false,
            allowance: 0.0,
            refilled_ms: None,
        }
    }
}

impl ReliableChannel {
    /// Stores a message until it is acknowledged. False when too many are stored
    /// already.
    pub fn say(&mut self, message: ClientMessage, bytes: usize) -> bool {
        if !self.log.has_room(bytes) {
            return false;
        }
        self.log.push(message, bytes);
        true
    }

    /// The next message to send, while there is one and the rate limit permits it.
    pub fn next(&mut self) -> Option<&ClientMessage> {
        if !self.open || self.allowance < 1.0 {
            return None;
        }
        let (_, message) = self.log.next_unwritten()?;
        self.allowance -= 1.0;
        Some(message)
    }

    /// Whether one more message that is not stored may be sent now.
    pub fn spend(&mut self) -> bool {
        let may = self.open && self.allowance >= 1.0;
        self.allowance -= f64::from(u8::from(may));
        may
    }

    /// Refills the rate limit as time passes.
    pub fn refill(&mut self, now_ms: f64) {
        let since_ms = now_ms - self.refilled_ms.unwrap_or(now_ms);
        self.refilled_ms = Some(now_ms);
        self.allowance = (self.allowance + since_ms.max(0.0) / 1000.0 * PER_S).min(BURST);
    }

    /// A reliable message was received.
    pub fn note_received(&mut self) {
        self.received = self.received.wrapping_add(1);
    }

    /// How many were received.
    pub fn received(&self) -> u32 {
        self.received
    }

    /// The server has `received` messages.
    pub fn confirmed(&mut self, received: u32) {
        if self.open {
            self.log.confirm(received);
        }
    }

    /// The token for the next handshake.
    pub fn token(&self) -> Option<&String> {
        self.token.as_ref()
    }

    /// Replaces the token.
    pub fn set_token(&mut self, token: String) {
        self.token = Some(token);
    }

    /// Resumes from the server's welcome. Returns how many messages were lost in
    /// either direction.
    pub fn welcome(&mut self, welcome: &Welcome) -> u32 {
        self.open = true;
        self.allowance = BURST;
        self.token = Some(welcome.resume_token.clone());
        match welcome.resumption {
            Resumption::Resumed | Resumption::Restarted => {
                // The server has received them, but loses them if it is killed
                // before it has stored the effects.
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

    /// The connection is closed: nothing is sent until the next welcome.
    pub fn hang_up(&mut self) {
        self.open = false;
        self.refilled_ms = None;
    }
}
