//! The looks of a player's character: chosen on the site, carried by the ticket,
//! replicated to all players in the world.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

/// A colour: `#rrggbb` in texts, three bytes elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rgb(pub [u8; 3]);

impl Rgb {
    /// Reads `#rrggbb`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let [_, r, g, b] = u32::from_str_radix(digits, 16).ok()?.to_be_bytes();
        Some(Self([r, g, b]))
    }
}

impl Serialize for Rgb {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let [r, g, b] = self.0;
        if serializer.is_human_readable() {
            serializer.serialize_str(&format!("#{r:02x}{g:02x}{b:02x}"))
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Rgb {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return <[u8; 3]>::deserialize(deserializer).map(Self);
        }
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("a colour reads #rrggbb"))
    }
}

/// The hat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "snake_case")]
pub enum Hat {
    /// Nothing but hair.
    #[default]
    None,
    /// A cap with a peak.
    Cap,
    /// A knitted one with a bobble.
    Beanie,
    /// A tall one with a band.
    TopHat,
    /// A golden one with points.
    Crown,
    /// A cone of paper.
    Party,
    /// A wide one against the sun.
    Straw,
    /// Two horns.
    Horns,
}

/// The expression of the face.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "snake_case")]
pub enum Face {
    /// Friendly.
    #[default]
    Smile,
    /// Friendly, with teeth.
    Grin,
    /// One eye closed.
    Wink,
    /// Behind dark glasses.
    Cool,
    /// Mouth open.
    Surprised,
    /// Eyes half closed.
    Sleepy,
    /// Brows down.
    Fierce,
}

/// The looks of a character. A colour that is none is one that the player's
/// number in the world gives, as for a player who never chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct AvatarLooks {
    /// Head and arms.
    #[cfg_attr(test, ts(type = "string | null"))]
    pub skin: Option<Rgb>,
    /// Hair.
    #[cfg_attr(test, ts(type = "string | null"))]
    pub hair: Option<Rgb>,
    /// Upper half.
    #[cfg_attr(test, ts(type = "string | null"))]
    pub shirt: Option<Rgb>,
    /// Lower half.
    #[cfg_attr(test, ts(type = "string | null"))]
    pub trousers: Option<Rgb>,
    /// The hat.
    #[cfg_attr(test, ts(type = "string | null"))]
    pub accent: Option<Rgb>,
    /// On its head.
    pub hat: Hat,
    /// Its face.
    pub face: Face,
}

impl AvatarLooks {
    /// Reads the looks from a ticket. Missing, invalid or unknown choices fall back
    /// to the default: looks never keep a player out of a world.
    pub fn from_json(text: &str) -> Self {
        let Ok(Json::Object(given)) = serde_json::from_str(text) else {
            return Self::default();
        };
        let color = |name: &str| Rgb::parse(given.get(name)?.as_str()?);
        let hat = given.get("hat").cloned();
        let face = given.get("face").cloned();
        Self {
            skin: color("skin"),
            hair: color("hair"),
            shirt: color("shirt"),
            trousers: color("trousers"),
            accent: color("accent"),
            hat: hat
                .and_then(|hat| serde_json::from_value(hat).ok())
                .unwrap_or_default(),
            face: face
                .and_then(|face| serde_json::from_value(face).ok())
                .unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_read_piece_by_piece_and_nonsense_is_left_out() {
        let looks = AvatarLooks::from_json(
            r##"{"skin":"#FFdcb8","shirt":"red","hair":5,"trousers":"#1234567","accent":"#é00000","hat":"top_hat","face":"monocle"}"##,
        );
        let expected = AvatarLooks {
            skin: Some(Rgb([0xff, 0xdc, 0xb8])),
            hat: Hat::TopHat,
            ..AvatarLooks::default()
        };
        assert_eq!(looks, expected);
        for bad in ["", "[]", "{", "null", r#"{"hat":[[[[]]]]}"#] {
            assert_eq!(AvatarLooks::from_json(bad), AvatarLooks::default(), "{bad}");
        }
    }

    #[test]
    fn looks_are_the_same_after_both_forms() {
        let looks = AvatarLooks {
            shirt: Some(Rgb([1, 2, 254])),
            hat: Hat::Crown,
            face: Face::Wink,
            ..AvatarLooks::default()
        };
        let text = serde_json::to_string(&looks).unwrap();
        assert!(text.contains(r##""shirt":"#0102fe""##), "{text}");
        assert_eq!(serde_json::from_str::<AvatarLooks>(&text).unwrap(), looks);
        assert_eq!(AvatarLooks::from_json(&text), looks);
        let bytes = postcard::to_stdvec(&looks).unwrap();
        assert_eq!(postcard::from_bytes::<AvatarLooks>(&bytes).unwrap(), looks);
        assert!(bytes.len() <= 10, "{}", bytes.len());
    }
}
