//! Session resumption after a lost connection: each side numbers its reliable
//! messages, and stores those that the other has not acknowledged.

mod persisted;

use std::collections::VecDeque;

pub use persisted::{PersistedCall, PersistedLog, PersistedMessage, PersistedPacket};

/// Messages that one side stores for the other.
pub const LOG_MESSAGES_MAX: usize = 2048;
/// Bytes of them.
pub const LOG_BYTES_MAX: usize = 256 * 1024;
/// No session has more messages: a larger count is forged.
pub const COUNT_MAX: u32 = u32::MAX / 2;

/// Reliable messages to the other side, numbered from 1.
///
/// Messages up to some number are written to the current connection; the newest
/// may still wait for one.
#[derive(Debug)]
pub struct SentLog<M> {
    messages: VecDeque<(M, usize)>,
    bytes: usize,
    bytes_max: usize,
    sent: u32,
    written: u32,
}

impl<M> Default for SentLog<M> {
    fn default() -> Self {
        Self::with_limit(LOG_BYTES_MAX)
    }
}

impl<M> SentLog<M> {
    /// An empty log that stores up to `bytes_max` bytes.
    pub fn with_limit(bytes_max: usize) -> Self {
        Self {
            messages: VecDeque::new(),
            bytes: 0,
            bytes_max,
            sent: 0,
            written: 0,
        }
    }

    /// A log that continues after this number.
    pub fn restored(base: u32) -> Self {
        Self {
            sent: base,
            written: base,
            ..Self::default()
        }
    }

    /// Adds a message of about `bytes` bytes and returns its number. The oldest
    /// ones are dropped when it is full; a peer that asks for them later is
    /// notified of the gap.
    pub fn push(&mut self, message: M, bytes: usize) -> u32 {
        self.messages.push_back((message, bytes));
        self.bytes += bytes;
        self.sent = self.sent.wrapping_add(1);
        while self.messages.len() > LOG_MESSAGES_MAX || self.bytes > self.bytes_max {
            self.forget_oldest();
        }
        self.written = self.written.max(self.base());
        self.sent
    }

    /// Number of the newest message.
    pub fn sent(&self) -> u32 {
        self.sent
    }

    /// Number of the newest message that is no longer stored, and the messages
    /// since.
    pub fn unconfirmed(&self) -> (u32, impl DoubleEndedIterator<Item = &M> + ExactSizeIterator) {
        (
            self.base(),
            self.messages.iter().map(|(message, _)| message),
        )
    }

    /// Number of the newest message that was written to the connection.
    pub fn written(&self) -> u32 {
        self.written
    }

    /// Messages up to this number were sent by the previous owner of this log.
    pub fn note_written(&mut self, written: u32) {
        self.written = written.clamp(self.base(), self.sent);
    }

    /// Messages and bytes that wait to be acknowledged.
    pub fn size(&self) -> (usize, usize) {
        (self.messages.len(), self.bytes)
    }

    /// The next message that was not sent yet; it is marked as sent.
    pub fn next_unwritten(&mut self) -> Option<(u32, &M)> {
        if self.written == self.sent {
            return None;
        }
        let index = (self.written - self.base()) as usize;
        self.written += 1;
        let (message, _) = self.messages.get(index)?;
        Some((self.written, message))
    }

    /// Marks everything as sent: the caller has just done so.
    pub fn mark_all_written(&mut self) {
        self.written = self.sent;
    }

