//! Character movement: one step of the capsule, bit-identical everywhere.
//!
//! The step is discrete: move a little, push out of penetrated solids, repeat.
//! No sub-step is longer than half the capsule's radius, so nothing is
//! tunnelled through, however thin, at any speed.

use frolic_motion::{Buttons, CharacterInput, CharacterParams, CharacterState, EntityId, Vec3};

use crate::cache::{StepCache, Touch};
use crate::collision::CollisionWorld;
use crate::contact::{self, Contact, Near, SKIN};
use crate::obstacle::Obstacle;
use crate::swim::Immersion;

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
        cache.record_idle_step(world, params, &before, state, dt);
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
                &mut TouchLog::none(),
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
    let mut touched = TouchLog {
        touches: cache.take_touches(),
        dt,
    };
    let near = cache.near(world, &bounds);

    let jumping = state.velocity.y > 0.01;
    let mut ground = None;
    let mut substep = way / count as f32;
    for _ in 0..count {
        state.feet += substep;
        ground = push_out_of_all_but(None, params, state, &mut substep, near, &mut touched);
    }
    if ground.is_none() && was_grounded && !jumping {
        ground = snap_down(params, state, near, &mut touched);
    }
    cache.store_touches(touched.touches);
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
    touched: &mut TouchLog,
) -> Option<(EntityId, Vec3)> {
    let mut push = Push {
        params,
        state,
        substep,
        near,
        touched,
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
    touched: &'a mut TouchLog,
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
        let touched = &mut *self.touched;
        touched.record(solid.entity(), &touch, state.velocity, standing);
        if touch.depth > 0.0 && !standing {
            let yields = touched.gives_way(solid, &touch);
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
struct TouchLog {
    touches: Vec<Touch>,
    dt: f32,
}

impl TouchLog {
    fn none() -> Self {
        Self {
            touches: Vec::new(),
            dt: 0.0,
        }
    }

    fn record(&mut self, entity: EntityId, contact: &Contact, velocity: Vec3, stands: bool) {
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
    touched: &mut TouchLog,
) -> Option<(EntityId, Vec3)> {
    let drop = contact::drop_distance(params, state.feet, params.step_height, near)?;
    let mut lowered = *state;
    lowered.feet.y -= drop;
    let mut still = Vec3::ZERO;
    let ground = push_out_of_all_but(None, params, &mut lowered, &mut still, near, touched)?;
    state.feet = lowered.feet;
    Some(ground)
}
