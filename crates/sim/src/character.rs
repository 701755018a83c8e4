//! Character movement: one step of the capsule, bit-identical everywhere.
//!
//! The step is discrete: move a little, push out of penetrated solids, repeat.
//! No sub-step is longer than half the capsule's radius, so nothing is
//! tunnelled through, however thin, at any speed.

use parry3d::math::Vec3;
use serde::{Deserialize, Serialize};

use crate::angle::Angle;
use crate::cache::{StepCache, Touch};
use crate::collision::{CollisionWorld, EntityId};
use crate::contact::{self, Contact, Near, Obstacle, SKIN};
use crate::swim::Immersion;

/// Movement parameters. The same for all characters in a world.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CharacterParams {
    /// Radius of the capsule.
    pub radius: f32,
    /// From the feet to the top of the head.
    pub height: f32,
    /// Metres per second.
    pub walk_speed: f32,
    /// Metres per second.
    pub run_speed: f32,
    /// Upward metres per second at the start of a jump.
    pub jump_speed: f32,
    /// Metres per second squared, downwards.
    pub gravity: f32,
    /// Highest edge it steps onto; not more than the radius.
    pub step_height: f32,
    /// Cosine of the steepest slope it walks on.
    pub slope_cos_min: f32,
    /// Acceleration on the ground, in m/s².
    pub ground_acceleration: f32,
    /// Acceleration in the air, in m/s².
    pub air_acceleration: f32,
    /// Fastest fall, in m/s.
    pub fall_speed_max: f32,
}

impl Default for CharacterParams {
    fn default() -> Self {
        Self {
            radius: 0.4,
            height: 1.8,
            walk_speed: 5.0,
            run_speed: 8.0,
            jump_speed: 9.0,
            gravity: 25.0,
            step_height: 0.4,
            slope_cos_min: 0.7,
            ground_acceleration: 70.0,
            air_acceleration: 25.0,
            fall_speed_max: 60.0,
        }
    }
}

impl CharacterParams {
    /// All fields, for bitwise comparison.
    pub(crate) fn bits(&self) -> [u32; 11] {
        [
            self.radius,
            self.height,
            self.walk_speed,
            self.run_speed,
            self.jump_speed,
            self.gravity,
            self.step_height,
            self.slope_cos_min,
            self.ground_acceleration,
            self.air_acceleration,
            self.fall_speed_max,
        ]
        .map(f32::to_bits)
    }

    pub(crate) fn walkable(&self, normal: Vec3) -> bool {
        normal.y >= self.slope_cos_min
    }
}

/// The buttons that a player holds, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buttons(pub u8);

impl Buttons {
    /// Jump, as long as it is held.
    pub const JUMP: Buttons = Buttons(1);
    /// Run instead of walk.
    pub const RUN: Buttons = Buttons(2);
    /// Fire the weapon or tool that the game provides.
    pub const FIRE: Buttons = Buttons(4);
    /// Use the entity in front.
    pub const INTERACT: Buttons = Buttons(8);

    /// Whether all of `other` are held.
    pub fn contains(self, other: Buttons) -> bool {
        self.0 & other.0 == other.0
    }

    /// The union of both.
    #[must_use]
    pub fn with(self, other: Buttons) -> Buttons {
        Buttons(self.0 | other.0)
    }
}

/// A player's input for one tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CharacterInput {
    /// To the right, −127…127.
    pub right: i8,
    /// Forward, −127…127.
    pub forward: i8,
    /// Where the camera looks; forward is towards it.
    pub yaw: Angle,
    /// Up and down.
    pub pitch: Angle,
    /// The held buttons.
    pub buttons: Buttons,
}

impl CharacterInput {
    /// The same view without movement or buttons.
    #[must_use]
    pub fn at_rest(self) -> Self {
        Self {
            yaw: self.yaw,
            pitch: self.pitch,
            ..Self::default()
        }
    }

    /// From the unit square of a stick or keys; longer input is clamped.
    pub fn new(right: f32, forward: f32, yaw: f32, pitch: f32, buttons: Buttons) -> Self {
        let axis = |x: f32| {
            if x.is_finite() {
                libm::roundf(x.clamp(-1.0, 1.0) * 127.0) as i8
            } else {
                0
            }
        };
        Self {
            right: axis(right),
            forward: axis(forward),
            yaw: Angle::from_radians(yaw),
            pitch: Angle::from_radians(pitch),
            buttons,
        }
    }

