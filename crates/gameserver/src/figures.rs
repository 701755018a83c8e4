//! Where the ticks of the last second spent their time, for the debug overlay:
//! cheap enough for all clients.

use frolic_protocol::message::{StageFigure, TickFigures};
use frolic_world::Stage;

use crate::metrics::StageTimes;

/// Sums up a second, then starts over.
#[derive(Default)]
pub struct LastSecond {
    ticks: u32,
    tick_us: u64,
    worst_us: u32,
    reads_us: u64,
    step_us: [u64; Stage::ALL.len()],
    snapshots_us: u64,
    writes_us: u64,
    figures: TickFigures,
}

impl LastSecond {
    /// Records a tick; `tick_hz` of them make a second.
    pub fn note(&mut self, times: &StageTimes, tick_hz: u32) {
        self.ticks += 1;
        self.tick_us += u64::from(times.tick);
        self.worst_us = self.worst_us.max(times.tick);
        self.reads_us += u64::from(times.reads);
        for stage in Stage::ALL {
            self.step_us[stage as usize] += u64::from(times.step.of(stage));
        }
        self.snapshots_us += u64::from(times.snapshots);
        self.writes_us += u64::from(times.writes);
        if self.ticks >= tick_hz {
            let figures = self.summary();
            *self = Self {
                figures,
                ..Self::default()
            };
        }
    }

    /// The second before this one.
    pub fn figures(&self) -> &TickFigures {
        &self.figures
    }

    fn summary(&self) -> TickFigures {
        let mean = |sum: u64| sum as f32 / self.ticks.max(1) as f32 / 1000.0;
        let stage = |name: &str, sum: u64| StageFigure {
            name: name.to_owned(),
            ms: mean(sum),
        };
        let step = Stage::ALL
            .into_iter()
            .map(|each| stage(each.name(), self.step_us[each as usize]));
        let mut stages = vec![stage("reads", self.reads_us)];
        stages.extend(step);
        stages.push(stage("snapshots", self.snapshots_us));
        stages.push(stage("writes", self.writes_us));
        TickFigures {
            tick_ms: mean(self.tick_us),
            worst_ms: self.worst_us as f32 / 1000.0,
            stages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_summed_up_when_it_is_over() {
        let mut second = LastSecond::default();
        for tick in 1..=4 {
            assert!(second.figures().stages.is_empty());
            let times = StageTimes {
                tick: tick * 1000,
                writes: 500,
                ..StageTimes::default()
            };
            second.note(&times, 4);
        }
        let figures = second.figures();
        assert_eq!((figures.tick_ms, figures.worst_ms), (2.5, 4.0));
        let names: Vec<&str> = figures.stages.iter().map(|s| s.name.as_str()).collect();
        assert_eq!((names[0], names[names.len() - 1]), ("reads", "writes"));
        assert_eq!(figures.stages[names.len() - 1].ms, 0.5);
    }
}
