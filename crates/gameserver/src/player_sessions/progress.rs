//! How far a session is persisted.

/// A moment of a session, by the counts of both sides: everything persisted of a
/// session must be of one moment. A message that is sent again is answered again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// How many reliable messages of the player had been handled.
    pub received: u32,
    /// Number of the newest reliable message to the player.
    pub sent: u32,
}

/// How many messages of a player are persisted as handled.
#[derive(Clone, Copy)]
pub enum Counted {
    /// All that were handled.
    Now,
    /// As many as when last observed.
    AsObserved,
    /// As many as in the last checkpoint.
    AsPersisted,
}

/// What of a session is persisted, and what is on the way.
#[derive(Debug, Default)]
pub struct Progress {
    /// The moment of the last checkpoint.
    persisted: Cut,
    /// The mark of the queue that it was put on.
    mark: u64,
    /// The mark of the first checkpoint of the session under its name.
    named_mark: Option<u64>,
    /// How many messages are known to be stored as handled.
    stored: u32,
    /// The last observed moment.
    observed: Cut,
    /// How many messages had been handled when scripts last wrote to the Store.
    with_store: u32,
}

impl Progress {
    /// Of a session that an earlier process has stored with that count of handled
    /// messages, and that continues at `now`.
    pub fn inherited(stored: u32, now: Cut) -> Self {
        Self {
            persisted: now,
            observed: now,
            stored,
            with_store: stored,
            ..Self::default()
        }
    }

    /// The moment that a checkpoint made `now` is of.
    pub fn moment(&self, counted: Counted, now: Cut) -> Cut {
        match counted {
            Counted::Now => now,
            Counted::AsObserved => Cut {
                received: self.persisted.received.max(self.observed.received),
                sent: self.persisted.sent.max(self.observed.sent),
            },
            Counted::AsPersisted => self.persisted,
        }
    }

    /// The moment of the last checkpoint.
    pub fn persisted(&self) -> Cut {
        self.persisted
    }

    /// A checkpoint of this moment was put on the queue of that mark.
    pub fn note_persisted(&mut self, cut: Cut, mark: u64) {
        self.persisted = cut;
        self.mark = mark;
        self.named_mark.get_or_insert(mark);
    }

    /// The mark of the first checkpoint of the session under its name; none while
    /// there was none.
    pub fn named_mark(&self) -> Option<u64> {
        self.named_mark
    }

    /// Everything queued for persistence up to this mark is stored.
    pub fn note_stored(&mut self, mark: u64) {
        if self.mark <= mark {
            self.stored = self.stored.max(self.persisted.received);
        }
    }

    /// How many messages are known to be stored as handled. The client discards them
    /// when it is notified.
    pub fn stored(&self) -> u32 {
        self.stored
    }

    /// Remembers the current moment.
    pub fn observe(&mut self, now: Cut) {
        self.observed = now;
    }

    /// Scripts write to the Store, together with the count of handled messages.
    pub fn note_store_write(&mut self, handled: u32) {
        self.with_store = handled;
    }

    /// How many messages had been handled when scripts last wrote to the Store.
    pub fn with_store(&self) -> u32 {
        self.with_store
    }

    /// The count of the player's messages starts at zero again.
    pub fn restart_received(&mut self) {
        self.persisted.received = 0;
        self.observed.received = 0;
        self.stored = 0;
        self.with_store = 0;
    }

    /// The session continues under another name, with numbers of messages to the
    /// player that are `smaller` than before and at most `sent`.
    pub fn rename(&mut self, smaller: u32, sent: u32) {
        self.named_mark = None;
        for cut in [&mut self.persisted, &mut self.observed] {
            cut.sent = cut.sent.saturating_sub(smaller).min(sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_stored_counts_as_such() {
        let mut progress = Progress::default();
        let at = |received| Cut { received, sent: 0 };
        progress.note_persisted(at(3), 7);
        progress.note_stored(6);
        assert_eq!(progress.stored(), 0, "its mark is not stored yet");
        progress.note_stored(7);
        assert_eq!(progress.stored(), 3);
        progress.note_persisted(at(5), 9);
        assert_eq!((progress.stored(), progress.named_mark()), (3, Some(7)));
        progress.observe(at(4));
        assert_eq!(progress.moment(Counted::AsObserved, at(8)), at(5));
        progress.observe(at(6));
        assert_eq!(progress.moment(Counted::AsObserved, at(8)), at(6));
        assert_eq!(progress.moment(Counted::AsPersisted, at(8)), at(5));
    }
}
