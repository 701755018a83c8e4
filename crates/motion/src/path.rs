//! Movement that both sides can compute: a straight path between two ticks.
//!
//! A platform on a motion costs no bandwidth while it moves, and a player who
//! stands on it is predicted exactly, because its place is a function of the
//! tick and not of the last packet.

use glamx::Vec3;
use serde::{Deserialize, Serialize};

/// A straight path from one place to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Motion {
    /// Start position.
    pub from: Vec3,
    /// End position, where the entity then stays.
    pub to: Vec3,
    /// The tick at which it is at `from`.
    pub start_tick: u32,
    /// The tick at which it arrives.
    pub end_tick: u32,
}

impl Motion {
    /// Where the entity is at `tick`.
    pub fn position_at(&self, tick: u32) -> Vec3 {
        if tick >= self.end_tick {
            return self.to;
        }
        let done = tick.saturating_sub(self.start_tick) as f32;
        let whole = (self.end_tick - self.start_tick.min(self.end_tick)).max(1) as f32;
        self.from + (self.to - self.from) * (done / whole)
    }

    /// Where the entity is between two ticks, for drawing.
    pub fn position_between(&self, tick: f64) -> Vec3 {
        // NaN counts as the first tick.
        let tick = tick.max(0.0).min(f64::from(u32::MAX));
        let whole = tick as u32;
        let a = self.position_at(whole);
        let b = self.position_at(whole.saturating_add(1));
        a + (b - a) * tick.fract() as f32
    }

    /// Velocity in metres per second during the motion.
    pub fn velocity_at(&self, tick: u32, tick_hz: u32) -> Vec3 {
        if tick < self.start_tick || tick >= self.end_tick {
            return Vec3::ZERO;
        }
        (self.to - self.from) * (tick_hz as f32 / (self.end_tick - self.start_tick) as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_arrives_and_stays() {
        let motion = Motion {
            from: Vec3::ZERO,
            to: Vec3::X * 10.0,
            start_tick: 100,
            end_tick: 200,
        };
        assert_eq!(motion.position_at(0), Vec3::ZERO);
        assert_eq!(motion.position_at(150), Vec3::X * 5.0);
        assert_eq!(motion.position_at(500), Vec3::X * 10.0);
        assert_eq!(motion.position_between(150.5).x, 5.05);
        assert_eq!(motion.velocity_at(150, 60), Vec3::X * 6.0);
    }

    /// A server may send any tick, and clients must draw it.
    #[test]
    fn the_last_tick_there_is_does_not_overflow() {
        let motion = Motion {
            from: Vec3::ZERO,
            to: Vec3::X * 10.0,
            start_tick: u32::MAX - 10,
            end_tick: u32::MAX,
        };
        for tick in [f64::from(u32::MAX), 1e300, f64::INFINITY] {
            assert_eq!(motion.position_between(tick), Vec3::X * 10.0);
        }
        assert_eq!(motion.position_between(f64::NAN), Vec3::ZERO);
    }

    #[test]
    fn a_motion_without_length_is_at_its_end() {
        let motion = Motion {
            from: Vec3::ZERO,
            to: Vec3::Y,
            start_tick: 5,
            end_tick: 5,
        };
        assert_eq!(motion.position_at(5), Vec3::Y);
        assert_eq!(motion.velocity_at(5, 60), Vec3::ZERO);
    }
}
