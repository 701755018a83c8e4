//! Reads a rotation, and says what one is where it has another form: whoever
//! writes three numbers thinks of degrees.

use std::fmt;

use serde::Deserializer;
use serde::de::{Error, SeqAccess, Visitor};

/// Reads `[x, y, z, w]`.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<[f32; 4], D::Error> {
    deserializer.deserialize_tuple(4, Quaternion)
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
             [0, 0, 0, 1], a quarter turn around y is [0, 0.7071, 0, 0.7071]"
        )))
    }
}
