//! A step with a cache, one without, and one in a world that was built in
//! another order are the same step, to the last bit.

use frolic_sim::digest::Digest;
use frolic_sim::random::Random;
use frolic_sim::{
    Buttons, CharacterInput, CharacterParams, CharacterState, CollisionWorld, Pose, Shape,
    StepCache, Vec3, step_character, step_character_with,
};
use proptest::prelude::*;

const DT: f32 = 1.0 / 60.0;

struct Piece {
    id: u32,
    shape: Shape,
    pose: Pose,
}

/// A floor, and shapes of every kind about it, some upright and some not.
fn scene(random: &mut Random, count: u32) -> Vec<Piece> {
    let mut pieces = vec![Piece {
        id: 1,
        shape: Shape::Box(Vec3::new(12.0, 0.5, 12.0)),
        pose: Pose::translation(0.0, -0.5, 0.0),
    }];
    for index in 0..count {
        let shape = match random.below(6) {
            0 => Shape::Box(Vec3::new(1.0, 0.15, 1.3)),
            _ => random.shape(0.1, 1.6),
        };
        pieces.push(Piece {
            // Not in the order in which they are made.
            id: 2 + index * 37 % (count * 40),
            shape,
            pose: Pose::from_parts(place(random), random.stance()),
        });
    }
    pieces
}

fn place(random: &mut Random) -> Vec3 {
    Vec3::new(
        random.range(-11.0, 11.0),
        random.range(-0.3, 2.0),
        random.range(-11.0, 11.0),
    )
}

fn build<'a>(pieces: impl Iterator<Item = &'a Piece>) -> CollisionWorld {
    let mut world = CollisionWorld::new();
    for piece in pieces {
        world.insert(piece.id, piece.shape, piece.pose);
    }
    world
}

/// Inputs of a player: often none, so that characters come to rest.
fn intent(random: &mut Random) -> CharacterInput {
    if random.below(3) == 0 {
        let looking = CharacterInput::new(0.0, 0.0, random.range(-3.0, 3.0), 0.0, Buttons::FIRE);
        return looking;
    }
    CharacterInput::new(
        random.range(-1.0, 1.0),
        random.range(-1.0, 1.0),
        random.range(-3.0, 3.0),
        0.0,
        Buttons(random.below(4) as u8),
    )
}

fn bits(state: &CharacterState) -> u64 {
    let mut digest = Digest::default();
    digest.character(state);
    digest.value()
}

