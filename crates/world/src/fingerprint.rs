//! The hash in which a world's state is compared with that of its replay.

use std::collections::BTreeMap;

use frolic_protocol::Value;
use frolic_protocol::details::Looks;
use frolic_sim::{CharacterInput, Motion, Vec3};

/// A running 64-bit hash. Each step is a bijection of the state, so a single
/// changed word always changes the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Extend<u8> for Fingerprint {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, bytes: I) {
        bytes
            .into_iter()
            .for_each(|byte| self.word(u64::from(byte)));
    }
}

impl Fingerprint {
    pub fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    pub fn value(self) -> u64 {
        // The last multiplication leaves the low bits weak.
        self.0 ^ (self.0 >> 32)
    }

    pub fn option(&mut self, word: Option<u32>) {
        self.word(word.map_or(u64::MAX, u64::from));
    }

    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }

    pub fn floats(&mut self, floats: &[f32]) {
        floats
            .iter()
            .for_each(|float| self.word(u64::from(float.to_bits())));
    }

    pub fn vector(&mut self, vector: Vec3) {
        self.floats(&vector.to_array());
    }

    pub fn values(&mut self, values: &BTreeMap<String, Value>) {
        self.word(values.len() as u64);
        for (name, value) in values {
            self.text(name);
            self.one_value(value);
        }
    }

    pub fn one_value(&mut self, value: &Value) {
        match value {
            Value::Nil => self.word(0),
            Value::Bool(value) => self.word(1 + u64::from(*value)),
            Value::Number(value) => {
                self.word(3);
                self.word(value.to_bits());
            }
            Value::String(value) => {
                self.word(4);
                self.text(value);
            }
            Value::Vector(value) => {
                self.word(5);
                self.floats(value);
            }
            Value::Entity(id) => {
                self.word(6);
                self.word(u64::from(*id));
            }
            Value::Buffer(bytes) => {
                self.word(9);
                self.bytes(bytes);
            }
            Value::List(values) => {
                self.word(7);
                self.word(values.len() as u64);
                values.iter().for_each(|value| self.one_value(value));
            }
            Value::Map(values) => {
                self.word(8);
                self.values(values);
            }
        }
    }

    pub fn input(&mut self, input: &CharacterInput) {
        let CharacterInput {
            right,
            forward,
            yaw,
            pitch,
            buttons,
        } = *input;
        let look = u64::from(yaw.0) << 16 | u64::from(pitch.0);
        let keys = u64::from(right.cast_unsigned()) << 8 | u64::from(forward.cast_unsigned());
        self.word(look << 32 | keys << 8 | u64::from(buttons.0));
    }

    pub fn motion(&mut self, motion: Option<Motion>) {
        self.word(u64::from(motion.is_some()));
        if let Some(motion) = motion {
            self.vector(motion.from);
            self.vector(motion.to);
            self.word(u64::from(motion.start_tick) << 32 | u64::from(motion.end_tick));
        }
    }

    pub fn looks(&mut self, looks: &Looks) {
        let Looks {
            color,
            opacity,
            scale: _, // the entity's own scale
        } = *looks;
        let color = color.map(|[r, g, b]| u32::from_be_bytes([0, r, g, b]));
        self.option(color);
        self.option(opacity.map(f32::to_bits));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &Value) -> u64 {
        let mut fingerprint = Fingerprint::default();
        fingerprint.one_value(value);
        fingerprint.value()
    }

    #[test]
    fn different_values_have_different_fingerprints() {
        let text = |text: &str| Value::String(text.to_owned());
        let values = [
            Value::Nil,
            Value::Bool(false),
            Value::Bool(true),
            Value::Number(0.0),
            Value::Number(-0.0),
            text(""),
            text("\0"),
            text("Ada"),
            Value::Vector([0.0; 3]),
            Value::Entity(0),
            Value::Buffer(vec![]),
            Value::Buffer(vec![0]),
            Value::List(vec![]),
            Value::List(vec![Value::Nil]),
            Value::List(vec![Value::List(vec![]), Value::Nil]),
            Value::Map(BTreeMap::from([("a".to_owned(), Value::Nil)])),
        ];
        for (index, a) in values.iter().enumerate() {
            for b in &values[..index] {
                assert_ne!(of(a), of(b), "{a:?} {b:?}");
            }
        }
    }
}
