//! The outgoing queue of a QUIC connection: its task sends, the world's thread
//! fills.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::WAITING_BYTES_MAX;
use crate::pace::{Backlog, Uptake};

/// Capacity of the queue to a connection task, in packets.
pub const OUTBOX_PACKETS: usize = 64;
/// A losable packet that is still unsent after this time means that the connection
/// is congested: packets sent after it would arrive even later. Three updates, so
/// that a task that is scheduled late on a busy machine does not count as
/// congestion.
const LATE_AFTER: Duration = Duration::from_millis(150);

/// What a connection task sends to its client.
#[derive(Debug)]
pub enum Outbound {
    /// Must arrive, in order.
    Reliable(Bytes),
    /// A packet of snapshots; may be lost.
    Snapshot(Bytes),
    /// Any other message that may be lost.
    Loose(Bytes),
    /// Closes the connection, with the reason for the close frame.
    Close(String),
}

impl Outbound {
    fn may_be_lost(&self) -> bool {
        matches!(self, Outbound::Snapshot(_) | Outbound::Loose(_))
    }
}

/// What a connection task has sent or dropped: while the counts rise, the client
/// reads.
#[derive(Debug, Default)]
pub struct Carried {
    /// Bytes.
    pub bytes: AtomicU64,
    /// Losable packets, including those that could not be sent.
    pub losable: AtomicU64,
}

/// The queue to a connection task, and the overflow that did not fit, in order.
pub struct QuicConnection {
    outbox: mpsc::Sender<Outbound>,
    /// Bytes and losable packets that were queued so far.
    queued: u64,
    queued_losable: u64,
    /// Closes the connection, ahead of everything queued.
    end: Option<oneshot::Sender<String>>,
    /// What the task has sent, and the counts of the last check: bytes and losable
    /// packets.
    carried: Arc<Carried>,
    carried_before: (u64, u64),
    /// When each losable packet that the task still has was queued. Bounded by the
    /// capacity of the queue.
    losable_since: VecDeque<Instant>,
    /// Whether the first of them waits for a congested connection.
    late: bool,
    backlog: Vec<Outbound>,
    backlog_bytes: usize,
    uptake: Uptake,
    overfull: bool,
    lost: bool,
}

