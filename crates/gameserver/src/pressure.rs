//! Whether the world keeps up with its clock, as a level from 0 to 3 that snapshot
//! generation adapts to.

/// The highest pressure.
pub const PRESSURE_MAX: u8 = 3;
/// Fractions of the ticks in a window that begin late.
const LATE_TOO_MANY: f32 = 0.2;
const LATE_FEW: f32 = 0.05;
/// Fractions of the time that ticks take.
const BUSY_TOO_MUCH: f32 = 0.95;
const BUSY_LITTLE: f32 = 0.75;
/// The most that one tick counts. A host that suspends the machine for a second
/// makes one tick look dozens long, which says nothing about the next; a world that
/// is too slow has many long ticks. Updates may be made in one tick of three, so
/// that one may be that long.
const BUSY_TICK_MAX: f32 = 3.0;
/// Calm windows before the pressure falls, and at most after relapses.
const PATIENCE: u32 = 4;
const PATIENCE_MAX: u32 = 64;

/// Rises within half a second of overload and falls after seconds of calm; a
/// relapse doubles the required calm, to prevent oscillation.
pub struct Pressure {
    level: u8,
    window_ticks: u32,
    ticks: u32,
    late: u32,
    busy: f32,
    calm: u32,
    patience: u32,
    windows_since_fall: u32,
}

impl Pressure {
    /// No pressure, for a world of `tick_hz` ticks per second.
    pub fn new(tick_hz: u32) -> Self {
        Self {
            level: 0,
            window_ticks: (tick_hz / 2).max(1),
            ticks: 0,
            late: 0,
            busy: 0.0,
            calm: 0,
            patience: PATIENCE,
            windows_since_fall: u32::MAX,
        }
    }

    /// Records a tick: how late it began and how long it took, as fractions of a
    /// tick.
    pub fn note(&mut self, late: f32, busy: f32) {
        self.ticks += 1;
        self.late += u32::from(late > 0.5);
        self.busy += busy.min(BUSY_TICK_MAX);
        if self.ticks < self.window_ticks {
            return;
        }
        let ticks = self.ticks as f32;
        self.close_window(self.late as f32 / ticks, self.busy / ticks);
        (self.ticks, self.late, self.busy) = (0, 0, 0.0);
    }

    fn close_window(&mut self, late: f32, busy: f32) {
        self.windows_since_fall = self.windows_since_fall.saturating_add(1);
        if late > LATE_TOO_MANY || busy > BUSY_TOO_MUCH {
            if self.windows_since_fall <= self.patience {
                self.patience = (self.patience * 2).min(PATIENCE_MAX);
            }
            self.windows_since_fall = u32::MAX;
            self.level = (self.level + 1).min(PRESSURE_MAX);
            self.calm = 0;
        } else if late < LATE_FEW && busy < BUSY_LITTLE {
            self.calm += 1;
        } else {
            self.calm = 0;
        }
        if self.calm >= self.patience {
            self.calm = 0;
            if self.level == 0 {
                self.patience = PATIENCE;
            } else {
                self.level -= 1;
                self.windows_since_fall = 0;
            }
        }
    }

    /// From 0 (at ease) to [`PRESSURE_MAX`].
    pub fn level(&self) -> u8 {
        self.level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(pressure: &mut Pressure, count: u32, late: f32, busy: f32) {
        (0..count * 60).for_each(|_| pressure.note(late, busy));
    }

    /// A suspended process or machine makes one tick look as long as the
    /// suspension.
    #[test]
    fn one_tick_as_long_as_a_second_is_no_pressure() {
        for tick_hz in [30, 60] {
            let mut pressure = Pressure::new(tick_hz);
            for tick in 0..tick_hz * 10 {
                let stopped = tick % (2 * tick_hz) == 7;
                pressure.note(0.0, if stopped { 75.0 } else { 0.5 });
                assert_eq!(pressure.level(), 0, "tick {tick} at {tick_hz} Hz");
            }
        }
    }

    /// Updates are made in one tick of three: that one may be three long.
    #[test]
    fn long_ticks_among_short_ones_are_pressure_where_there_is_no_time_left() {
        let mut pressure = Pressure::new(60);
        (0..30).for_each(|tick| pressure.note(0.0, if tick % 3 == 0 { 3.5 } else { 0.1 }));
        assert_eq!(pressure.level(), 1);
    }

    #[test]
    fn it_rises_fast_falls_slowly_and_does_not_swing() {
        let mut pressure = Pressure::new(60);
        seconds(&mut pressure, 10, 0.0, 0.9);
        assert_eq!(pressure.level(), 0, "busy but in time");
        seconds(&mut pressure, 1, 2.0, 1.2);
        assert_eq!(pressure.level(), 2);
        seconds(&mut pressure, 1, 0.0, 0.5);
        assert_eq!(pressure.level(), 2, "one calm second is not enough");
        seconds(&mut pressure, 20, 0.0, 0.5);
        assert_eq!(pressure.level(), 0);

        // A load that only the first level carries: count the oscillations.
        let mut changes = 0;
        let mut before = 0;
        for _ in 0..60 * 300 {
            let overloaded = pressure.level() == 0;
            pressure.note(f32::from(u8::from(overloaded)), 0.6);
            changes += u32::from(pressure.level() != before);
            before = pressure.level();
        }
        assert!(changes < 40, "{changes} changes in five minutes");
    }
}
