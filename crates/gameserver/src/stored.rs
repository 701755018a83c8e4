//! Proof that something is stored: created only from an answer of the control
//! plane, which answers once its transaction is committed.

use frolic_fleet_api::persist::PersistReply;
use frolic_fleet_api::store::StoreAnswers;

/// How far a world is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    seq: u64,
    mark: u64,
}

impl Stored {
    /// A batch is stored, and with it everything up to that mark of the queue.
    pub fn by_batch(reply: &PersistReply, mark: u64) -> Self {
        Self {
            seq: reply.seq,
            mark,
        }
    }

    /// Operations that went with writes to the store are stored; none where nothing
    /// was written.
    pub fn with_writes(answers: &StoreAnswers) -> Option<Self> {
        answers.kept.map(|seq| Self { seq, mark: 0 })
    }

    /// Operations up to this number.
    pub fn seq(self) -> u64 {
        self.seq
    }

    /// Players up to this mark of the queue; 0 where no batch was stored.
    pub fn mark(self) -> u64 {
        self.mark
    }
}
