//! The physics stage of a tick.

use frolic_protocol::quantize;
use frolic_sim::{Pose, Vec3};

use super::Awake;
use crate::entity::Entity;
use crate::state::WorldState;

impl WorldState {
    /// Moves every body by one tick.
    pub fn step_bodies(&mut self) {
        if self.bodies.built {
            let entities = &self.entities;
            self.bodies
                .take_moved(|id| entities.get(&id).map(Entity::pose));
        }
        if self.bodies.dynamic > 0 {
            self.ground_bodies();
            self.press_on_bodies();
            let bodies = &mut self.bodies;
            let gravity = Vec3::Y * -self.params.gravity;
            if bodies.physics.step(gravity, &bodies.contacts) {
                self.take_poses();
                self.move_families();
                self.return_fallen();
                self.report_body_touches();
            }
        }
        self.bodies.fresh.clear();
        // Pushes use the contacts of the tick before, so this comes last.
        self.report_character_touches();
    }

    /// Copies the poses of awake bodies from rapier.
    fn take_poses(&mut self) {
        let Self {
            bodies,
            entities,
            collision,
            touched,
            registry,
            past,
            kill_height,
            ..
        } = self;
        std::mem::swap(&mut bodies.awake, &mut bodies.awake_before);
        bodies.awake.clear();
        for handle in bodies.physics.islands.active_bodies() {
            let Some(body) = bodies.physics.bodies.get(handle) else {
                continue;
            };
            if !body.is_dynamic() {
                continue;
            }
            let id = body.user_data as u32;
            let Some(entity) = entities.get_mut(&id) else {
                continue;
            };
            let pose = *body.position();
            let before = entity.pose();
            bodies.awake.push(Awake {
                entity: id,
                handle,
                jumps: entity.jumps,
                position: pose.translation,
            });
            past.note_left(id, entity.jumps, before.translation);
            entity.position = pose.translation;
            entity.rotation = pose.rotation;
            entity.velocity = body.linvel();
            entity.replicated = true;
            if !std::mem::replace(&mut entity.touched, true) {
                touched.push(id);
            }
            collision.move_late(id, pose);
            if !entity.children.is_empty() {
                bodies.families.push((id, before));
            }
            let (from, to) = (before.translation, pose.translation);
            registry.went(id, from, to);
            let lost = to.abs().max_element() > quantize::POSITION_MAX;
            if to.y < *kill_height || lost {
                bodies.fallen.push(id);
            }
        }
        for before in &bodies.awake_before {
            let body = bodies.physics.bodies.get(before.handle);
            if !body.is_some_and(|body| body.is_sleeping()) {
                continue;
            }
            // The body came to rest, so this is the last update. From now on
            // characters collide with it at exactly the pose that clients have.
            if let Some(entity) = entities.get_mut(&before.entity) {
                entity.velocity = Vec3::ZERO;
                collision.teleport(before.entity, entity.solid_pose());
                if !std::mem::replace(&mut entity.touched, true) {
                    touched.push(before.entity);
                }
            }
        }
        // A body whose pose is not finite is removed from the world.
        for handle in bodies.physics.quarantine().bodies() {
            if let Some(body) = bodies.physics.bodies.get(*handle) {
                bodies.fallen.push(body.user_data as u32);
            }
        }
    }

    /// Moves the children of bodies that moved.
    fn move_families(&mut self) {
        let families = std::mem::take(&mut self.bodies.families);
        for &(id, before) in &families {
            let Some(entity) = self.alive(id) else {
                continue;
            };
            let (pose, children) = (entity.pose(), entity.children.clone());
            for child in children {
                if let Some(child_pose) = self.alive(child).map(Entity::pose) {
                    self.place_late(child, pose * (before.inverse() * child_pose));
                }
            }
        }
        self.bodies.families = families;
        self.bodies.families.clear();
    }

    /// Removes bodies that fell out of the world; those of the scene return to
    /// where they started.
    fn return_fallen(&mut self) {
        for id in std::mem::take(&mut self.bodies.fallen) {
            let Some(entity) = self.alive_mut(id) else {
                continue;
            };
            if !entity.is_of_scene() {
                self.destroy(id);
                continue;
            }
            entity.jumps = (entity.jumps + 1) % 4;
            entity.velocity = Vec3::ZERO;
            let Some(home) = self.bodies.links.get(&id).map(|link| link.home) else {
                continue;
            };
            if let Some(body) = self.bodies.dynamic_mut(id) {
                body.set_enabled(true);
                body.set_linvel(Vec3::ZERO, true);
                body.set_angvel(Vec3::ZERO, true);
            }
            self.place(id, home);
            // A teleport: no trigger between the two places may fire.
            self.collision.teleport(id, home);
        }
    }

    /// Moves an entity after characters have stepped; a character standing on
    /// it is carried in the next tick.
    fn place_late(&mut self, id: u32, pose: Pose) {
        let entity = self.entities.get_mut(&id).filter(|e| !e.destroyed);
        let Some(entity) = entity else {
            return;
        };
        let before = entity.pose();
        self.past.note_left(id, entity.jumps, before.translation);
        entity.position = pose.translation;
        entity.rotation = pose.rotation;
        let (solid, children) = (entity.solid_pose(), entity.children.clone());
        self.registry.went(id, before.translation, pose.translation);
        self.collision.move_late(id, solid);
        self.triggers.move_to(id, pose);
        self.replicate(id);
        for child in children {
            if let Some(child_pose) = self.alive(child).map(Entity::pose) {
                self.place_late(child, pose * (before.inverse() * child_pose));
            }
        }
    }
}
