//! The Shape component: what an entity collides with.

use serde::{Deserialize, Serialize};

use crate::check::{Checker, SIZE_MAX, SIZE_MIN};
use crate::component::Component;
use crate::field::Field;

/// A solid with its centre at the entity's position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Shape {
    /// A cuboid.
    Box {
        /// Full width (x), height (y) and depth (z).
        size: [f32; 3],
    },
    /// A ball.
    Sphere {
        /// Metres.
        radius: f32,
    },
    /// A cylinder along y with half a ball at each end.
    Capsule {
        /// Metres.
        radius: f32,
        /// Total height with both ends: at least twice the radius.
        height: f32,
    },
    /// A cylinder along y.
    Cylinder {
        /// Metres.
        radius: f32,
        /// Total height.
        height: f32,
    },
    /// A ramp: the box of this size cut along a diagonal. The slope rises towards -z: it is
    /// at the bottom at +z and has its upright, full-height back at -z. The corners are
    /// (±x/2, -y/2, ±z/2) and (±x/2, +y/2, -z/2).
    Wedge {
        /// Full width (x), height (y) and depth (z).
        size: [f32; 3],
    },
    /// The triangles of a glTF asset; only for bodies that do not fall.
    Mesh {
        /// Path in the package, such as `assets/rock.glb`.
        asset: String,
    },
}

impl Shape {
    const SIZE: Field = Field::range(SIZE_MIN, SIZE_MAX).unit("m").named("size");
    const RADIUS: Field = Field::range(SIZE_MIN, SIZE_MAX).unit("m").named("radius");
    const HEIGHT: Field = Field::range(SIZE_MIN, SIZE_MAX).unit("m").named("height");
    const ASSET: Field = Field::any().widget("asset(glb, gltf)").named("asset");
}

impl Component for Shape {
    const FIELDS: &'static [Field] = &[Shape::SIZE, Shape::RADIUS, Shape::HEIGHT, Shape::ASSET];

    fn check(&self, found: &mut Checker) {
        match self {
            Shape::Box { size } | Shape::Wedge { size } => found.numbers(&Shape::SIZE, size),
            Shape::Sphere { radius } => found.numbers(&Shape::RADIUS, radius),
            Shape::Cylinder { radius, height } => {
                found.numbers(&Shape::RADIUS, radius);
                found.numbers(&Shape::HEIGHT, height);
            }
            Shape::Capsule { radius, height } => {
                found.numbers(&Shape::RADIUS, radius);
                found.numbers(&Shape::HEIGHT, height);
                if *height < 2.0 * radius {
                    found.invalid(
                        "height",
                        "a capsule's height counts both ends: at least twice its radius",
                    );
                }
            }
            Shape::Mesh { asset } => found.asset("asset", asset, &["glb", "gltf"]),
        }
    }
}
