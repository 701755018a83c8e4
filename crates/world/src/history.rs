//! Persistent operations on their way to storage. An operation must be stored
//! before it is announced: messages about it wait here until the host reports
//! that it is stored. The tick never waits.

use std::collections::VecDeque;

use frolic_fleet_api::ops::{LoggedOp, WorldOp};

use crate::state::{Outgoing, WorldState};

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

impl WorldState {
    /// Queues an operation that was just executed, with the messages to send
    /// once it is stored. Check [`History::has_room`] before executing it.
    pub fn log_op(
        &mut self,
        by: Option<String>,
        op: WorldOp,
        messages: impl FnOnce(u64) -> Vec<Outgoing>,
    ) -> u64 {
        let history = &mut self.history;
        history.newest += 1;
        let seq = history.newest;
        history.fresh.push(LoggedOp { seq, by, op });
        let messages = messages(seq).into_iter().map(|outgoing| (seq, outgoing));
        history.held.extend(messages);
        seq
    }

    /// Operations up to this number are stored: releases the messages that wait
    /// for them.
    pub fn ops_persisted(&mut self, up_to: u64) {
        let history = &mut self.history;
        history.persisted = up_to.min(history.newest);
        let persisted = history.persisted;
        history.fresh.retain(|op| op.seq > persisted);
        let safe = history
            .held
            .iter()
            .take_while(|(seq, _)| *seq <= history.persisted)
            .count();
        let released = history.held.drain(..safe).map(|(_, outgoing)| outgoing);
        self.outbox.extend(released);
        self.show_structures(persisted);
        self.settle_ground(persisted);
    }
}
