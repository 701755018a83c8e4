//! Types of worlds, their stored state, and saves.

use serde::{Deserialize, Serialize};

/// A world as `GET /world/{id}` and `GET /worlds` show it.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WorldInfo {
    /// World id.
    pub world_id: String,
    /// Room code, to share.
    pub room_code: String,
    /// Name of the world.
    pub name: String,
    /// Description by its owner.
    pub description: String,
    /// The game it is an instance of.
    pub game_id: String,
    /// SHA-256 of the package it runs.
    pub revision: String,
    /// User id of its creator.
    pub created_by: String,
    /// User id of its owner, who may change and delete it; `null` for a world opened
    /// by the platform.
    #[schema(required)]
    pub owner_id: Option<String>,
    /// Whether it can be joined only with the room code.
    pub private: bool,
    /// Whether its state outlives its server process.
    pub persistent: bool,
    /// Whether a game server runs it now.
    pub running: bool,
    /// Current players.
    pub player_count: u32,
    /// Maximum number of players.
    pub max_players: u32,
    /// Incremented by changes of name, description and privacy; a change must name
    /// the current one.
    pub version: u32,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub updated_at: String,
}

/// `GET /worlds`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WorldList {
    /// This page: the fullest first; for your own worlds, the newest first.
    pub worlds: Vec<WorldInfo>,
    /// Number of worlds on all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Page size.
    pub per_page: u32,
}

/// `POST /worlds`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NewWorld {
    /// Up to 60 characters; generated when absent.
    #[serde(default)]
    pub name: Option<String>,
    /// Up to 500 characters.
    #[serde(default)]
    pub description: Option<String>,
    /// Game id; default the platform's default game.
    #[serde(default)]
    pub game_id: Option<String>,
    /// Whether it can be joined only with the room code.
    #[serde(default)]
    pub private: Option<bool>,
}

/// `PATCH /world/{id}`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WorldChange {
    /// The version that the change is based on; 409 when it is outdated.
    pub version: u32,
    /// As in `POST /worlds`; unchanged when absent.
    #[serde(default)]
    pub name: Option<String>,
    /// As in `POST /worlds`; unchanged when absent.
    #[serde(default)]
    pub description: Option<String>,
    /// Whether it can be joined only with the room code; unchanged when absent.
    #[serde(default)]
    pub private: Option<bool>,
}

/// `POST /world/{id}`: saves the world's state, or restores a state after saving the
/// current one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WorldSaveRequest {
    /// Name of the save; up to 60 characters.
    #[serde(default)]
    pub label: Option<String>,
    /// Id of a save of this world to restore.
    #[serde(default)]
    pub restore: Option<String>,
    /// A response of `GET /world/{id}/state` to restore.
    #[serde(default)]
    pub state: Option<WorldState>,
}

/// A save of a world.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WorldSave {
    /// Save id.
    pub save_id: String,
    /// The world.
    pub world_id: String,
    /// Name.
    pub label: String,
    /// Whether the platform made it automatically before a restore.
    pub automatic: bool,
    /// User id of its creator.
    pub created_by: String,
    /// RFC 3339.
    pub created_at: String,
    /// Number of the newest operation in it.
    pub newest_op: u64,
    /// Stored size in bytes.
    pub size_bytes: u32,
}

/// `GET /world/{id}/saves`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WorldSaveList {
    /// This page, the newest first.
    pub saves: Vec<WorldSave>,
    /// Number of saves on all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Page size.
    pub per_page: u32,
}

/// `GET /world/{id}/state`: the complete persistent state of a world.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WorldState {
    /// Number of the last operation that the checkpoint includes.
    pub checkpoint_op: u64,
    /// Sections of the checkpoint.
    pub sections: Vec<StateSection>,
    /// Operations after the checkpoint, in order.
    pub ops: Vec<StateOp>,
}

/// One section of a world's checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StateSection {
    /// Name.
    pub name: String,
    /// Version of its format.
    pub version: u32,
    /// Content in base64.
    pub data: String,
}

/// One operation of a world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StateOp {
    /// Its number in the world's log.
    pub op_id: u64,
    /// User id of the player who requested it; `null` for a script.
    #[schema(required)]
    pub player_id: Option<String>,
    /// The operation.
    #[schema(value_type = Object)]
    pub op_data: serde_json::Value,
}

/// A user who may change a world without being its owner.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WorldHelper {
    /// User id.
    pub user_id: String,
    /// Name.
    pub username: String,
}

/// `GET /world/{id}/helpers`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WorldHelpers {
    /// Helpers, ordered by name.
    pub helpers: Vec<WorldHelper>,
}
