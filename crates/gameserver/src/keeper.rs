//! What lasts of a world, on its way to the control plane (DUR-1…3).
//!
//! The world's thread puts operations, players and checkpoints on a pile and
//! goes on. A task takes the whole pile, has it stored in one transaction and
//! says so; meanwhile the next pile grows. So there is one commit at a time,
//! however much happens, and the tick waits for none.

mod figures;
mod pile;

use std::sync::Arc;
use std::time::Instant;

use frolic_protocol::keep::{Checkpoint, SavedPlayer};
use frolic_protocol::ops::LoggedOp;
use frolic_world::{Marks, World, marks_of};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub use figures::KeepFigures;

use self::pile::Pile;
use crate::boot::ControlPlane;
use crate::courier::{self, Failure, TRY};
use crate::link::Inbound;

/// A checkpoint stands for so many operations, so that the next start has
/// little to do again.
const COMPACT_OPS: u64 = 512;
/// Or for fewer, after so many ticks per tick of a second.
const COMPACT_S: u32 = 120;

/// Where what lasts of a world goes.
pub struct KeepDoor {
    /// None: nowhere, and what lasts ends with the process.
    pile: Option<Arc<Pile>>,
    /// Whether operations outlive the process, or only players.
    persistent: bool,
    /// The last operation that a checkpoint stands for, and when that was.
    compacted: (u64, u32),
    /// Sections of checkpoints as they were last sent.
    sent: Marks,
    /// A checkpoint is due with the next operations.
    soon: bool,
    /// Operations of a world that keeps none, for those outside.
    unstored: Vec<LoggedOp>,
}

impl KeepDoor {
    /// A world that keeps nothing.
    pub fn nowhere() -> Self {
        Self {
            pile: None,
            persistent: false,
            compacted: (0, 0),
            sent: Marks::new(),
            soon: false,
            unstored: Vec::new(),
        }
    }

    /// Has a checkpoint made with what is stored next.
    pub fn checkpoint_soon(&mut self) {
        self.soon = true;
    }

    /// Operations that were done since the last call and are not stored.
    pub fn take_unstored(&mut self) -> Vec<LoggedOp> {
        std::mem::take(&mut self.unstored)
    }

    /// To the platform; what is stored is told through `inbox`. The task ends
    /// when the door is dropped and everything is stored.
    pub fn platform(
        control_plane: ControlPlane,
        epoch: u64,
        persistent: bool,
        inbox: mpsc::Sender<Inbound>,
        figures: Arc<KeepFigures>,
    ) -> (Self, JoinHandle<()>) {
        let pile = Arc::new(Pile::new(epoch, figures));
        let task = tokio::spawn(store(pile.clone(), control_plane, inbox));
        let mut door = Self::nowhere();
        (door.pile, door.persistent) = (Some(pile), persistent);
        (door, task)
    }

    /// Whether operations outlive the process.
    pub fn is_persistent(&self) -> bool {
        self.persistent
    }

    /// Whether anything is kept at all.
    pub fn keeps(&self) -> bool {
        self.pile.is_some()
    }

    /// Takes what has happened in this tick. `players` are those whose messages
    /// may have caused it, to be stored with it.
    pub fn pass_on(&mut self, world: &mut World, players: Vec<SavedPlayer>) {
        let ops = world.take_ops();
        if let Some(last) = ops.last().map(|op| op.seq) {
            match &self.pile {
                Some(pile) if self.persistent => pile.add(ops, players),
                _ => {
                    self.unstored = ops;
                    world.ops_kept(last);
                }
            }
        }
        let soon = std::mem::take(&mut self.soon);
        self.compact(world, soon);
    }

    /// The mark of whatever is put on the pile next.
    pub fn next_mark(&self) -> u64 {
        self.pile.as_ref().map_or(0, |pile| pile.next_mark())
    }

    /// Keeps a player as they are now.
    pub fn player(&self, player: SavedPlayer) {
        if let Some(pile) = &self.pile {
            pile.add(Vec::new(), vec![player]);
        }
    }

    /// The same for many.
    pub fn players(&self, players: Vec<SavedPlayer>) {
        if let Some(pile) = self.pile.as_ref().filter(|_| !players.is_empty()) {
            pile.add(Vec::new(), players);
        }
    }

    /// Nothing is to be kept of a player.
    pub fn forget(&self, player_id: &str) {
        if let Some(pile) = &self.pile {
            pile.forget(player_id);
        }
    }

    /// The world stops: what is left is stored, with a checkpoint.
    pub fn finish(&mut self, world: &mut World, players: Vec<SavedPlayer>) {
        self.pass_on(world, Vec::new());
        self.players(players);
        self.compact(world, true);
        if let Some(pile) = self.pile.take() {
            pile.close();
        }
    }

    fn compact(&mut self, world: &World, now: bool) {
        let (newest, tick) = (world.newest_op(), world.tick());
        let (before, at) = self.compacted;
        let since = newest.saturating_sub(before);
        let waited = tick.saturating_sub(at) >= COMPACT_S * world.tick_hz();
        let due = now || waited || since >= COMPACT_OPS;
        let Some(pile) = self.pile.as_ref().filter(|_| self.persistent) else {
            return;
        };
        if since == 0 || !due {
            return;
        }
        self.compacted = (newest, tick);
        pile.checkpoint(world.checkpoint_since(&mut self.sent));
    }

    /// Notes whether the world tells players only of what is near.
    pub fn note_near_only(&self, near_only: bool) {
        if let Some(pile) = &self.pile {
            pile.note_near_only(near_only);
        }
    }

    /// Checkpoints begin where this one ends: the world was made from it.
    pub fn begin_after(&mut self, checkpoint: &Checkpoint) {
        self.compacted.0 = checkpoint.seq;
        self.sent = marks_of(checkpoint);
    }
}

impl Drop for KeepDoor {
    fn drop(&mut self) {
        if let Some(pile) = self.pile.take() {
            pile.close();
        }
    }
}

/// Has one pile after the other stored.
async fn store(pile: Arc<Pile>, control_plane: ControlPlane, inbox: mpsc::Sender<Inbound>) {
    while let Some((batch, mark)) = pile.take().await {
        let began = Instant::now();
        let asked = courier::ask("keeping what lasts", courier::for_ever(), || {
            control_plane.keep(&batch, TRY)
        });
        let reply = match asked.await {
            Ok(reply) => reply,
            Err(Failure::Unreachable) => continue,
            Err(Failure::Refused(error)) => {
                // Another process runs this world, or the platform does not
                // take what we have: whatever we did from here on would be lost.
                let reason = if error.is_replaced() {
                    "this world goes on in another process; join again".to_owned()
                } else {
                    format!("what happens here cannot be stored: {error}")
                };
                tracing::error!(%error, "what lasts was refused; the world stops");
                let _ = inbox.send(Inbound::Stop { reason }).await;
                return;
            }
        };
        pile.stored(&batch, reply.seq, began.elapsed());
        // A world that has ended waits for nothing.
        let seq = reply.seq;
        let _ = inbox.send(Inbound::Kept { seq, mark }).await;
    }
}