    /// Whether a message of `bytes` bytes fits without dropping an unacknowledged
    /// one.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.messages.len() < LOG_MESSAGES_MAX && self.bytes + bytes <= self.bytes_max
    }

    /// The other side has every message up to this number. A number that was never
    /// sent acknowledges nothing.
    pub fn confirm(&mut self, received: u32) {
        if received > self.written {
            return;
        }
        while self.base() < received {
            self.forget_oldest();
        }
    }

    /// A new connection, on which the other side reports what it has: the rest must
    /// be sent again. Returns the number before the next message; more than
    /// `received` when some were dropped already.
    pub fn rewind(&mut self, received: u32) -> u32 {
        let received = received.min(self.sent);
        while self.base() < received {
            self.forget_oldest();
        }
        self.written = self.base();
        self.written
    }

    /// A new connection to another process of this side, on which the other side
    /// reports what it has. This log may be older than that: it was persisted some
    /// time before the previous process ended, and what was sent since is lost
    /// here. Returns what [`rewind`](Self::rewind) does.
    pub fn take_up(&mut self, received: u32) -> u32 {
        if received > self.sent {
            self.messages.clear();
            self.bytes = 0;
            self.sent = received;
        }
        self.rewind(received)
    }

    /// A new connection, on which the other side reports what it has received, and
    /// may still lose: the rest must be sent again, and everything is stored until
    /// it is acknowledged. Returns how many messages it lacks that are no longer
    /// stored; the count continues without them.
    pub fn go_on(&mut self, received: u32) -> u32 {
        let missing = self.base().saturating_sub(received);
        self.sent -= missing;
        self.written = received.min(self.sent);
        missing
    }

    /// The other side has lost the count: it starts over. Messages that were sent
    /// are dropped, or with `retain_written` retained as unsent. Returns by how much the
    /// numbers of the retained ones have decreased.
    pub fn restart(&mut self, retain_written: bool) -> u32 {
        while !retain_written && self.base() < self.written {
            self.forget_oldest();
        }
        let smaller = self.base();
        self.sent = self.messages.len() as u32;
        self.written = 0;
        smaller
    }

    /// Number of the newest message that is no longer stored.
    fn base(&self) -> u32 {
        self.sent - self.messages.len() as u32
    }

    fn forget_oldest(&mut self) {
        if let Some((_, bytes)) = self.messages.pop_front() {
            self.bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn write_all(log: &mut SentLog<u32>) -> Vec<u32> {
        std::iter::from_fn(|| log.next_unwritten().map(|(_, message)| *message)).collect()
    }

    #[test]
    fn dropped_messages_are_reported_as_a_gap() {
        let mut log = SentLog::default();
        for message in 1..=LOG_MESSAGES_MAX as u32 + 10 {
            log.push(message, 1);
        }
        assert_eq!(log.rewind(3), 10);
        assert_eq!(write_all(&mut log).len(), LOG_MESSAGES_MAX);
        log.push(0, LOG_BYTES_MAX + 1);
        assert_eq!(log.size(), (0, 0), "one that is too large is not stored");
        assert_eq!(log.rewind(u32::MAX), log.sent());
        log.confirm(u32::MAX);
    }

    #[test]
    fn received_messages_are_stored_until_they_are_acknowledged() {
        let mut log = SentLog::with_limit(10);
        for message in 1..=4 {
            assert!(log.has_room(2));
            log.push(message, 2);
        }
        assert_eq!(write_all(&mut log), [1, 2, 3, 4]);
        assert!(!log.has_room(3), "written, but not confirmed");
        assert_eq!(log.go_on(3), 0);
        assert_eq!(write_all(&mut log), [4]);
        // The other side has lost some of what it received.
        assert_eq!(log.go_on(1), 0);
        assert_eq!(write_all(&mut log), [2, 3, 4]);
        log.confirm(2);
        assert!(log.has_room(6));
        assert_eq!(log.go_on(9), 0, "unsent messages cannot have been received");
        assert!(write_all(&mut log).is_empty());
        assert_eq!(log.go_on(0), 2, "a gap");
        assert_eq!(
            log.next_unwritten(),
            Some((1, &3)),
            "counted as the other side does"
        );
    }

    #[test]
    fn a_log_of_an_earlier_process_continues_after_what_was_received() {
        let restored = || {
            let mut log = SentLog::restored(4);
            log.push(5, 1);
            log.push(6, 1);
            log
        };
        let mut log = restored();
        assert_eq!(log.unconfirmed().0, 4);
        assert_eq!(log.take_up(5), 5);
        assert_eq!(write_all(&mut log), [6]);
        // More was received than that process had persisted.
        let mut log = restored();
        assert_eq!(log.take_up(9), 9);
        log.push(10, 1);
        assert_eq!(log.take_up(9), 9, "the welcome was lost");
        assert_eq!(log.next_unwritten(), Some((10, &10)));
        assert_eq!(restored().take_up(0), 4, "a gap");
    }

    #[test]
    fn a_new_count_retains_what_was_never_sent() {
        let mut log = SentLog::default();
        log.push(1, 1);
        log.next_unwritten();
        log.push(2, 1);
        log.restart(false);
        assert_eq!(log.next_unwritten(), Some((1, &2)));
        log.restart(true);
        assert_eq!(log.next_unwritten(), Some((1, &2)));
        assert_eq!(log.next_unwritten(), None);
    }

    proptest! {
        /// A connection that is cut at any moment, over and over: everything
        /// arrives once and in order.
        #[test]
        fn nothing_is_lost_or_doubled(steps in prop::collection::vec((0u8..5, 0usize..6), 1..300)) {
            let mut log = SentLog::default();
            let mut line = VecDeque::new();
            let mut got: Vec<u32> = Vec::new();
            let mut sent = 0;
            for (step, count) in steps {
                match step {
                    0 => for _ in 0..count { sent += 1; log.push(sent, 1); },
                    1 => for _ in 0..count { line.extend(log.next_unwritten().map(|(n, m)| (n, *m))); },
                    2 => for (number, message) in line.drain(..count.min(line.len())) {
                        prop_assert_eq!(number as usize, got.len() + 1);
                        got.push(message);
                    },
                    3 => log.confirm(got.len() as u32),
                    _ => {
                        line.clear();
                        prop_assert_eq!(log.rewind(got.len() as u32) as usize, got.len());
                    }
                }
            }
            got.extend(line.drain(..).map(|(_, message)| message));
            got.extend(write_all(&mut log));
            prop_assert_eq!(got, (1..=sent).collect::<Vec<_>>());
        }
    }
}
