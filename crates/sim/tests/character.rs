//! Characters in small scenes, step by step.

use frolic_sim::{
    Buttons, CharacterInput, CharacterParams, CharacterState, CollisionWorld, Pose, Shape, Vec3,
    step_character,
};
use proptest::prelude::*;

const DT: f32 = 1.0 / 60.0;

/// A floor with its top at zero.
fn floor() -> CollisionWorld {
    let mut world = CollisionWorld::new();
    let slab = Shape::Box(Vec3::new(50.0, 0.5, 50.0));
    world.insert(1, slab, Pose::translation(0.0, -0.5, 0.0));
    world
}

fn walk(forward: f32) -> CharacterInput {
    CharacterInput::new(0.0, forward, 0.0, 0.0, Buttons::default())
}

fn run(world: &CollisionWorld, state: &mut CharacterState, input: CharacterInput, ticks: usize) {
    for _ in 0..ticks {
        step_character(world, &CharacterParams::default(), state, &input, DT);
    }
}

fn standing(world: &CollisionWorld, feet: Vec3) -> CharacterState {
    let mut state = CharacterState::at(feet);
    run(world, &mut state, CharacterInput::default(), 60);
    assert!(state.grounded(), "did not land from {feet}: {state:?}");
    state
}

#[test]
fn falls_lands_and_rests() {
    let world = floor();
    let mut state = CharacterState::at(Vec3::Y * 3.0);
    run(&world, &mut state, CharacterInput::default(), 90);
    assert!(state.grounded());
    assert!(state.feet.y.abs() < 0.03, "{state:?}");
    let rest = state.feet;
    run(&world, &mut state, CharacterInput::default(), 600);
    assert_eq!(state.feet, rest, "must not creep");
}

#[test]
fn walks_at_its_speed_towards_the_camera() {
    let world = floor();
    let mut state = standing(&world, Vec3::ZERO);
    run(&world, &mut state, walk(1.0), 60);
    let start = state.feet;
    run(&world, &mut state, walk(1.0), 60);
    assert!((state.feet.z - start.z + 5.0).abs() < 0.01, "{state:?}");
    assert!(state.feet.x.abs() < 1e-3);

    let left = CharacterInput::new(0.0, 1.0, core::f32::consts::FRAC_PI_2, 0.0, Buttons::RUN);
    let start = state.feet;
    run(&world, &mut state, left, 60);
    assert!(
        state.feet.x < start.x - 6.0,
        "yaw turns to the left: {state:?}"
    );
}

#[test]
fn diagonal_is_not_faster() {
    let world = floor();
    let mut state = standing(&world, Vec3::ZERO);
    let diagonal = CharacterInput::new(1.0, 1.0, 0.0, 0.0, Buttons::default());
    run(&world, &mut state, diagonal, 60);
    assert!(state.velocity.length() < 5.01);
}

#[test]
fn jumps_about_a_metre_and_a_half() {
    let world = floor();
    let mut state = standing(&world, Vec3::ZERO);
    let jump = CharacterInput::new(0.0, 0.0, 0.0, 0.0, Buttons::JUMP);
    let mut top = 0.0f32;
    run(&world, &mut state, jump, 1);
    for _ in 0..60 {
        run(&world, &mut state, CharacterInput::default(), 1);
        top = top.max(state.feet.y);
    }
    assert!((1.4..1.7).contains(&top), "{top}");
    assert!(state.grounded());
}

#[test]
fn walls_stop_and_slide() {
    let mut world = floor();
    let wall = Shape::Box(Vec3::new(20.0, 3.0, 0.02));
    world.insert(2, wall, Pose::translation(0.0, 3.0, -5.0));
    let mut state = standing(&world, Vec3::ZERO);
    run(&world, &mut state, walk(1.0), 200);
    assert!(state.feet.z > -4.7, "{state:?}");
    let along = CharacterInput::new(1.0, 1.0, 0.0, 0.0, Buttons::default());
    run(&world, &mut state, along, 60);
    assert!(state.feet.x > 2.0, "slides along: {state:?}");
    assert!(state.feet.z > -4.7);
}

#[test]
fn nothing_is_too_thin_or_too_fast() {
    let mut world = floor();
    let wall = Shape::Box(Vec3::new(20.0, 3.0, 0.005));
    world.insert(2, wall, Pose::translation(0.0, 3.0, -5.0));
    let mut state = standing(&world, Vec3::ZERO);
    for _ in 0..60 {
        state.velocity.z = -300.0;
        run(&world, &mut state, walk(1.0), 1);
        assert!(state.feet.z > -5.0, "went through: {state:?}");
    }
    let mut falling = CharacterState::at(Vec3::Y * 40.0);
    falling.velocity.y = -60.0;
    run(&world, &mut falling, CharacterInput::default(), 60);
    assert!(falling.feet.y > -0.1, "{falling:?}");
}

