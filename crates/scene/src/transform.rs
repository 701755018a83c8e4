//! The Transform component: where an entity is.

use serde::{Deserialize, Serialize};

use crate::check::{Checker, POSITION_MAX, SIZE_MIN};
use crate::component::fields;
use crate::field::Field;
use crate::quaternion::quaternion_from_degrees;

/// Position, rotation and size relative to the parent, or to the world without one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WrittenTransform", into = "WrittenTransform")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Transform {
    /// Metres.
    pub position: [f32; 3],
    /// Unit quaternion `[x, y, z, w]`.
    pub rotation: [f32; 4],
    /// The rotation in degrees, where it was written so. It counts only when a scene is written,
    /// and only while it is the same rotation.
    pub rotation_degrees: Option<[f32; 3]>,
    /// Factor on each own axis; shapes and models are scaled with it.
    pub scale: [f32; 3],
}

impl Default for Transform {
    fn default() -> Self {
        Transform {
            position: [0.0; 3],
            rotation: NO_ROTATION,
            rotation_degrees: None,
            scale: [1.0; 3],
        }
    }
}

const NO_ROTATION: [f32; 4] = [0.0, 0.0, 0.0, 1.0];

/// A transform in scene.json, with one of two ways to write the rotation.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Transform", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WrittenTransform {
    /// Place relative to the parent.
    #[serde(default)]
    position: [f32; 3],
    /// Rotation as a unit quaternion `[x, y, z, w]`; no rotation when left out.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::quaternion::deserialize"
    )]
    rotation: Option<[f32; 4]>,
    /// The same in degrees around x (pitch), y (yaw) and z (roll), applied in the order yaw,
    /// pitch, roll; instead of `rotation`.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::quaternion::degrees"
    )]
    rotation_degrees: Option<[f32; 3]>,
    /// Factor on each own axis; shapes are scaled with it.
    #[cfg_attr(feature = "schema", schemars(!skip_serializing_if))]
    #[serde(default = "unscaled", skip_serializing_if = "is_one")]
    scale: [f32; 3],
}

impl TryFrom<WrittenTransform> for Transform {
    type Error = &'static str;

    fn try_from(written: WrittenTransform) -> Result<Self, Self::Error> {
        let rotation = match (written.rotation, written.rotation_degrees) {
            (Some(_), Some(_)) => {
                return Err("has rotation and rotation_degrees; leave one of them out");
            }
            (Some(rotation), None) => rotation,
            (None, Some(degrees)) => quaternion_from_degrees(degrees),
            (None, None) => NO_ROTATION,
        };
        Ok(Transform {
            position: written.position,
            rotation,
            rotation_degrees: written.rotation_degrees,
            scale: written.scale,
        })
    }
}

impl From<Transform> for WrittenTransform {
    fn from(transform: Transform) -> Self {
        let is_same = |degrees: &[f32; 3]| quaternion_from_degrees(*degrees) == transform.rotation;
        let degrees = transform.rotation_degrees.filter(is_same);
        let shown = degrees.is_none() && transform.rotation != NO_ROTATION;
        WrittenTransform {
            position: transform.position,
            rotation: shown.then_some(transform.rotation),
            rotation_degrees: degrees,
            scale: transform.scale,
        }
    }
}

fn unscaled() -> [f32; 3] {
    [1.0; 3]
}

fields! {
    Transform {
        position: Field::range(-POSITION_MAX, POSITION_MAX).unit("m"),
        rotation: Field::any().widget("rotation"),
        rotation_degrees: Field::range(-3_600.0, 3_600.0).unit("degrees"),
        scale: Field::range(SIZE_MIN, 10_000.0),
    }
    with check_rotation
}

fn check_rotation(transform: &Transform, found: &mut Checker) {
    if transform.rotation_degrees.is_some() {
        return;
    }
    let [x, y, z, w] = transform.rotation;
    let length = (x * x + y * y + z * z + w * w).sqrt();
    if !length.is_finite() || length < 1e-3 {
        found.invalid(
            "rotation",
            "rotation must be a unit quaternion [x, y, z, w]; no rotation is [0, 0, 0, 1]",
        );
    } else if (length - 1.0).abs() > 0.01 {
        let [x, y, z, w] = transform.rotation.map(|value| value / length);
        found.invalid(
            "rotation",
            format!(
                "rotation must be a unit quaternion; did you mean [{x:.4}, {y:.4}, {z:.4}, {w:.4}]?"
            ),
        );
    }
}

fn is_one(scale: &[f32; 3]) -> bool {
    *scale == [1.0; 3]
}
