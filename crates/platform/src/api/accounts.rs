//! Request and response types of the account API.

use serde::{Deserialize, Serialize};

/// `POST /login`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LoginRequest {
    /// The requested name; generated when absent.
    #[serde(default)]
    pub username: Option<String>,
}

/// `POST /api/login/link`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LinkLoginRequest {
    /// The secret of the link.
    pub key: String,
}

/// A new session: the response of `POST /login`, `/api/login`, `/api/register` and
/// `/api/login/identity`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LoginResponse {
    /// Bearer token for all other requests. A guest's token expires after four hours;
    /// an account's is extended by use.
    pub session_token: String,
    /// Your user id in worlds and for other players.
    pub client_id: String,
    /// The displayed name, made unique.
    pub username: String,
    /// `guest` or `account`.
    pub kind: String,
    /// `player`, `creator`, `moderator` or `admin`.
    #[schema(value_type = super::RoleName)]
    pub role: String,
    /// When the session ends, RFC 3339.
    pub expires_at: String,
}

/// `POST /api/register`. With a guest's token, the guest becomes the account and
/// keeps their data.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RegisterRequest {
    /// 3 to 20 letters and digits of any script, single spaces, `_`, `-`, `.`.
    pub username: String,
    /// At least 8 characters.
    pub password: String,
    /// Stay signed in for 30 days after the last use instead of four hours.
    #[serde(default)]
    pub remember: Option<bool>,
}

/// `POST /api/login`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PasswordLoginRequest {
    /// Name of the account; case-insensitive.
    pub username: String,
    /// Its password.
    pub password: String,
    /// Stay signed in for 30 days after the last use instead of four hours.
    #[serde(default)]
    pub remember: Option<bool>,
}

/// `POST /api/login/identity`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct IdentityLoginRequest {
    /// A JWT of the issuer that this platform trusts.
    pub token: String,
}

/// `GET /api/me`: the authenticated user.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Account {
    /// Your user id in worlds and for other players.
    pub client_id: String,
    /// The displayed name.
    pub username: String,
    /// `guest` or `account`.
    pub kind: String,
    /// `player`, `creator`, `moderator` or `admin`; the effective role of this token.
    #[schema(value_type = super::RoleName)]
    pub role: String,
    /// Whether the account has a password.
    pub has_password: bool,
    /// Issuer of the account's external identity, if it has one.
    #[schema(required)]
    pub identity_issuer: Option<String>,
    /// How this call was authenticated: `session`, `api_key` or `identity`.
    pub means: String,
    /// When the account was created, RFC 3339.
    pub created_at: String,
    /// When this session ends, RFC 3339; `null` for an API key.
    #[schema(required)]
    pub expires_at: Option<String>,
}

/// `PATCH /api/me`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RenameRequest {
    /// The new name, under the rules of `POST /api/register`.
    pub username: String,
}

/// `PUT /api/me/password`: ends all other sessions.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ChangePasswordRequest {
    /// The current password; omit if the account has none.
    #[serde(default)]
    pub current_password: Option<String>,
    /// At least 8 characters.
    pub new_password: String,
}

/// `POST /api/me/delete`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DeleteAccountRequest {
    /// Your own name, as confirmation.
    pub username: String,
    /// The password, if the account has one.
    #[serde(default)]
    pub password: Option<String>,
}

/// One of your sessions.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OwnSession {
    /// Id to end the session with; not the token.
    pub session_id: String,
    /// Device at login, such as `Firefox on Linux`; may be empty.
    pub device: String,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub expires_at: String,
    /// Whether it is the session of this request.
    pub current: bool,
}

/// `GET /api/me/sessions`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OwnSessionList {
    /// This page, newest first.
    pub sessions: Vec<OwnSession>,
    /// Number of sessions on all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Page size.
    pub per_page: u32,
}

/// `POST /api/me/keys`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CreateKeyRequest {
    /// Purpose, such as `laptop`: 1 to 40 characters.
    pub name: String,
}

/// Response of `POST /api/me/keys`: the only time the key is shown.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CreatedKey {
    /// The key, to send as a bearer token.
    pub api_key: String,
    /// Its entry in the list.
    pub key: ApiKey,
}

/// A key for the command line and other programs.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ApiKey {
    /// Id to revoke it with.
    pub key_id: String,
    /// Purpose.
    pub name: String,
    /// Its last characters.
    pub hint: String,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339, to the minute; `null` when it was never used.
    #[schema(required)]
    pub last_used_at: Option<String>,
}

/// `GET /api/me/keys`: all keys, at most 20.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ApiKeyList {
    /// Newest first.
    pub keys: Vec<ApiKey>,
    /// Number of keys.
    pub total: u32,
}
