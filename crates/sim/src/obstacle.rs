//! A convex solid as a moving capsule meets it.

use frolic_motion::{EntityId, Vec3};
use parry3d::bounding_volume::Aabb;

use crate::convex::{Convex, Core, Frame, Gap};

/// A convex solid that a capsule can collide with.
pub(crate) trait Obstacle {
    /// Its entity.
    fn entity(&self) -> EntityId;
    fn convex(&self) -> &Convex;
    fn frame(&self) -> &Frame;
    /// Its bounding box.
    fn bounds(&self) -> &Aabb;
    /// The shortest way out for a core that is inside.
    fn penetration(&self, core: &Core, reach: f32) -> Option<Gap>;
    /// The normal of the surface straight below a point.
    fn floor_below(&self, point: Vec3, distance: f32) -> Option<Vec3>;
    /// Whether another surface is nearer in that direction, so that this
    /// contact does not exist.
    fn hides(&self, gap: &Gap) -> bool;
    /// Whether it is a part of a non-convex solid.
    fn is_piece(&self) -> bool {
        false
    }
    /// How far its surface moved along a normal within the last tick, if it can
    /// be pushed.
    fn gave_way(&self, _point: Vec3, _normal: Vec3) -> f32 {
        0.0
    }
}
