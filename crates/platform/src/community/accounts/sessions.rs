//! Creates users, and creates, lists and ends their sessions.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::USER_AGENT;
use axum::http::{HeaderMap, StatusCode};
use sqlx::{AnyConnection, AnyPool, Row};

use crate::api::{LoginResponse, OwnSession, OwnSessionList};
use crate::community::Community;
use crate::community::auth::{Kind, Role, Session};
use crate::core::clock::rfc3339;
use crate::core::db::{from_row, to_u32};
use crate::core::error::ApiError;
use crate::core::extract::{ApiPath, ApiQuery};
use crate::core::paging::PageQuery;
use crate::core::{ids, names};

/// Small numbers that are tried before a random one.
const NUMBERED_NAMES_MAX: u32 = 8;
/// Limits how often the expiry of a session in use is written.
const RENEWALS_PER_LIFETIME: i64 = 16;
/// Sessions of one user; the oldest ends when another is opened.
const SESSIONS_MAX: i64 = 50;

from_row!(User { user_id, username, kind => Kind::from_name, role => Role::from_name });

/// A user for whom a session is opened.
pub struct User {
    /// Id of the user.
    pub user_id: String,
    /// Display name.
    pub username: String,
    /// Guest or account.
    pub kind: Kind,
    /// Role that decides the user's permissions.
    pub role: Role,
}

/// Requested lifetime of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionLifetime {
    /// For hours: `session_lifetime`.
    Short,
    /// For weeks, on a private device: `remembered_lifetime`.
    Remembered,
}

impl SessionLifetime {
    /// From the field `remember` of a login request.
    pub fn of(remember: Option<bool>) -> Self {
        match remember {
            Some(true) => SessionLifetime::Remembered,
            _ => SessionLifetime::Short,
        }
    }
}

/// Expiry of a session that is used now, and whether it must be stored; `None` if the session has
/// ended. A session with `idle_ms` stays valid for that time after its last use. Playing counts as
/// use, so that players are not signed out during a game.
///
/// # Errors
/// When the database refuses.
pub async fn extend(
    db: &AnyPool,
    user_id: &str,
    expires_at: i64,
    idle_ms: i64,
    now_ms: i64,
) -> Result<Option<(i64, bool)>, sqlx::Error> {
    let renewed = now_ms.saturating_add(idle_ms);
    if expires_at > now_ms {
        // The expiry is written only now and then, not with every request.
        let due = idle_ms > 0 && renewed - expires_at >= idle_ms / RENEWALS_PER_LIFETIME;
        return Ok(Some(if due {
            (renewed, true)
        } else {
            (expires_at, false)
        }));
    }
    if idle_ms == 0 {
        return Ok(None);
    }
    let played_at: Option<i64> = sqlx::query_scalar(
        "SELECT MAX(saved_at) AS played_at FROM player_checkpoints WHERE player_id = $1",
    )
    .bind(user_id)
    .fetch_one(db)
    .await?;
    let in_use = played_at.is_some_and(|at| at.saturating_add(idle_ms) > now_ms);
    Ok(in_use.then_some((renewed, true)))
}

/// Creates a user whose name is `wanted` or similar.
///
/// # Errors
/// When the database refuses.
pub async fn create_user(
    connection: &mut AnyConnection,
    wanted: &str,
    kind: Kind,
    now_ms: i64,
) -> Result<User, sqlx::Error> {
    let mut username = wanted.to_owned();
    let mut attempt = 1;
    loop {
        if let Some(user) = insert_user(connection, &username, kind, now_ms).await? {
            return Ok(user);
        }
        attempt += 1;
        username = names::with_number(wanted, name_number(attempt));
    }
}

/// Creates a user with exactly this name; `None` when the name is taken.
///
/// # Errors
/// When the database refuses.
pub async fn insert_user(
    connection: &mut AnyConnection,
    username: &str,
    kind: Kind,
    now_ms: i64,
) -> Result<Option<User>, sqlx::Error> {
    let role = first_role(kind);
    let user = User {
        user_id: ids::new_id("user"),
        username: username.to_owned(),
        kind,
        role,
    };
    // The unique key decides, not a query beforehand: two concurrent requests cannot both get the
    // name.
    let inserted = sqlx::query(
        "INSERT INTO users (user_id, username, username_key, kind, role, created_at, last_seen_at)
         VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT (username_key) DO NOTHING",
    )
    .bind(&user.user_id)
    .bind(username)
    .bind(names::key(username))
    .bind(kind.name())
    .bind(role.name())
    .bind(now_ms)
    .execute(connection)
    .await?;
    Ok((inserted.rows_affected() == 1).then_some(user))
}

