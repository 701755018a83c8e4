//! Persists world operations and player checkpoints through the control plane.
//!
//! The world's thread puts operations, players and checkpoints on a queue and
//! continues. A task takes the whole queue, stores it in one transaction and
//! reports that; meanwhile the next queue grows. So there is one commit at a time,
//! however much happens, and the tick waits for none.

mod figures;
mod queue;

use std::sync::Arc;
use std::time::Instant;

use frolic_fleet_api::ops::LoggedOp;
use frolic_fleet_api::persist::{Checkpoint, SavedPlayer};
use frolic_world::{Marks, World, input, marks_of};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub use figures::PersistenceFigures;
pub use queue::PersistQueue;

use crate::control_plane::ControlPlane;
use crate::inbox::Inbound;
use crate::retry::{self, Failure, TRY};
use crate::stored::Stored;

/// A checkpoint replaces this many operations, so that the next start has little to
/// replay.
const COMPACT_OPS: u64 = 512;
/// Or fewer, after this many seconds.
const COMPACT_S: u32 = 120;

/// Persists the state of a world.
pub struct PersistenceClient {
    /// None: nothing is persisted, and the state ends with the process.
    persist_queue: Option<Arc<PersistQueue>>,
    /// Whether operations outlive the process, or only players.
    persistent: bool,
    /// The last operation that a checkpoint includes, and when that was.
    compacted: (u64, u32),
    /// Sections of checkpoints as they were last sent.
    sent: Marks,
    /// A checkpoint is due with the next operations.
    soon: bool,
    /// A checkpoint that includes operations which are held.
    parked: Option<Checkpoint>,
    /// The mark of the last operations that were queued.
    ops_mark: u64,
    /// Operations of a world that persists none, for outside subscribers.
    unstored: Vec<LoggedOp>,
}

impl PersistenceClient {
    /// For a world that persists nothing.
    pub fn nowhere() -> Self {
        Self {
            persist_queue: None,
            persistent: false,
            compacted: (0, 0),
            sent: Marks::new(),
            soon: false,
            parked: None,
            ops_mark: 0,
            unstored: Vec::new(),
        }
    }

    /// Requests a checkpoint together with the next batch.
    pub fn checkpoint_soon(&mut self) {
        self.soon = true;
    }

    /// Operations since the last call that are not going to be stored.
    pub fn take_unstored(&mut self) -> Vec<LoggedOp> {
        std::mem::take(&mut self.unstored)
    }

    /// Persists to the platform; completion is reported through `inbox`. The task
    /// ends when this client is dropped and everything is stored.
    pub fn platform(
        control_plane: ControlPlane,
        persist_queue: Arc<PersistQueue>,
        persistent: bool,
        inbox: mpsc::Sender<Inbound>,
    ) -> (Self, JoinHandle<()>) {
        let task = tokio::spawn(store(persist_queue.clone(), control_plane, inbox));
        let mut door = Self::nowhere();
        (door.persist_queue, door.persistent) = (Some(persist_queue), persistent);
        (door, task)
    }

    /// Whether operations outlive the process.
    pub fn is_persistent(&self) -> bool {
        self.persistent
    }

    /// Whether anything is persisted at all.
    pub fn persists(&self) -> bool {
        self.persist_queue.is_some()
    }

    /// Takes the operations of this tick. They are not stored before they are
    /// released.
    pub fn hold(&mut self, world: &mut World) {
        let ops = world.take_ops();
        let Some(last) = ops.last().map(|op| op.seq) else {
            return;
        };
        match &self.persist_queue {
            Some(persist_queue) if self.persistent => persist_queue.hold(ops),
            _ => {
                self.unstored = ops;
                world.apply(input::OpsPersisted { up_to: last });
            }
        }
    }

    /// Whether there is something to release, up to an operation.
    pub fn has_held(&self, up_to: u64) -> bool {
        let first = self
            .persist_queue
            .as_ref()
            .and_then(|persist_queue| persist_queue.first_held());
        first.is_some_and(|first| first <= up_to)
    }

    /// Stores the operations up to `up_to`, together with the players whose
    /// messages may have caused them.
    pub fn release(&mut self, up_to: u64, players: Vec<SavedPlayer>) {
        if let Some(persist_queue) = &self.persist_queue {
            self.ops_mark = persist_queue.next_mark();
            persist_queue.release(up_to, players);
        }
    }

    /// The mark of what was released last.
    pub fn ops_mark(&self) -> u64 {
        self.ops_mark
    }

