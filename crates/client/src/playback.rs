//! What to draw: others with a small delay, smoothly, whatever the network does.
//!
//! Snapshots are shown at a constant delay behind the server. The delay follows the
//! jitter of their arrival, and the playback clock approaches its target by running
//! slightly faster or slower, never by jumping.

use frolic_protocol::Shown;
use frolic_protocol::entity::flags;
use frolic_sim::Vec3;

use crate::drawn::Drawn;
use crate::prediction::PUSHED_MAX;
use crate::replication::Replication;

/// Upper bound of the delay caused by jitter.
const DELAY_MAX_S: f64 = 0.5;
/// A clock that is wrong by more than this jumps.
const CLOCK_JUMP_S: f64 = 0.5;
/// How fast the time of a single entity may be stretched.
const LAG_RATE: f32 = 0.1;

pub(crate) struct Playback {
    tick_s: f64,
    snapshot_s: f64,
    /// Smoothed arrival time of tick zero, and the jitter of arrivals.
    origin_s: Option<f64>,
    jitter_s: f64,
    shown_tick: f64,
    last_s: Option<f64>,
}

impl Playback {
    pub fn new(tick_hz: u32, snapshot_hz: u32) -> Self {
        Self {
            tick_s: 1.0 / f64::from(tick_hz.max(1)),
            snapshot_s: 1.0 / f64::from(snapshot_hz.max(1)),
            origin_s: None,
            jitter_s: 0.0,
            shown_tick: 0.0,
            last_s: None,
        }
    }

    /// Records the arrival of a snapshot.
    pub fn arrived(&mut self, tick: u32, now_ms: f64) {
        let origin = now_ms / 1000.0 - f64::from(tick) * self.tick_s;
        let known = *self.origin_s.get_or_insert(origin);
        let late_by = origin - known;
        self.jitter_s += (late_by.abs() - self.jitter_s) * 0.05;
        self.origin_s = Some(known + late_by * 0.1);
    }

    /// The server's current clock, estimated from tick arrivals; none before the
    /// first.
    pub fn server_time_s(&self, now_ms: f64) -> Option<f64> {
        self.origin_s.map(|origin| now_ms / 1000.0 - origin)
    }

    pub fn jitter_ms(&self) -> f64 {
        self.jitter_s * 1000.0
    }

    /// The playback delay: one snapshot to interpolate towards, and tolerance for
    /// the jitter of the next.
    pub fn delay_s(&self) -> f64 {
        let least = self.snapshot_s * 1.5;
        (least + self.jitter_s * 2.5).min(DELAY_MAX_S).max(least)
    }

    fn advance(&mut self, now_ms: f64) {
        let now_s = now_ms / 1000.0;
        let Some(origin) = self.origin_s else {
            return;
        };
        let target = (now_s - origin - self.delay_s()) / self.tick_s;
        let elapsed = (now_s - self.last_s.unwrap_or(now_s)).max(0.0);
        self.last_s = Some(now_s);
        let error_s = (target - self.shown_tick) * self.tick_s - elapsed;
        if error_s.abs() > CLOCK_JUMP_S {
            self.shown_tick = target;
        } else {
            let rate = 1.0 + (error_s * 2.0).clamp(-0.1, 0.1);
            self.shown_tick += elapsed * rate / self.tick_s;
        }
    }

    /// The moment that is drawn, in ticks.
    pub fn shown_tick(&self) -> f64 {
        self.shown_tick
    }

    /// The moment that is drawn.
    pub fn shown(&self) -> Shown {
        let tick = self.shown_tick.max(0.0);
        Shown {
            tick: tick as u32,
            fraction: (tick.fract() * 256.0) as u8,
        }
    }

    /// What to draw at `now_ms`, except the own character. `own_tick` is the tick
    /// the own character is shown at, `ground` what it stands on: a platform under
    /// the own character is drawn in the own time, without delay.
    pub fn frame(
        &mut self,
        replication: &mut Replication,
        now_ms: f64,
        own: &OwnFrame,
        out: &mut Vec<Drawn>,
    ) {
        let frame_s = (now_ms / 1000.0 - self.last_s.unwrap_or(now_ms / 1000.0)).max(0.0);
        self.advance(now_ms);
        let update = (self.snapshot_s / self.tick_s) as f32;
        let drift = (frame_s / self.tick_s) as f32 * LAG_RATE;
        let mut carried = Vec::new();
        for track in replication.tracks_mut() {
            let Some(state) = track.newest() else {
                continue;
            };
            if state.id == own.id || state.has(flags::DESTROYED) {
                continue;
            }
            let (id, on_a_path) = (state.id, state.motion.is_some());
            // A path is known from start to end, without updates in between: that
            // is no reason to delay it.
            let wanted = match on_a_path {
                true => 0.0,
                false => track.usual_gap(update) - update,
            };
            track.lag += (wanted - track.lag).clamp(-drift, drift);
            let mut tick = self.shown_tick - f64::from(track.lag);
            let pushed = own.pushed.contains(&Some(id));
            let ridden = own.ground == Some(id);
            if on_a_path || pushed || track.lead > 0.0 {
                let wanted = if ridden || pushed { 1.0 } else { 0.0 };
                track.lead += (wanted - track.lead) * (1.0 - (-12.0 * frame_s as f32).exp());
                tick += (own.tick - tick) * f64::from(track.lead);
            }
            if let Some(mut drawn) = track.drawn_at(tick, self.tick_s) {
                track.follow(&mut drawn, frame_s as f32);
                if ridden {
                    drawn.position += own.ground_error * track.lead;
                }
                if let Some(ride) = track.ride_at(tick) {
                    carried.push((out.len(), ride));
                }
                out.push(drawn);
            }
        }
        for (at, ride) in carried {
            out[at].position += replication.detour(&ride, self.tick_s);
        }
    }
}

