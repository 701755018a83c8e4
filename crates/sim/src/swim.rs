//! Characters in water: immersion, buoyancy, drag, and climbing out.
//!
//! Water is a material of the terrain. A character wades while less than its
//! chest is under water, and swims beyond: it floats with its head above the
//! surface, jump swims up, and looking steeply down while moving dives.

use frolic_motion::{Buttons, CharacterInput, CharacterParams, CharacterState, Vec3};

use crate::collision::CollisionWorld;

/// Fraction of the height under water at which wading becomes swimming.
const SWIM_SHARE: f32 = 0.6;
/// Fraction of the height under water while floating at the surface.
const FLOAT_SHARE: f32 = 0.72;
/// Speed in water as a fraction of the speed on land.
const SPEED_SHARE: f32 = 0.55;
/// Horizontal acceleration of a swimmer, in m/s².
const ACCELERATION: f32 = 14.0;
/// Vertical acceleration of a swimmer, in m/s². A fall from a tower ends a few
/// metres down.
const LIFT_ACCELERATION: f32 = 30.0;
/// Vertical speed with jump held, in m/s.
const RISE_SPEED: f32 = 3.2;
/// Fastest vertical speed by buoyancy alone, in m/s.
const BUOYANCY_SPEED_MAX: f32 = 1.8;
/// Buoyant speed per metre away from the floating depth, in 1/s.
const BUOYANCY_RATE: f32 = 3.0;
/// A floating body slower than this is at rest.
const STILL_SPEED: f32 = 0.01;
/// A leap starts within this distance below the floating depth.
const LEAP_DEPTH_M: f32 = 0.12;
/// How far a leap lifts the feet above the surface: onto a shore at water
/// level, with a margin.
const LEAP_ABOVE_M: f32 = 0.35;
/// Sine of the pitch above which looking up or down swims that way.
const DIVE_SIN_MIN: f32 = 0.5;

/// How much of a character is under water.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Immersion {
    /// Metres of its height under water.
    depth: f32,
    /// Depth at which it swims.
    swim_depth: f32,
}

impl Immersion {
    /// For a character at `feet`. Costs nothing without terrain.
    pub fn of(world: &CollisionWorld, params: &CharacterParams, feet: Vec3) -> Self {
        let depth = world.terrain().map_or(0.0, |terrain| {
            terrain.water_in_column(feet.to_array(), params.height)
        });
        Self {
            depth,
            swim_depth: params.height * SWIM_SHARE,
        }
    }

    pub fn swims(&self) -> bool {
        self.depth > self.swim_depth
    }

    /// Speed as a fraction of the speed on land.
    pub fn speed_share(&self) -> f32 {
        if self.swims() {
            SPEED_SHARE
        } else if self.depth > 0.0 {
            1.0 - (1.0 - SPEED_SHARE) * (self.depth / self.swim_depth)
        } else {
            1.0
        }
    }

    /// Horizontal acceleration while swimming.
    pub fn acceleration(&self) -> Option<f32> {
        self.swims().then_some(ACCELERATION)
    }

    /// Sets the vertical velocity of a swimmer: buoyancy, jump and diving.
    pub fn lift(
        &self,
        params: &CharacterParams,
        state: &mut CharacterState,
        input: &CharacterInput,
        dt: f32,
    ) {
        // Water carries it, also where it touches the bottom.
        state.ground = None;
        state.air_ticks = u8::MAX;
        let float_depth = params.height * FLOAT_SHARE;
        let jumps = input.buttons.contains(Buttons::JUMP);
        if jumps && self.depth <= float_depth + LEAP_DEPTH_M {
            let height = self.swim_depth + LEAP_ABOVE_M;
            let leap = (2.0 * params.gravity.max(0.0) * height).sqrt();
            state.velocity.y = leap.max(RISE_SPEED);
            return;
        }
        let wanted = if jumps {
            RISE_SPEED
        } else if let Some(dive) = self.dive(params, input) {
            dive
        } else {
            let lift = (self.depth - float_depth) * BUOYANCY_RATE;
            if lift.abs() < STILL_SPEED {
                0.0
            } else {
                lift.clamp(-BUOYANCY_SPEED_MAX, BUOYANCY_SPEED_MAX)
            }
        };
        let change_max = LIFT_ACCELERATION * dt;
        let change = (wanted - state.velocity.y).clamp(-change_max, change_max);
        state.velocity.y += change;
    }

    /// The vertical speed of a swimmer who moves where they look. The camera
    /// always looks down a little, so only a steep angle counts, and up only
    /// with the head under water.
    fn dive(&self, params: &CharacterParams, input: &CharacterInput) -> Option<f32> {
        let (sin, _) = input.pitch.sin_cos();
        let under = self.depth >= params.height;
        let steep = sin <= -DIVE_SIN_MIN || (under && sin >= DIVE_SIN_MIN);
        if !steep || input.forward <= 0 {
            return None;
        }
        Some(sin * (f32::from(input.forward) / 127.0) * RISE_SPEED)
    }
}
