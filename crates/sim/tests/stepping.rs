//! Steps characters through a world, with and without the step cache.

use frolic_sim::digest::Digest;
use frolic_sim::{
    CharacterInput, CharacterParams, CharacterState, CollisionWorld, StepCache, step_character,
    step_character_with,
};

pub const DT: f32 = 1.0 / 60.0;

/// Steps a character and returns its state after each tick. Every tick also runs
/// without the cache, and both results must be equal bit for bit.
pub fn run(
    world: &CollisionWorld,
    state: &mut CharacterState,
    input: CharacterInput,
    ticks: u32,
) -> Vec<CharacterState> {
    let params = CharacterParams::default();
    let mut cache = StepCache::default();
    (0..ticks)
        .map(|_| {
            let mut plain = *state;
            step_character(world, &params, &mut plain, &input, DT);
            step_character_with(&mut cache, world, &params, state, &input, DT);
            assert_eq!(bits(state), bits(&plain), "the cache shows");
            *state
        })
        .collect()
}

pub fn bits(state: &CharacterState) -> u64 {
    let mut digest = Digest::default();
    digest.character(state);
    digest.value()
}
