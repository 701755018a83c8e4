//! Types of characters and public profiles.

use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde::{Deserialize, Serialize};
/// A character's hat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HatName {
    /// No hat.
    #[default]
    None,
    /// A peaked cap.
    Cap,
    /// A knitted cap.
    Beanie,
    /// A top hat.
    TopHat,
    /// A golden crown.
    Crown,
    /// A paper cone.
    Party,
    /// A straw hat.
    Straw,
    /// Two horns.
    Horns,
}

/// A character's facial expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaceName {
    /// Friendly.
    #[default]
    Smile,
    /// A smile with teeth.
    Grin,
    /// One eye closed.
    Wink,
    /// Dark glasses.
    Cool,
    /// Mouth open.
    Surprised,
    /// Eyes half closed.
    Sleepy,
    /// Lowered brows.
    Fierce,
}

/// Appearance of a character. Colours are `#rrggbb`; the world chooses a missing
/// colour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CharacterLooks {
    /// Colour of head and arms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^#[0-9a-fA-F]{6}$")]
    pub skin: Option<String>,
    /// Colour of the hair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^#[0-9a-fA-F]{6}$")]
    pub hair: Option<String>,
    /// Colour of the upper body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^#[0-9a-fA-F]{6}$")]
    pub shirt: Option<String>,
    /// Colour of the lower body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^#[0-9a-fA-F]{6}$")]
    pub trousers: Option<String>,
    /// Colour of the hat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^#[0-9a-fA-F]{6}$")]
    pub accent: Option<String>,
    /// Hat.
    #[serde(default)]
    pub hat: HatName,
    /// Face.
    #[serde(default)]
    pub face: FaceName,
}

/// A character of yours.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Character {
    /// Character id, unique per user.
    pub character_id: String,
    /// Its name; only you can see it.
    pub name: String,
    /// Its appearance.
    pub looks: CharacterLooks,
    /// Whether it is the character you play as.
    pub active: bool,
    /// Incremented by every edit.
    pub version: u32,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub updated_at: String,
}

/// `GET /api/characters`: all your characters; at most `limit`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CharacterList {
    /// The oldest first.
    pub characters: Vec<Character>,
    /// Maximum number of characters.
    pub limit: u32,
}

/// `POST /api/characters`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NewCharacter {
    /// Letters and digits, at most 20.
    #[schema(min_length = 1, max_length = 160)]
    pub name: String,
    /// Its appearance.
    #[serde(default, deserialize_with = "object")]
    pub looks: CharacterLooks,
}

/// `PUT /api/characters/{id}`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EditCharacter {
    /// Letters and digits, at most 20.
    #[schema(min_length = 1, max_length = 160)]
    pub name: String,
    /// Its new appearance.
    #[serde(deserialize_with = "object")]
    pub looks: CharacterLooks,
    /// The version that the edit is based on; 409 when it is outdated.
    pub version: u32,
}

/// `GET /api/users/{id}`: a user's public profile.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PublicProfile {
    /// User id.
    pub user_id: String,
    /// Name.
    pub username: String,
    /// Appearance of the active character.
    pub looks: CharacterLooks,
    /// RFC 3339.
    pub joined_at: String,
}

/// Deserializes an object, and only an object: serde would fill a struct from an array as well.
fn object<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<T, D::Error> {
    let fields = serde_json::Map::deserialize(from)?;
    T::deserialize(serde_json::Value::Object(fields)).map_err(D::Error::custom)
}
