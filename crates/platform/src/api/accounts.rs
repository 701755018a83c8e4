//! Request and response types of the account API.

use serde::{Deserialize, Serialize};

/// `POST /login`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct LoginRequest {
    /// The name to play under; one is made up without it.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub username: Option<String>,
}

/// `POST /api/login/link`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct LinkLoginRequest {
    /// The secret of the link.
    pub key: String,
}

/// A new session: the answer of `POST /login`, `/api/login`, `/api/register`
/// and `/api/login/identity`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct LoginResponse {
    /// Bearer token for everything else. A guest's lasts four hours; an account's moves on while
    /// it is used.
    pub session_token: String,
    /// Who you are to worlds and other players.
    pub client_id: String,
    /// The name as others see it, made unique.
    pub username: String,
    /// `guest` or `account`.
    pub kind: String,
    /// `player`, `creator`, `moderator` or `admin`.
    pub role: String,
    /// When the session ends, RFC 3339.
    pub expires_at: String,
}

/// `POST /api/register`. With a guest's token that guest becomes the account
/// and keeps everything they made.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct RegisterRequest {
    /// 3 to 20 letters and digits of any script, single spaces, `_`, `-`, `.`.
    pub username: String,
    /// At least 8 characters.
    pub password: String,
    /// Stay signed in for 30 days after the last use instead of four hours.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub remember: Option<bool>,
}

/// `POST /api/login`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct PasswordLoginRequest {
    /// Name of the account; capitals do not matter.
    pub username: String,
    /// Its password.
    pub password: String,
    /// Stay signed in for 30 days after the last use instead of four hours.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub remember: Option<bool>,
}

/// `POST /api/login/identity`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct IdentityLoginRequest {
    /// A JWT of the issuer that this platform trusts.
    pub token: String,
}

/// `GET /api/me`: who is asking.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct Account {
    /// Who you are to worlds and other players.
    pub client_id: String,
    /// Name as others see it.
    pub username: String,
    /// `guest` or `account`.
    pub kind: String,
    /// `player`, `creator`, `moderator` or `admin`; what this token may do.
    pub role: String,
    /// Whether the account has a password.
    pub has_password: bool,
    /// Issuer of the identity that opens the account, when there is one.
    pub identity_issuer: Option<String>,
    /// How this call was authenticated: `session`, `api_key` or `identity`.
    pub means: String,
    /// When the account was made, RFC 3339.
    pub created_at: String,
    /// When this session ends, RFC 3339; `null` for an API key.
    pub expires_at: Option<String>,
}

/// `PATCH /api/me`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct RenameRequest {
    /// The new name, under the rules of `POST /api/register`.
    pub username: String,
}

/// `PUT /api/me/password`: ends all other sessions.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct ChangePasswordRequest {
    /// The password so far; left out where there is none yet.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub current_password: Option<String>,
    /// At least 8 characters.
    pub new_password: String,
}

/// `POST /api/me/delete`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct DeleteAccountRequest {
    /// Your own name, as a sign that you mean it.
    pub username: String,
    /// The password, where there is one.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub password: Option<String>,
}

/// One of your own logins.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct OwnSession {
    /// Id to end it with; never the token.
    pub session_id: String,
    /// What it was opened with, such as `Firefox on Linux`; may be empty.
    pub device: String,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub expires_at: String,
    /// Whether it is the one that asks.
    pub current: bool,
}

/// `GET /api/me/sessions`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct OwnSessionList {
    /// This page, newest first.
    pub sessions: Vec<OwnSession>,
    /// On all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Entries on a full page.
    pub per_page: u32,
}

/// `POST /api/me/keys`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct CreateKeyRequest {
    /// What it is for, such as `laptop`: 1 to 40 characters.
    pub name: String,
}

/// Answer of `POST /api/me/keys`: the only time the key is shown.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct CreatedKey {
    /// The key, to send as a bearer token.
    pub api_key: String,
    /// What the list shows of it.
    pub key: ApiKey,
}

/// A key for the command line and other programs.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct ApiKey {
    /// Id to revoke it with.
    pub key_id: String,
    /// What it is for.
    pub name: String,
    /// Its last characters.
    pub hint: String,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339, to the minute; `null` when it never was.
    pub last_used_at: Option<String>,
}

/// `GET /api/me/keys`: all of them, 20 at most.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct ApiKeyList {
    /// Newest first.
    pub keys: Vec<ApiKey>,
    /// How many there are.
    pub total: u32,
}