    /// Whether it does not move the character: view and fire have no effect on
    /// movement.
    fn wants_nothing(&self) -> bool {
        self.right == 0 && self.forward == 0 && !self.buttons.contains(Buttons::JUMP)
    }

    /// Walking direction in world space, of length at most one.
    fn direction(&self) -> Vec3 {
        let (right, forward) = (
            f32::from(self.right) / 127.0,
            f32::from(self.forward) / 127.0,
        );
        let length_sq = right * right + forward * forward;
        if length_sq == 0.0 {
            return Vec3::ZERO;
        }
        let scale = if length_sq > 1.0 {
            1.0 / length_sq.sqrt()
        } else {
            1.0
        };
        let (sin, cos) = self.yaw.sin_cos();
        Vec3::new(
            (right * cos - forward * sin) * scale,
            0.0,
            (-right * sin - forward * cos) * scale,
        )
    }
}

/// Everything that determines a character's next step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CharacterState {
    /// The lowest point of the capsule.
    pub feet: Vec3,
    /// Metres per second, relative to what carries it.
    pub velocity: Vec3,
    /// The normal of the ground while standing on it.
    pub ground_normal: Vec3,
    /// The entity it stands on.
    pub ground: Option<EntityId>,
    /// Ticks since it last stood on something, up to 255.
    pub air_ticks: u8,
}

/// A jump still works this many ticks after walking off an edge.
const COYOTE_TICKS: u8 = 5;
/// Push-out iterations per sub-step.
const PUSH_OUT_ROUNDS: usize = 4;
/// Touched solids that a step records.
const TOUCHES_MAX: usize = 8;
/// Bounds the work of one step, whatever velocity a script set.
const SUBSTEPS_MAX: usize = 32;
/// A platform that moves further than this many sub-steps in a tick was
/// teleported.
const CARRY_SUBSTEPS_MAX: f32 = 64.0;

impl CharacterState {
    /// At rest in the air at `feet`.
    pub fn at(feet: Vec3) -> Self {
        Self {
            feet,
            velocity: Vec3::ZERO,
            ground_normal: Vec3::Y,
            ground: None,
            air_ticks: u8::MAX,
        }
    }

    /// Whether it stands on something.
    pub fn grounded(&self) -> bool {
        self.ground.is_some()
    }
}

/// Moves a character by one tick of `dt` seconds.
pub fn step_character(
    world: &CollisionWorld,
    params: &CharacterParams,
    state: &mut CharacterState,
    input: &CharacterInput,
    dt: f32,
) {
    step_character_with(&mut StepCache::default(), world, params, state, input, dt);
}

/// Like [`step_character`], with the cache of this character's last steps. The
/// cache never changes a bit of the result.
pub fn step_character_with(
    cache: &mut StepCache,
    world: &CollisionWorld,
    params: &CharacterParams,
    state: &mut CharacterState,
    input: &CharacterInput,
    dt: f32,
) {
    let idle = input.wants_nothing();
    if idle && cache.rests(world, params, state, dt) {
        return;
    }
    let before = *state;
    carry(cache, world, params, state);
    let water = Immersion::of(world, params, state.feet);
    steer(params, state, input, &water, dt);
    let was_grounded = before.grounded() && !water.swims();
    travel(cache, world, params, state, dt, was_grounded);
    if !state.feet.is_finite() || !state.velocity.is_finite() {
        // Cannot happen with finite scenes; if it does, stopping is better than
        // spreading NaN.
        *state = CharacterState::at(before.feet);
    }
    if idle {
        cache.note_idle_step(world, params, &before, state, dt);
    }
}

/// Moves it with what it stands on. A long distance is split into sub-steps, so
/// that it is not carried through a wall.
fn carry(
    cache: &mut StepCache,
    world: &CollisionWorld,
    params: &CharacterParams,
    state: &mut CharacterState,
) {
    if !world.moves() {
        return;
    }
    let Some(ground) = state.ground.and_then(|id| world.solid(id)) else {
        return;
    };
    if ground.pose != ground.previous_pose {
        let local = ground.previous_pose.inverse_transform_point(state.feet);
        let there = ground.pose.transform_point(local);
        let (way, substep_max) = (there - state.feet, params.radius * 0.5);
        let count = libm::ceilf(way.length() / substep_max);
        // Also if it is NaN, or a teleport.
        if !(count > 1.0 && count < CARRY_SUBSTEPS_MAX) {
            state.feet = there;
            return;
        }
        let ridden = ground.entity;
        let bounds = contact::swept_bounds(params, state.feet, way, SKIN);
        let near = cache.near(world, &bounds);
        let velocity = state.velocity;
        let mut substep = way / count;
        for _ in 0..count as usize {
            state.feet += substep;
            push_out_of_all_but(
                Some(ridden),
                params,
                state,
                &mut substep,
                near,
                &mut Noted::none(),
            );
        }
        state.velocity = velocity;
    }
}