/// Initial role: an account may publish games.
pub fn first_role(kind: Kind) -> Role {
    match kind {
        Kind::Guest => Role::Player,
        Kind::Account => Role::Creator,
    }
}

/// Small numbers are easiest to read; after them random ones are used, so that the hundredth "Bot"
/// does not need a hundred attempts.
fn name_number(attempt: u32) -> u32 {
    if attempt <= NUMBERED_NAMES_MAX {
        attempt
    } else {
        u32::from_le_bytes(ids::random_bytes()) % 900_000 + 100_000
    }
}

/// Opens a session. Only the response contains the token.
///
/// # Errors
/// When the database refuses.
pub async fn open(
    community: &Community,
    connection: &mut AnyConnection,
    user: &User,
    device: &str,
    stay: SessionLifetime,
) -> Result<LoginResponse, sqlx::Error> {
    let now = community.core.clock.now_ms();
    let settings = &community.core.settings;
    let lifetime = match stay {
        SessionLifetime::Short => settings.session_lifetime,
        SessionLifetime::Remembered => settings.remembered_lifetime,
    };
    let lifetime = i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX / 2);
    let expires_at = now.saturating_add(lifetime);
    // A guest's session has a fixed expiry; an account's is extended while it is used.
    let idle_ms = match user.kind {
        Kind::Guest => 0,
        Kind::Account => lifetime,
    };
    let token = ids::new_token();
    sqlx::query("UPDATE users SET last_seen_at = $1 WHERE user_id = $2")
        .bind(now)
        .bind(&user.user_id)
        .execute(&mut *connection)
        .await?;
    sqlx::query(
        "INSERT INTO sessions (token_sha256, user_id, created_at, expires_at, device, idle_ms)
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(ids::sha256_hex(token.as_bytes()))
    .bind(&user.user_id)
    .bind(now)
    .bind(expires_at)
    .bind(device)
    .bind(idle_ms)
    .execute(&mut *connection)
    .await?;
    if user.kind == Kind::Account {
        end_oldest(connection, &user.user_id).await?;
    }
    Ok(LoginResponse {
        session_token: token,
        client_id: user.user_id.clone(),
        username: user.username.clone(),
        kind: user.kind.name().to_owned(),
        role: user.role.name().to_owned(),
        expires_at: rfc3339(expires_at),
    })
}

async fn end_oldest(connection: &mut AnyConnection, user_id: &str) -> Result<(), sqlx::Error> {
    sqlx::query(
        "DELETE FROM sessions WHERE user_id = $1 AND token_sha256 NOT IN
           (SELECT token_sha256 FROM sessions WHERE user_id = $2
            ORDER BY created_at DESC, token_sha256 LIMIT $3)",
    )
    .bind(user_id)
    .bind(user_id)
    .bind(SESSIONS_MAX)
    .execute(connection)
    .await?;
    Ok(())
}

/// Ends all sessions of a user except the one with the token `kept`.
///
/// # Errors
/// When the database refuses.
pub async fn end_all(
    connection: &mut AnyConnection,
    user_id: &str,
    kept: Option<&str>,
) -> Result<u64, sqlx::Error> {
    let kept = kept.map(|token| ids::sha256_hex(token.as_bytes()));
    let ended = sqlx::query("DELETE FROM sessions WHERE user_id = $1 AND token_sha256 <> $2")
        .bind(user_id)
        .bind(kept.unwrap_or_default())
        .execute(connection)
        .await?;
    Ok(ended.rows_affected())
}

