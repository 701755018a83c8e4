//! Script operations on bodies.

use frolic_sim::{Pose, Vec3};

use super::{Bodies, Kind, shapes};

impl Bodies {
    /// Sets the velocity of a dynamic body; false if the entity is not one.
    pub fn set_velocity(&mut self, id: u32, velocity: Vec3) -> bool {
        let Some(body) = self.dynamic_mut(id) else {
            return false;
        };
        body.set_linvel(shapes::sane(velocity), true);
        true
    }

    /// Applies an impulse at the centre of a dynamic body; returns its velocity
    /// after that. None if the entity is not one.
    pub fn push_at_centre(&mut self, id: u32, impulse: Vec3) -> Option<Vec3> {
        let body = self.dynamic_mut(id)?;
        body.apply_impulse(shapes::sane(impulse), true);
        Some(body.linvel())
    }

    /// Wakes all bodies: with different gravity none is at rest.
    pub fn wake_all(&mut self) {
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
