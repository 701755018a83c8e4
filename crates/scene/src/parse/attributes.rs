//! Reads attributes so that a name that repeats is refused; serde's maps would keep the last.

use std::collections::BTreeMap;

use serde::de::{self, Deserialize, Deserializer};

use crate::Attribute;
use crate::text::shown;

/// Attributes, no name twice.
struct Unique(BTreeMap<String, Attribute>);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Unique;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of attributes")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Unique, A::Error> {
                let mut attributes = BTreeMap::new();
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
pub(crate) fn unique_attributes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, Attribute>>, D::Error> {
    let unique = Option::<Unique>::deserialize(deserializer)?;
    Ok(unique.map(|Unique(attributes)| attributes))
}

/// Reads attributes from a text of their own.
pub(crate) fn attributes_from_json(text: &str) -> serde_json::Result<BTreeMap<String, Attribute>> {
    serde_json::from_str(text).map(|Unique(attributes)| attributes)
}
