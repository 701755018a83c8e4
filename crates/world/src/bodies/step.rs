//! The physics stage of a tick.

use frolic_protocol::quantize;
use frolic_sim::Vec3;

use super::{Awake, Bodies};
use crate::entities::Entity;
use crate::space::Space;

impl Bodies {
    /// Moves every body by one tick. Terrain changed in these boxes.
    pub fn step(&mut self, space: &mut Space, changed: &[[[f32; 3]; 2]]) {
        if self.built {
            let entities = &space.entities;
            self.take_moved(|id| entities.get(id).map(Entity::pose));
        }
        if self.dynamic > 0 {
            self.ground(space, changed);
            self.press(space);
            let gravity = Vec3::Y * -space.params.gravity;
            if self.physics.step(gravity, &self.touches.contacts) {
                self.take_poses(space);
                self.move_families(space);
                self.return_fallen(space);
                self.report_touches(space);
            }
        }
        self.fresh.clear();
        // Pushes use the contacts of the tick before, so this comes last.
        self.report_character_touches(space);
    }

    /// Copies the poses of awake bodies from rapier.
    fn take_poses(&mut self, space: &mut Space) {
        std::mem::swap(&mut self.awake, &mut self.awake_before);
        self.awake.clear();
        for handle in self.physics.islands.active_bodies() {
            let Some(body) = self.physics.bodies.get(handle) else {
                continue;
            };
            if !body.is_dynamic() {
                continue;
            }
            let id = body.user_data as u32;
            let pose = *body.position();
            let Some(drifted) = space.entities.drift(id, pose, body.linvel()) else {
                continue;
            };
            let to = pose.translation;
            self.awake.push(Awake {
                entity: id,
                handle,
                jumps: drifted.jumps,
                position: to,
            });
            space.collision.move_late(id, pose);
            if drifted.has_children {
                self.families.push((id, drifted.before));
            }
            let lost = to.abs().max_element() > quantize::POSITION_MAX;
            if to.y < space.kill_height || lost {
                self.fallen.push(id);
            }
        }
        for before in &self.awake_before {
            let body = self.physics.bodies.get(before.handle);
            if !body.is_some_and(|body| body.is_sleeping()) {
                continue;
            }
            // The body came to rest, so this is the last update. From now on
            // characters collide with it at exactly the pose that clients have.
            if let Some(solid) = space.entities.settle(before.entity) {
                space.collision.teleport(before.entity, solid);
            }
        }
        // A body whose pose is not finite is removed from the world.
        for handle in self.physics.quarantine().bodies() {
            if let Some(body) = self.physics.bodies.get(*handle) {
                self.fallen.push(body.user_data as u32);
            }
        }
    }

    /// Moves the children of bodies that moved.
    fn move_families(&mut self, space: &mut Space) {
        for (id, before) in self.families.drain(..) {
            let Some(entity) = space.alive(id) else {
                continue;
            };
            let (pose, children) = (entity.pose(), entity.children.clone());
            for child in children {
                if let Some(child_pose) = space.alive(child).map(Entity::pose) {
                    space.place_late(child, pose * (before.inverse() * child_pose));
                }
            }
        }
    }

    /// Removes bodies that fell out of the world; those of the scene return to
    /// where they started.
    fn return_fallen(&mut self, space: &mut Space) {
        for id in std::mem::take(&mut self.fallen) {
            let Some(entity) = space.alive(id) else {
                continue;
            };
            if !entity.is_of_scene() {
                space.destroy(id);
                continue;
            }
            space.entities.count_jump(id);
            space.entities.set_velocity(id, Vec3::ZERO);
            let Some(home) = self.links.get(&id).map(|link| link.home) else {
                continue;
            };
            if let Some(body) = self.dynamic_mut(id) {
                body.set_enabled(true);
                body.set_linvel(Vec3::ZERO, true);
                body.set_angvel(Vec3::ZERO, true);
            }
            space.place(id, home);
            // A teleport: no trigger between the two places may fire.
            space.collision.teleport(id, home);
        }
    }
}