/// Computes velocity from input, gravity and water.
fn steer(
    params: &CharacterParams,
    state: &mut CharacterState,
    input: &CharacterInput,
    water: &Immersion,
    dt: f32,
) {
    let running = input.buttons.contains(Buttons::RUN);
    let speed = if running {
        params.run_speed
    } else {
        params.walk_speed
    };
    let wanted = input.direction() * (speed * water.speed_share());
    let acceleration = water.acceleration().unwrap_or(if state.grounded() {
        params.ground_acceleration
    } else {
        params.air_acceleration
    });
    let level = Vec3::new(state.velocity.x, 0.0, state.velocity.z);
    let level = approach(level, wanted, acceleration * dt);
    state.velocity.x = level.x;
    state.velocity.z = level.z;

    if water.swims() {
        water.lift(params, state, input, dt);
        return;
    }
    let can_jump = state.air_ticks <= COYOTE_TICKS && state.velocity.y <= 0.01;
    if input.buttons.contains(Buttons::JUMP) && can_jump {
        state.velocity.y = params.jump_speed;
        state.ground = None;
        state.air_ticks = u8::MAX;
    } else if state.grounded() {
        state.velocity.y = 0.0;
    } else {
        state.velocity.y = (state.velocity.y - params.gravity * dt).max(-params.fall_speed_max);
    }
}

fn approach(from: Vec3, to: Vec3, step_max: f32) -> Vec3 {
    let difference = to - from;
    let distance_sq = difference.length_squared();
    if distance_sq <= step_max * step_max {
        to
    } else {
        from + difference * (step_max / distance_sq.sqrt())
    }
}

/// Moves by the velocity, resolves penetrations, and finds the ground.
fn travel(
    cache: &mut StepCache,
    world: &CollisionWorld,
    params: &CharacterParams,
    state: &mut CharacterState,
    dt: f32,
    was_grounded: bool,
) {
    let mut way = state.velocity * dt;
    if state.grounded() {
        // Along the slope, with the full speed in the horizontal plane.
        let n = state.ground_normal;
        way.y = -(n.x * way.x + n.z * way.z) / n.y;
    }
    let substep_max = params.radius * 0.5;
    let length = way.length();
    let way = if length > substep_max * SUBSTEPS_MAX as f32 {
        way * (substep_max * SUBSTEPS_MAX as f32 / length)
    } else {
        way
    };
    let count = (libm::ceilf(length / substep_max) as usize).clamp(1, SUBSTEPS_MAX);

    let bounds = contact::swept_bounds(params, state.feet, way, params.step_height + SKIN);
    let mut noted = Noted {
        touches: cache.take_touches(),
        dt,
    };
    let near = cache.near(world, &bounds);

    let jumping = state.velocity.y > 0.01;
    let mut ground = None;
    let mut substep = way / count as f32;
    for _ in 0..count {
        state.feet += substep;
        ground = push_out_of_all_but(None, params, state, &mut substep, near, &mut noted);
    }
    if ground.is_none() && was_grounded && !jumping {
        ground = snap_down(params, state, near, &mut noted);
    }
    cache.keep_touches(noted.touches);
    match ground {
        Some((entity, normal)) if !jumping => {
            state.ground = Some(entity);
            state.ground_normal = normal;
            state.air_ticks = 0;
            state.velocity.y = 0.0;
        }
        _ => {
            state.ground = None;
            state.ground_normal = Vec3::Y;
            state.air_ticks = state.air_ticks.saturating_add(1);
        }
    }
}

/// Pushes the capsule out of everything near it; returns the ground it then
/// stands on, the flattest if there are several.
fn push_out_of_all_but(
    ridden: Option<EntityId>,
    params: &CharacterParams,
    state: &mut CharacterState,
    substep: &mut Vec3,
    near: Near,
    noted: &mut Noted,
) -> Option<(EntityId, Vec3)> {
    let mut push = Push {
        params,
        state,
        substep,
        near,
        noted,
        ground: None,
    };
    for _ in 0..PUSH_OUT_ROUNDS {
        let mut pushed = false;
        for solid in near.solids().filter(|solid| ridden != Some(solid.entity)) {
            pushed |= push.out_of(solid);
        }
        for block in near.blocks {
            pushed |= push.out_of(block);
        }
        if !pushed {
            break;
        }
    }
    push.ground
}

