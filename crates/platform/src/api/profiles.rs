//! Characters and how they look.

use serde::{Deserialize, Serialize};

use crate::extract::object;

/// On a character's head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
#[serde(rename_all = "snake_case")]
pub enum HatName {
    /// Nothing but hair.
    #[default]
    None,
    /// With a peak.
    Cap,
    /// Knitted.
    Beanie,
    /// Tall.
    TopHat,
    /// Golden.
    Crown,
    /// A cone of paper.
    Party,
    /// Against the sun.
    Straw,
    /// Two of them.
    Horns,
}

/// What a character's face says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
#[serde(rename_all = "snake_case")]
pub enum FaceName {
    /// Friendly.
    #[default]
    Smile,
    /// With teeth.
    Grin,
    /// One eye closed.
    Wink,
    /// Dark glasses.
    Cool,
    /// Mouth open.
    Surprised,
    /// Eyes half closed.
    Sleepy,
    /// Brows down.
    Fierce,
}

/// How a character looks. Colours read `#rrggbb`; one that is left out is
/// picked by the world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct CharacterLooks {
    /// Head and arms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^#[0-9a-fA-F]{6}$")]
    #[cfg_attr(test, ts(optional))]
    pub skin: Option<String>,
    /// Hair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^#[0-9a-fA-F]{6}$")]
    #[cfg_attr(test, ts(optional))]
    pub hair: Option<String>,
    /// Upper half.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^#[0-9a-fA-F]{6}$")]
    #[cfg_attr(test, ts(optional))]
    pub shirt: Option<String>,
    /// Lower half.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^#[0-9a-fA-F]{6}$")]
    #[cfg_attr(test, ts(optional))]
    pub trousers: Option<String>,
    /// The hat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^#[0-9a-fA-F]{6}$")]
    #[cfg_attr(test, ts(optional))]
    pub accent: Option<String>,
    /// On its head.
    #[serde(default)]
    pub hat: HatName,
    /// Its face.
    #[serde(default)]
    pub face: FaceName,
}

/// A character of yours.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct Character {
    /// Its id among yours.
    pub character_id: String,
    /// Its name, for you alone.
    pub name: String,
    /// How it looks.
    pub looks: CharacterLooks,
    /// Whether you play as this one.
    pub active: bool,
    /// Rises with every edit.
    pub version: u32,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub updated_at: String,
}

/// `GET /api/characters`: all of yours; there are never more than `limit`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct CharacterList {
    /// The oldest first.
    pub characters: Vec<Character>,
    /// How many you may have.
    pub limit: u32,
}

/// `POST /api/characters`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct NewCharacter {
    /// Letters and digits, at most 20.
    #[schema(min_length = 1, max_length = 160)]
    pub name: String,
    /// How it looks.
    #[serde(default, deserialize_with = "object")]
    pub looks: CharacterLooks,
}

/// `PUT /api/characters/{id}`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct EditCharacter {
    /// Letters and digits, at most 20.
    #[schema(min_length = 1, max_length = 160)]
    pub name: String,
    /// How it looks from now on.
    #[serde(deserialize_with = "object")]
    pub looks: CharacterLooks,
    /// The version that was edited; another one in between is not overwritten.
    pub version: u32,
}

/// `GET /api/users/{id}`: what everybody may know of somebody.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct PublicProfile {
    /// Their id.
    pub user_id: String,
    /// Their name.
    pub username: String,
    /// How their active character looks.
    pub looks: CharacterLooks,
    /// RFC 3339.
    pub joined_at: String,
}
