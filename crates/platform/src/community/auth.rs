//! Authentication: a bearer token is a session token, an API key or a JWT of a trusted issuer. Also
//! roles, and the caller of a request.

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::community::Community;
use crate::community::accounts::{identity, keys, sessions};
use crate::core::error::ApiError;
use crate::core::{Provides, ids};

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
    pub method: AuthMethod,
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
        self.role.require(least)
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
        match self.method {
            AuthMethod::ApiKey => Err(ApiError::forbidden(
                "an API key cannot change the account it belongs to; log in instead",
            )),
            AuthMethod::Session | AuthMethod::Identity => Ok(()),
        }
    }

    /// Reads a row with `user_id`, `username`, `kind` and `role`.
    pub(crate) fn from_row(
        row: &AnyRow,
        method: AuthMethod,
        expires_at: Option<i64>,
        token: &str,
    ) -> Result<Self, sqlx::Error> {
        Ok(Self {
            user_id: row.try_get("user_id")?,
            username: row.try_get("username")?,
            kind: Kind::from_name(row.try_get("kind")?),
            role: Role::from_name(row.try_get("role")?),
            method,
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
    /// Requires the role `least` or a higher one.
    ///
    /// # Errors
    /// 403 that names the required role.
    pub fn require(self, least: Role) -> Result<(), ApiError> {
        if self >= least {
            return Ok(());
        }
        Err(ApiError::forbidden(format!(
            "this requires the role '{}'",
            least.name()
        )))
    }

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

impl<S: Provides<Community>> FromRequestParts<S> for Session {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let community = state.provide();
        authenticate(community, bearer(&parts.headers)?).await
    }
}

impl<S: Provides<Community>> OptionalFromRequestParts<S> for Session {
    type Rejection = ApiError;

    /// `None` on a request without a token. A token that is sent must be valid.
    async fn from_request_parts(
        parts: &mut Parts,
        state: &S,
    ) -> Result<Option<Self>, Self::Rejection> {
        match bearer(&parts.headers) {
            Ok(token) => authenticate(state.provide(), token).await.map(Some),
            Err(_) if !parts.headers.contains_key(AUTHORIZATION) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The caller of a request: a user, the holder of ADMIN_TOKEN, or an anonymous client.
#[derive(Clone, Debug)]
pub struct Principal {
    /// User id. Empty for the holder of ADMIN_TOKEN and for anonymous requests; an anonymous
    /// Socket.IO client has an id for the lifetime of its connection.
    pub user_id: String,
    /// Display name; empty for an anonymous client.
    pub username: String,
    /// Role, which may grant further rights.
    pub role: Role,
    /// Whether the caller sent a token.
    is_known: bool,
}

impl From<&Session> for Principal {
    fn from(session: &Session) -> Self {
        Self {
            user_id: session.user_id.clone(),
            username: session.username.clone(),
            role: session.role,
            is_known: true,
        }
    }
}

impl Principal {
    /// A client without a session.
    pub fn anonymous(user_id: String) -> Self {
        Self {
            user_id,
            username: String::new(),
            role: Role::Player,
            is_known: false,
        }
    }

    /// The holder of ADMIN_TOKEN.
    fn operator() -> Self {
        Self {
            user_id: String::new(),
            username: "operator".to_owned(),
            role: Role::Admin,
            is_known: true,
        }
    }

    /// Whether the caller sent no token.
    pub fn is_anonymous(&self) -> bool {
        !self.is_known
    }

    /// Whether the caller has all rights.
    pub fn is_admin(&self) -> bool {
        self.role >= Role::Admin
    }

    /// Whether the caller may change what `created_by` created.
    pub fn owns(&self, created_by: &str) -> bool {
        self.user_id == created_by || self.is_admin()
    }

    /// Requires an authenticated caller.
    ///
    /// # Errors
    /// 401 for an anonymous client.
    pub fn require_login(&self) -> Result<(), ApiError> {
        if self.is_known {
            return Ok(());
        }
        Err(missing_token())
    }
}

impl<S: Provides<Community>> FromRequestParts<S> for Principal {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        if !parts.headers.contains_key(AUTHORIZATION) {
            return Ok(Self::anonymous(String::new()));
        }
        let (token, community) = (bearer(&parts.headers)?, state.provide());
        if is_admin_token(community, token) {
            return Ok(Self::operator());
        }
        let session = authenticate(community, token).await?;
        Ok(Self::from(&session))
    }
}

/// A caller who sent ADMIN_TOKEN or has the role admin.
pub struct Admin(pub Principal);

impl Admin {
    /// Name of the caller, for logs.
    pub fn name(&self) -> &str {
        match self.0.user_id.as_str() {
            "" => "ADMIN_TOKEN",
            user_id => user_id,
        }
    }
}

impl<S: Provides<Community>> FromRequestParts<S> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let community = state.provide();
        let has_admin_token = community.core.settings.admin_token.is_some();
        let token = bearer(&parts.headers).map_err(|error| {
            if has_admin_token {
                return error;
            }
            ApiError::forbidden(
                "log in as an admin; if there is none yet, start the platform with ADMIN_TOKEN set",
            )
        })?;
        if is_admin_token(community, token) {
            return Ok(Self(Principal::operator()));
        }
        let session = authenticate(community, token).await.map_err(|error| {
            if !error.is("invalid_token") {
                return error;
            }
            ApiError::unauthorized(
                "invalid_token",
                "this is neither ADMIN_TOKEN nor the session token of an admin",
            )
        })?;
        session.require(Role::Admin)?;
        Ok(Self(Principal::from(&session)))
    }
}

fn is_admin_token(community: &Community, token: &str) -> bool {
    let expected = community.core.settings.admin_token.as_deref();
    expected.is_some_and(|expected| ids::matches_secret(token, &ids::secret_digest(expected)))
}

/// Session of the holder of a token. Also used where the token is not part of an HTTP request.
///
/// # Errors
/// 401 when the token is unknown or has expired.
pub async fn authenticate(community: &Community, token: &str) -> Result<Session, ApiError> {
    if keys::is_api_key(token) {
        return keys::find(community, token).await;
    }
    if community.identity.as_ref().is_some() && identity::is_jwt(token) {
        return identity::session(community, token).await;
    }
    find_session(community, token).await
}

async fn find_session(community: &Community, token: &str) -> Result<Session, ApiError> {
    let (db, token_sha256) = (&community.core.db, ids::sha256_hex(token.as_bytes()));
    let row = sqlx::query(
        "SELECT u.user_id, u.username, u.kind, u.role, s.expires_at, s.idle_ms FROM sessions s
         JOIN users u ON u.user_id = s.user_id WHERE s.token_sha256 = $1",
    )
    .bind(&token_sha256)
    .fetch_optional(&community.core.db)
    .await?
    .ok_or_else(|| {
        ApiError::unauthorized(
            "invalid_token",
            "This session or API key is unknown. Sign in again, or create a new key in your account.",
        )
    })?;
    let (expires_at, idle_ms) = (row.try_get("expires_at")?, row.try_get("idle_ms")?);
    let (user_id, now): (String, i64) = (row.try_get("user_id")?, community.core.clock.now_ms());
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
    let header = headers.get(AUTHORIZATION).ok_or_else(missing_token)?;
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

fn missing_token() -> ApiError {
    ApiError::unauthorized(
        "missing_token",
        "log in first and send the header 'Authorization: Bearer <session_token>'",
    )
}
