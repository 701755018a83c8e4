//! Solid triangle meshes: both sides of each triangle collide.
//!
//! A mesh is built once and shared by all solids that use it; near a character
//! its triangles become convex pieces like any other solid. The seams, edges of
//! a triangle where its neighbour continues flat or rises, are precomputed,
//! because characters must not stumble over them.

use std::collections::BTreeMap;
use std::sync::Arc;

use frolic_motion::{Pose, Vec3};
use frolic_scene::Triangles;
use parry3d::bounding_volume::{Aabb, BoundingVolume};
use parry3d::partitioning::{Bvh, BvhBuildStrategy};
use parry3d::query::Ray;

use crate::convex::Triangle;
use crate::shape::MeshId;

/// Neighbours with a smaller angle between them count as flat: the sine of the
/// angle.
const FLAT: f32 = 0.02;
/// How much the box of a tree query is enlarged.
const LOOK_MARGIN_M: f32 = 0.01;

/// The meshes that solids of a world can use, by asset.
#[derive(Clone, Debug, Default)]
pub struct Meshes {
    ids: BTreeMap<String, MeshId>,
    meshes: Vec<Arc<Mesh>>,
}

impl Meshes {
    /// Adds the solid triangles of an asset. Meshes beyond the limit of ids are
    /// left out.
    pub fn add(&mut self, asset: &str, triangles: &Triangles) {
        if let (Ok(id), false) = (
            u16::try_from(self.meshes.len()),
            self.ids.contains_key(asset),
        ) {
            self.ids.insert(asset.to_owned(), MeshId(id));
            self.meshes.push(Arc::new(Mesh::new(triangles)));
        }
    }

    /// The mesh of an asset.
    pub fn find(&self, asset: &str) -> Option<(MeshId, &Arc<Mesh>)> {
        let id = *self.ids.get(asset)?;
        Some((id, self.get(id)?))
    }

    /// The mesh with that id.
    pub fn get(&self, id: MeshId) -> Option<&Arc<Mesh>> {
        self.meshes.get(usize::from(id.0))
    }
}

/// A triangle mesh.
#[derive(Clone)]
pub struct Mesh {
    corners: Vec<Vec3>,
    faces: Vec<Face>,
    tree: Bvh,
    bounds: Aabb,
}

impl std::fmt::Debug for Mesh {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a mesh of {} triangles", self.faces.len())
    }
}

#[derive(Clone, Copy)]
struct Face {
    corners: [u32; 3],
    /// See [`Triangle::seams`].
    seams: u8,
}

impl Mesh {
    fn new(triangles: &Triangles) -> Self {
        let corners: Vec<Vec3> = triangles.corners().iter().map(|c| Vec3::from(*c)).collect();
        let faces = seams(&corners, triangles.triangles());
        let boxes = faces.iter().map(|face| {
            let [a, b, c] = face.corners.map(|index| corners[index as usize]);
            Aabb::new(a.min(b).min(c), a.max(b).max(c))
        });
        let boxes: Vec<Aabb> = boxes.collect();
        let bounds = boxes.iter().copied().reduce(|all, one| all.merged(&one));
        let tree = Bvh::from_iter(BvhBuildStrategy::Binned, boxes.into_iter().enumerate());
        Self {
            corners,
            faces,
            tree,
            bounds: bounds.unwrap_or_else(|| Aabb::new(Vec3::ZERO, Vec3::ZERO)),
        }
    }

    /// Positions of the corners.
    pub fn corners(&self) -> &[Vec3] {
        &self.corners
    }

    /// The three corner indices of each triangle.
    pub fn triangles(&self) -> impl Iterator<Item = [u32; 3]> {
        self.faces.iter().map(|face| face.corners)
    }

    /// Radius of a bounding sphere around the origin.
    pub fn reach(&self, scale: Vec3) -> f32 {
        let far = self.bounds.mins.abs().max(self.bounds.maxs.abs());
        (far * scale.abs()).length()
    }

    fn corner(&self, index: u32, scale: Vec3) -> Vec3 {
        self.corners[index as usize] * scale
    }

    fn scaled(&self, scale: Vec3) -> Aabb {
        let (a, b) = (self.bounds.mins * scale, self.bounds.maxs * scale);
        Aabb::new(a.min(b), a.max(b))
    }

    /// Its bounding box at a pose.
    pub(crate) fn bounds(&self, scale: Vec3, pose: &Pose) -> Aabb {
        self.scaled(scale).transform_by(pose)
    }

