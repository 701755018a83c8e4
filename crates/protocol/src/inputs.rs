//! The inputs of one message, stored inline: a world reads thousands of such
//! messages in a second, and none of them should allocate.

use std::fmt;
use std::ops::Deref;

use frolic_motion::CharacterInput;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;

/// One input with its number. Numbers rise by one with every tick of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedInput {
    /// The client's count.
    pub seq: u32,
    /// The input of the player in that tick.
    pub input: CharacterInput,
}

/// As many as clients send in one message, repeats included.
const USUALLY_MAX: usize = 8;

/// Inputs in the order in which they were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs(SmallVec<[NumberedInput; USUALLY_MAX]>);

impl Deref for Inputs {
    type Target = [NumberedInput];

    fn deref(&self) -> &[NumberedInput] {
        &self.0
    }
}

impl FromIterator<NumberedInput> for Inputs {
    fn from_iter<I: IntoIterator<Item = NumberedInput>>(inputs: I) -> Self {
        Self(inputs.into_iter().collect())
    }
}

impl Serialize for Inputs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

impl<'de> Deserialize<'de> for Inputs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(InputsVisitor)
    }
}

struct InputsVisitor;

impl<'de> Visitor<'de> for InputsVisitor {
    type Value = Inputs;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a list of inputs")
    }

    /// The announced length is untrusted: capacity is reserved only for inputs that
    /// are there.
    fn visit_seq<A: SeqAccess<'de>>(self, mut inputs: A) -> Result<Inputs, A::Error> {
        let mut all = SmallVec::new();
        while let Some(input) = inputs.next_element()? {
            all.push(input);
        }
        Ok(Inputs(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_encoded_as_any_list() {
        for count in [0, 1, 8, 9, 128] {
            let list: Vec<NumberedInput> = (0..count)
                .map(|seq| NumberedInput {
                    seq,
                    input: CharacterInput::default(),
                })
                .collect();
            let inputs: Inputs = list.iter().copied().collect();
            let bytes = postcard::to_stdvec(&inputs).unwrap();
            assert_eq!(bytes, postcard::to_stdvec(&list).unwrap());
            assert_eq!(postcard::from_bytes::<Inputs>(&bytes).unwrap(), inputs);
            assert_eq!(inputs.0.spilled(), count > 8);
        }
    }

    #[test]
    fn more_than_there_are_cannot_be_announced() {
        let announced = postcard::to_stdvec(&u64::from(u32::MAX)).unwrap();
        assert!(postcard::from_bytes::<Inputs>(&announced).is_err());
    }
}
