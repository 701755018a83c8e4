//! Rarely changing state of an entity, sent as a whole when it changes: its
//! attributes, and how its looks differ from its definition.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::value::{Args, Value, ValueError, ValueLimits};

/// Longest encoding that is replicated; a larger one stays on the server.
pub const DETAILS_BYTES_MAX: usize = 8 * 1024;
/// Largest scale of an entity along an axis.
pub const SCALE_MAX: f32 = 10_000.0;

/// Everything about an entity that differs from its definition.
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

/// Why details could not be replicated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DetailsError {
    /// Their encoding is too long.
    #[error("{DETAILS_BYTES_MAX} bytes of attributes on one entity")]
    TooLong,
    /// Clients would reject such values.
    #[error("attributes of one entity that clients can read, all together: {0}")]
    Attributes(#[from] ValueError),
}

impl Details {
    /// Whether clients can read the attributes, however its looks differ.
    ///
    /// # Errors
    /// When they could not.
    pub fn check_attributes(&self) -> Result<(), DetailsError> {
        let attributes = self.attributes_as_args();
        attributes.check(&ValueLimits::default())?;
        let longest = encode(&attributes, Looks::LONGEST).len();
        if longest > DETAILS_BYTES_MAX {
            return Err(DetailsError::TooLong);
        }
        Ok(())
    }

    fn attributes_as_args(&self) -> Args {
        Args(vec![Value::Map(self.attributes.clone())])
    }

    /// The bytes for the wire.
    pub fn encode(&self) -> Vec<u8> {
        encode(&self.attributes_as_args(), self.looks)
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

fn encode(attributes: &Args, looks: Looks) -> Vec<u8> {
    postcard::to_stdvec(&(attributes, looks)).expect("our messages always serialise")
}

impl Looks {
    /// As many bytes as any.
    const LONGEST: Looks = Looks {
        color: Some([0; 3]),
        opacity: Some(0.0),
        scale: Some([0.0; 3]),
    };

    fn are_sane(&self) -> bool {
        let scale = self.scale.unwrap_or([1.0; 3]);
        let opacity = self.opacity.unwrap_or(1.0);
        scale.iter().all(|part| part.abs() <= SCALE_MAX) && (0.0..=1.0).contains(&opacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every sort of attribute that is taken can be read, up to the very limit.
    #[test]
    fn what_is_taken_can_be_read_whatever_it_looks_like() {
        let nested =
            |levels: usize| (0..levels).fold(Value::Nil, |inner, _| Value::List(vec![inner]));
        let flags = |count: usize| Value::List(vec![Value::Bool(true); count]);
        let text = |bytes: usize| Value::String("x".repeat(bytes));
        let (mut taken, mut refused) = (0, 0);
        for value in (4080..4100)
            .map(flags)
            .chain((25..40).map(nested))
            .chain((8100..8200).map(text))
            .chain([f32::NAN, 1.0].map(|x| Value::Vector([x; 3])))
        {
            let details = Details {
                attributes: BTreeMap::from([("A".into(), value)]),
                looks: Looks::LONGEST,
            };
            let bytes = details.encode();
            let readable = bytes.len() <= DETAILS_BYTES_MAX && Details::decode(&bytes).is_some();
            assert_eq!(details.check_attributes().is_ok(), readable, "{details:?}");
            taken += usize::from(readable);
            refused += usize::from(!readable);
        }
        assert!(
            taken > 50 && refused > 30,
            "{taken} taken, {refused} refused"
        );
    }

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
