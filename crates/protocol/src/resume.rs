//! What it takes to go on after a lost connection: each side numbers
//! the messages that count, and keeps those that the other has not confirmed.

mod kept;

use std::collections::VecDeque;

pub use kept::{KeptCall, KeptLog, KeptMessage, KeptPacket};

/// Messages that one side keeps for the other.
pub const LOG_MESSAGES_MAX: usize = 2048;
/// Bytes of them.
pub const LOG_BYTES_MAX: usize = 256 * 1024;
/// No session is told more: whoever says so has made it up.
pub const COUNT_MAX: u32 = u32::MAX / 2;

/// Counted messages to the other side, the first of which is number 1.
///
/// Those up to some number are told, which means written to the present
/// connection; the newest may still wait for one.
#[derive(Debug)]
pub struct SentLog<M> {
    kept: VecDeque<(M, usize)>,
    bytes: usize,
    bytes_max: usize,
    sent: u32,
    told: u32,
}

impl<M> Default for SentLog<M> {
    fn default() -> Self {
        Self::keeping(LOG_BYTES_MAX)
    }
}

impl<M> SentLog<M> {
    /// An empty one that keeps up to so many bytes.
    pub fn keeping(bytes_max: usize) -> Self {
        Self {
            kept: VecDeque::new(),
            bytes: 0,
            bytes_max,
            sent: 0,
            told: 0,
        }
    }

    /// One that goes on behind this number.
    pub fn restored(base: u32) -> Self {
        Self {
            sent: base,
            told: base,
            ..Self::default()
        }
    }

    /// Adds a message of about so many bytes and returns its number. The
    /// oldest ones make room; who asks for them later is told of the gap.
    pub fn push(&mut self, message: M, bytes: usize) -> u32 {
        self.kept.push_back((message, bytes));
        self.bytes += bytes;
        self.sent = self.sent.wrapping_add(1);
        while self.kept.len() > LOG_MESSAGES_MAX || self.bytes > self.bytes_max {
            self.forget_oldest();
        }
        self.told = self.told.max(self.base());
        self.sent
    }

    /// Number of the newest message.
    pub fn sent(&self) -> u32 {
        self.sent
    }

    /// Number of the newest message that is not kept any more, and those since.
    pub fn unconfirmed(&self) -> (u32, impl DoubleEndedIterator<Item = &M> + ExactSizeIterator) {
        (self.base(), self.kept.iter().map(|(message, _)| message))
    }

    /// Number of the newest message that was told.
    pub fn told(&self) -> u32 {
        self.told
    }

    /// Those up to this number were told by whoever kept this log before.
    pub fn note_told(&mut self, told: u32) {
        self.told = told.clamp(self.base(), self.sent);
    }

    /// Messages that wait for a connection.
    pub fn untold_count(&self) -> usize {
        (self.sent - self.told) as usize
    }

    /// Messages and bytes that wait to be confirmed.
    pub fn size(&self) -> (usize, usize) {
        (self.kept.len(), self.bytes)
    }

    /// The next message that was not told yet; it is from now on.
    pub fn next_untold(&mut self) -> Option<(u32, &M)> {
        if self.told == self.sent {
            return None;
        }
        let index = (self.told - self.base()) as usize;
        self.told += 1;
        let (message, _) = self.kept.get(index)?;
        Some((self.told, message))
    }

    /// Everything is told: the caller has just done so.
    pub fn tell_all(&mut self) {
        self.told = self.sent;
    }

