//! Time: steps, the wall clock, and the end of a world.

use frolic_script::{ScriptEvent, Usage};
use serde::{Deserialize, Serialize};

use super::{Effect, World};
use crate::stage::{Laps, Stage, StepTimes};
use crate::world::replay::Record;

/// Simulates one tick, in the order of [`Stage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step;

/// The outcome of a step, for metrics.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepReport {
    /// Resource use of scripts.
    pub scripts: Usage,
    /// How long each stage took.
    pub times: StepTimes,
}

impl Effect for Step {
    type Outcome = StepReport;

    fn run(self, world: &mut World) -> StepReport {
        let mut laps = Laps::begin(world.stopwatch);
        world.state.borrow_mut().begin_tick();
        laps.end(Stage::Inputs);
        world.inbox_counts.clear();
        for event in std::mem::take(&mut world.inbox) {
            world.vm.dispatch(event);
        }
        let dt = f64::from(world.state.borrow().space.dt());
        world.vm.tick(dt);
        laps.end(Stage::Scripts);
        {
            let mut state = world.state.borrow_mut();
            state.step_characters();
            laps.end(Stage::Characters);
            state.step_bodies();
            laps.end(Stage::Physics);
            state.step_projectiles();
            laps.end(Stage::Projectiles);
            state.step_npcs();
            laps.end(Stage::Npcs);
            state.step_triggers();
            laps.end(Stage::Triggers);
            state.send_restyled();
        }
        world.dispatch_events();
        world.state.borrow_mut().end_tick();
        world.note_cuts();
        let tick = world.tick();
        if world.recorder.as_ref().is_some_and(|r| r.wants_hash(tick)) {
            let hash = world.state_hash();
            world.note(Record::Hash(hash));
        }
        world.replication.arrange(&world.state.borrow().space);
        laps.end(Stage::Events);
        StepReport {
            scripts: world.vm.usage(),
            times: laps.times,
        }
    }
}

/// Sets the wall-clock time for scripts; it then advances with the ticks. Due
/// about once a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WallClock {
    /// Milliseconds since the start of 1970.
    pub unix_ms: u64,
}

impl Effect for WallClock {
    type Outcome = ();

    fn run(self, world: &mut World) {
        let mut state = world.state.borrow_mut();
        let tick = state.space.tick;
        state.wall_clock = (self.unix_ms, tick);
    }
}

/// Begins to close the world: `PlayerRemoving` runs for all players in it, then
/// `World.OnClose`. Players and characters stay, so that scripts can read them;
/// no player joins or leaves from here on. Steps follow until
/// [`World::has_closed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Close;

impl Effect for Close {
    type Outcome = ();

    fn run(self, world: &mut World) {
        if world.closing {
            return;
        }
        // Players who have just joined must be added before they are removed.
        world.dispatch_events();
        world.closing = true;
        world.vm.dispatch(ScriptEvent::Closing);
        world.note_cuts();
    }
}

/// Ends closing after the time limit: stops the handlers that have not finished,
/// and logs them for the creator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndClose {
    /// The limit.
    pub seconds: u32,
}

impl Effect for EndClose {
    type Outcome = ();

    fn run(self, world: &mut World) {
        world.vm.end_close(self.seconds);
    }
}
