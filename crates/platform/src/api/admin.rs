//! Request and response types of `/admin`.

use serde::{Deserialize, Serialize};

/// A game server as `GET /admin/servers` shows it.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
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
    #[schema(required)]
    pub pid: Option<u32>,
    /// Players connected at the last heartbeat.
    pub players: u32,
    /// Slots reserved for joining players.
    pub reserved: u32,
    /// Maximum number of players.
    pub max_players: u32,
    /// Tick at the last heartbeat.
    pub tick: u32,
    /// 99th percentile of tick time at the last heartbeat.
    pub tick_ms_p99: f32,
    /// Crashes since the first start.
    pub crashes: u32,
    /// Seconds since the process was launched.
    pub uptime_s: u32,
}

/// `GET /admin/servers`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ServerList {
    /// This page, ordered by world id.
    pub servers: Vec<ServerInfo>,
    /// Number of running servers.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Page size.
    pub per_page: u32,
}

/// A session as `GET /admin/sessions` shows it, without its token.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SessionInfo {
    /// Id for `DELETE /admin/sessions/{id}`.
    pub session_id: String,
    /// User id.
    pub client_id: String,
    /// Name.
    pub username: String,
    /// `guest` or `account`.
    pub kind: String,
    /// Device at login; may be empty.
    pub device: String,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub expires_at: String,
}

/// `GET /admin/sessions`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SessionList {
    /// This page, newest first.
    pub sessions: Vec<SessionInfo>,
    /// Number of valid sessions.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Page size.
    pub per_page: u32,
}

/// A user as `GET /admin/users` shows them.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct UserInfo {
    /// Id.
    pub client_id: String,
    /// Name.
    pub username: String,
    /// `guest`, `account`, `house` or `deleted`.
    pub kind: String,
    /// `player`, `creator`, `moderator` or `admin`.
    #[schema(value_type = RoleName)]
    pub role: String,
    /// Number of games they created.
    pub games: u32,
    /// RFC 3339.
    pub created_at: String,
    /// When they last logged in, RFC 3339.
    pub last_seen_at: String,
}

/// `GET /admin/users`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct UserList {
    /// This page, newest first.
    pub users: Vec<UserInfo>,
    /// Number of users on all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Page size.
    pub per_page: u32,
}

/// `POST /admin/users/{id}/role`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct GiveRoleRequest {
    /// The new role.
    pub role: RoleName,
    /// The role that is being replaced. If the user has another role, the request
    /// fails.
    #[serde(default)]
    pub was: Option<RoleName>,
}

/// Roles; each includes the rights of the previous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RoleName {
    /// May play.
    Player,
    /// May publish games.
    Creator,
    /// May decide reports and feature games.
    Moderator,
    /// May do everything.
    Admin,
}

/// Response of `POST /admin/users/{id}/password`: shown once, to pass on to the user.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NewPassword {
    /// The generated password.
    pub password: String,
}

/// Response of `POST /admin/cleanup`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CleanupReport {
    /// Deleted expired sessions.
    pub sessions: u32,
    /// Deleted guests without a session who created nothing.
    pub guests: u32,
    /// Deleted worlds that were not persistent and had stopped long ago.
    pub worlds: u32,
}
