//! Authentication: a bearer token is a session token, an API key or a JWT of a trusted issuer. Also
//! guest logins and roles.

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::Platform;
use crate::api::{ErrorBody, LoginRequest, LoginResponse};
use crate::community::accounts::sessions::{self, SessionLifetime};
use crate::community::accounts::{identity, keys};
use crate::core::error::ApiError;
use crate::core::extract::OptionalJson;
use crate::core::{ids, names};

/// Longest bearer token that is parsed; JWTs carry claims.
const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// An authenticated user.
#[derive(Clone, Debug)]
pub struct Session {
    /// Id of the user; `client_id` in the protocol.
    pub user_id: String,
    /// Display name.
    pub username: String,
    /// Guest or account.
    pub kind: Kind,
    /// Role that decides the user's permissions.
    pub role: Role,
    /// How the user authenticated.
    pub means: AuthMethod,
    /// Unix milliseconds at which the token expires; `None` for an API key.
    pub expires_at: Option<i64>,
    /// Token that the client sent. `/join` echoes it; it is never stored.
    pub token: String,
}

/// Kind of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A user without an account, whose name is valid for a few hours.
    Guest,
    /// A user who can log in again.
    Account,
}

impl Kind {
    /// Name in the REST API.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Guest => "guest",
            Kind::Account => "account",
        }
    }

    /// Parses the column `kind`; every user that is not a guest has an account.
    pub fn from_name(name: &str) -> Self {
        match name {
            "guest" => Kind::Guest,
            _ => Kind::Account,
        }
    }
}

/// Kinds of bearer tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMethod {
    /// A session opened by a login.
    Session,
    /// A key for programs, which may not change the account itself.
    ApiKey,
    /// A JWT of a trusted issuer.
    Identity,
}

impl AuthMethod {
    /// Name in the REST API.
    pub fn name(self) -> &'static str {
        match self {
            AuthMethod::Session => "session",
            AuthMethod::ApiKey => "api_key",
            AuthMethod::Identity => "identity",
        }
    }
}

impl Session {
    /// Requires the role `least` or a higher one.
    ///
    /// # Errors
    /// 403 that names the required role.
    pub fn require(&self, least: Role) -> Result<(), ApiError> {
        if self.role >= least {
            Ok(())
        } else {
            Err(ApiError::forbidden(format!(
                "this requires the role '{}'",
                least.name()
            )))
        }
    }

    /// Requires an account; guests are rejected.
    ///
    /// # Errors
    /// 403 that says how to get an account.
    pub fn require_account(&self) -> Result<(), ApiError> {
        match self.kind {
            Kind::Account => Ok(()),
            Kind::Guest => Err(ApiError::forbidden(
                "this requires an account; register with this session to keep your games and worlds",
            )),
        }
    }

    /// Rejects API keys: a leaked key must not give control of the account.
    ///
    /// # Errors
    /// 403 that says what to do instead.
    pub fn require_person(&self) -> Result<(), ApiError> {
        match self.means {
            AuthMethod::ApiKey => Err(ApiError::forbidden(
                "an API key cannot change the account it belongs to; log in instead",
            )),
            AuthMethod::Session | AuthMethod::Identity => Ok(()),
        }
    }

    /// Reads a row with `user_id`, `username`, `kind` and `role`.
    pub(crate) fn from_row(
        row: &AnyRow,
        means: AuthMethod,
        expires_at: Option<i64>,
        token: &str,
    ) -> Result<Self, sqlx::Error> {
        Ok(Self {
            user_id: row.try_get("user_id")?,
            username: row.try_get("username")?,
            kind: Kind::from_name(row.try_get("kind")?),
            role: Role::from_name(row.try_get("role")?),
            means,
            expires_at,
            token: token.to_owned(),
        })
    }
}

/// Permissions of a user. Each role includes those of the roles before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Plays games.
    Player,
    /// Has published a game, or has an account to do so.
    Creator,
    /// Judges reports and chooses featured games.
    Moderator,
    /// Has all permissions, like the holder of ADMIN_TOKEN.
    Admin,
}

impl Role {
    /// Name in the database and the REST API.
    pub fn name(self) -> &'static str {
        match self {
            Role::Player => "player",
            Role::Creator => "creator",
            Role::Moderator => "moderator",
            Role::Admin => "admin",
        }
    }

    /// Inverse of [`Role::name`]; an unknown name gets the lowest role.
    pub fn from_name(name: &str) -> Self {
        match name {
            "creator" => Role::Creator,
            "moderator" => Role::Moderator,
            "admin" => Role::Admin,
            _ => Role::Player,
        }
    }
}

