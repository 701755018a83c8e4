//! The Attributes component: values of an entity by name.
//!
//! A name that repeats is refused; serde's maps would use the last value.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::{self, Deserialize, Deserializer};

use crate::Rule;
use crate::check::{Checker, is_attribute_name};
use crate::component::Component;
use crate::field::Field;
use crate::text::shown;

/// Attributes of one entity.
pub const ATTRIBUTES_MAX: usize = 64;
const TEXT_BYTES_MAX: usize = 4096;

/// Values of an entity by name.
pub type Attributes = BTreeMap<String, Attribute>;

/// A value that a creator gives to an entity.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "an attribute is a number, true or false, a string, or [x, y, z]"
)]
pub enum Attribute {
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A text.
    String(String),
    /// `[x, y, z]`.
    Vector([f32; 3]),
}

impl Component for Attributes {
    const FIELDS: &'static [Field] = &[];

    fn check(&self, found: &mut Checker) {
        if self.len() > ATTRIBUTES_MAX {
            let message = format!("an entity has at most {ATTRIBUTES_MAX} attributes");
            found.invalid(None, message);
        }
        for (name, value) in self.iter().take(ATTRIBUTES_MAX) {
            check_attribute(name, value, found);
        }
    }

    fn from_json(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text).map(|Unique(attributes)| attributes)
    }
}

fn check_attribute(name: &str, value: &Attribute, found: &mut Checker) {
    if !is_attribute_name(name) {
        let message = format!(
            "\"{}\" is not a name for an attribute: use letters, digits and _",
            shown(name)
        );
        found.invalid(name, message);
    }
    match value {
        Attribute::Bool(_) => {}
        Attribute::Number(number) => {
            if !number.is_finite() {
                let message = format!("{} is not a finite number", shown(name));
                found.problem(Rule::NonFiniteNumber, Some(name), message);
            }
        }
        Attribute::String(text) => {
            if text.len() > TEXT_BYTES_MAX {
                let message = format!("{} is longer than {TEXT_BYTES_MAX} bytes", shown(name));
                found.invalid(name, message);
            }
        }
        Attribute::Vector(vector) => {
            for value in vector {
                found.range(&shown(name), *value, -1e9, 1e9);
            }
        }
    }
}

/// Attributes, no name twice.
struct Unique(Attributes);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Unique;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of attributes")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Unique, A::Error> {
                let mut attributes = Attributes::new();
                while let Some((name, value)) = map.next_entry::<String, Attribute>()? {
                    if attributes.contains_key(&name) {
                        let message = format!("duplicate field `{}`", shown(&name));
                        return Err(de::Error::custom(message));
                    }
                    attributes.insert(name, value);
                }
                Ok(Unique(attributes))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

/// For `#[serde(deserialize_with)]` on `Components::attributes`.
pub(crate) fn unique<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Attributes>, D::Error> {
    let unique = Option::<Unique>::deserialize(deserializer)?;
    Ok(unique.map(|Unique(attributes)| attributes))
}
