//! Builds rapier's scene: everything once, then each solid that is added later.

use frolic_scene::{BodyKind, Components, Transform};
use frolic_sim::{Pose, Shape};
use rapier3d::prelude::{Collider, RigidBodyBuilder, RigidBodyHandle};

use super::{Bodies, Kind, Link, shapes};
use crate::definitions::Definitions;
use crate::entities::Entity;
use crate::space::Space;

impl Entity {
    /// Whether physics moves it: a dynamic body with a shape.
    pub fn falls(&self) -> bool {
        is_dynamic(&self.components)
    }
}

pub(super) fn is_dynamic(components: &Components) -> bool {
    let body = components.body.as_ref();
    body.is_some_and(|body| body.kind == BodyKind::Dynamic)
        && components.shape.is_some()
        && components.trigger.is_none()
}

impl Bodies {
    /// Builds rapier's scene if it contains, or a prefab can spawn, a dynamic
    /// body. Doing it at the first spawn would make that tick slow.
    pub fn build(&mut self, space: &Space, definitions: &Definitions) {
        let falls = space.entities.iter().any(Entity::falls);
        if falls || definitions.any(is_dynamic) {
            self.build_all(space);
        }
    }

    fn build_all(&mut self, space: &Space) {
        self.built = true;
        self.physics.integration_parameters.dt = space.dt();
        let all: Vec<u32> = space.entities.iter().map(|entity| entity.id).collect();
        // Carriers before the parts attached to them.
        for falling in [true, false] {
            for id in &all {
                let entity = space.alive(*id);
                if entity.is_some_and(|entity| entity.falls() == falling) {
                    self.link(space, *id);
                }
            }
        }
        for id in all {
            self.join(space, id);
        }
    }

    /// Adds a solid to rapier, or rebuilds it after its size changed.
    pub fn add(&mut self, space: &Space, id: u32) {
        if self.built {
            self.link(space, id);
            self.join(space, id);
            // Rebuilding the body dropped the joints of other bodies to it.
            let tied = space.entities.iter().filter(|entity| {
                let joint = entity.components.joint.as_ref();
                joint.is_some_and(|joint| joint.with == Some(id))
            });
            let tied: Vec<u32> = tied.map(|entity| entity.id).collect();
            tied.into_iter().for_each(|other| self.join(space, other));
        } else if space.alive(id).is_some_and(Entity::falls) {
            self.build_all(space);
        }
    }

    fn link(&mut self, space: &Space, id: u32) {
        let home = self.links.get(&id).map(|link| link.home);
        let speed = self.of(id).map(|body| *body.vels());
        self.unlink(id);
        let Some(entity) = space.alive(id).filter(|entity| entity.player.is_none()) else {
            return;
        };
        let Some(shape) = solid_of(space, entity) else {
            return;
        };
        let (pose, body) = (entity.pose(), entity.components.body);
        let falls = entity.falls() && !matches!(shape, Shape::Mesh { .. });
        let carrier = match body {
            None => self.carrier_of(space, entity),
            Some(_) => None,
        };
        let Some(form) = self.shapes.get(shape, space.collision.meshes()) else {
            return;
        };
        let collider = shapes::collider(form, body.as_ref(), id);
        let collider = match self.touches.watched().contains(&id) {
            true => collider.active_events(super::contacts::TOUCHES),
            false => collider,
        };
        let physics = &mut *self.physics;
        let (handle, collider, kind) = if falls {
            let made = RigidBodyBuilder::dynamic()
                .pose(pose)
                .ccd_enabled(true)
                .user_data(u128::from(id));
            let mass = body.map_or(1.0, |body| body.mass);
            let (handle, collider) = physics.insert(made, collider.mass(mass));
            if let (Some(speed), Some(body)) = (speed, physics.bodies.get_mut(handle)) {
                body.set_vels(speed, true);
            }
            self.dynamic += 1;
            self.fresh.push(id);
            (Some(handle), collider, Kind::Dynamic)
        } else if let Some((handle, carrier_pose)) = carrier {
            let place = carrier_pose.inverse() * pose;
            let density = physics.density_of(handle);
            let collider = collider.position(place).density(density).build();
            let collider = physics.insert_collider(collider, Some(handle));
            (Some(handle), collider, Kind::Part)
        } else if body.is_some_and(|body| body.kind == BodyKind::Kinematic) {
            let made = RigidBodyBuilder::kinematic_position_based().pose(pose);
            let (handle, collider) = physics.insert(made, collider);
            (Some(handle), collider, Kind::Solid)
        } else {
            let collider: Collider = collider.position(pose).build();
            (None, physics.insert_collider(collider, None), Kind::Solid)
        };
        let link = Link {
            body: handle,
            collider,
            kind,
            home: home.unwrap_or(pose),
        };
        self.links.insert(id, link);
    }

    /// The dynamic body that an entity is attached to, if any.
    fn carrier_of(&self, space: &Space, entity: &Entity) -> Option<(RigidBodyHandle, Pose)> {
        let mut above = entity.parent;
        while let Some(parent) = above.and_then(|id| space.alive(id)) {
            let link = self.links.get(&parent.id);
            if let Some(link) = link.filter(|link| link.kind == Kind::Dynamic) {
                return Some((link.body?, parent.pose()));
            }
            above = parent.parent;
        }
        None
    }
}

/// The collision shape of an entity.
fn solid_of(space: &Space, entity: &Entity) -> Option<Shape> {
    let transform = Transform {
        scale: entity.scale.to_array(),
        ..Transform::default()
    };
    let meshes = space.collision.meshes();
    frolic_sim::scene::solid_shape_with(&entity.components, &transform, meshes)
}

/// The density of a body's parts, so that the whole body has one material.
trait Density {
    fn density_of(&self, body: RigidBodyHandle) -> f32;
}

impl Density for rapier3d::prelude::PhysicsWorld {
    fn density_of(&self, body: RigidBodyHandle) -> f32 {
        let first = self
            .bodies
            .get(body)
            .and_then(|body| body.colliders().first());
        let first = first.and_then(|collider| self.colliders.get(*collider));
        first.map_or(1.0, |main| main.mass() / main.volume().max(1e-6))
    }
}

impl Bodies {
    /// Gives a fixed solid a kinematic body, so that it can be moved.
    pub(super) fn set_moving(&mut self, entity: u32) -> Option<RigidBodyHandle> {
        let link = self.links.get_mut(&entity)?;
        if let Some(body) = link.body {
            return Some(body);
        }
        let pose = *self.physics.colliders.get(link.collider)?.position();
        let made = RigidBodyBuilder::kinematic_position_based().pose(pose);
        let body = self.physics.insert_body(made);
        let mut collider = self.physics.remove_collider(link.collider)?;
        collider.set_position(Pose::identity());
        link.collider = self.physics.insert_collider(collider, Some(body));
        link.body = Some(body);
        Some(body)
    }
}
