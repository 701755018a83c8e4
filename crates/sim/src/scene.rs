//! Converts a package's scene to solids: the one place that decides what is
//! solid.

use frolic_motion::{EntityId, Pose, Rotation, Vec3};
use frolic_scene::{Body, BodyKind, Components, Scene, Shape as SceneShape, Transform};
use frolic_terrain::Terrain;

use crate::collision::CollisionWorld;
use crate::mesh::Meshes;
use crate::shape::Shape;

/// The solids of a scene without meshes, each under its entity's id.
pub fn load(scene: &Scene) -> CollisionWorld {
    load_with(scene, Meshes::default())
}

/// The solids of a scene, each under its entity's id.
pub fn load_with(scene: &Scene, meshes: Meshes) -> CollisionWorld {
    let mut world = CollisionWorld::with_meshes(meshes);
    for (entity, transform) in scene.entities.iter().zip(scene.world_transforms()) {
        insert(&mut world, entity.id, &scene.resolved(entity), &transform);
    }
    if let Some(settings) = &scene.terrain {
        world.set_terrain(Some(Terrain::new(settings)));
    }
    world
}

/// Adds the solid of components, if any; returns its shape.
pub fn insert(
    world: &mut CollisionWorld,
    entity: EntityId,
    components: &Components,
    transform: &Transform,
) -> Option<Shape> {
    let shape = solid_shape_with(components, transform, world.meshes())?;
    world.insert(entity, shape, pose(transform));
    let body = components.body.as_ref();
    let moves = body.is_some_and(|body| body.kind == BodyKind::Dynamic);
    world.set_pushable(entity, moves);
    let ignored = body.is_some_and(|body| body.ignores.contains(Body::CHARACTERS));
    world.set_passable(entity, ignored);
    Some(shape)
}

/// The solid of components, if any: a shape that is neither a trigger nor a
/// mesh.
pub fn solid_shape(components: &Components, transform: &Transform) -> Option<Shape> {
    solid_shape_with(components, transform, &Meshes::default())
}

/// The solid of components, if any: a shape that is not a trigger. NPCs are
/// characters, which do not collide with each other.
pub fn solid_shape_with(
    components: &Components,
    transform: &Transform,
    meshes: &Meshes,
) -> Option<Shape> {
    if components.trigger.is_some() || components.npc.is_some() {
        return None;
    }
    match components.shape.as_ref()? {
        SceneShape::Mesh { asset } => {
            let (id, mesh) = meshes.find(asset)?;
            let scale = Vec3::from(transform.scale);
            let reach = mesh.reach(scale);
            Some(Shape::Mesh { id, scale, reach })
        }
        shape => self::shape(shape, transform),
    }
}

/// The extent of a trigger, if the components define one. Meshes have no
/// interior.
pub fn trigger_shape(components: &Components, transform: &Transform) -> Option<Shape> {
    components.trigger.as_ref()?;
    shape(components.shape.as_ref()?, transform)
}

/// Position and rotation of a transform.
pub fn pose(transform: &Transform) -> Pose {
    let [x, y, z, w] = transform.rotation;
    let rotation = Rotation::from_xyzw(x, y, z, w);
    let rotation = if rotation.length_squared() > 1e-6 {
        rotation.normalize()
    } else {
        Rotation::IDENTITY
    };
    Pose::from_parts(Vec3::from(transform.position), rotation)
}

/// All but meshes, whose triangles are stored elsewhere.
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
