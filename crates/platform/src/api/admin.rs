//! What `/admin` takes and gives.

use serde::{Deserialize, Serialize};

/// A game server as `GET /admin/servers` shows it.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct ServerInfo {
    /// Id for `DELETE /admin/servers/{id}`; the world's id works too.
    pub server_id: String,
    /// The world it runs.
    pub world_id: String,
    /// The game.
    pub game_id: String,
    /// The room code.
    pub room_code: String,
    /// `starting`, `ready`, `stopping` or `backing_off`.
    pub state: String,
    /// Process id once it is ready.
    pub pid: Option<u32>,
    /// Players connected at the last heartbeat.
    pub players: u32,
    /// Places held for players on their way.
    pub reserved: u32,
    /// Players that fit.
    pub max_players: u32,
    /// Tick at the last heartbeat.
    pub tick: u32,
    /// 99th percentile of tick time at the last heartbeat.
    pub tick_ms_p99: f32,
    /// Crashes since it was first started.
    pub crashes: u32,
    /// Seconds since the process was launched.
    pub uptime_s: u32,
}

/// `GET /admin/servers`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct ServerList {
    /// This page, in the order of their worlds' ids.
    pub servers: Vec<ServerInfo>,
    /// All that run.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Entries on a full page.
    pub per_page: u32,
}

/// A login as `GET /admin/sessions` shows it: never the token.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct SessionInfo {
    /// Id for `DELETE /admin/sessions/{id}`.
    pub session_id: String,
    /// Who.
    pub client_id: String,
    /// Name.
    pub username: String,
    /// `guest` or `account`.
    pub kind: String,
    /// What it was opened with; may be empty.
    pub device: String,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub expires_at: String,
}

/// `GET /admin/sessions`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct SessionList {
    /// This page, newest first.
    pub sessions: Vec<SessionInfo>,
    /// All that are valid now.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Entries on a full page.
    pub per_page: u32,
}

/// A person as `GET /admin/users` shows them.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct UserInfo {
    /// Id.
    pub client_id: String,
    /// Name.
    pub username: String,
    /// `guest`, `account`, `house` or `deleted`.
    pub kind: String,
    /// `player`, `creator`, `moderator` or `admin`.
    pub role: String,
    /// Games they made.
    pub games: u32,
    /// RFC 3339.
    pub created_at: String,
    /// When they last logged in, RFC 3339.
    pub last_seen_at: String,
}

/// `GET /admin/users`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct UserList {
    /// This page, newest first.
    pub users: Vec<UserInfo>,
    /// On all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Entries on a full page.
    pub per_page: u32,
}

/// `POST /admin/users/{id}/role`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct GiveRoleRequest {
    /// The new role.
    pub role: RoleName,
    /// The role that is being replaced; when it is another by now, nothing
    /// changes.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub was: Option<RoleName>,
}

/// Roles; each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
#[serde(rename_all = "lowercase")]
pub enum RoleName {
    /// Plays.
    Player,
    /// Publishes games.
    Creator,
    /// Judges reports, chooses what is featured.
    Moderator,
    /// Everything.
    Admin,
}

/// Answer of `POST /admin/users/{id}/password`: shown once, to hand over.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct NewPassword {
    /// A password made up for the account.
    pub password: String,
}

/// Answer of `POST /admin/cleanup`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct CleanupReport {
    /// Expired sessions removed.
    pub sessions: u32,
    /// Guests removed whose sessions are gone and who made nothing.
    pub guests: u32,
    /// Worlds removed that were not persistent and slept too long.
    pub worlds: u32,
}
