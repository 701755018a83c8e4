//! Solid shapes and their conversion to parry's.

use frolic_motion::Vec3;
use parry3d::shape::SharedShape;

/// Identifies a mesh of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeshId(pub(crate) u16);

impl MeshId {
    /// Its number in the world's list.
    pub fn number(self) -> u16 {
        self.0
    }
}

/// A solid, centred on its origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// A box with these half sizes.
    Box(Vec3),
    /// A sphere of this radius.
    Sphere(f32),
    /// An upright capsule.
    Capsule {
        /// Half of the straight part.
        half_height: f32,
        /// Radius of both ends.
        radius: f32,
    },
    /// An upright cylinder.
    Cylinder {
        /// Half of its height.
        half_height: f32,
        /// Its radius.
        radius: f32,
    },
    /// A ramp in a box of these half sizes: full height at −z, nothing at +z.
    Wedge(Vec3),
    /// A triangle mesh from the world's list.
    Mesh {
        /// Its id.
        id: MeshId,
        /// A factor per axis.
        scale: Vec3,
        /// Radius of its bounding sphere.
        reach: f32,
    },
}

/// Below this a solid is a surface, and contacts with it are unreliable.
const HALF_SIZE_MIN: f32 = 0.005;

impl Shape {
    /// Radius of a bounding sphere around its origin.
    pub fn reach(self) -> f32 {
        match self {
            Shape::Box(half) | Shape::Wedge(half) => half.length(),
            Shape::Sphere(radius) => radius.abs(),
            Shape::Capsule {
                half_height,
                radius,
            }
            | Shape::Cylinder {
                half_height,
                radius,
            } => half_height.abs() + radius.abs(),
            Shape::Mesh { reach, .. } => reach,
        }
    }

    /// Raises sizes to a minimum, because parry asserts on flat solids and a
    /// scene may contain one.
    pub(crate) fn thickened(self) -> Self {
        let fat = |size: Vec3| size.abs().max(Vec3::splat(HALF_SIZE_MIN));
        let thick = |x: f32| x.abs().max(HALF_SIZE_MIN);
        match self {
            Shape::Box(half) => Shape::Box(fat(half)),
            Shape::Sphere(radius) => Shape::Sphere(thick(radius)),
            Shape::Capsule {
                half_height,
                radius,
            } => Shape::Capsule {
                half_height: thick(half_height),
                radius: thick(radius),
            },
            Shape::Cylinder {
                half_height,
                radius,
            } => Shape::Cylinder {
                half_height: thick(half_height),
                radius: thick(radius),
            },
            Shape::Wedge(half) => Shape::Wedge(fat(half)),
            Shape::Mesh { id, scale, reach } => Shape::Mesh {
                id,
                scale: fat(scale),
                reach: thick(reach),
            },
        }
    }

    /// The collision shape; a mesh is represented by its bounding sphere.
    pub fn to_parry(self) -> SharedShape {
        match self.thickened() {
            Shape::Box(half) => SharedShape::cuboid(half.x, half.y, half.z),
            Shape::Sphere(radius) => SharedShape::ball(radius),
            Shape::Capsule {
                half_height,
                radius,
            } => SharedShape::capsule_y(half_height, radius),
            Shape::Cylinder {
                half_height,
                radius,
            } => SharedShape::cylinder(half_height, radius),
            Shape::Wedge(h) => {
                let corners = [
                    Vec3::new(-h.x, -h.y, -h.z),
                    Vec3::new(h.x, -h.y, -h.z),
                    Vec3::new(-h.x, -h.y, h.z),
                    Vec3::new(h.x, -h.y, h.z),
                    Vec3::new(-h.x, h.y, -h.z),
                    Vec3::new(h.x, h.y, -h.z),
                ];
                SharedShape::convex_hull(&corners)
                    .unwrap_or_else(|| SharedShape::cuboid(h.x, h.y, h.z))
            }
            Shape::Mesh { reach, .. } => SharedShape::ball(reach),
        }
    }
}
