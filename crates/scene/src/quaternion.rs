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

/// A unit quaternion `[x, y, z, w]` to degrees; pitch lies in -90…90.
pub fn degrees_from_quaternion([x, y, z, w]: [f32; 4]) -> [f32; 3] {
    let sin_pitch = (2.0 * (w * x - y * z)).clamp(-1.0, 1.0);
    let pitch = libm::asinf(sin_pitch);
    let (yaw, roll) = if sin_pitch.abs() > 0.999_99 {
        // Looking straight up or down: yaw and roll are the same rotation.
        (
            libm::atan2f(-2.0 * (x * z - w * y), 1.0 - 2.0 * (y * y + z * z)),
            0.0,
        )
    } else {
        (
            libm::atan2f(2.0 * (x * z + w * y), 1.0 - 2.0 * (x * x + y * y)),
            libm::atan2f(2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z)),
        )
    };
    [pitch.to_degrees(), yaw.to_degrees(), roll.to_degrees()]
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

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(q: [f32; 4], v: [f32; 3]) -> [f32; 3] {
        let [x, y, z, w] = q;
        let cross = |a: [f32; 3], b: [f32; 3]| {
            [
                a[1] * b[2] - a[2] * b[1],
                a[2] * b[0] - a[0] * b[2],
                a[0] * b[1] - a[1] * b[0],
            ]
        };
        let u = [x, y, z];
        let t = cross(u, v).map(|c| 2.0 * c);
        let s = cross(u, t);
        [0, 1, 2].map(|i| v[i] + w * t[i] + s[i])
    }

    fn close(a: [f32; 3], b: [f32; 3]) {
        for i in 0..3 {
            assert!((a[i] - b[i]).abs() < 1e-3, "{a:?} is not {b:?}");
        }
    }

    #[test]
    fn yaw_turns_left() {
        let q = quaternion_from_degrees([0.0, 90.0, 0.0]);
        close(turn(q, [0.0, 0.0, -1.0]), [-1.0, 0.0, 0.0]);
    }

    #[test]
    fn degrees_survive_the_way_there_and_back() {
        for degrees in [
            [10.0, 20.0, 30.0],
            [-80.0, 170.0, -100.0],
            [0.0, -45.0, 0.0],
            [0.0, 0.0, 90.0],
        ] {
            close(
                degrees_from_quaternion(quaternion_from_degrees(degrees)),
                degrees,
            );
        }
    }

    #[test]
    fn straight_up_keeps_the_turn() {
        let q = quaternion_from_degrees([90.0, 40.0, 0.0]);
        let again = quaternion_from_degrees(degrees_from_quaternion(q));
        close(turn(q, [1.0, 0.0, 0.0]), turn(again, [1.0, 0.0, 0.0]));
        close(turn(q, [0.0, 0.0, -1.0]), turn(again, [0.0, 0.0, -1.0]));
    }
}
