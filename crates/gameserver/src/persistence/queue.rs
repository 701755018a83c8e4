//! The queue of what must be stored. Bounded by what a world may have in flight:
//! operations by its history, players by their number.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use frolic_fleet_api::ops::LoggedOp;
use frolic_fleet_api::persist::{BATCH_OPS_MAX, Checkpoint, PersistBatch, SavedPlayer};
use tokio::sync::{Notify, watch};

use super::figures::PersistenceFigures;
use crate::stored::Stored;

/// Filled by the world's thread, drained by a task.
pub struct PersistQueue {
    epoch: u64,
    near_only: AtomicBool,
    heap: Mutex<PendingBatch>,
    grown: Notify,
    /// The mark up to which everything is stored.
    stored: watch::Sender<u64>,
    figures: Arc<PersistenceFigures>,
}

#[derive(Default)]
struct PendingBatch {
    ops: VecDeque<LoggedOp>,
    /// Later operations, which must not be stored by themselves yet.
    held: VecDeque<LoggedOp>,
    /// When operations were done, by their numbers.
    done_at: VecDeque<(u64, Instant)>,
    players: BTreeMap<String, SavedPlayer>,
    forget: BTreeSet<String>,
    checkpoint: Option<Checkpoint>,
    /// Counts additions.
    mark: u64,
    /// When the oldest entry was added, operations aside.
    added_at: Option<Instant>,
    /// The same for the batch that is being stored.
    taken_at: Option<Instant>,
    /// The last operation of the batch that is being stored.
    last_in_flight: Option<u64>,
    closed: bool,
}

impl PendingBatch {
    fn is_empty(&self) -> bool {
        self.ops.is_empty()
            && self.players.is_empty()
            && self.forget.is_empty()
            && self.checkpoint.is_none()
    }

    fn add(&mut self, players: Vec<SavedPlayer>) {
        self.mark += 1;
        self.note_added();
        for player in players {
            self.forget.remove(&player.player_id);
            self.players.insert(player.player_id.clone(), player);
        }
    }

    fn note_added(&mut self) {
        self.added_at.get_or_insert_with(Instant::now);
    }

    fn ops_waiting(&self) -> usize {
        self.ops.len() + self.held.len()
    }

    /// Whether the queue stores operations up to a number by itself.
    fn stores_any(&self, up_to: u64) -> bool {
        let first = self.ops.front().map(|op| op.seq);
        self.last_in_flight.is_some() || first.is_some_and(|first| first <= up_to)
    }
}

impl PersistQueue {
    pub fn new(epoch: u64, figures: Arc<PersistenceFigures>) -> Self {
        Self {
            epoch,
            near_only: AtomicBool::new(false),
            heap: Mutex::default(),
            grown: Notify::new(),
            stored: watch::Sender::new(0),
            figures,
        }
    }

    /// Records whether the world replicates only nearby entities to players.
    pub fn note_near_only(&self, near_only: bool) {
        self.near_only.store(near_only, Relaxed);
    }

    /// Whether it does.
    pub fn is_near_only(&self) -> bool {
        self.near_only.load(Relaxed)
    }

    /// Adds operations that wait until they are released.
    pub fn hold(&self, ops: Vec<LoggedOp>) {
        let mut heap = self.heap();
        let now = Instant::now();
        let numbers = ops.iter().map(|op| (op.seq, now));
        heap.done_at.extend(numbers);
        heap.held.extend(ops);
        self.figures.waiting(heap.ops_waiting());
    }

    /// The first operation that is held.
    pub fn first_held(&self) -> Option<u64> {
        self.heap().held.front().map(|op| op.seq)
    }

    /// The held operations up to a number, once all released ones up to it are
    /// stored: the log accepts no gaps.
    pub async fn held_ops(&self, up_to: u64) -> Vec<LoggedOp> {
        let mut stored = self.stored.subscribe();
        loop {
            stored.mark_unchanged();
            {
                let heap = self.heap();
                if !heap.stores_any(up_to) {
                    let held = heap.held.iter().take_while(|op| op.seq <= up_to);
                    return held.cloned().collect();
                }
            }
            // The sender lives as long as `self`.
            let _ = stored.changed().await;
        }
    }

    /// Operations were stored with something else. Some may have been released
    /// since they were taken; storing later ones without them would leave a gap.
    pub fn ops_are_stored(&self, stored: Stored) {
        let mut heap = self.heap();
        heap.ops.retain(|op| op.seq > stored.seq());
        heap.held.retain(|op| op.seq > stored.seq());
        self.note_done(&mut heap, stored.seq());
    }

    /// Since when the oldest unstored entry waits.
    pub fn waiting_since(&self) -> Option<Instant> {
        let heap = self.heap();
        let op = heap.done_at.front().map(|(_, at)| *at);
        let waiting = [op, heap.added_at, heap.taken_at];
        waiting.into_iter().flatten().min()
    }