    /// Makes a checkpoint of the world when one is due.
    pub fn compact(&mut self, world: &World) {
        let soon = std::mem::take(&mut self.soon);
        self.compact_if(world, soon);
    }

    /// The mark of what is queued next.
    pub fn next_mark(&self) -> u64 {
        self.persist_queue
            .as_ref()
            .map_or(0, |persist_queue| persist_queue.next_mark())
    }

    /// Persists a player's current state.
    pub fn player(&self, player: SavedPlayer) {
        if let Some(persist_queue) = &self.persist_queue {
            persist_queue.add(vec![player]);
        }
    }

    /// The same for many.
    pub fn players(&self, players: Vec<SavedPlayer>) {
        if let Some(persist_queue) = self.persist_queue.as_ref().filter(|_| !players.is_empty()) {
            persist_queue.add(players);
        }
    }

    /// Deletes what is persisted of a player.
    pub fn forget(&self, player_id: &str) {
        if let Some(persist_queue) = &self.persist_queue {
            persist_queue.forget(player_id);
        }
    }

    /// The world stops: the rest is stored, with a checkpoint.
    pub fn finish(&mut self, world: &mut World, players: Vec<SavedPlayer>) {
        self.hold(world);
        self.release(world.newest_op(), players);
        self.compact_if(world, true);
        if let Some(persist_queue) = self.persist_queue.take() {
            persist_queue.close();
        }
    }

    fn compact_if(&mut self, world: &World, now: bool) {
        self.unpark();
        let (newest, tick) = (world.newest_op(), world.tick());
        let (before, at) = self.compacted;
        let since = newest.saturating_sub(before);
        let waited = tick.saturating_sub(at) >= COMPACT_S * world.tick_hz();
        let due = now || waited || since >= COMPACT_OPS;
        let persists = self.persist_queue.is_some() && self.persistent;
        if !persists || since == 0 || !due || self.parked.is_some() {
            return;
        }
        self.compacted = (newest, tick);
        self.parked = Some(world.checkpoint_since(&mut self.sent));
        self.unpark();
    }

    /// A checkpoint is queued with the operations it includes, not before them.
    fn unpark(&mut self) {
        let Some(persist_queue) = &self.persist_queue else {
            return;
        };
        let first = persist_queue.first_held();
        let follows = |parked: &mut Checkpoint| first.is_none_or(|first| parked.seq < first);
        if let Some(checkpoint) = self.parked.take_if(follows) {
            persist_queue.checkpoint(checkpoint);
        }
    }

    /// Since when something waits to be stored.
    pub fn waiting_since(&self) -> Option<Instant> {
        self.persist_queue.as_ref()?.waiting_since()
    }

    /// Records whether the world replicates only nearby entities to players.
    pub fn note_near_only(&self, near_only: bool) {
        if let Some(persist_queue) = &self.persist_queue {
            persist_queue.note_near_only(near_only);
        }
    }

    /// Checkpoints continue from this one: the world was restored from it.
    pub fn begin_after(&mut self, checkpoint: &Checkpoint) {
        self.compacted.0 = checkpoint.seq;
        self.sent = marks_of(checkpoint);
    }
}

impl Drop for PersistenceClient {
    fn drop(&mut self) {
        if let Some(persist_queue) = self.persist_queue.take() {
            persist_queue.close();
        }
    }
}

/// Stores one queue after the other.
async fn store(
    persist_queue: Arc<PersistQueue>,
    control_plane: ControlPlane,
    inbox: mpsc::Sender<Inbound>,
) {
    while let Some((batch, mark)) = persist_queue.take().await {
        let began = Instant::now();
        let asked = retry::ask("persisting the world", retry::for_ever(), || {
            control_plane.persist(&batch, TRY)
        });
        let reply = match asked.await {
            Ok(reply) => reply,
            Err(Failure::Unreachable) => continue,
            Err(Failure::Refused(error)) => {
                // Another process runs this world, or the platform rejects our
                // state: everything done from here on would be lost.
                let reason = if error.is_replaced() {
                    "this world goes on in another process; join again".to_owned()
                } else {
                    format!("what happens here cannot be stored: {error}")
                };
                let status = error.status();
                tracing::error!(%error, ?status, "persistence was refused; the world stops");
                let _ = inbox.send(Inbound::Stop { reason }).await;
                return;
            }
        };
        let stored = Stored::by_batch(&reply, mark);
        persist_queue.stored(&batch, stored, began.elapsed());
        // A world that has ended waits for nothing.
        let _ = inbox.send(Inbound::Persisted(stored)).await;
    }
}
