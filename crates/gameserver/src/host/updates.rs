//! Updates: to whom one is owed, and how many fit into a tick.
//!
//! All that fit are made first and then written, one write right behind the
//! other: that cost less than small batches did (`bench/RESULTS.md`).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use frolic_world::World;

use crate::connection::ConnectionId;
use crate::metrics::{Metrics, StageClock};
use crate::player_sessions::PlayerSessions;
use crate::pressure::PRESSURE_MAX;
use crate::session::SessionPlayer;
use crate::sessions::{Sessions, Update};

/// The fraction of a tick by which its updates must be made. The rest is sent in
/// the next tick: a slow moment delays some updates by a tick instead of making the
/// world late for all.
const UPDATES_BY: f32 = 0.75;
/// Writes take as long as the kernel likes: from this fraction on, the rest of them
/// waits for the next tick as well.
const WRITES_BY: f32 = 0.85;
/// An update that was deferred once may be deferred again after this fraction; the
/// next time it is sent regardless.
const OWED_BY: f32 = 0.92;
/// Updates that are made, or written, between two checks of the clock.
const AT_ONCE: usize = 16;
/// Weight of the last tick in the estimate of a write's duration.
const SAMPLE_SHARE: f32 = 0.1;
/// Upper bound of the estimate: many times what a write takes. A process that is
/// suspended during the writes of one tick would otherwise make only a few updates
/// in the next ticks.
const WRITE_TIME_MAX: Duration = Duration::from_micros(100);

/// Connections whose update is due, in the order in which it became so. A waiting
/// session is marked as such, so it is queued once.
#[derive(Default)]
pub(super) struct Updates {
    waiting: VecDeque<ConnectionId>,
    /// Sessions whose update was made and not written; some from the last tick.
    made: Vec<ConnectionId>,
    /// How many at the front were deferred twice: waiting, and made.
    overdue: (usize, usize),
    /// Buffers that sessions make and frame their updates in. They are lent to one
    /// session after the other, so that they stay in the processor's cache, and
    /// sessions need none of their own.
    packet: Vec<u8>,
    frames: Vec<Vec<u8>>,
    /// Estimated duration of a write.
    write_time: Duration,
}

/// The duration of a tick's updates, in microseconds.
pub(super) struct UpdatesTook {
    pub snapshots: u32,
    pub writes: u32,
}

/// How far a tick may continue with the updates it owes.
struct Patience {
    /// These are sent regardless of the time …
    overdue: usize,
    /// … these, which were deferred once, until this time …
    owed: usize,
    owed_by: Instant,
    /// … and all others until this time.
    by: Instant,
}

impl Patience {
    /// The deadline of the next one, after `done`; none: no deadline.
    fn after(&self, done: usize) -> Option<Instant> {
        match done {
            _ if done < self.overdue => None,
            _ if done < self.owed => Some(self.owed_by),
            _ => Some(self.by),
        }
    }
}

/// What updates are made of, and who gets them.
pub(super) struct UpdateContext<'a> {
    pub world: &'a mut World,
    pub sessions: &'a mut Sessions,
    pub players: &'a mut PlayerSessions,
    pub metrics: &'a Metrics,
    /// How far the server is from keeping up, 0 to 3: snapshots are thinned by it.
    pub pressure: u8,
}

impl Updates {
    /// Sends the updates that are due, as far as the time permits.
    pub fn send(
        &mut self,
        cx: &mut UpdateContext<'_>,
        began: Instant,
        clock: &mut StageClock,
    ) -> UpdatesTook {
        let step = Duration::from_secs(1) / cx.world.tick_hz().max(1);
        let by = |share: f32| began + step.mul_f32(share);
        let (owed, owed_writes) = (self.waiting.len(), self.made.len());
        let new = self.queue_due(cx);
        if !self.waiting.is_empty() {
            cx.world.collect_changes();
        }
        // A world that is always slow is late rather than silent: where updates are
        // deferred twice, clients have versions of more ages, and share less.
        let overdue = if cx.pressure < PRESSURE_MAX {
            self.overdue
        } else {
            (owed, owed_writes)
        };
        let patience = Patience {
            overdue: new + overdue.0,
            owed: new + owed,
            owed_by: by(OWED_BY),
            by: by(UPDATES_BY),
        };
        let served = self.make(cx, &patience, began);
        self.overdue.0 = patience.owed.saturating_sub(served);
        let made = (self.made.len() - owed_writes) as u64;
        cx.metrics.snapshots.add(made);
        let snapshots = clock.lap();
        let patience = Patience {
            overdue: overdue.1,
            owed: owed_writes,
            owed_by: by(OWED_BY),
            by: by(WRITES_BY),
        };
        let written = self.write(cx, &patience, began);
        self.overdue.1 = owed_writes.saturating_sub(written);
        let writes = clock.lap();
        self.note_writes(written, writes);
        let left = self.waiting.len() + self.made.len();
        cx.metrics.updates_deferred.add(left as u64);
        UpdatesTook { snapshots, writes }
    }

    /// Queues every session whose update is due in this tick: those without any
    /// snapshot yet in front. Returns how many of those there are.
    fn queue_due(&mut self, cx: &mut UpdateContext<'_>) -> usize {
        let mut in_front = 0;
        for (connection_id, viewer) in cx.sessions.viewers() {
            let is_due = viewer.is_new || cx.world.update_is_due(viewer.number);
            if !is_due || viewer.update != Update::NotDue {
                continue;
            }
            viewer.update = Update::Due;
            if viewer.is_new {
                in_front += 1;
                self.waiting.push_front(connection_id);
            } else {
                self.waiting.push_back(connection_id);
            }
        }
        in_front
    }

