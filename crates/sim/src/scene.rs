//! From a package's scene to solids: the one place that decides what is solid.

use frolic_package::{Components, Scene, Shape as SceneShape, Transform};
use frolic_terrain::Terrain;
use parry3d::math::{Pose3 as Pose, Rot3, Vec3};

use crate::collision::CollisionWorld;
use crate::shape::Shape;

/// The solids of a scene, each under its entity's id.
pub fn load(scene: &Scene) -> CollisionWorld {
    let mut world = CollisionWorld::new();
    for (entity, transform) in scene.entities.iter().zip(scene.world_transforms()) {
        let components = scene.resolved(entity);
        if let Some(shape) = solid_shape(&components, &transform) {
            world.insert(entity.id, shape, pose(&transform));
        }
    }
    if let Some(settings) = &scene.terrain {
        world.set_terrain(Some(Terrain::new(settings)));
    }
    world
}

/// The solid that components make, if any: a shape that is not a trigger.
/// NPCs are characters, which pass through each other.
pub fn solid_shape(components: &Components, transform: &Transform) -> Option<Shape> {
    if components.trigger.is_some() || components.npc.is_some() {
        return None;
    }
    shape(components.shape.as_ref()?, transform)
}

/// The extent of a trigger, if the components make one.
pub fn trigger_shape(components: &Components, transform: &Transform) -> Option<Shape> {
    components.trigger.as_ref()?;
    shape(components.shape.as_ref()?, transform)
}

/// Position and rotation of a transform.
pub fn pose(transform: &Transform) -> Pose {
    let [x, y, z, w] = transform.rotation;
    let rotation = Rot3::from_xyzw(x, y, z, w);
    let rotation = if rotation.length_squared() > 1e-6 {
        rotation.normalize()
    } else {
        Rot3::IDENTITY
    };
    Pose::from_parts(Vec3::from(transform.position), rotation)
}

/// Meshes have no solid yet: their triangles live in assets, not in the scene.
fn shape(shape: &SceneShape, transform: &Transform) -> Option<Shape> {
    Some(match shape.scaled(transform.scale) {
        SceneShape::Box { size } => Shape::Box(Vec3::from(size) * 0.5),
        SceneShape::Sphere { radius } => Shape::Sphere(radius),
        SceneShape::Capsule { radius, height } => Shape::Capsule {
            half_height: (height * 0.5 - radius).max(0.0),
            radius,
        },
        SceneShape::Cylinder { radius, height } => Shape::Cylinder {
            half_height: height * 0.5,
            radius,
        },
        SceneShape::Wedge { size } => Shape::Wedge(Vec3::from(size) * 0.5),
        SceneShape::Mesh { .. } => return None,
    })
}