/// What playback needs of the own character.
pub(crate) struct OwnFrame {
    /// Its entity.
    pub id: u32,
    /// The tick it is shown at.
    pub tick: f64,
    /// What it stands on.
    pub ground: Option<u32>,
    /// The offset at which that is drawn, because the own character is.
    pub ground_error: Vec3,
    /// What it walks against.
    pub pushed: [Option<u32>; PUSHED_MAX],
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_HZ: u32 = 60;
    const SNAPSHOT_HZ: u32 = 20;

    /// A server's snapshots, every 50 ms, each `late` by some milliseconds, and a
    /// client that draws in between. Returns the moment each frame showed.
    fn play(
        playback: &mut Playback,
        snapshots: std::ops::Range<u32>,
        late_ms: impl Fn(u32) -> u32,
    ) -> Vec<f64> {
        let mut shown = Vec::new();
        let arrivals: Vec<_> = snapshots
            .clone()
            .map(|n| (n * 50 + late_ms(n), n * TICK_HZ / SNAPSHOT_HZ))
            .collect();
        for now_ms in snapshots.start * 50..snapshots.end * 50 {
            for (_, tick) in arrivals.iter().filter(|(at, _)| *at == now_ms) {
                playback.arrived(*tick, f64::from(now_ms));
            }
            if now_ms % 16 == 0 {
                playback.advance(f64::from(now_ms));
                shown.push(playback.shown_tick());
            }
        }
        shown
    }

    fn in_time(_: u32) -> u32 {
        0
    }

    /// Up to 90 ms late, pseudo-randomly.
    fn jittery(snapshot: u32) -> u32 {
        snapshot * 37 % 91
    }

    #[test]
    fn the_delay_rises_with_jitter_and_falls_again() {
        let mut playback = Playback::new(TICK_HZ, SNAPSHOT_HZ);
        let delay_ms = |playback: &Playback| (playback.delay_s() * 1000.0).round();
        play(&mut playback, 0..200, in_time);
        assert_eq!(delay_ms(&playback), 75.0, "one snapshot and a half");
        play(&mut playback, 200..400, jittery);
        let risen = delay_ms(&playback);
        assert!((110.0..200.0).contains(&risen), "{risen} ms");
        play(&mut playback, 400..700, in_time);
        assert_eq!(delay_ms(&playback), 75.0, "and back");
        play(&mut playback, 700..900, |n| n % 2 * 3000);
        assert!(delay_ms(&playback) <= 500.0, "there is an end to it");
    }

    #[test]
    fn the_shown_clock_never_runs_back_and_stays_behind_by_the_delay() {
        let mut playback = Playback::new(TICK_HZ, SNAPSHOT_HZ);
        play(&mut playback, 0..100, in_time);
        // Jitter begins, ends, and once nothing arrives for a third of a second.
        let late = |n: u32| match n {
            100..200 => jittery(n),
            250..257 => (257 - n) * 50,
            _ => 0,
        };
        let shown = play(&mut playback, 100..500, late);
        let frame = 16.0 / 1000.0 * f64::from(TICK_HZ);
        for pair in shown.windows(2) {
            let step = (pair[1] - pair[0]) / frame;
            assert!((0.89..1.11).contains(&step), "{step} of a frame");
        }
        let now = f64::from(500 * 50 - 8) / 1000.0;
        let behind = now - playback.shown_tick() / f64::from(TICK_HZ);
        assert!((behind - playback.delay_s()).abs() < 0.02, "{behind} s");
    }

    /// A server with a low snapshot rate is shown with the delay needed to
    /// interpolate between two.
    #[test]
    fn a_server_that_seldom_sends_has_a_delay_too() {
        for (snapshot_hz, delay_s) in [(1, 1.5), (2, 0.75), (3, 0.5)] {
            let playback = Playback::new(TICK_HZ, snapshot_hz);
            assert_eq!(playback.delay_s(), delay_s);
        }
    }

    /// A tab was suspended: playing back the time in between would take as long.
    #[test]
    fn a_clock_that_is_far_off_jumps() {
        let mut playback = Playback::new(TICK_HZ, SNAPSHOT_HZ);
        play(&mut playback, 0..100, in_time);
        playback.arrived(216_000, 3_600_000.0);
        playback.advance(3_600_000.0);
        let behind = 216_000.0 - playback.shown_tick();
        assert!((0.0..0.5 * 60.0).contains(&behind), "{behind} ticks");
    }
}
