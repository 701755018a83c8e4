//! `/admin/*`: what an operator sees and does, with ADMIN_TOKEN.

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::Deserialize;
use sqlx::Row;

use crate::Platform;
use crate::api::{CleanupReport, ServerList, SessionInfo, SessionList};
use crate::auth::bearer;
use crate::cleanup;
use crate::clock::rfc3339;
use crate::db::to_u32;
use crate::error::ApiError;
use crate::extract::{ApiPath, ApiQuery};
use crate::ids;

/// Sessions that are shown at once.
const SESSIONS_SHOWN: i64 = 500;

/// Proof that the caller holds ADMIN_TOKEN.
pub struct Admin;

impl FromRequestParts<Platform> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        platform: &Platform,
    ) -> Result<Self, Self::Rejection> {
        let Some(expected) = &platform.settings().admin_token else {
            return Err(ApiError::forbidden(
                "administration is off; start the platform with ADMIN_TOKEN set",
            ));
        };
        let given = bearer(&parts.headers)?;
        if ids::matches_secret(given, &ids::secret_digest(expected)) {
            Ok(Admin)
        } else {
            Err(ApiError::forbidden("this token is not the admin token"))
        }
    }
}

/// `GET /admin/servers`.
pub async fn servers(State(platform): State<Platform>, _: Admin) -> Json<ServerList> {
    let servers = platform
        .fleet()
        .all()
        .iter()
        .map(|server| server.info())
        .collect();
    Json(ServerList { servers })
}

/// Query of `DELETE /admin/servers/{id}`.
#[derive(Debug, Deserialize)]
pub struct StopQuery {
    /// Let players finish instead of telling them to go.
    #[serde(default)]
    drain: bool,
}

/// `DELETE /admin/servers/{id}?drain=true`: 202, it takes a moment.
///
/// # Errors
/// 404 when no such server runs.
pub async fn stop_server(
    State(platform): State<Platform>,
    _: Admin,
    ApiPath(id): ApiPath<String>,
    ApiQuery(query): ApiQuery<StopQuery>,
) -> Result<StatusCode, ApiError> {
    let found = if query.drain {
        platform.fleet().drain(&id)
    } else {
        platform.fleet().stop(&id)
    };
    if found {
        Ok(StatusCode::ACCEPTED)
    } else {
        Err(ApiError::not_found(
            "server_not_found",
            "no such game server runs",
        ))
    }
}

/// `GET /admin/sessions`.
///
/// # Errors
/// When the database refuses.
pub async fn sessions(
    State(platform): State<Platform>,
    _: Admin,
) -> Result<Json<SessionList>, ApiError> {
    let now = platform.clock().now_ms();
    let total: i64 = sqlx::query("SELECT COUNT(*) AS total FROM sessions WHERE expires_at > $1")
        .bind(now)
        .fetch_one(platform.db())
        .await?
        .try_get("total")?;
    let rows = sqlx::query(
        "SELECT u.user_id, u.username, s.created_at, s.expires_at FROM sessions s
         JOIN users u ON u.user_id = s.user_id WHERE s.expires_at > $1
         ORDER BY s.created_at DESC, u.user_id LIMIT $2",
    )
    .bind(now)
    .bind(SESSIONS_SHOWN)
    .fetch_all(platform.db())
    .await?;
    let sessions = rows
        .iter()
        .map(|row| {
            Ok(SessionInfo {
                client_id: row.try_get("user_id")?,
                username: row.try_get("username")?,
                created_at: rfc3339(row.try_get("created_at")?),
                expires_at: rfc3339(row.try_get("expires_at")?),
            })
        })
        .collect::<Result<_, sqlx::Error>>()?;
    Ok(Json(SessionList {
        sessions,
        total: to_u32(total),
    }))
}

/// `POST /admin/cleanup`.
///
/// # Errors
/// When the database refuses.
pub async fn clean_up(
    State(platform): State<Platform>,
    _: Admin,
) -> Result<Json<CleanupReport>, ApiError> {
    Ok(Json(cleanup::sweep(&platform).await?))
}
