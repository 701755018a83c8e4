//! `/admin/*`: administration of the installation, with ADMIN_TOKEN or as a user with the role
//! admin.

pub mod users;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Platform;
use crate::api::{CleanupReport, ServerList, SessionInfo, SessionList};
use crate::cleanup;
use crate::community::accounts::sessions::unknown_session;
use crate::community::auth::Admin;
use crate::core::clock::rfc3339;
use crate::core::db::{from_row, to_u32};
use crate::core::error::ApiError;
use crate::core::extract::{ApiPath, ApiQuery};
use crate::core::paging::PageQuery;

/// All routes under `/admin`.
pub fn routes() -> OpenApiRouter<Platform> {
    OpenApiRouter::new()
        .routes(routes!(servers))
        .routes(routes!(stop_server))
        .routes(routes!(sessions))
        .routes(routes!(end_session))
        .routes(routes!(clean_up))
        .routes(routes!(users::list))
        .routes(routes!(users::give_role))
        .routes(routes!(users::reset_password))
}

/// Running game servers.
#[utoipa::path(
    get, path = "/admin/servers", tag = "admin", security(("bearer" = [])),
    params(PageQuery),
    responses(
        (status = 200, body = ServerList),
        (status = 403, description = "Not an admin"),
    )
)]
pub async fn servers(
    State(platform): State<Platform>,
    _: Admin,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Result<Json<ServerList>, ApiError> {
    let page = query.page()?;
    let mut all = platform.worlds.fleet.all();
    all.sort_by(|a, b| a.spec.world_id.cmp(&b.spec.world_id));
    let total = u32::try_from(all.len()).unwrap_or(u32::MAX);
    let servers = page.cut(all).iter().map(|server| server.info()).collect();
    Ok(Json(ServerList {
        servers,
        total,
        page: page.page,
        per_page: page.per_page,
    }))
}

/// Query of `DELETE /admin/servers/{id}`.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct StopQuery {
    /// Let players finish instead of disconnecting them.
    #[serde(default)]
    drain: bool,
}

/// Stops a game server. The response does not wait until it has stopped.
#[utoipa::path(
    delete, path = "/admin/servers/{id}", tag = "admin", security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the server or of its world"), StopQuery),
    responses(
        (status = 202, description = "The server is stopping"),
        (status = 403, description = "Not an admin"),
        (status = 404, description = "No such server"),
    )
)]
pub async fn stop_server(
    State(platform): State<Platform>,
    admin: Admin,
    ApiPath(id): ApiPath<String>,
    ApiQuery(query): ApiQuery<StopQuery>,
) -> Result<StatusCode, ApiError> {
    let found = if query.drain {
        platform.worlds.fleet.drain(&id)
    } else {
        platform.worlds.fleet.stop(&id)
    };
    if found {
        tracing::info!(
            by = admin.name(),
            server = id,
            drain = query.drain,
            "server stopped"
        );
        Ok(StatusCode::ACCEPTED)
    } else {
        Err(ApiError::not_found(
            "server_not_found",
            "no such game server runs",
        ))
    }
}

from_row!(SessionInfo {
    session_id: "token_sha256", client_id: "user_id", username, kind, device,
    created_at => rfc3339, expires_at => rfc3339
});

/// Valid sessions of all users, newest first.
#[utoipa::path(
    get, path = "/admin/sessions", tag = "admin", security(("bearer" = [])),
    params(PageQuery),
    responses(
        (status = 200, body = SessionList),
        (status = 403, description = "Not an admin"),
    )
)]
pub async fn sessions(
    State(platform): State<Platform>,
    _: Admin,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Result<Json<SessionList>, ApiError> {
    let page = query.page()?;
    let now = platform.core.clock.now_ms();
    let total: i64 =
        sqlx::query_scalar("SELECT COUNT(*) AS total FROM sessions WHERE expires_at > $1")
            .bind(now)
            .fetch_one(&platform.core.db)
            .await?;
    let sessions = sqlx::query_as(
        "SELECT s.token_sha256, u.user_id, u.username, u.kind, s.device, s.created_at, s.expires_at
         FROM sessions s JOIN users u ON u.user_id = s.user_id WHERE s.expires_at > $1
         ORDER BY s.created_at DESC, s.token_sha256 LIMIT $2 OFFSET $3",
    )
    .bind(now)
    .bind(page.limit())
    .bind(page.offset())
    .fetch_all(&platform.core.db)
    .await?;
    Ok(Json(SessionList {
        sessions,
        total: to_u32(total),
        page: page.page,
        per_page: page.per_page,
    }))
}

/// Ends a session.
#[utoipa::path(
    delete, path = "/admin/sessions/{session_id}", tag = "admin", security(("bearer" = [])),
    responses(
        (status = 204),
        (status = 403, description = "Not an admin"),
        (status = 404, description = "No such session"),
    )
)]
pub async fn end_session(
    State(platform): State<Platform>,
    admin: Admin,
    ApiPath(session_id): ApiPath<String>,
) -> Result<StatusCode, ApiError> {
    let ended = sqlx::query("DELETE FROM sessions WHERE token_sha256 = $1")
        .bind(&session_id)
        .execute(&platform.core.db)
        .await?;
    if ended.rows_affected() == 0 {
        return Err(unknown_session());
    }
    tracing::info!(by = admin.name(), "session ended");
    Ok(StatusCode::NO_CONTENT)
}

/// Runs the cleanup now: expired sessions, old guests and stopped worlds.
#[utoipa::path(
    post, path = "/admin/cleanup", tag = "admin", security(("bearer" = [])),
    responses(
        (status = 200, body = CleanupReport),
        (status = 403, description = "Not an admin"),
    )
)]
pub async fn clean_up(
    State(platform): State<Platform>,
    _: Admin,
) -> Result<Json<CleanupReport>, ApiError> {
    Ok(Json(cleanup::run(&platform).await?))
}
