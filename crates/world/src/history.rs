//! Persistent operations on their way to storage, and what is published once the
//! host reports that they are stored.

use frolic_fleet_api::ops::{LoggedOp, WorldOp};
use frolic_protocol::terrain::ChunkVersion;
use frolic_script::{EngineError, EntityId};

use crate::commit_gate::CommitGate;
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
    gate: CommitGate<Publication>,
}

/// What clients notice of an operation.
pub(crate) enum Publication {
    /// A message.
    Message(Outgoing),
    /// Chunks of terrain may be replicated in these versions.
    Chunks(Vec<ChunkVersion>),
    /// A structure appears or disappears.
    Structure(EntityId),
}

impl Publication {
    /// Whether it shows or removes this structure.
    pub fn is_of(&self, entity: EntityId) -> bool {
        matches!(self, Self::Structure(other) if *other == entity)
    }
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
    /// Queues an operation that was just executed; returns its number. Check
    /// [`History::has_room`] before executing it.
    pub fn log(&mut self, by: Option<String>, op: WorldOp) -> u64 {
        self.newest += 1;
        let seq = self.newest;
        self.fresh.push(LoggedOp { seq, by, op });
        seq
    }

    /// Publishes something once operation `seq` is stored.
    pub fn publish_after(&mut self, seq: u64, publication: Publication) {
        self.gate.hold(seq, publication);
    }

    /// What waits for operations to be stored.
    pub fn unpublished(&self) -> impl Iterator<Item = (u64, &Publication)> {
        self.gate.waiting()
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

    /// Operations up to this number are stored. Returns what waits for them.
    pub fn persist(&mut self, up_to: u64) -> Vec<Publication> {
        self.persisted = up_to.min(self.newest);
        let persisted = self.persisted;
        self.fresh.retain(|op| op.seq > persisted);
        self.gate.release(persisted).collect()
    }
}
