//! Colours, written `"#rrggbb"`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::field::Numbers;
use crate::text::shown;

/// A colour, written `"#rrggbb"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color(
    /// Red, green, blue.
    pub [u8; 3],
);

impl std::fmt::Display for Color {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [r, g, b] = self.0;
        write!(f, "#{r:02x}{g:02x}{b:02x}")
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Color {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Color".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A colour, written `\"#rrggbb\"`.",
            "pattern": "^#[0-9a-fA-F]{6}$",
            "x-widget": "color",
        })
    }
}

impl Serialize for Color {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Color {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.strip_prefix('#').filter(|digits| {
            digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        let rgb = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match rgb {
            Some(rgb) => Ok(Color([(rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8])),
            None => Err(serde::de::Error::custom(format!(
                "\"{}\" is not a colour; write it as \"#rrggbb\"",
                shown(&text)
            ))),
        }
    }
}

impl Numbers for Color {}