    /// Releases the held operations up to a number, to be stored together with
    /// players.
    pub fn release(&self, up_to: u64, players: Vec<SavedPlayer>) {
        let mut heap = self.heap();
        let count = heap.held.iter().take_while(|op| op.seq <= up_to).count();
        let released: Vec<LoggedOp> = heap.held.drain(..count).collect();
        heap.ops.extend(released);
        heap.add(players);
        drop(heap);
        self.grown.notify_one();
    }

    /// Adds players, to be stored together.
    pub fn add(&self, players: Vec<SavedPlayer>) {
        self.heap().add(players);
        self.grown.notify_one();
    }

    /// The mark of what is added next.
    pub fn next_mark(&self) -> u64 {
        self.heap().mark + 1
    }

    /// Deletes what is stored of a player.
    pub fn forget(&self, player_id: &str) {
        let mut heap = self.heap();
        heap.players.remove(player_id);
        heap.forget.insert(player_id.to_owned());
        heap.note_added();
        drop(heap);
        self.grown.notify_one();
    }

    /// A checkpoint that includes everything added so far.
    pub fn checkpoint(&self, checkpoint: Checkpoint) {
        let mut heap = self.heap();
        match &mut heap.checkpoint {
            Some(waiting) => {
                waiting.seq = checkpoint.seq;
                waiting.sections.extend(checkpoint.sections);
            }
            None => heap.checkpoint = Some(checkpoint),
        }
        heap.note_added();
        drop(heap);
        self.grown.notify_one();
    }

    /// Nothing more will be added.
    pub fn close(&self) {
        self.heap().closed = true;
        self.grown.notify_one();
    }

    /// Takes everything, once there is something, and the mark up to which players
    /// are in it; none at the end.
    pub async fn take(&self) -> Option<(PersistBatch, u64)> {
        loop {
            {
                let mut heap = self.heap();
                if !heap.is_empty() {
                    heap.taken_at = heap.added_at.take();
                    return Some((self.batch(&mut heap), heap.mark));
                }
                if heap.closed {
                    return None;
                }
            }
            // A permit is stored when something was added since the check.
            self.grown.notified().await;
        }
    }

    fn batch(&self, heap: &mut PendingBatch) -> PersistBatch {
        let count = heap.ops.len().min(BATCH_OPS_MAX);
        let ops: Vec<LoggedOp> = heap.ops.drain(..count).collect();
        heap.last_in_flight = ops.last().map(|op| op.seq);
        // A checkpoint includes operations that are stored with it or were before,
        // so it waits for the last of them.
        let rest = heap.ops.front().map(|op| op.seq);
        let whole = |checkpoint: &Checkpoint| rest.is_none_or(|next| checkpoint.seq < next);
        let checkpoint = if heap.checkpoint.as_ref().is_some_and(whole) {
            heap.checkpoint.take()
        } else {
            None
        };
        PersistBatch {
            epoch: self.epoch,
            near_only: self.near_only.load(Relaxed),
            ops,
            players: std::mem::take(&mut heap.players).into_values().collect(),
            forget: std::mem::take(&mut heap.forget).into_iter().collect(),
            checkpoint,
        }
    }

    /// A batch is on disk, and everything before its mark.
    pub fn stored(&self, batch: &PersistBatch, stored: Stored, took: Duration) {
        let mut heap = self.heap();
        (heap.taken_at, heap.last_in_flight) = (None, None);
        self.note_done(&mut heap, stored.seq());
        drop(heap);
        self.figures.stored(batch, took);
        self.stored.send_replace(stored.mark());
    }

    fn note_done(&self, heap: &mut PendingBatch, seq: u64) {
        let now = Instant::now();
        while heap.done_at.front().is_some_and(|(done, _)| *done <= seq) {
            if let Some((_, at)) = heap.done_at.pop_front() {
                self.figures.op_persisted(now - at);
            }
        }
        self.figures.waiting(heap.ops_waiting());
    }

    /// Waits until everything up to a mark is on disk.
    pub async fn until_stored(&self, mark: u64) {
        // The sender lives as long as `self`.
        let _ = self.stored.subscribe().wait_for(|done| *done >= mark).await;
    }

    fn heap(&self) -> MutexGuard<'_, PendingBatch> {
        // Every critical section leaves the heap whole, even on a panic.
        self.heap.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frolic_fleet_api::ops::WorldOp;
    use frolic_fleet_api::persist::PersistReply;
    use futures_util::FutureExt;

    fn op(seq: u64) -> LoggedOp {
        LoggedOp {
            seq,
            by: None,
            op: WorldOp::Clear,
        }
    }

    fn player(received: u32) -> SavedPlayer {
        SavedPlayer {
            player_id: "ada".into(),
            state: Default::default(),
            online: true,
            session: String::new(),
            received,
            sent: 0,
            undelivered: Vec::new(),
        }
    }

    fn stored(seq: u64, mark: u64) -> Stored {
        Stored::by_batch(&PersistReply { seq }, mark)
    }