impl QuicConnection {
    /// The connection of a task that reads from the other end of `outbox`, counts
    /// in `carried` what it has sent, and closes the connection when `end` gives it
    /// a reason.
    pub fn new(
        outbox: mpsc::Sender<Outbound>,
        end: oneshot::Sender<String>,
        carried: Arc<Carried>,
    ) -> Self {
        Self {
            outbox,
            queued: 0,
            queued_losable: 0,
            end: Some(end),
            carried,
            carried_before: (0, 0),
            losable_since: VecDeque::new(),
            late: false,
            backlog: Vec::new(),
            backlog_bytes: 0,
            uptake: Uptake::default(),
            overfull: false,
            lost: false,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.lost || self.outbox.is_closed()
    }

    pub(super) fn is_behind(&self) -> bool {
        let clogged = self.outbox.capacity() < self.outbox.max_capacity() / 2;
        self.late || clogged || !self.backlog.is_empty()
    }

    /// A packet that the task is sending is in no queue any more.
    pub(super) fn is_restless(&self) -> bool {
        let queued = self.outbox.capacity() < self.outbox.max_capacity();
        queued || !self.losable_since.is_empty() || !self.backlog.is_empty()
    }

    /// What the task has queued or is sending, plus the overflow.
    pub(super) fn waiting_bytes(&self) -> usize {
        let with_task = self.queued.saturating_sub(self.carried.bytes.load(Relaxed));
        let with_task = usize::try_from(with_task).unwrap_or(usize::MAX);
        with_task.saturating_add(self.backlog_bytes)
    }

    pub(super) fn is_stuck(&self, now: Instant) -> bool {
        self.overfull || self.uptake.is_too_slow(now)
    }

    pub(super) fn abandon(&mut self, reason: &str) {
        self.backlog.clear();
        self.backlog_bytes = 0;
        if let Some(end) = self.end.take() {
            // Fails only when the task has ended already.
            let _ = end.send(reason.to_owned());
        }
    }

    pub(super) fn flush(&mut self, now: Instant) {
        let mut waiting = std::mem::take(&mut self.backlog).into_iter();
        for outbound in waiting.by_ref() {
            if let Err(back) = self.try_send(outbound) {
                self.backlog.push(back);
                break;
            }
        }
        self.backlog.extend(waiting);
        self.backlog_bytes = self.backlog.iter().map(size).sum();
        self.note_progress(now);
    }

    /// The queue alone does not show progress: a client that is behind gets no
    /// updates that would fill it.
    fn note_progress(&mut self, now: Instant) {
        let bytes = self.carried.bytes.load(Relaxed);
        let losable = self.carried.losable.load(Relaxed);
        let (bytes_before, losable_before) =
            std::mem::replace(&mut self.carried_before, (bytes, losable));
        self.note_losable(losable_before, losable, now);
        let taken = (bytes, losable) != (bytes_before, losable_before);
        let left = if self.is_behind() {
            Backlog::Large(self.waiting_bytes())
        } else if self.is_restless() {
            Backlog::Small
        } else {
            Backlog::Empty
        };
        self.uptake.note(taken, left, now);
    }

    /// Packets that were queued since the last call count as waiting from `now`.
    fn note_losable(&mut self, before: u64, carried: u64, now: Instant) {
        let gone = usize::try_from(carried.saturating_sub(before)).unwrap_or(usize::MAX);
        let gone = gone.min(self.losable_since.len());
        self.losable_since.drain(..gone);
        let waiting = self.queued_losable.saturating_sub(carried);
        let waiting = usize::try_from(waiting).unwrap_or(usize::MAX);
        let known = self.losable_since.len();
        self.losable_since.resize(waiting.max(known), now);
        let first = self.losable_since.front();
        let waits = first.map(|since| now.saturating_duration_since(*since));
        self.late = waits.is_some_and(|waits| waits >= LATE_AFTER);
    }

    pub(super) fn push(&mut self, outbound: Outbound) {
        let outbound = if self.backlog.is_empty() {
            match self.try_send(outbound) {
                Ok(()) => return,
                Err(back) => back,
            }
        } else {
            outbound
        };
        // Losable packets are dropped first.
        if outbound.may_be_lost() {
            return;
        }
        if self.backlog_bytes > WAITING_BYTES_MAX {
            self.overfull = true;
            return;
        }
        self.backlog_bytes += size(&outbound);
        self.backlog.push(outbound);
    }

    fn try_send(&mut self, outbound: Outbound) -> Result<(), Outbound> {
        let bytes = size(&outbound) as u64;
        let losable = u64::from(outbound.may_be_lost());
        match self.outbox.try_send(outbound) {
            Ok(()) => {
                self.queued += bytes;
                self.queued_losable += losable;
                Ok(())
            }
            Err(TrySendError::Full(back)) => Err(back),
            Err(TrySendError::Closed(_)) => {
                self.lost = true;
                Ok(())
            }
        }
    }
}

fn size(outbound: &Outbound) -> usize {
    match outbound {
        Outbound::Reliable(bytes) | Outbound::Snapshot(bytes) | Outbound::Loose(bytes) => {
            bytes.len()
        }
        Outbound::Close(text) => text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection and the receiving end of its task, which takes packets only on
    /// demand.
    struct Slow {
        connection: QuicConnection,
        outgoing: mpsc::Receiver<Outbound>,
        carried: Arc<Carried>,
        start: Instant,
    }

    const PACKET_BYTES: usize = 1024;

    impl Slow {
        fn new() -> Self {
            let (outbox, outgoing) = mpsc::channel(OUTBOX_PACKETS);
            let (end, _) = oneshot::channel();
            let carried = Arc::new(Carried::default());
            Self {
                connection: QuicConnection::new(outbox, end, carried.clone()),
                outgoing,
                carried,
                start: Instant::now(),
            }
        }

        fn send(&mut self, packets: usize) {
            let packet = Bytes::from(vec![7; PACKET_BYTES]);
            (0..packets).for_each(|_| self.connection.push(Outbound::Reliable(packet.clone())));
        }

        /// Whether it is disconnected in this second, in which it takes `packets`
        /// packets.
        fn is_let_go_of(&mut self, second: u64, packets: usize) -> bool {
            self.take(packets);
            let now = self.start + Duration::from_secs(second);
            self.connection.flush(now);
            self.connection.is_stuck(now)
        }

        fn take(&mut self, packets: usize) {
            for _ in 0..packets {
                let Ok(outbound) = self.outgoing.try_recv() else {
                    return;
                };
                let bytes = size(&outbound) as u64;
                self.carried.bytes.fetch_add(bytes, Relaxed);
                let losable = u64::from(outbound.may_be_lost());
                self.carried.losable.fetch_add(losable, Relaxed);
            }
        }

        /// Ticks for `seconds`. An update of two packets is sent in every third
        /// tick unless the client is behind; the client takes a packet every
        /// `ms_each`. Returns the maximum number of queued packets, and how many
        /// were sent.
        fn play(&mut self, seconds: u64, ms_each: u64) -> (usize, u32) {
            let (mut most, mut sent) = (0, 0);
            let packet = Bytes::from(vec![7; PACKET_BYTES]);
            for tick in 0..seconds * 60 {
                let ms = tick * 1000 / 60;
                if tick.is_multiple_of(3) && !self.connection.is_behind() {
                    self.connection.push(Outbound::Snapshot(packet.clone()));
                    self.connection.push(Outbound::Loose(packet.clone()));
                    sent += 2;
                }
                let due = (tick + 1) * 1000 / 60 / ms_each - ms / ms_each;
                self.take(due as usize);
                let now = self.start + Duration::from_millis(ms);
                self.connection.flush(now);
                assert!(!self.connection.is_stuck(now), "after {ms} ms");
                most = most.max(self.connection.losable_since.len());
            }
            (most, sent)
        }
    }

    #[test]
    fn losable_packets_do_not_queue_for_a_congested_connection() {
        // Five packets a second; forty are due.
        let (most, sent) = Slow::new().play(60, 200);
        assert!(most <= 10, "{most} packets waited");
        assert!((250..=310).contains(&sent), "{sent} packets were sent");
    }

    #[test]
    fn a_task_that_runs_late_is_not_congestion() {
        // Three updates at a time, every 150 ms.
        let mut slow = Slow::new();
        let packet = Bytes::from(vec![7; PACKET_BYTES]);
        for tick in 0..600u64 {
            if tick.is_multiple_of(3) {
                assert!(!slow.connection.is_behind(), "in tick {tick}");
                slow.connection.push(Outbound::Snapshot(packet.clone()));
            }
            if tick % 9 == 8 {
                slow.take(OUTBOX_PACKETS);
            }
            let now = slow.start + Duration::from_millis(tick * 1000 / 60);
            slow.connection.flush(now);
        }
    }

    #[test]
    fn a_client_that_takes_too_little_for_too_long_is_disconnected() {
        let mut slow = Slow::new();
        slow.send(100);
        // 2 KiB a second, and as much is added: it stays 100 KiB behind.
        let let_go = (0..120).find(|second| {
            slow.send(2);
            assert!(slow.connection.is_behind(), "after {second} s");
            slow.is_let_go_of(*second, 2)
        });
        assert_eq!(let_go, Some(34), "30 s, and what 100 KiB take");
    }

    #[test]
    fn a_client_that_catches_up_is_not_disconnected() {
        let mut slow = Slow::new();
        slow.send(100);
        let let_go = (0..300).find(|second| slow.is_let_go_of(*second, 3));
        assert_eq!(let_go, None);
        assert!(!slow.connection.is_restless());
    }

    #[test]
    fn a_client_that_takes_nothing_is_disconnected_soon() {
        let mut slow = Slow::new();
        slow.send(1);
        let let_go = (0..300).find(|second| slow.is_let_go_of(*second, 0));
        assert_eq!(let_go, Some(9));
    }
}
