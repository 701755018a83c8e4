//! Characters on a ground of blocks.

use frolic_sim::random::Random;
use frolic_sim::{
    Buttons, CharacterInput, CharacterParams, CharacterState, CollisionWorld, Pose, Shape,
    StepCache, TERRAIN, Vec3, step_character, step_character_with,
};
use frolic_terrain::{Generator, Material, Op, Settings, Terrain};
use proptest::prelude::*;

use crate::stepping::{DT, bits, run};

/// Level ground whose surface is at y = 8, with these boxes of stone on it.
fn world(boxes: &[[[f32; 3]; 2]]) -> CollisionWorld {
    let mut settings = Settings::new([64, 64, 64], Generator::default());
    settings.ops = boxes
        .iter()
        .map(|[min, max]| Op::fill(*min, *max, Material::STONE))
        .collect();
    let mut world = CollisionWorld::new();
    world.set_terrain(Some(Terrain::new(&settings)));
    world
}

fn go(right: f32, forward: f32, buttons: Buttons) -> CharacterInput {
    CharacterInput::new(right, forward, 0.0, 0.0, buttons)
}

#[test]
fn characters_stand_on_blocks() {
    let world = world(&[]);
    let mut state = CharacterState::at(Vec3::new(0.3, 12.0, 0.7));
    run(&world, &mut state, CharacterInput::default(), 120);
    assert_eq!(state.ground, Some(TERRAIN));
    assert!((state.feet.y - 8.0).abs() < 1e-3, "{state:?}");
    let before = state;
    run(&world, &mut state, CharacterInput::default(), 60);
    assert_eq!(bits(&before), bits(&state), "they rest");
}

/// Floors and walls of many blocks are as smooth as one.
#[test]
fn borders_between_blocks_are_not_felt() {
    let world = world(&[[[4.0, 8.0, -32.0], [6.0, 12.0, 32.0]]]);
    let mut state = CharacterState::at(Vec3::new(0.0, 8.0, 20.0));
    run(&world, &mut state, go(0.0, 0.0, Buttons::default()), 30);
    // Along the ground: the same way in every tick once at full speed.
    run(&world, &mut state, go(0.0, 1.0, Buttons::RUN), 30);
    let path = run(&world, &mut state, go(0.0, 1.0, Buttons::RUN), 60);
    for pair in path.windows(2) {
        let step = pair[0].feet.z - pair[1].feet.z;
        assert!((step - 8.0 * DT).abs() < 1e-4, "{step}");
        assert!((pair[1].feet.y - 8.0).abs() < 1e-3 && pair[1].grounded());
    }
    // Along a wall, pushing into it.
    let mut state = CharacterState::at(Vec3::new(3.0, 8.0, 20.0));
    run(&world, &mut state, go(1.0, 1.0, Buttons::default()), 60);
    let path = run(&world, &mut state, go(1.0, 1.0, Buttons::default()), 60);
    let wanted = path[0].feet.z - path[1].feet.z;
    assert!(wanted > 0.03, "it slides: {wanted}");
    for pair in path.windows(2) {
        let step = pair[0].feet.z - pair[1].feet.z;
        assert!((step - wanted).abs() < 2e-3, "caught at {:?}", pair[1].feet);
        assert!(pair[1].feet.x < 3.61, "{:?}", pair[1].feet);
    }
}

#[test]
fn a_block_is_jumped_onto_and_not_stepped_onto() {
    let world = world(&[[[-4.0, 8.0, -9.0], [4.0, 9.0, -3.0]]]);
    let mut state = CharacterState::at(Vec3::new(0.5, 8.0, 0.0));
    run(&world, &mut state, go(0.0, 1.0, Buttons::default()), 120);
    assert!(
        state.feet.z > -2.7 && state.feet.y < 8.01,
        "walked up: {state:?}"
    );
    run(&world, &mut state, go(0.0, 1.0, Buttons::JUMP), 5);
    run(&world, &mut state, go(0.0, 1.0, Buttons::default()), 60);
    assert!((state.feet.y - 9.0).abs() < 1e-3, "{state:?}");
}