    #[tokio::test]
    async fn something_waits_until_it_is_stored() {
        let persist_queue = PersistQueue::new(1, Arc::default());
        assert_eq!(persist_queue.waiting_since(), None);
        persist_queue.add(vec![player(1)]);
        let first = persist_queue.waiting_since().expect("a player waits");
        let (batch, mark) = persist_queue.take().await.unwrap();
        assert_eq!(persist_queue.waiting_since(), Some(first), "on its way");
        persist_queue.hold(vec![op(1)]);
        persist_queue.add(vec![player(2)]);
        assert_eq!(persist_queue.waiting_since(), Some(first));
        persist_queue.stored(&batch, stored(0, mark), Duration::ZERO);
        assert!(persist_queue.waiting_since() > Some(first), "the operation");
        persist_queue.release(1, Vec::new());
        let (batch, mark) = persist_queue.take().await.unwrap();
        persist_queue.stored(&batch, stored(1, mark), Duration::ZERO);
        assert_eq!(persist_queue.waiting_since(), None);
    }

    #[tokio::test]
    async fn what_gathers_is_one_batch_and_nothing_is_lost_at_the_end() {
        let persist_queue = PersistQueue::new(7, Arc::default());
        persist_queue.hold(vec![op(1)]);
        persist_queue.release(1, vec![player(1)]);
        persist_queue.hold(vec![op(2)]);
        persist_queue.release(2, vec![player(2)]);
        assert_eq!(persist_queue.next_mark(), 3);
        let (batch, mark) = persist_queue.take().await.unwrap();
        assert_eq!((batch.epoch, mark), (7, 2));
        assert_eq!(batch.ops, [op(1), op(2)]);
        assert_eq!(batch.players, [player(2)]);
        persist_queue.forget("ada");
        persist_queue.close();
        assert_eq!(persist_queue.take().await.unwrap().0.forget, ["ada"]);
        assert_eq!(persist_queue.take().await, None);
    }

    #[tokio::test]
    async fn a_checkpoint_waits_for_its_operations() {
        let persist_queue = PersistQueue::new(1, Arc::default());
        let many = BATCH_OPS_MAX as u64 + 1;
        persist_queue.hold((1..=many).map(op).collect());
        persist_queue.release(many, Vec::new());
        let checkpoint = |seq| Checkpoint {
            seq,
            ..Checkpoint::default()
        };
        persist_queue.checkpoint(checkpoint(many));
        assert_eq!(persist_queue.take().await.unwrap().0.checkpoint, None);
        let (batch, _) = persist_queue.take().await.unwrap();
        assert_eq!(batch.ops.len(), 1);
        assert_eq!(batch.checkpoint, Some(checkpoint(many)));
    }

    #[tokio::test]
    async fn what_is_held_is_stored_when_it_is_released_or_with_something_else() {
        let persist_queue = PersistQueue::new(1, Arc::default());
        persist_queue.hold(vec![op(1), op(2), op(3)]);
        persist_queue.add(vec![player(1)]);
        let (batch, mark) = persist_queue.take().await.unwrap();
        assert_eq!((batch.ops.len(), batch.players.len()), (0, 1));
        persist_queue.stored(&batch, stored(0, mark), Duration::ZERO);
        persist_queue.until_stored(mark).await;
        assert_eq!(persist_queue.held_ops(2).await, [op(1), op(2)]);
        assert_eq!(persist_queue.first_held(), Some(1), "they are not stored");
        persist_queue.ops_are_stored(stored(1, 0));
        persist_queue.release(2, vec![player(2)]);
        let (batch, _) = persist_queue.take().await.unwrap();
        assert_eq!((batch.ops, batch.players), (vec![op(2)], vec![player(2)]));
        assert_eq!(persist_queue.first_held(), Some(3));
    }

    #[tokio::test]
    async fn held_operations_are_taken_once_earlier_ones_are_stored() {
        let persist_queue = PersistQueue::new(1, Arc::default());
        persist_queue.hold(vec![op(1), op(2), op(3)]);
        persist_queue.release(1, Vec::new());
        let mut taking = std::pin::pin!(persist_queue.held_ops(3));
        assert!((&mut taking).now_or_never().is_none(), "1 is queued");
        let (batch, mark) = persist_queue.take().await.unwrap();
        assert!((&mut taking).now_or_never().is_none(), "1 is in flight");
        persist_queue.stored(&batch, stored(1, mark), Duration::ZERO);
        assert_eq!(taking.await, [op(2), op(3)]);
    }

    #[tokio::test]
    async fn operations_that_were_stored_elsewhere_after_their_release_leave_no_gap() {
        let persist_queue = PersistQueue::new(1, Arc::default());
        persist_queue.hold(vec![op(1), op(2), op(3), op(4)]);
        assert_eq!(persist_queue.held_ops(3).await.len(), 3);
        persist_queue.release(2, Vec::new());
        persist_queue.ops_are_stored(stored(3, 0));
        persist_queue.release(4, Vec::new());
        assert_eq!(persist_queue.take().await.unwrap().0.ops, [op(4)]);
    }
}