/// Your valid sessions.
#[utoipa::path(
    get, path = "/api/me/sessions", tag = "accounts", security(("bearer" = [])),
    params(PageQuery),
    responses((status = 200, body = OwnSessionList))
)]
pub async fn list(
    State(community): State<Arc<Community>>,
    session: Session,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Result<Json<OwnSessionList>, ApiError> {
    let page = query.page()?;
    let now = community.core.clock.now_ms();
    let total: i64 = sqlx::query_scalar(
        "SELECT COUNT(*) AS total FROM sessions WHERE user_id = $1 AND expires_at > $2",
    )
    .bind(&session.user_id)
    .bind(now)
    .fetch_one(&community.core.db)
    .await?;
    let rows = sqlx::query(
        "SELECT token_sha256, device, created_at, expires_at FROM sessions
         WHERE user_id = $1 AND expires_at > $2
         ORDER BY created_at DESC, token_sha256 LIMIT $3 OFFSET $4",
    )
    .bind(&session.user_id)
    .bind(now)
    .bind(page.limit())
    .bind(page.offset())
    .fetch_all(&community.core.db)
    .await?;
    let current = ids::sha256_hex(session.token.as_bytes());
    let sessions = rows
        .iter()
        .map(|row| {
            let session_id: String = row.try_get("token_sha256")?;
            Ok(OwnSession {
                current: session_id == current,
                session_id,
                device: row.try_get("device")?,
                created_at: rfc3339(row.try_get("created_at")?),
                expires_at: rfc3339(row.try_get("expires_at")?),
            })
        })
        .collect::<Result<_, sqlx::Error>>()?;
    Ok(Json(OwnSessionList {
        sessions,
        total: to_u32(total),
        page: page.page,
        per_page: page.per_page,
    }))
}

/// Ends one of your sessions.
#[utoipa::path(
    delete, path = "/api/me/sessions/{session_id}", tag = "accounts", security(("bearer" = [])),
    responses(
        (status = 204),
        (status = 403, description = "The caller used an API key"),
        (status = 404, description = "You have no such session"),
    )
)]
pub async fn end(
    State(community): State<Arc<Community>>,
    session: Session,
    ApiPath(session_id): ApiPath<String>,
) -> Result<StatusCode, ApiError> {
    session.require_person()?;
    let ended = sqlx::query("DELETE FROM sessions WHERE token_sha256 = $1 AND user_id = $2")
        .bind(&session_id)
        .bind(&session.user_id)
        .execute(&community.core.db)
        .await?;
    if ended.rows_affected() == 0 {
        return Err(unknown_session());
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Ends all your sessions except this one.
#[utoipa::path(
    delete, path = "/api/me/sessions", tag = "accounts", security(("bearer" = [])),
    responses(
        (status = 204),
        (status = 403, description = "The caller used an API key"),
    )
)]
pub async fn end_others(
    State(community): State<Arc<Community>>,
    session: Session,
) -> Result<StatusCode, ApiError> {
    session.require_person()?;
    let mut connection = community.core.db.acquire().await?;
    end_all(&mut connection, &session.user_id, Some(&session.token)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// 404 response for a session.
pub fn unknown_session() -> ApiError {
    ApiError::not_found(
        "session_not_found",
        "there is no such session; it may have ended",
    )
}

/// Short description of the client, for example "Firefox on Linux", by which a person recognises a
/// session. Empty when the client sends no user agent.
pub fn device(headers: &HeaderMap) -> String {
    let agent = headers
        .get(USER_AGENT)
        .and_then(|value| value.to_str().ok());
    let Some(agent) = agent else {
        return String::new();
    };
    let first_of = |names: &[(&str, &'static str)]| {
        let found = names.iter().find(|(mark, _)| agent.contains(mark));
        found.map(|(_, name)| *name)
    };
    // Browsers also name the browsers they imitate, so the most specific mark comes first.
    let browser = first_of(&[
        ("Firefox/", "Firefox"),
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ]);
    let system = first_of(&[
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Android", "Android"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("CrOS", "ChromeOS"),
        ("Linux", "Linux"),
    ]);
    match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        (None, _) => {
            let product = agent.split(['/', ' ']).next().unwrap_or_default();
            names::clean(product).unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_for_people() {
        for (agent, name) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
                "Firefox on Linux",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1",
                "Safari on iPhone",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0) Chrome/130.0 Safari/537.36 Edg/130.0",
                "Edge on Windows",
            ),
            ("curl/8.9.1", "curl"),
            ("<script>alert(1)</script>", "scriptalert1"),
            ("", ""),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(USER_AGENT, agent.parse().unwrap());
            assert_eq!(device(&headers), name, "{agent}");
        }
        assert_eq!(device(&HeaderMap::new()), "");
    }
}