    /// Makes updates while the time permits; returns for how many sessions.
    fn make(&mut self, cx: &mut UpdateContext<'_>, patience: &Patience, now: Instant) -> usize {
        let mut served = 0;
        self.prefetch(cx);
        while let Some(connection_id) = self.waiting.pop_front() {
            self.make_one(connection_id, cx, now);
            served += 1;
            if served % AT_ONCE != 0 {
                continue;
            }
            let by = patience.after(served);
            if by.is_some_and(|by| self.are_enough(by)) {
                break;
            }
            self.prefetch(cx);
        }
        served
    }

    /// Writes updates while the time permits; returns how many.
    fn write(&mut self, cx: &mut UpdateContext<'_>, patience: &Patience, now: Instant) -> usize {
        let mut written = 0;
        for (connection_id, frames) in self.made.iter().zip(&mut self.frames) {
            if let Some(viewer) = cx.sessions.viewer(*connection_id) {
                viewer.update = Update::NotDue;
            }
            if let Some(session) = cx.sessions.get_quietly(*connection_id) {
                session.flush(now, cx.metrics);
                session.connection.exchange_buffer(frames);
            }
            cx.sessions.settle(*connection_id);
            written += 1;
            let by = patience.after(written).filter(|_| written % AT_ONCE == 0);
            if by.is_some_and(|by| Instant::now() >= by) {
                break;
            }
        }
        self.made.drain(..written);
        written
    }

    /// Prefetches the start of the next updates. The views of a crowd exceed the
    /// cache, and memory serves many parallel reads nearly as fast as one; without
    /// this, each update would wait for its own.
    fn prefetch(&self, cx: &UpdateContext<'_>) {
        let seen = self.waiting.iter().take(AT_ONCE).map(|connection_id| {
            let player = cx.sessions.get(*connection_id)?.player.as_ref()?;
            Some(player.glance() ^ cx.world.glance(player.number))
        });
        let seen: u32 = seen.flatten().fold(0, u32::wrapping_add);
        std::hint::black_box(seen);
    }

    fn make_one(&mut self, connection_id: ConnectionId, cx: &mut UpdateContext<'_>, now: Instant) {
        let Some(viewer) = cx.sessions.viewer(connection_id) else {
            return;
        };
        viewer.update = Update::NotDue;
        let Some(session) = cx.sessions.get_quietly(connection_id) else {
            return;
        };
        let Some(player) = session.player.as_ref().filter(|_| !session.is_over()) else {
            return;
        };
        let (number, is_new) = (player.number, player.is_new());
        if !session.takes_update(now) {
            cx.metrics.snapshots_skipped.add(1);
            return;
        }
        let place = self.made.len();
        self.made.push(connection_id);
        if self.frames.len() <= place {
            self.frames.push(Vec::new());
        }
        session.connection.exchange_buffer(&mut self.frames[place]);
        session.exchange_packet(&mut self.packet);
        session.send_snapshot(cx.world, cx.pressure);
        if is_new && let Some(player_session) = cx.players.get_mut(number) {
            session.send_unwritten(&mut player_session.log);
        }
        session.finish_packet();
        session.exchange_packet(&mut self.packet);
        let is_new = session.player.as_ref().is_some_and(SessionPlayer::is_new);
        if let Some(viewer) = cx.sessions.viewer(connection_id) {
            viewer.is_new = is_new;
            viewer.update = Update::Made;
        }
    }

    /// Whether writing what was made takes until `by`.
    fn are_enough(&self, by: Instant) -> bool {
        let made = u32::try_from(self.made.len()).unwrap_or(u32::MAX);
        Instant::now() + self.write_time.saturating_mul(made) >= by
    }

    fn note_writes(&mut self, written: usize, took_us: u32) {
        if written > 0 {
            let sample = Duration::from_micros(took_us.into()).div_f32(written as f32);
            let sample = sample.min(WRITE_TIME_MAX);
            self.write_time =
                self.write_time.mul_f32(1.0 - SAMPLE_SHARE) + sample.mul_f32(SAMPLE_SHARE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_deferred_twice_is_not_deferred_again() {
        let now = Instant::now();
        let later = |ms| now + Duration::from_millis(ms);
        let patience = Patience {
            overdue: 2,
            owed: 5,
            owed_by: later(15),
            by: later(12),
        };
        let by: Vec<_> = (0..7).map(|done| patience.after(done)).collect();
        let (owed, new) = (Some(later(15)), Some(later(12)));
        assert_eq!(by, [None, None, owed, owed, owed, new, new]);
    }

    /// Otherwise the following ticks would make sixteen updates each, and defer the
    /// rest because of the overestimate.
    #[test]
    fn a_suspension_between_two_writes_does_not_distort_the_estimate() {
        let mut updates = Updates::default();
        (0..100).for_each(|_| updates.note_writes(400, 2_000));
        let usual = updates.write_time;
        updates.note_writes(400, 1_250_000);
        assert!(updates.write_time < usual * 4, "{:?}", updates.write_time);
        let crowd = updates.write_time * 400;
        assert!(crowd < Duration::from_millis(12), "{crowd:?} of a tick");
    }
}
