//! What seldom changes of an entity, and travels as one piece when it does:
//! its attributes, and how its looks differ from its definition.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::value::{Args, Value};

/// Longest encoding that is replicated; a larger one stays on the server.
pub const DETAILS_BYTES_MAX: usize = 8 * 1024;
/// Largest scale of an entity along an axis.
pub const SCALE_MAX: f32 = 10_000.0;

/// Everything about an entity that its definition does not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// Free values of the game, all of them.
    pub attributes: BTreeMap<String, Value>,
    /// How its looks differ.
    pub looks: Looks,
}

/// Looks that a script changed; what is none is as the definition says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Looks {
    /// Red, green, blue.
    pub color: Option<[u8; 3]>,
    /// 0 (not to be seen) to 1.
    pub opacity: Option<f32>,
    /// Its scale.
    pub scale: Option<[f32; 3]>,
}

impl Details {
    /// The bytes for the wire.
    pub fn encode(&self) -> Vec<u8> {
        let attributes = Args(vec![Value::Map(self.attributes.clone())]);
        postcard::to_stdvec(&(attributes, self.looks)).expect("our messages always serialise")
    }

    /// Reads what [`Details::encode`] wrote; none when the bytes are not that.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let ((mut values, looks), rest): ((Args, Looks), &[u8]) =
            postcard::take_from_bytes(bytes).ok()?;
        let (Some(Value::Map(attributes)), true) = (values.0.pop(), values.0.is_empty()) else {
            return None;
        };
        let details = Self { attributes, looks };
        (rest.is_empty() && looks.are_sane()).then_some(details)
    }
}

impl Looks {
    fn are_sane(&self) -> bool {
        let scale = self.scale.unwrap_or([1.0; 3]);
        let opacity = self.opacity.unwrap_or(1.0);
        scale.iter().all(|part| part.abs() <= SCALE_MAX) && (0.0..=1.0).contains(&opacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_round_trip_and_nonsense_is_refused() {
        let details = Details {
            attributes: BTreeMap::from([("Team".into(), Value::String("red".into()))]),
            looks: Looks {
                color: Some([1, 2, 3]),
                opacity: Some(0.5),
                scale: None,
            },
        };
        let bytes = details.encode();
        assert_eq!(Details::decode(&bytes), Some(details.clone()));
        assert_eq!(Details::decode(&bytes[1..]), None);
        for (opacity, scale) in [(f32::NAN, 1.0), (2.0, 1.0), (1.0, f32::INFINITY)] {
            let looks = Looks {
                color: None,
                opacity: Some(opacity),
                scale: Some([scale; 3]),
            };
            let bad = Details {
                looks,
                ..Details::default()
            };
            assert_eq!(Details::decode(&bad.encode()), None, "{opacity} {scale}");
        }
    }
}
