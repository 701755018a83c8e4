//! One solid of a world: its shape, its pose, and how it moves within a tick.

use std::sync::Arc;

use frolic_motion::{EntityId, Pose, Vec3};
use parry3d::bounding_volume::Aabb;
use parry3d::query::{self, Ray};
use parry3d::shape::{Segment, SharedShape};

use crate::convex::{self, Convex, Core, FloorBelow, Frame, Gap};
use crate::mesh::Mesh;
use crate::obstacle::Obstacle;

/// A solid of a world.
#[derive(Clone, Debug)]
pub(crate) struct Solid {
    pub entity: EntityId,
    pub convex: Convex,
    pub frame: Frame,
    /// Its current bounding box.
    pub bounds: Aabb,
    /// Its box in the tree.
    pub tree_bounds: Aabb,
    pub shape: SharedShape,
    /// Its triangles and their scale.
    pub mesh: Option<(Arc<Mesh>, Vec3)>,
    /// Whether a character that walks against it pushes it.
    pub pushable: bool,
    /// Whether characters walk through it.
    pub passable: bool,
    pub pose: Pose,
    /// Its pose one tick ago; what stands on it is carried along.
    pub previous_pose: Pose,
    /// Whether it is in the list of moved solids.
    pub listed: bool,
    /// Whether it moved after characters did: those it carries follow in the
    /// next tick.
    pub late: bool,
    /// The world's change count when its pose or its previous pose last
    /// changed.
    pub changed: u64,
}

impl Solid {
    /// Distance along a ray, and the surface normal there.
    pub fn raycast(&self, ray: &Ray, distance_max: f32) -> Option<(f32, Vec3)> {
        match &self.mesh {
            Some((mesh, scale)) => mesh.raycast(*scale, &self.pose, ray, distance_max),
            None => {
                let hit =
                    self.shape
                        .cast_ray_and_get_normal(&self.pose, ray, distance_max, true)?;
                Some((hit.time_of_impact, hit.normal))
            }
        }
    }

    /// Adds a piece for each triangle of its mesh that intersects `bounds`, in order. `found` is
    /// a buffer.
    pub fn add_pieces(&self, bounds: &Aabb, found: &mut Vec<u32>, out: &mut Vec<Solid>) {
        let Some((mesh, scale)) = &self.mesh else {
            return;
        };
        mesh.triangles_near(*scale, &self.pose, bounds, found, |triangle, around| {
            out.push(self.piece(Convex::Triangle(triangle), around));
        });
    }

    /// Whether a capsule, a core with a radius, touches its mesh; `bounds` is the box of the
    /// capsule.
    pub fn mesh_touches(&self, bounds: &Aabb, core: &Core, radius: f32) -> bool {
        let Some((mesh, scale)) = &self.mesh else {
            return false;
        };
        let mut touches = false;
        mesh.triangles_near(
            *scale,
            &self.pose,
            bounds,
            &mut Vec::new(),
            |triangle, _| {
                let gap = convex::gap(&Convex::Triangle(triangle), &self.frame, core);
                touches |= gap.is_none_or(|gap| gap.distance < radius);
            },
        );
        touches
    }

    /// A convex part of it, as a solid of its own.
    fn piece(&self, convex: Convex, bounds: Aabb) -> Solid {
        Solid {
            convex,
            bounds,
            tree_bounds: bounds,
            mesh: None,
            shape: self.shape.clone(),
            ..*self
        }
    }

    /// How far a point of it moved within the last tick.
    pub fn moved_at(&self, point: Vec3) -> Vec3 {
        let before = self.pose.inverse_transform_point(point);
        point - self.previous_pose.transform_point(before)
    }
}

impl Obstacle for Solid {
    fn entity(&self) -> EntityId {
        self.entity
    }

    fn convex(&self) -> &Convex {
        &self.convex
    }

    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn bounds(&self) -> &Aabb {
        &self.bounds
    }

    #[cold]
    fn penetration(&self, core: &Core, reach: f32) -> Option<Gap> {
        if let Convex::Triangle(triangle) = &self.convex {
            return convex::way_out(triangle, &self.frame, core);
        }
        let contact = query::contact(
            &self.pose,
            self.shape.as_ref(),
            &Pose::identity(),
            &Segment::new(core.low, core.low + Vec3::Y * core.length),
            reach,
        )
        .ok()??;
        contact.normal1.is_finite().then_some(Gap {
            distance: contact.dist,
            normal: contact.normal1,
            point: contact.point1,
        })
    }

    fn floor_below(&self, point: Vec3, distance: f32) -> Option<Vec3> {
        match convex::floor_below(&self.convex, &self.frame, point, distance) {
            FloorBelow::Known(normal) => normal,
            FloorBelow::Unknown => {
                let ray = Ray::new(point, -Vec3::Y);
                let shape = &self.shape;
                let hit = shape.cast_ray_and_get_normal(&self.pose, &ray, distance, false)?;
                Some(hit.normal)
            }
        }
    }

    fn hides(&self, gap: &Gap) -> bool {
        convex::is_seam(&self.convex, &self.frame, gap)
    }

    fn is_piece(&self) -> bool {
        matches!(self.convex, Convex::Triangle(_))
    }

    fn gave_way(&self, point: Vec3, normal: Vec3) -> f32 {
        if self.pushable {
            self.moved_at(point).dot(normal)
        } else {
            0.0
        }
    }
}

/// The bounding box of a shape, or of the triangles in its place, at a pose.
pub(crate) fn bounds(shape: &SharedShape, mesh: &Option<(Arc<Mesh>, Vec3)>, pose: &Pose) -> Aabb {
    match mesh {
        Some((mesh, scale)) => mesh.bounds(*scale, pose),
        None => shape.compute_aabb(pose),
    }
}