/// A capsule that is pushed out of solids.
struct Push<'a> {
    params: &'a CharacterParams,
    state: &'a mut CharacterState,
    substep: &'a mut Vec3,
    near: Near<'a>,
    noted: &'a mut Noted,
    ground: Option<(EntityId, Vec3)>,
}

impl Push<'_> {
    /// Returns whether it was pushed.
    fn out_of(&mut self, solid: &impl Obstacle) -> bool {
        let (params, state) = (self.params, &mut *self.state);
        let Some(touch) = contact::touch(params, state.feet, solid, self.near) else {
            return false;
        };
        let mut pushed = false;
        let (normal, standing) = match touch.step_lift {
            Some(lift) => {
                let lifted = state.feet + Vec3::Y * lift;
                if lift == 0.0 || contact::is_free(params, lifted, self.near) {
                    state.feet = lifted;
                    (Vec3::Y, true)
                } else {
                    state.feet += touch.normal * touch.depth.max(0.0);
                    (touch.normal, false)
                }
            }
            None => {
                // Out of a floor means straight up: along a slope's normal, a
                // character at rest would creep downhill.
                let standing = params.walkable(touch.normal);
                if touch.depth > 1e-4 {
                    pushed = true;
                    state.feet += if standing {
                        Vec3::Y * (touch.depth / touch.normal.y)
                    } else {
                        touch.normal * touch.depth
                    };
                }
                (touch.normal, standing)
            }
        };
        if standing && self.ground.is_none_or(|(_, best)| normal.y > best.y) {
            self.ground = Some((solid.entity(), normal));
        }
        let noted = &mut *self.noted;
        noted.note(solid.entity(), &touch, state.velocity, standing);
        if touch.depth > 0.0 && !standing {
            let yields = noted.gives_way(solid, &touch);
            slide(&mut state.velocity, normal, yields);
            slide(self.substep, normal, 0.0);
        } else if standing && state.velocity.y < 0.0 {
            state.velocity.y = 0.0;
            self.substep.y = self.substep.y.max(0.0);
        }
        pushed
    }
}

/// The touches that a step records.
struct Noted {
    touches: Vec<Touch>,
    dt: f32,
}

impl Noted {
    fn none() -> Self {
        Self {
            touches: Vec::new(),
            dt: 0.0,
        }
    }

    fn note(&mut self, entity: EntityId, contact: &Contact, velocity: Vec3, stands: bool) {
        let speed = (-velocity.dot(contact.normal)).max(0.0);
        let mut known = self.touches.iter_mut();
        if let Some(known) = known.find(|known| known.entity == entity) {
            known.stands |= stands;
            if speed > known.speed {
                known.speed = speed;
                (known.point, known.normal) = (contact.point, contact.normal);
            }
        } else if self.dt > 0.0 && self.touches.len() < TOUCHES_MAX {
            self.touches.push(Touch {
                entity,
                point: contact.point,
                normal: contact.normal,
                speed,
                stands,
            });
        }
    }

    /// The speed along the normal at which a pushable solid recedes; never
    /// positive.
    fn gives_way(&self, solid: &impl Obstacle, contact: &Contact) -> f32 {
        if self.dt <= 0.0 {
            return 0.0;
        }
        let moved = solid.gave_way(contact.point, contact.normal);
        (moved / self.dt).min(0.0)
    }
}

/// Removes the part of `vector` that points into a surface, beyond the
/// surface's own speed in that direction.
fn slide(vector: &mut Vec3, normal: Vec3, surface: f32) {
    let into = vector.dot(normal) - surface;
    if into < 0.0 {
        *vector -= normal * into;
    }
}

/// Keeps the feet on ground that descends gently: stairs and slopes.
fn snap_down(
    params: &CharacterParams,
    state: &mut CharacterState,
    near: Near,
    noted: &mut Noted,
) -> Option<(EntityId, Vec3)> {
    let drop = contact::drop_distance(params, state.feet, params.step_height, near)?;
    let mut lowered = *state;
    lowered.feet.y -= drop;
    let mut still = Vec3::ZERO;
    let ground = push_out_of_all_but(None, params, &mut lowered, &mut still, near, noted)?;
    state.feet = lowered.feet;
    Some(ground)
}