#[test]
fn steps_are_climbed_and_blocks_are_not() {
    let mut world = floor();
    for step in 0..5 {
        let height = 0.3 * (step + 1) as f32;
        let slab = Shape::Box(Vec3::new(2.0, height * 0.5, 0.5));
        let place = Pose::translation(0.0, height * 0.5, -3.0 - step as f32);
        world.insert(10 + step, slab, place);
    }
    let block = Shape::Box(Vec3::new(2.0, 0.5, 1.0));
    world.insert(20, block, Pose::translation(10.0, 0.5, -3.0));

    let mut state = standing(&world, Vec3::ZERO);
    run(&world, &mut state, walk(1.0), 80);
    assert!((state.feet.y - 1.5).abs() < 0.05, "at the top: {state:?}");
    let mut airborne = 0;
    for _ in 0..80 {
        run(&world, &mut state, walk(-1.0), 1);
        airborne += u32::from(!state.grounded());
    }
    assert!(state.feet.y < 0.05, "back down: {state:?}");
    assert!(airborne < 3, "stays on the stairs: {airborne}");

    let mut blocked = standing(&world, Vec3::new(10.0, 0.0, 0.0));
    run(&world, &mut blocked, walk(1.0), 120);
    assert!(blocked.feet.y < 0.05, "{blocked:?}");
}

#[test]
fn slopes_are_walked_up_to_the_limit() {
    let mut world = floor();
    // Rising towards -z: 26.6 degrees, then 63.4 degrees.
    let gentle = Shape::Wedge(Vec3::new(2.0, 1.0, 2.0));
    world.insert(2, gentle, Pose::translation(0.0, 1.0, -5.0));
    let steep = Shape::Wedge(Vec3::new(2.0, 2.0, 1.0));
    world.insert(3, steep, Pose::translation(10.0, 2.0, -5.0));

    let mut state = standing(&world, Vec3::ZERO);
    run(&world, &mut state, walk(1.0), 75);
    assert!(state.feet.y > 1.2, "{state:?}");
    assert!(state.grounded());
    let rest = state.feet;
    run(&world, &mut state, CharacterInput::default(), 10);
    let rest_a = state.feet;
    run(&world, &mut state, CharacterInput::default(), 120);
    assert!(
        (state.feet - rest_a).length() < 1e-3,
        "creeps: {rest} {state:?}"
    );

    let mut blocked = standing(&world, Vec3::new(10.0, 0.0, 0.0));
    run(&world, &mut blocked, walk(1.0), 120);
    assert!(blocked.feet.y < 0.8, "{blocked:?}");
}

#[test]
fn platforms_carry() {
    let mut world = floor();
    let slab = Shape::Box(Vec3::new(2.0, 0.25, 2.0));
    world.insert(2, slab, Pose::translation(0.0, 2.0, 0.0));
    let mut state = standing(&world, Vec3::new(0.5, 2.5, 0.0));
    let offset = state.feet.x;
    for tick in 1..=120 {
        world.begin_tick();
        world.move_to(
            2,
            Pose::translation(tick as f32 * 0.05, 2.0 + tick as f32 * 0.01, 0.0),
        );
        run(&world, &mut state, CharacterInput::default(), 1);
        assert!(state.grounded(), "tick {tick}");
    }
    assert!((state.feet.x - 6.0 - offset).abs() < 0.01, "{state:?}");
    assert!((state.feet.y - 3.45).abs() < 0.05, "{state:?}");
}

#[test]
fn coyote_time_lets_a_late_jump_through() {
    let mut world = CollisionWorld::new();
    let ledge = Shape::Box(Vec3::new(2.0, 0.5, 2.0));
    world.insert(1, ledge, Pose::translation(0.0, -0.5, 0.0));
    let mut state = standing(&world, Vec3::ZERO);
    while state.grounded() {
        run(&world, &mut state, walk(1.0), 1);
    }
    run(&world, &mut state, walk(1.0), 2);
    let jump = CharacterInput::new(0.0, 1.0, 0.0, 0.0, Buttons::JUMP);
    run(&world, &mut state, jump, 1);
    assert!(state.velocity.y > 8.0, "{state:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The order in which solids arrive must not show: a browser learns of
    /// them in another order than the server.
    #[test]
    fn order_of_insertion_does_not_matter(order in Just((0u32..40).collect::<Vec<_>>()).prop_shuffle(), yaw in -3.0f32..3.0) {
        let solid = |i: u32| {
            let place = Pose::translation((i % 7) as f32 * 1.3 - 4.0, 0.1 * (i % 5) as f32, (i / 7) as f32 * -1.1);
            (i + 2, Shape::Box(Vec3::new(0.6, 0.2 + 0.05 * (i % 3) as f32, 0.5)), place)
        };
        let (mut a, mut b) = (floor(), floor());
        for i in 0..40 {
            let (id, shape, pose) = solid(i);
            a.insert(id, shape, pose);
        }
        for i in order {
            let (id, shape, pose) = solid(i);
            b.insert(id, shape, Pose::identity());
            b.teleport(id, pose);
        }
        let input = CharacterInput::new(0.1, 1.0, yaw, 0.0, Buttons::RUN);
        let (mut x, mut y) = (CharacterState::at(Vec3::Y), CharacterState::at(Vec3::Y));
        run(&a, &mut x, input, 120);
        run(&b, &mut y, input, 120);
        prop_assert_eq!(x, y);
    }
}
