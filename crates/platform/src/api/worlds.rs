//! Worlds as people see them: what they are, what lasts of them, saves.

use serde::{Deserialize, Serialize};

/// A world as `GET /world/{id}` and `GET /worlds` show it.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct WorldInfo {
    /// Id.
    pub world_id: String,
    /// Code to share.
    pub room_code: String,
    /// Name of the world.
    pub name: String,
    /// What its owner says about it.
    pub description: String,
    /// The game it is an instance of.
    pub game_id: String,
    /// Package it runs.
    pub revision: String,
    /// Who opened it.
    pub created_by: String,
    /// Who may change and delete it; `null` for one that the platform opened.
    pub owner_id: Option<String>,
    /// Whether only those with the room code may come.
    pub private: bool,
    /// Whether what is built in it outlives its server.
    pub persistent: bool,
    /// Whether a game server runs it now.
    pub running: bool,
    /// Players in it.
    pub player_count: u32,
    /// Players that fit.
    pub max_players: u32,
    /// Counts changes of name, description and privacy; a change names it.
    pub version: u32,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub updated_at: String,
}

/// `GET /worlds`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct WorldList {
    /// This page: the fullest first; one's own, the newest first.
    pub worlds: Vec<WorldInfo>,
    /// Worlds on all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Worlds on a full page.
    pub per_page: u32,
}

/// `POST /worlds`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct NewWorld {
    /// Up to 60 characters; made up without it.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub name: Option<String>,
    /// Up to 500 characters.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub description: Option<String>,
    /// The game; the platform's default game without it.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub game_id: Option<String>,
    /// Whether only those with the room code may come.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub private: Option<bool>,
}

/// `PATCH /world/{id}`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct WorldChange {
    /// The version that was looked at: a change that came between is not
    /// overwritten.
    pub version: u32,
    /// As in `POST /worlds`; unchanged without it.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub name: Option<String>,
    /// The same.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub description: Option<String>,
    /// The same.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub private: Option<bool>,
}

/// `POST /world/{id}`: saves what lasts of the world now, or goes back to
/// something; then what was there before is saved first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct WorldSaveRequest {
    /// What to call the save; up to 60 characters.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub label: Option<String>,
    /// Id of a save of this world to go back to.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub restore: Option<String>,
    /// What `GET /world/{id}/state` gave, to go back to.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub state: Option<WorldState>,
}

/// A save of a world.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct WorldSave {
    /// Id.
    pub save_id: String,
    /// The world.
    pub world_id: String,
    /// What it is called.
    pub label: String,
    /// Whether the platform made it before something took its place.
    pub automatic: bool,
    /// Who made it.
    pub created_by: String,
    /// RFC 3339.
    pub created_at: String,
    /// The newest operation in it.
    #[cfg_attr(test, ts(type = "number"))]
    pub newest_op: u64,
    /// Its size as it is stored.
    pub size_bytes: u32,
}

/// `GET /world/{id}/saves`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct WorldSaveList {
    /// This page, the newest first.
    pub saves: Vec<WorldSave>,
    /// Saves on all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Saves on a full page.
    pub per_page: u32,
}

/// `GET /world/{id}/state`: everything that lasts of a world.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct WorldState {
    /// The last operation that the sections stand for.
    #[cfg_attr(test, ts(type = "number"))]
    pub checkpoint_op: u64,
    /// Parts of the checkpoint.
    pub sections: Vec<StateSection>,
    /// Operations since, in order.
    pub ops: Vec<StateOp>,
}

/// One part of a world's checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct StateSection {
    /// Name.
    pub name: String,
    /// Version of its form.
    pub version: u32,
    /// Content in base64.
    pub data: String,
}

/// One operation of a world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct StateOp {
    /// Its number in the world's history.
    #[cfg_attr(test, ts(type = "number"))]
    pub op_id: u64,
    /// Who asked for it; `null` for a script.
    pub player_id: Option<String>,
    /// What it does.
    #[schema(value_type = Object)]
    #[cfg_attr(test, ts(type = "unknown"))]
    pub op_data: serde_json::Value,
}

/// Somebody who may change a world from outside.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct WorldHelper {
    /// Their id.
    pub user_id: String,
    /// Their name.
    pub username: String,
}

/// `GET /world/{id}/helpers`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct WorldHelpers {
    /// By name.
    pub helpers: Vec<WorldHelper>,
}
