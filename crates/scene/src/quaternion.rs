//! Rotations: as quaternions, and as degrees the way creators write them.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Degrees to a unit quaternion `[x, y, z, w]`: degrees around x (pitch), y (yaw) and z (roll),
/// applied in the order yaw, pitch, roll like Roblox's `Orientation`.
///
/// It uses `libm`, so that results are bit-identical on every machine.
pub fn quaternion_from_degrees(degrees: [f32; 3]) -> [f32; 4] {
    let half = |d: f32| d.to_radians() * 0.5;
    let (sx, cx) = (libm::sinf(half(degrees[0])), libm::cosf(half(degrees[0])));
    let (sy, cy) = (libm::sinf(half(degrees[1])), libm::cosf(half(degrees[1])));
    let (sz, cz) = (libm::sinf(half(degrees[2])), libm::cosf(half(degrees[2])));
    // Ry * Rx * Rz
    [
        cy * sx * cz + sy * cx * sz,
        sy * cx * cz - cy * sx * sz,
        cy * cx * sz - sy * sx * cz,
        cy * cx * cz + sy * sx * sz,
    ]
}

/// Reads `[x, y, z, w]`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<[f32; 4]>, D::Error> {
    deserializer.deserialize_tuple(4, Quaternion).map(Some)
}

/// Reads degrees `[x, y, z]`.
pub(crate) fn degrees<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<[f32; 3]>, D::Error> {
    <[f32; 3]>::deserialize(deserializer).map(Some)
}

struct Quaternion;

impl<'de> Visitor<'de> for Quaternion {
    type Value = [f32; 4];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quaternion [x, y, z, w]; no rotation is [0, 0, 0, 1]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<[f32; 4], A::Error> {
        let mut rotation = [0.0; 4];
        let mut count = 0_usize;
        while let Some(value) = items.next_element::<f32>()? {
            if let Some(slot) = rotation.get_mut(count) {
                *slot = value;
            }
            count += 1;
        }
        if count == 4 {
            return Ok(rotation);
        }
        Err(A::Error::custom(format!(
            "rotation is a quaternion [x, y, z, w], four numbers and not {count}; no rotation is \
             [0, 0, 0, 1], a quarter turn around y is [0, 0.7071, 0, 0.7071]; format 2 also has \
             rotation_degrees"
        )))
    }
}