/// Logs a guest in, without a password.
#[utoipa::path(
    post, path = "/login", tag = "accounts",
    request_body = Option<LoginRequest>,
    responses(
        (status = 200, body = LoginResponse),
        (status = 400, body = ErrorBody),
        (status = 429, body = ErrorBody, description = "Too many logins from this address"),
    )
)]
pub async fn login(
    State(platform): State<Platform>,
    headers: HeaderMap,
    OptionalJson(request): OptionalJson<LoginRequest>,
) -> Result<Json<LoginResponse>, ApiError> {
    let wanted = request.username.as_deref().and_then(names::clean);
    let wanted = wanted.filter(|name| !names::is_reserved(name));
    let wanted = wanted.filter(|name| names::check_inoffensive(&platform, name).is_ok());
    let wanted = wanted.unwrap_or_else(|| names::generate(ids::random_bytes()));
    let mut transaction = crate::core::db::begin(platform.db()).await?;
    let now = platform.clock().now_ms();
    let user = sessions::create_user(&mut transaction, &wanted, Kind::Guest, now).await?;
    let device = sessions::device(&headers);
    let response = sessions::open(
        &platform,
        &mut transaction,
        &user,
        &device,
        SessionLifetime::Short,
    )
    .await?;
    transaction.commit().await?;
    platform.metrics().logins.add(1);
    Ok(Json(response))
}

impl FromRequestParts<Platform> for Session {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        platform: &Platform,
    ) -> Result<Self, Self::Rejection> {
        authenticate(platform, bearer(&parts.headers)?).await
    }
}

/// The caller's session on routes that also work without one. A token that is sent must be valid.
pub struct MaybeSession(pub Option<Session>);

impl FromRequestParts<Platform> for MaybeSession {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        platform: &Platform,
    ) -> Result<Self, Self::Rejection> {
        if !parts.headers.contains_key(AUTHORIZATION) {
            return Ok(Self(None));
        }
        Session::from_request_parts(parts, platform)
            .await
            .map(|session| Self(Some(session)))
    }
}

/// Session of the holder of a token. Also used where the token is not part of an HTTP request.
///
/// # Errors
/// 401 when the token is unknown or has expired.
pub async fn authenticate(platform: &Platform, token: &str) -> Result<Session, ApiError> {
    if keys::is_api_key(token) {
        return keys::find(platform, token).await;
    }
    if platform.identity().is_some() && identity::is_jwt(token) {
        return identity::session(platform, token).await;
    }
    find_session(platform, token).await
}

async fn find_session(platform: &Platform, token: &str) -> Result<Session, ApiError> {
    let (db, token_sha256) = (platform.db(), ids::sha256_hex(token.as_bytes()));
    let row = sqlx::query(
        "SELECT u.user_id, u.username, u.kind, u.role, s.expires_at, s.idle_ms FROM sessions s
         JOIN users u ON u.user_id = s.user_id WHERE s.token_sha256 = $1",
    )
    .bind(&token_sha256)
    .fetch_optional(platform.db())
    .await?
    .ok_or_else(|| {
        ApiError::unauthorized(
            "invalid_token",
            "This session or API key is unknown. Sign in again, or create a new key in your account.",
        )
    })?;
    let (expires_at, idle_ms) = (row.try_get("expires_at")?, row.try_get("idle_ms")?);
    let (user_id, now): (String, i64) = (row.try_get("user_id")?, platform.clock().now_ms());
    let extended = sessions::extend(db, &user_id, expires_at, idle_ms, now).await?;
    let (expires_at, renewed) = extended.ok_or_else(|| {
        ApiError::unauthorized("session_expired", "this session has expired; log in again")
    })?;
    if renewed {
        let moved = sqlx::query("UPDATE sessions SET expires_at = $1 WHERE token_sha256 = $2")
            .bind(expires_at)
            .bind(&token_sha256)
            .execute(db)
            .await;
        // The session is valid for this request; the next request tries to extend it again.
        if let Err(error) = moved {
            tracing::warn!(%error, "could not extend a session");
        }
    }
    Ok(Session::from_row(
        &row,
        AuthMethod::Session,
        Some(expires_at),
        token,
    )?)
}

/// The token of an `Authorization: Bearer …` header.
///
/// # Errors
/// 401 that names what is missing.
pub fn bearer(headers: &HeaderMap) -> Result<&str, ApiError> {
    let header = headers.get(AUTHORIZATION).ok_or_else(|| {
        ApiError::unauthorized(
            "missing_token",
            "log in first and send the header 'Authorization: Bearer <session_token>'",
        )
    })?;
    let malformed = || {
        ApiError::unauthorized(
            "invalid_token",
            "the Authorization header must read 'Bearer <session_token>'",
        )
    };
    let text = header.to_str().map_err(|_| malformed())?;
    let (scheme, token) = text.split_once(' ').ok_or_else(malformed)?;
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() || token.len() > TOKEN_BYTES_MAX {
        return Err(malformed());
    }
    Ok(token)
}