/// Changes of a tick, the same in both worlds.
fn disturb(random: &mut Random, pieces: &mut Vec<Piece>, worlds: &mut [&mut CollisionWorld]) {
    worlds.iter_mut().for_each(|world| world.begin_tick());
    let chosen = 1 + random.below(pieces.len() as u32 - 1) as usize;
    match random.below(40) {
        0 if pieces.len() > 3 => {
            let gone = pieces.swap_remove(chosen).id;
            worlds.iter_mut().for_each(|world| world.remove(gone));
        }
        1 => {
            let piece = &mut pieces[chosen];
            piece.pose = Pose::from_parts(place(random), random.stance());
            let (id, pose) = (piece.id, piece.pose);
            worlds.iter_mut().for_each(|world| world.teleport(id, pose));
        }
        2 => {
            let (id, shape) = (20_000 + random.below(1000), Shape::Sphere(0.7));
            let pose = Pose::from_translation(place(random));
            pieces.retain(|piece| piece.id != id);
            pieces.push(Piece { id, shape, pose });
            worlds
                .iter_mut()
                .for_each(|world| world.insert(id, shape, pose));
        }
        _ => {}
    }
    // The last few pieces drift about, and sometimes stand still.
    let start = pieces.len().saturating_sub(5).max(1);
    for piece in &mut pieces[start..] {
        if random.below(4) > 0 {
            let aside = Vec3::new(random.range(-0.1, 0.1), random.range(-0.02, 0.02), 0.06);
            piece.pose.translation += aside;
            if piece.pose.translation.z > 11.0 {
                piece.pose.translation.z -= 22.0;
            }
            let (id, pose) = (piece.id, piece.pose);
            worlds.iter_mut().for_each(|world| world.move_to(id, pose));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_cache_never_shows(seed in any::<u64>(), count in 5u32..120, moving in any::<bool>()) {
        let mut random = Random::new(seed);
        let mut pieces = scene(&mut random, count);
        let mut world = build(pieces.iter());
        let mut mirror = build(pieces.iter().rev());
        let params = CharacterParams::default();
        let mut walkers: Vec<_> = (0..6)
            .map(|_| {
                let start = CharacterState::at(place(&mut random) + Vec3::Y * 2.0);
                (StepCache::default(), start, CharacterInput::default(), start)
            })
            .collect();
        for tick in 0..400u32 {
            if moving {
                disturb(&mut random, &mut pieces, &mut [&mut world, &mut mirror]);
            }
            for (index, (cache, state, input, past)) in walkers.iter_mut().enumerate() {
                if (tick + index as u32 * 7).is_multiple_of(45) {
                    *input = intent(&mut random);
                }
                if random.below(300) == 0 {
                    state.velocity = place(&mut random) * 10.0;
                }
                // A client goes back to where the server says it was.
                match random.below(60) {
                    0 => *past = *state,
                    1 => *state = *past,
                    _ => {}
                }
                let (mut plain, mut mirrored) = (*state, *state);
                step_character(&world, &params, &mut plain, input, DT);
                step_character(&mirror, &params, &mut mirrored, input, DT);
                step_character_with(cache, &world, &params, state, input, DT);
                prop_assert_eq!(bits(state), bits(&plain), "tick {}: {:?} {:?}", tick, state, plain);
                prop_assert_eq!(bits(state), bits(&mirrored), "tick {}", tick);
                if state.feet.y < -20.0 {
                    *state = CharacterState::at(place(&mut random) + Vec3::Y * 2.0);
                }
            }
        }
    }
}

/// One cache for two worlds in turn, which saw as many changes in each place.
#[test]
fn a_cache_knows_its_world() {
    let floor = || build(scene(&mut Random::new(1), 0).iter());
    let wall = Shape::Box(Vec3::new(2.0, 1.0, 0.2));
    let (here, there) = (
        Pose::translation(0.0, 1.0, -1.0),
        Pose::translation(90.0, 1.0, 90.0),
    );
    let (mut one, mut other) = (floor(), floor());
    one.insert(2, wall, here);
    one.insert(3, wall, there);
    other.insert(3, wall, there);
    other.insert(2, wall, here);
    let params = CharacterParams::default();
    let forward = CharacterInput::new(0.0, 1.0, 0.0, 0.0, Buttons::default());
    let mut cache = StepCache::default();
    let mut state = CharacterState::at(Vec3::ZERO);
    for tick in 0..60 {
        let world = if tick % 2 == 0 { &one } else { &other };
        let mut plain = state;
        step_character(world, &params, &mut plain, &forward, DT);
        step_character_with(&mut cache, world, &params, &mut state, &forward, DT);
        assert_eq!(bits(&state), bits(&plain), "went into the wall: {state:?}");
    }
}

/// A character at rest with one set of parameters may move with another.
#[test]
fn a_cache_knows_its_rules() {
    let world = build(scene(&mut Random::new(1), 0).iter());
    let usual = CharacterParams::default();
    let slippery = CharacterParams {
        slope_cos_min: 1.5,
        ..usual
    };
    let idle = CharacterInput::default();
    let mut cache = StepCache::default();
    let mut state = CharacterState::at(Vec3::ZERO);
    for tick in 0..120 {
        let params = if tick % 30 == 29 { &slippery } else { &usual };
        let mut plain = state;
        step_character(&world, params, &mut plain, &idle, DT);
        step_character_with(&mut cache, &world, params, &mut state, &idle, DT);
        assert_eq!(bits(&state), bits(&plain), "tick {tick}");
    }
}

/// A character at rest is not stepped again until its ground disappears.
#[test]
fn what_rests_wakes_up() {
    let mut world = build(scene(&mut Random::new(1), 0).iter());
    world.insert(
        7,
        Shape::Box(Vec3::splat(0.5)),
        Pose::translation(0.0, 0.5, 0.0),
    );
    let params = CharacterParams::default();
    let idle = CharacterInput::default();
    let mut cache = StepCache::default();
    let mut state = CharacterState::at(Vec3::Y * 1.2);
    let mut step = |world: &CollisionWorld, state: &mut CharacterState| {
        let mut plain = *state;
        step_character(world, &params, &mut plain, &idle, DT);
        step_character_with(&mut cache, world, &params, state, &idle, DT);
        assert_eq!(bits(state), bits(&plain), "{state:?} {plain:?}");
    };
    for _ in 0..120 {
        step(&world, &mut state);
    }
    assert_eq!(state.ground, Some(7));
    for x in [0.2, 0.4, 0.4, 0.4] {
        world.begin_tick();
        world.move_to(7, Pose::translation(x, 0.5, 0.0));
        step(&world, &mut state);
    }
    assert!((state.feet.x - 0.4).abs() < 1e-3, "carried: {state:?}");
    // All at once from near to farther off, within what is remembered.
    world.begin_tick();
    world.move_to(7, Pose::translation(0.4, -0.4, 0.0));
    step(&world, &mut state);
    assert!(state.feet.y < 0.2, "carried down: {state:?}");
    world.remove(7);
    for _ in 0..120 {
        world.begin_tick();
        step(&world, &mut state);
    }
    assert_eq!(state.ground, Some(1), "fell to the floor");
}
