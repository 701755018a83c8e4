//! Script operations on bodies.

use frolic_protocol::ServerMessage;
use frolic_sim::{Pose, Vec3};

use super::{Kind, shapes};
use crate::state::{Outgoing, WorldState};

impl WorldState {
    /// Sets the velocity of a dynamic body; false if the entity is not one.
    pub fn set_body_velocity(&mut self, id: u32, velocity: Vec3) -> bool {
        let Some(body) = self.bodies.dynamic_mut(id) else {
            return false;
        };
        body.set_linvel(shapes::sane(velocity), true);
        true
    }

    /// Applies an impulse at the centre of a dynamic body; false if the entity
    /// is not one.
    pub fn push_body(&mut self, id: u32, impulse: Vec3) -> bool {
        let Some(body) = self.bodies.dynamic_mut(id) else {
            return false;
        };
        body.apply_impulse(shapes::sane(impulse), true);
        let velocity = body.linvel();
        if let Some(entity) = self.alive_mut(id) {
            entity.velocity = velocity;
        }
        true
    }

    /// Changes gravity for characters and bodies, and replicates it to clients.
    pub fn change_gravity(&mut self, gravity: f32) {
        if self.params.gravity == gravity {
            return;
        }
        self.params.gravity = gravity;
        self.bodies.wake_all();
        self.outbox.push(Outgoing {
            to: None,
            message: ServerMessage::Character(self.params),
            reliable: true,
        });
    }
}

impl super::Bodies {
    /// Wakes all bodies: with different gravity none is at rest.
    fn wake_all(&mut self) {
        for (_, body) in self.physics.bodies.iter_mut() {
            if body.is_dynamic() {
                body.wake_up(true);
            }
        }
    }

    /// Updates rapier's poses of solids that scripts moved.
    pub(super) fn take_moved(&mut self, pose_of: impl Fn(u32) -> Option<Pose>) {
        let moved = std::mem::take(&mut self.moved);
        for &entity in &moved {
            let (Some(link), Some(pose)) = (self.links.get(&entity), pose_of(entity)) else {
                continue;
            };
            match link.kind {
                Kind::Dynamic => {
                    self.fresh.push(entity);
                    if let Some(body) = self.dynamic_mut(entity) {
                        body.set_position(pose, true);
                    }
                }
                Kind::Part => {
                    let physics = &mut *self.physics;
                    let parent = link.body.and_then(|body| physics.bodies.get(body));
                    let place = parent.map(|parent| parent.position().inverse() * pose);
                    let collider = physics.colliders.get_mut(link.collider);
                    if let (Some(place), Some(collider)) = (place, collider) {
                        collider.set_position_wrt_parent(place);
                    }
                }
                Kind::Solid => {
                    let body = self.set_moving(entity);
                    if let Some(body) = body.and_then(|body| self.physics.bodies.get_mut(body)) {
                        body.set_next_kinematic_position(pose);
                    }
                }
            }
        }
        self.moved = moved;
        self.moved.clear();
    }
}