    /// Calls `visit` with each triangle that intersects `bounds` and with its bounding box, in
    /// order. `found` is a buffer.
    pub(crate) fn triangles_near(
        &self,
        scale: Vec3,
        pose: &Pose,
        bounds: &Aabb,
        found: &mut Vec<u32>,
        mut visit: impl FnMut(Triangle, Aabb),
    ) {
        let inside = bounds.loosened(LOOK_MARGIN_M).transform_by(&pose.inverse());
        let (a, b) = (inside.mins / scale, inside.maxs / scale);
        let inside = Aabb::new(a.min(b), a.max(b));
        found.clear();
        found.extend(self.tree.intersect_aabb(&inside));
        found.sort_unstable();
        for &index in found.iter() {
            let Some(face) = self.faces.get(index as usize) else {
                continue;
            };
            let corners = face.corners.map(|index| self.corner(index, scale));
            let [a, b, c] = corners.map(|corner| pose.transform_point(corner));
            let around = Aabb::new(a.min(b).min(c), a.max(b).max(c));
            if around.intersects(bounds) {
                let triangle = Triangle {
                    corners,
                    seams: face.seams,
                };
                visit(triangle, around);
            }
        }
    }

    /// The nearest triangle along a ray: distance, and the normal towards the
    /// ray's origin.
    pub(crate) fn raycast(
        &self,
        scale: Vec3,
        pose: &Pose,
        ray: &Ray,
        distance_max: f32,
    ) -> Option<(f32, Vec3)> {
        let (distance, front) = self.surface(scale, pose, ray, distance_max)?;
        let behind = front.dot(ray.dir) > 0.0;
        Some((distance, if behind { -front } else { front }))
    }

    /// The nearest triangle along a ray: distance, and the normal of its front.
    pub(crate) fn surface(
        &self,
        scale: Vec3,
        pose: &Pose,
        ray: &Ray,
        distance_max: f32,
    ) -> Option<(f32, Vec3)> {
        let from = pose.inverse_transform_point(ray.origin) / scale;
        let way = pose.rotation.inverse() * ray.dir / scale;
        let inside = Ray::new(from, way);
        let (index, distance) = self.tree.cast_ray(&inside, distance_max, |index, best| {
            let face = self.faces.get(index as usize)?;
            let corners = face.corners.map(|index| self.corners[index as usize]);
            meets(corners, from, way).filter(|distance| *distance <= best)
        })?;
        let face = self.faces.get(index as usize)?;
        let [a, b, c] = face.corners.map(|index| self.corner(index, scale));
        let front = pose.rotation * (b - a).cross(c - a).try_normalize()?;
        Some((distance, front))
    }
}

/// The distance of a triangle along a ray, from either side.
fn meets([a, b, c]: [Vec3; 3], from: Vec3, way: Vec3) -> Option<f32> {
    let (ab, ac) = (b - a, c - a);
    let p = way.cross(ac);
    let volume = ab.dot(p);
    if volume == 0.0 {
        return None;
    }
    let offset = from - a;
    let u = offset.dot(p) / volume;
    let q = offset.cross(ab);
    let v = way.dot(q) / volume;
    let distance = ac.dot(q) / volume;
    (u >= 0.0 && v >= 0.0 && u + v <= 1.0 && distance >= 0.0).then_some(distance)
}

/// Finds the edges at which a neighbour continues.
fn seams(corners: &[Vec3], triangles: &[[u32; 3]]) -> Vec<Face> {
    // Every edge by its corners, in the order of its triangle.
    let mut edges: BTreeMap<[u32; 2], Vec<usize>> = BTreeMap::new();
    for (index, [a, b, c]) in triangles.iter().enumerate() {
        for edge in [[*a, *b], [*b, *c], [*c, *a]] {
            edges.entry(edge).or_default().push(index);
        }
    }
    let at = |index: u32| corners[index as usize];
    let normal = |[a, b, c]: [u32; 3]| (at(b) - at(a)).cross(at(c) - at(a)).try_normalize();
    let only = |edge: [u32; 2]| match edges.get(&edge).map(Vec::as_slice) {
        Some([one]) => Some(*one),
        _ => None,
    };
    let face = |&triangle: &[u32; 3]| {
        let mut seams = 0;
        for edge in 0..3 {
            let (from, to) = (triangle[edge], triangle[(edge + 1) % 3]);
            // A neighbour with the same orientation traverses the edge in
            // reverse.
            let neighbour = only([to, from]).filter(|_| only([from, to]).is_some());
            let Some(neighbour) = neighbour.map(|index| triangles[index]) else {
                continue;
            };
            let (Some(own), Some(other)) = (normal(triangle), normal(neighbour)) else {
                continue;
            };
            let along = at(to) - at(from);
            let bend = own.cross(other).dot(along);
            let flat = own.dot(other) > 0.0 && own.cross(other).length() < FLAT;
            // Where the neighbour rises, the edge is a valley from the front
            // and a ridge from behind: at the bottom of a valley nothing
            // protrudes.
            if flat || bend < 0.0 {
                seams |= 1 << edge;
            }
            if flat || bend > 0.0 {
                seams |= 8 << edge;
            }
        }
        Face {
            corners: triangle,
            seams,
        }
    };
    triangles.iter().map(face).collect()
}

#[cfg(test)]
mod tests;
