//! Characters in water: they float, swim slower than they walk, and get out.

use frolic_sim::{Buttons, CharacterInput, CharacterParams, CharacterState, CollisionWorld, Vec3};
use frolic_terrain::{Generator, Material, Op, Settings, Terrain};

use crate::stepping::{DT, run};

/// Level ground, as high as the surface of the lake.
const SURFACE: f32 = 8.0;
const BOTTOM: f32 = 3.0;

/// A meadow with a lake from z = -20 to 0, five metres deep, and a puddle of
/// one metre from z = 10 to 20.
fn lake() -> CollisionWorld {
    let mut settings = Settings::new([64, 64, 64], Generator::default());
    let fill = |min, max, material| Op::fill(min, max, material);
    settings.ops = vec![
        fill(
            [-10.0, BOTTOM, -20.0],
            [10.0, SURFACE, 0.0],
            Material::WATER,
        ),
        fill(
            [-10.0, SURFACE - 1.0, 10.0],
            [10.0, SURFACE, 20.0],
            Material::WATER,
        ),
    ];
    let mut world = CollisionWorld::new();
    world.set_terrain(Some(Terrain::new(&settings)));
    world
}

fn go(forward: f32, pitch: f32, buttons: Buttons) -> CharacterInput {
    CharacterInput::new(0.0, forward, 0.0, pitch, buttons)
}

fn head(state: &CharacterState) -> f32 {
    state.feet.y + CharacterParams::default().height
}

/// Where a character floats who fell into the middle of the lake.
fn afloat(world: &CollisionWorld) -> CharacterState {
    let mut state = CharacterState::at(Vec3::new(0.5, SURFACE + 3.0, -10.0));
    run(world, &mut state, CharacterInput::default(), 600);
    state
}

#[test]
fn whoever_falls_into_a_lake_floats_with_the_head_above() {
    let world = lake();
    let mut state = afloat(&world);
    assert!(head(&state) > SURFACE + 0.3, "{state:?}");
    assert!(state.feet.y < SURFACE - 1.0, "{state:?}");
    assert!(!state.grounded());
    let before = state.feet;
    run(&world, &mut state, CharacterInput::default(), 120);
    assert!((state.feet - before).length() < 0.01, "it bobs: {state:?}");
}

/// The bottom of a lake is not a road.
#[test]
fn walking_into_a_lake_is_swimming_across_it() {
    let world = lake();
    let mut state = CharacterState::at(Vec3::new(0.5, SURFACE, 3.0));
    let path = run(&world, &mut state, go(1.0, -0.3, Buttons::RUN), 300);
    assert!(state.feet.z < -8.0, "{state:?}");
    let deepest = path.iter().map(head).fold(f32::MAX, f32::min);
    assert!(deepest > SURFACE - 1.0, "it sank: {deepest}");
    let last = &path[240..];
    assert!(last.iter().all(|state| head(state) > SURFACE));
    for pair in last.windows(2) {
        let speed = (pair[0].feet.z - pair[1].feet.z) / DT;
        assert!(speed < 5.0, "as fast as on land: {speed}");
    }
}

#[test]
fn a_puddle_slows_and_does_not_carry() {
    let world = lake();
    let mut state = CharacterState::at(Vec3::new(0.5, SURFACE - 1.0, 19.0));
    let path = run(&world, &mut state, go(1.0, 0.0, Buttons::default()), 90);
    assert!(path[30..].iter().all(CharacterState::grounded));
    let speed = (path[60].feet.z - path[89].feet.z) / (29.0 * DT);
    assert!((2.0..4.0).contains(&speed), "{speed}");
}

#[test]
fn jump_swims_up_and_onto_a_shore_as_high_as_the_water() {
    let world = lake();
    // From the bottom.
    let mut state = CharacterState::at(Vec3::new(0.5, BOTTOM, -10.0));
    let path = run(&world, &mut state, go(0.0, 0.0, Buttons::JUMP), 90);
    let rise = (path[40].feet.y - path[10].feet.y) / (30.0 * DT);
    assert!((2.0..6.0).contains(&rise), "{rise}");
    // Against the wall at z = -20, whose top is level with the water.
    let mut state = afloat(&world);
    run(&world, &mut state, go(1.0, 0.0, Buttons::default()), 400);
    assert!(
        state.feet.z > -20.0 && state.feet.y < SURFACE - 1.0,
        "{state:?}"
    );
    run(&world, &mut state, go(1.0, 0.0, Buttons::JUMP), 90);
    run(&world, &mut state, go(1.0, 0.0, Buttons::default()), 60);
    assert!(state.feet.z < -20.0, "{state:?}");
    assert!(
        state.grounded() && state.feet.y >= SURFACE - 0.01,
        "{state:?}"
    );
}

#[test]
fn looking_down_dives_and_letting_go_comes_up_again() {
    let world = lake();
    let mut state = afloat(&world);
    run(&world, &mut state, go(1.0, -1.2, Buttons::default()), 100);
    assert!(head(&state) < SURFACE - 1.0, "{state:?}");
    run(&world, &mut state, CharacterInput::default(), 400);
    assert!(head(&state) > SURFACE, "{state:?}");
}

/// Water that is taken away drops who swam in it, and water that comes lifts.
#[test]
fn the_water_may_change_under_a_swimmer() {
    let mut world = lake();
    let mut state = afloat(&world);
    let min = [-10.0, BOTTOM, -20.0];
    let drain = Op::fill(min, [10.0, SURFACE, 0.0], Material::AIR);
    world.change_terrain(&drain, |terrain| terrain.apply(&drain));
    run(&world, &mut state, CharacterInput::default(), 200);
    assert!(
        state.grounded() && (state.feet.y - BOTTOM).abs() < 0.01,
        "{state:?}"
    );
    let flood = Op::fill(min, [10.0, SURFACE, 0.0], Material::WATER);
    world.change_terrain(&flood, |terrain| terrain.apply(&flood));
    run(&world, &mut state, CharacterInput::default(), 600);
    assert!(head(&state) > SURFACE, "{state:?}");
}
