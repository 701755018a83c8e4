//! Persistent operations on their way to storage. An operation must be stored
//! before it is announced: messages about it wait here until the host reports
//! that it is stored. The tick never waits.

use std::collections::VecDeque;

use frolic_fleet_api::ops::{LoggedOp, WorldOp};
use frolic_script::EngineError;

use crate::outbox::Outgoing;

/// Operations that may wait for storage; further ones are refused.
const WAITING_MAX: usize = 4096;

/// The queue of persistent operations.
#[derive(Default)]
pub(crate) struct History {
    /// Number of the newest operation.
    newest: u64,
    /// Number up to which operations are stored.
    persisted: u64,
    /// Not yet taken by the host.
    fresh: Vec<LoggedOp>,
    /// Messages to send once their operation is stored, in order.
    held: VecDeque<(u64, Outgoing)>,
}

impl History {
    /// Whether there is capacity for one more operation.
    pub fn has_room(&self) -> bool {
        self.newest.saturating_sub(self.persisted) < WAITING_MAX as u64
    }

    /// Number of the newest operation.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Number up to which operations are stored.
    pub fn persisted(&self) -> u64 {
        self.persisted
    }

    /// Operations that the host has not taken yet.
    pub fn fresh(&mut self) -> &mut Vec<LoggedOp> {
        &mut self.fresh
    }

    /// Continues the numbering of an earlier process of this world.
    pub fn resume_after(&mut self, seq: u64) {
        (self.newest, self.persisted) = (seq, seq);
    }
}

impl History {
    /// Queues an operation that was just executed, with the messages to send
    /// once it is stored. Check [`History::has_room`] before executing it.
    pub fn log(
        &mut self,
        by: Option<String>,
        op: WorldOp,
        messages: impl FnOnce(u64) -> Vec<Outgoing>,
    ) -> u64 {
        self.newest += 1;
        let seq = self.newest;
        self.fresh.push(LoggedOp { seq, by, op });
        let messages = messages(seq).into_iter().map(|outgoing| (seq, outgoing));
        self.held.extend(messages);
        seq
    }

    /// Checks whether there is capacity for one more operation.
    ///
    /// # Errors
    /// If too many wait to be stored.
    pub fn check_room(&self) -> Result<(), EngineError> {
        if self.has_room() {
            return Ok(());
        }
        let message = "too many changes of this world wait to be stored; try again in a moment";
        Err(EngineError::Limit(message.to_owned()))
    }

    /// Operations up to this number are stored. Returns the messages that wait
    /// for them.
    pub fn persist(&mut self, up_to: u64) -> impl Iterator<Item = Outgoing> {
        self.persisted = up_to.min(self.newest);
        let persisted = self.persisted;
        self.fresh.retain(|op| op.seq > persisted);
        let safe = self.held.iter();
        let safe = safe.take_while(|(seq, _)| *seq <= persisted).count();
        self.held.drain(..safe).map(|(_, outgoing)| outgoing)
    }
}
