//! Times the stages of a tick. The world has no clock: the host may provide
//! one, and nothing else depends on it.

/// A clock in microseconds with an arbitrary origin.
pub type Stopwatch = fn() -> u64;

/// The stages of a tick, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Takes the inputs of players.
    Inputs,
    /// Delivers client messages to scripts, runs timers and `OnTick`.
    Scripts,
    /// Moves entities on paths, then characters.
    Characters,
    /// Moves rigid bodies.
    Physics,
    /// Moves projectiles and applies hits.
    Projectiles,
    /// Non-player characters perceive, decide and walk.
    Npcs,
    /// Finds which entities entered and left triggers.
    Triggers,
    /// Delivers the tick's events to scripts.
    Events,
}

impl Stage {
    /// All stages, in order.
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

    /// Its name in metrics.
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

    /// Ends a stage.
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
