//! However inputs arrive, a tick is one step.

use frolic_protocol::NumberedInput;
use frolic_sim::{Buttons, CharacterInput, CharacterParams};
use frolic_world::{World, WorldOptions, input};
use proptest::prelude::*;

fn run(seq: u32) -> NumberedInput {
    NumberedInput {
        seq,
        input: CharacterInput::new(0.0, 1.0, 0.0, 0.0, Buttons::RUN),
    }
}

/// How many inputs arrive in a stretch of ticks, and how many with the tick
/// after it: connections that flow, stall, and deliver everything at once.
fn stretches() -> impl Strategy<Value = Vec<(u32, u32, u32)>> {
    prop::collection::vec((0u32..4, 1u32..90, 0u32..120), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn one_tick_never_steps_twice(stretches in stretches()) {
        let mut world = World::load(&crate::meadow(), WorldOptions::default()).expect("loads");
        let player = world.apply(input::Join::new("client_1", "Ada"));
        let longest = CharacterParams::default().run_speed / 60.0 + 1e-3;
        let mut seq = 0;
        for (per_tick, ticks, burst) in stretches {
            for tick in 0..ticks {
                let count = if tick + 1 == ticks { burst } else { per_tick };
                let inputs: Vec<_> = (seq + 1..=seq + count).map(run).collect();
                seq += count;
                world.apply(input::Controls::new(player, inputs.iter().copied()));
                let before = world.character(player).expect("here").feet;
                world.apply(input::Step);
                let after = world.character(player).expect("here").feet;
                let way = ((after.x - before.x).powi(2) + (after.z - before.z).powi(2)).sqrt();
                prop_assert!(way <= longest, "{way} m in one tick");
            }
        }
    }
}
