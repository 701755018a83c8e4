//! Converts solids of the simulation to rapier's colliders.

use std::collections::BTreeMap;

use frolic_scene::Body;
use frolic_sim::{Meshes, Shape, Vec3};
use rapier3d::prelude::{
    CoefficientCombineRule, ColliderBuilder, Group, InteractionGroups, InteractionTestMode,
    SharedShape, TriMeshFlags,
};

/// Mesh shapes, shared between colliders: by asset path and scale.
#[derive(Default)]
pub(super) struct ShapeCache(BTreeMap<[u32; 4], SharedShape>);

impl ShapeCache {
    /// The shape in rapier; none for a mesh that does not exist.
    pub fn get(&mut self, shape: Shape, meshes: &Meshes) -> Option<SharedShape> {
        let Shape::Mesh { id, scale, .. } = shape else {
            return Some(shape.to_parry());
        };
        let [x, y, z] = scale.to_array().map(f32::to_bits);
        let key = [u32::from(id.number()), x, y, z];
        if let Some(known) = self.0.get(&key) {
            return Some(known.clone());
        }
        let mesh = meshes.get(id)?;
        let corners = mesh
            .corners()
            .iter()
            .map(|corner| *corner * scale)
            .collect();
        let flags = TriMeshFlags::FIX_INTERNAL_EDGES_TWO_SIDED;
        let made = SharedShape::trimesh_with_flags(corners, mesh.triangles().collect(), flags);
        let made = made.ok()?;
        self.0.insert(key, made.clone());
        Some(made)
    }
}

/// The defaults for a solid without a body component.
const NO_BODY: Body = Body {
    kind: frolic_scene::BodyKind::Static,
    friction: 0.5,
    restitution: 0.0,
    mass: 1.0,
    group: 0,
    ignores: frolic_scene::Groups(0),
};

/// A collider with the surface of `body`, or of a plain solid. Of two surfaces
/// in contact, the lower friction and the higher restitution apply.
pub(super) fn collider(shape: SharedShape, body: Option<&Body>, entity: u32) -> ColliderBuilder {
    let body = body.unwrap_or(&NO_BODY);
    ColliderBuilder::new(shape)
        .friction(body.friction)
        .friction_combine_rule(CoefficientCombineRule::Min)
        .restitution(body.restitution)
        .restitution_combine_rule(CoefficientCombineRule::Max)
        .collision_groups(groups(body.group, body.ignores.0))
        .user_data(u128::from(entity))
}

/// Two bodies collide unless one of them ignores the other's group.
pub(super) fn groups(group: u8, ignores: u32) -> InteractionGroups {
    let own = Group::from_bits_truncate(1u32.wrapping_shl(u32::from(group)));
    let others = Group::from_bits_truncate(!ignores);
    InteractionGroups::new(own, others, InteractionTestMode::And)
}

/// Clamps an impulse or velocity to values that rapier can compute with.
pub(super) fn sane(vector: Vec3) -> Vec3 {
    const MOST: f32 = 1e7;
    match vector.is_finite() {
        true => vector.clamp(Vec3::splat(-MOST), Vec3::splat(MOST)),
        false => Vec3::ZERO,
    }
}
