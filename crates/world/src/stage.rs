//! Where a tick's time goes. The world has no clock: whoever wants to know
//! gives it one, and nothing else depends on it.

/// A clock in microseconds, from any start.
pub type Stopwatch = fn() -> u64;

/// What a tick does, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Inputs of players are taken.
    Inputs,
    /// Messages of clients reach scripts, timers and `OnTick` run.
    Scripts,
    /// Things on paths move, then characters.
    Characters,
    /// Rigid bodies move.
    Physics,
    /// Projectiles fly and hit.
    Projectiles,
    /// Non-player characters look, think and walk.
    Npcs,
    /// Who entered and left what.
    Triggers,
    /// Scripts hear what happened.
    Events,
}

impl Stage {
    /// All of them, in order.
    pub const ALL: [Stage; 8] = [
        Stage::Inputs,
        Stage::Scripts,
        Stage::Characters,
        Stage::Physics,
        Stage::Projectiles,
        Stage::Npcs,
        Stage::Triggers,
        Stage::Events,
    ];

    /// Its name in figures.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Inputs => "inputs",
            Stage::Scripts => "scripts",
            Stage::Characters => "characters",
            Stage::Physics => "physics",
            Stage::Projectiles => "projectiles",
            Stage::Npcs => "npcs",
            Stage::Triggers => "triggers",
            Stage::Events => "events",
        }
    }
}

/// Microseconds of each stage of one step; zero without a [`Stopwatch`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepTimes([u32; Stage::ALL.len()]);

impl StepTimes {
    /// Microseconds of a stage.
    pub fn of(&self, stage: Stage) -> u32 {
        self.0[stage as usize]
    }
}

/// Measures a step.
pub(crate) struct Laps {
    stopwatch: Option<Stopwatch>,
    last: u64,
    pub times: StepTimes,
}

impl Laps {
    pub fn begin(stopwatch: Option<Stopwatch>) -> Self {
        Self {
            stopwatch,
            last: stopwatch.map_or(0, |now| now()),
            times: StepTimes::default(),
        }
    }

    /// A stage is over.
    pub fn end(&mut self, stage: Stage) {
        let Some(stopwatch) = self.stopwatch else {
            return;
        };
        let now = stopwatch();
        let took = u32::try_from(now.saturating_sub(self.last)).unwrap_or(u32::MAX);
        self.times.0[stage as usize] = took;
        self.last = now;
    }
}