#[test]
fn nobody_falls_through_or_stays_inside() {
    let mut world = world(&[]);
    let mut state = CharacterState::at(Vec3::new(0.5, 60.0, 0.5));
    state.velocity.y = -60.0;
    run(&world, &mut state, CharacterInput::default(), 120);
    assert!((state.feet.y - 8.0).abs() < 1e-3, "{state:?}");
    // Buried by a script, they come up.
    let op = Op::fill([-3.0, 8.0, -3.0], [3.0, 13.0, 3.0], Material::DIRT);
    world.change_terrain(&op, |terrain| terrain.apply(&op));
    run(&world, &mut state, CharacterInput::default(), 120);
    assert!((state.feet.y - 13.0).abs() < 1e-3, "{state:?}");
    // The ground is taken away.
    let op = Op::fill([-3.0, 5.0, -3.0], [3.0, 13.0, 3.0], Material::AIR);
    world.change_terrain(&op, |terrain| terrain.apply(&op));
    run(&world, &mut state, CharacterInput::default(), 120);
    assert!((state.feet.y - 5.0).abs() < 1e-3, "{state:?}");
}

#[test]
fn rays_meet_blocks_and_solids_whichever_is_nearer() {
    let mut world = world(&[]);
    world.insert(
        7,
        Shape::Box(Vec3::splat(0.5)),
        Pose::translation(0.5, 9.0, 0.5),
    );
    let down = |world: &CollisionWorld, x: f32, except: &[u32]| {
        world.raycast(Vec3::new(x, 20.0, 0.5), -Vec3::Y, 100.0, except)
    };
    let hit = down(&world, 0.5, &[]).unwrap();
    assert_eq!((hit.entity, hit.distance), (7, 10.5));
    let hit = down(&world, 5.5, &[]).unwrap();
    assert_eq!(
        (hit.entity, hit.distance, hit.normal),
        (TERRAIN, 12.0, Vec3::Y)
    );
    assert_eq!(down(&world, 0.5, &[7]).unwrap().entity, TERRAIN);
    assert!(down(&world, 5.5, &[TERRAIN]).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// A cache never shows while blocks come and go, among solids too.
    #[test]
    fn a_cache_never_shows_on_changing_ground(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let mut world = world(&[[[-10.0, 8.0, -10.0], [-5.0, 11.0, 10.0]]]);
        world.insert(3, Shape::Box(Vec3::new(2.0, 0.2, 2.0)), Pose::translation(2.0, 8.5, 0.0));
        let params = CharacterParams::default();
        let mut walkers: Vec<_> = (0..4)
            .map(|index| {
                let start = CharacterState::at(Vec3::new(index as f32 * 3.0 - 5.0, 12.0, 0.3));
                (StepCache::default(), start, CharacterInput::default())
            })
            .collect();
        for tick in 0..300u32 {
            world.begin_tick();
            if random.below(6) == 0 {
                let low = [random.range(-9.0, 9.0), random.range(5.0, 9.0), random.range(-9.0, 9.0)];
                let high = low.map(|at| at + 1.6);
                let material = [Material::AIR, Material::SAND, Material::WATER][random.below(3) as usize];
                let op = Op::fill(low, high, material);
                world.change_terrain(&op, |terrain| terrain.apply(&op));
            }
            for (index, (cache, state, input)) in walkers.iter_mut().enumerate() {
                if (tick + index as u32 * 11).is_multiple_of(40) {
                    *input = if random.below(2) == 0 {
                        CharacterInput::default()
                    } else {
                        CharacterInput::new(random.range(-1.0, 1.0), random.range(-1.0, 1.0), random.range(-3.0, 3.0), 0.0, Buttons(random.below(4) as u8))
                    };
                }
                let mut plain = *state;
                step_character(&world, &params, &mut plain, input, DT);
                step_character_with(cache, &world, &params, state, input, DT);
                prop_assert_eq!(bits(state), bits(&plain), "tick {}: {:?} {:?}", tick, state, plain);
                if state.feet.y < -20.0 {
                    *state = CharacterState::at(Vec3::new(0.0, 12.0, 0.3));
                }
            }
        }
    }
}
