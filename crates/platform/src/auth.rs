//! Guests and sessions (PLAT-1, PLAT-3): a name, a bearer token that is kept
//! only as a hash, four hours.

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use sqlx::{AnyPool, Row};

use crate::Platform;
use crate::api::{LoginRequest, LoginResponse};
use crate::error::ApiError;
use crate::extract::OptionalJson;
use crate::{ids, names};

/// Longest bearer token that is worth hashing.
const TOKEN_BYTES_MAX: usize = 512;
/// Plain numbers that are tried before a random one.
const NUMBERED_NAMES_MAX: u32 = 8;

/// A person with a valid token.
#[derive(Clone, Debug)]
pub struct Session {
    /// `client_id` to everyone else.
    pub user_id: String,
    /// Name to show.
    pub username: String,
    /// What they may do.
    pub role: Role,
    /// As given by the client; echoed by `/join`, never stored.
    pub token: String,
}

impl Session {
    /// Lets only `least` and those above it pass.
    ///
    /// # Errors
    /// 403 that names the role.
    pub fn require(&self, least: Role) -> Result<(), ApiError> {
        if self.role >= least {
            Ok(())
        } else {
            Err(ApiError::forbidden(format!(
                "this needs the role '{}'",
                least.name()
            )))
        }
    }
}

/// What a person may do; each role may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Plays.
    Player,
    /// Has published a game, or has an account to do so.
    Creator,
    /// Judges reports, chooses what is featured.
    Moderator,
    /// Everything, as the holder of ADMIN_TOKEN.
    Admin,
}

impl Role {
    /// As the database and the interface write it.
    pub fn name(self) -> &'static str {
        match self {
            Role::Player => "player",
            Role::Creator => "creator",
            Role::Moderator => "moderator",
            Role::Admin => "admin",
        }
    }

    /// From [`Role::name`]; anything else is a player, who may do least.
    pub fn from_name(name: &str) -> Self {
        match name {
            "creator" => Role::Creator,
            "moderator" => Role::Moderator,
            "admin" => Role::Admin,
            _ => Role::Player,
        }
    }
}

/// `POST /login`.
pub async fn login(
    State(platform): State<Platform>,
    OptionalJson(request): OptionalJson<LoginRequest>,
) -> Result<(StatusCode, Json<LoginResponse>), ApiError> {
    let wanted = request.username.as_deref().and_then(names::clean);
    let wanted = wanted.unwrap_or_else(|| names::made_up(ids::random_bytes()));
    let user = create_guest(&platform, &wanted).await?;
    platform.metrics().logins.add(1);
    Ok((StatusCode::OK, Json(user)))
}

async fn create_guest(platform: &Platform, wanted: &str) -> Result<LoginResponse, ApiError> {
    let now = platform.clock().now_ms();
    let lifetime_ms =
        i64::try_from(platform.settings().session_lifetime.as_millis()).unwrap_or(i64::MAX / 2);
    let user_id = ids::new_id("user");
    let token = ids::new_token();
    let mut transaction = platform.db().begin().await?;
    let mut username = wanted.to_owned();
    let mut attempt = 1;
    loop {
        // The unique key decides, not a look beforehand: two logins at the
        // same moment cannot both get the name.
        let inserted = sqlx::query(
            "INSERT INTO users (user_id, username, username_key, kind, role, created_at, last_seen_at)
             VALUES ($1, $2, $3, 'guest', 'player', $4, $4) ON CONFLICT (username_key) DO NOTHING",
        )
        .bind(&user_id)
        .bind(&username)
        .bind(names::key(&username))
        .bind(now)
        .execute(&mut *transaction)
        .await?;
        if inserted.rows_affected() == 1 {
            break;
        }
        attempt += 1;
        username = names::numbered(wanted, name_number(attempt));
    }
    sqlx::query(
        "INSERT INTO sessions (token_sha256, user_id, created_at, expires_at) VALUES ($1, $2, $3, $4)",
    )
    .bind(ids::sha256_hex(token.as_bytes()))
    .bind(&user_id)
    .bind(now)
    .bind(now.saturating_add(lifetime_ms))
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(LoginResponse {
        session_token: token,
        client_id: user_id,
        username,
    })
}

/// Small numbers read best; past them random ones, so that the hundredth "Bot"
/// does not need a hundred tries.
fn name_number(attempt: u32) -> u32 {
    if attempt <= NUMBERED_NAMES_MAX {
        attempt
    } else {
        u32::from_le_bytes(ids::random_bytes()) % 900_000 + 100_000
    }
}

impl FromRequestParts<Platform> for Session {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        platform: &Platform,
    ) -> Result<Self, Self::Rejection> {
        let token = bearer(&parts.headers)?;
        find_session(platform.db(), token, platform.clock().now_ms()).await
    }
}

async fn find_session(db: &AnyPool, token: &str, now_ms: i64) -> Result<Session, ApiError> {
    let row = sqlx::query(
        "SELECT u.user_id, u.username, u.role, s.expires_at FROM sessions s
         JOIN users u ON u.user_id = s.user_id WHERE s.token_sha256 = $1",
    )
    .bind(ids::sha256_hex(token.as_bytes()))
    .fetch_optional(db)
    .await?
    .ok_or_else(|| {
        ApiError::unauthorized("invalid_token", "this session is not known; log in again")
    })?;
    if row.try_get::<i64, _>("expires_at")? <= now_ms {
        return Err(ApiError::unauthorized(
            "session_expired",
            "this session has expired; log in again",
        ));
    }
    Ok(Session {
        user_id: row.try_get("user_id")?,
        username: row.try_get("username")?,
        role: Role::from_name(row.try_get("role")?),
        token: token.to_owned(),
    })
}

/// The token of an `Authorization: Bearer …` header.
///
/// # Errors
/// 401 that says what is missing.
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
