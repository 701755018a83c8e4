//! Characters among bodies: capsules that bodies bounce off, pushes from
//! characters that walk against a body, and the weight of characters standing
//! on one.

use frolic_scene::Body;
use frolic_sim::{CharacterParams, Vec3};
use rapier3d::prelude::{Collider, ColliderBuilder, RigidBody, RigidBodyBuilder, RigidBodyHandle};

use super::{Bodies, shapes};
use crate::space::Space;

/// Force of a character's push in newtons: a crate of 60 kg slides on stone,
/// one of 100 kg does not.
const PUSH_N: f32 = 1_000.0;
/// Fraction of the speed difference that a push removes in one tick.
const PUSH_SHARE: f32 = 0.8;
/// Weight of a character; reduced on light bodies, which would otherwise sink
/// into what they lie on.
const CHARACTER_KG: f32 = 70.0;
const WEIGHT_SHARE_MAX: f32 = 2.0;
/// A longer distance in one tick is a teleport.
const JUMP_M: f32 = 4.0;

/// A shorter distance is not movement: a character standing on a settling body
/// sinks with it and must not keep it awake.
const STILL_M: f32 = 0.006;

/// A character in rapier.
pub(super) struct Capsule {
    body: RigidBodyHandle,
    /// The tick in which it was last updated.
    tick: u32,
    middle: Vec3,
}

fn capsule(params: &CharacterParams, entity: u32) -> Collider {
    let half_height = (params.height * 0.5 - params.radius).max(0.01);
    ColliderBuilder::capsule_y(half_height, params.radius)
        .friction(0.5)
        .collision_groups(shapes::groups(Body::CHARACTERS, 0))
        .user_data(u128::from(entity))
        .build()
}

impl Bodies {
    pub(super) fn remove_capsule(&mut self, entity: u32) {
        if let Some(capsule) = self.capsules.remove(&entity) {
            self.physics.remove_body(capsule.body);
        }
    }

    fn place_capsule(&mut self, entity: u32, params: &CharacterParams, feet: Vec3, tick: u32) {
        let middle = feet + Vec3::Y * (params.height * 0.5);
        let physics = &mut self.physics;
        let capsule = self.capsules.entry(entity).or_insert_with(|| {
            let made = RigidBodyBuilder::kinematic_position_based().translation(middle);
            let (body, _) = physics.insert(made, capsule(params, entity));
            Capsule { body, tick, middle }
        });
        capsule.tick = tick;
        let way_sq = (capsule.middle - middle).length_squared();
        if way_sq < STILL_M * STILL_M {
            return;
        }
        let jumps = way_sq > JUMP_M * JUMP_M;
        capsule.middle = middle;
        if let Some(body) = physics.bodies.get_mut(capsule.body) {
            if jumps {
                body.set_translation(middle, true);
            }
            body.set_next_kinematic_translation(middle);
        }
    }

    fn forget_capsules(&mut self, tick: u32) {
        let gone = |capsule: &Capsule| capsule.tick != tick;
        let gone = self.capsules.iter().filter(|(_, capsule)| gone(capsule));
        let gone: Vec<u32> = gone.map(|(entity, _)| *entity).collect();
        gone.into_iter()
            .for_each(|entity| self.remove_capsule(entity));
    }

    /// Pushes a body that a character walks against at `speed` along `normal`.
    fn push(&mut self, entity: u32, point: Vec3, normal: Vec3, speed: f32, dt: f32) {
        let Some(body) = self.dynamic_mut(entity) else {
            return;
        };
        let away = -body.velocity_at_point(point).dot(normal);
        let impulse = (speed - away) * body.mass() * PUSH_SHARE;
        let impulse = impulse.min(PUSH_N * dt);
        if impulse > 1e-4 {
            body.apply_impulse_at_point(-normal * impulse, point, true);
        }
    }

    /// Applies a character's weight to a body; `lands` if the character was not
    /// standing on it before.
    fn weigh_down(&mut self, entity: u32, point: Vec3, gravity: f32, lands: bool) {
        // Check before mutable access: standing on a sleeping body must not
        // wake it.
        if !lands && self.of(entity).is_some_and(RigidBody::is_sleeping) {
            return;
        }
        if let Some(body) = self.dynamic_mut(entity) {
            let mass = CHARACTER_KG.min(body.mass() * WEIGHT_SHARE_MAX);
            body.add_force_at_point(Vec3::Y * (-gravity * mass), point, lands);
            self.laden.push(entity);
        }
    }

    /// Forces persist in rapier until they are removed.
    fn unload(&mut self) {
        let laden = std::mem::take(&mut self.laden);
        for &entity in &laden {
            if let Some(body) = self.dynamic_mut(entity) {
                body.reset_forces(false);
                body.reset_torques(false);
            }
        }
        self.laden = laden;
        self.laden.clear();
    }
}

impl Bodies {
    /// Updates the capsules of characters and applies their pushes.
    pub(super) fn press(&mut self, space: &Space) {
        let (tick, dt, params) = (space.tick, space.dt(), space.params);
        self.unload();
        let mut present = 0;
        for player in space.online() {
            present += 1;
            self.place_capsule(player.entity, &params, space.feet_of(player), tick);
            for touch in player.contact.cache.touches() {
                if touch.stands {
                    let lands = !player.contact.touching.contains(&touch.entity);
                    self.weigh_down(touch.entity, touch.point, params.gravity, lands);
                } else if touch.speed > 0.0 {
                    self.push(touch.entity, touch.point, touch.normal, touch.speed, dt);
                }
            }
        }
        if self.capsules.len() > present {
            self.forget_capsules(tick);
        }
    }
}