    /// Whether a message of so many bytes finds room without forgetting one
    /// that is not confirmed yet.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.kept.len() < LOG_MESSAGES_MAX && self.bytes + bytes <= self.bytes_max
    }

    /// The other side has every message up to this number. A number that was
    /// never sent confirms nothing.
    pub fn confirm(&mut self, received: u32) {
        if received > self.told {
            return;
        }
        while self.base() < received {
            self.forget_oldest();
        }
    }

    /// A new connection, over which the other side says what it has: the
    /// rest is to be told again. Returns the number that the next one told
    /// follows; more than `received` when some are forgotten already.
    pub fn rewind(&mut self, received: u32) -> u32 {
        let received = received.min(self.sent);
        while self.base() < received {
            self.forget_oldest();
        }
        self.told = self.base();
        self.told
    }

    /// A new connection to another process of the other side, over which it says
    /// what it has. This log may be older than that: it was kept some time
    /// before this side ended, and what was said since is forgotten here.
    /// Returns what [`rewind`](Self::rewind) does.
    pub fn take_up(&mut self, received: u32) -> u32 {
        if received > self.sent {
            self.kept.clear();
            self.bytes = 0;
            self.sent = received;
        }
        self.rewind(received)
    }

    /// A new connection, over which the other side says what it has heard,
    /// and may still forget: the rest is to be told again, and everything is
    /// kept until it is confirmed. Returns how many it lacks that are not kept
    /// any more; the count goes on without them.
    pub fn go_on(&mut self, heard: u32) -> u32 {
        let missing = self.base().saturating_sub(heard);
        self.sent -= missing;
        self.told = heard.min(self.sent);
        missing
    }

    /// The other side has forgotten the count: it starts anew. Messages that
    /// were told are dropped, or with `keep_told` kept as if they were not.
    /// Returns by how much the numbers of those that are kept are smaller now.
    pub fn restart(&mut self, keep_told: bool) -> u32 {
        while !keep_told && self.base() < self.told {
            self.forget_oldest();
        }
        let smaller = self.base();
        self.sent = self.kept.len() as u32;
        self.told = 0;
        smaller
    }

    /// Number of the newest message that is not kept any more.
    fn base(&self) -> u32 {
        self.sent - self.kept.len() as u32
    }

    fn forget_oldest(&mut self) {
        if let Some((_, bytes)) = self.kept.pop_front() {
            self.bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tell_all(log: &mut SentLog<u32>) -> Vec<u32> {
        std::iter::from_fn(|| log.next_untold().map(|(_, message)| *message)).collect()
    }

    #[test]
    fn what_was_forgotten_is_told_as_a_gap() {
        let mut log = SentLog::default();
        for message in 1..=LOG_MESSAGES_MAX as u32 + 10 {
            log.push(message, 1);
        }
        assert_eq!(log.rewind(3), 10);
        assert_eq!(tell_all(&mut log).len(), LOG_MESSAGES_MAX);
        log.push(0, LOG_BYTES_MAX + 1);
        assert_eq!(log.size(), (0, 0), "one that is too large is not kept");
        assert_eq!(log.rewind(u32::MAX), log.sent());
        log.confirm(u32::MAX);
    }

    #[test]
    fn what_was_heard_is_kept_until_it_is_confirmed() {
        let mut log = SentLog::keeping(10);
        for message in 1..=4 {
            assert!(log.has_room(2));
            log.push(message, 2);
        }
        assert_eq!(tell_all(&mut log), [1, 2, 3, 4]);
        assert!(!log.has_room(3), "told is not confirmed");
        assert_eq!(log.go_on(3), 0);
        assert_eq!(tell_all(&mut log), [4]);
        // The other side has forgotten some of what it heard.
        assert_eq!(log.go_on(1), 0);
        assert_eq!(tell_all(&mut log), [2, 3, 4]);
        log.confirm(2);
        assert!(log.has_room(6));
        assert_eq!(log.go_on(9), 0, "nobody has heard what was not said");
        assert!(tell_all(&mut log).is_empty());
        assert_eq!(log.go_on(0), 2, "a gap");
        assert_eq!(
            log.next_untold(),
            Some((1, &3)),
            "counted as the other side does"
        );
    }

    #[test]
    fn a_log_of_an_earlier_process_goes_on_behind_what_was_heard() {
        let restored = || {
            let mut log = SentLog::restored(4);
            log.push(5, 1);
            log.push(6, 1);
            log
        };
        let mut log = restored();
        assert_eq!(log.unconfirmed().0, 4);
        assert_eq!(log.take_up(5), 5);
        assert_eq!(tell_all(&mut log), [6]);
        // More was heard than that process had kept.
        let mut log = restored();
        assert_eq!(log.take_up(9), 9);
        log.push(10, 1);
        assert_eq!(log.take_up(9), 9, "the welcome was lost");
        assert_eq!(log.next_untold(), Some((10, &10)));
        assert_eq!(restored().take_up(0), 4, "a gap");
    }

    #[test]
    fn a_new_count_keeps_what_was_never_told() {
        let mut log = SentLog::default();
        log.push(1, 1);
        log.next_untold();
        log.push(2, 1);
        log.restart(false);
        assert_eq!(log.next_untold(), Some((1, &2)));
        log.restart(true);
        assert_eq!(log.next_untold(), Some((1, &2)));
        assert_eq!(log.next_untold(), None);
    }

    proptest! {
        /// A line that is cut at any moment, over and over: everything
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
                    1 => for _ in 0..count { line.extend(log.next_untold().map(|(n, m)| (n, *m))); },
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
            got.extend(tell_all(&mut log));
            prop_assert_eq!(got, (1..=sent).collect::<Vec<_>>());
        }
    }
}
