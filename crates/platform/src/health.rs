//! Is it alive, is it ready, how is it doing (PLAT-7).

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use sqlx::Row;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Platform;
use crate::admin::Admin;
use crate::api::{ErrorBody, Health};
use crate::db::to_u32;
use crate::error::ApiError;

/// What this file answers. `/healthz` and `/api/health` are other names of
/// `/health`.
pub fn routes() -> OpenApiRouter<Platform> {
    OpenApiRouter::new()
        .routes(routes!(health))
        .route("/healthz", get(health))
        .route("/api/health", get(health))
        .routes(routes!(ready))
        .routes(routes!(metrics))
}

/// Whether it is alive.
///
/// Answers as long as the process does; `/healthz` and `/api/health` are the same.
#[utoipa::path(get, path = "/health", tag = "operation", responses(
    (status = 200, description = "it is", body = Health),
))]
pub async fn health(State(platform): State<Platform>) -> Json<Health> {
    Json(report(&platform))
}

/// Whether new players should be sent here.
#[utoipa::path(get, path = "/readyz", tag = "operation", responses(
    (status = 200, description = "they should", body = Health),
    (status = 503, description = "the database does not answer, or the platform is going down", body = ErrorBody),
))]
pub async fn ready(State(platform): State<Platform>) -> Result<Json<Health>, ApiError> {
    if platform.fleet().is_stopping() {
        return Err(ApiError::unavailable(
            "shutting_down",
            "the platform is shutting down",
            5,
        ));
    }
    sqlx::query("SELECT 1 AS one")
        .fetch_one(platform.db())
        .await
        .map_err(|error| {
            tracing::error!(%error, "the database does not answer");
            ApiError::database_unavailable()
        })?;
    Ok(Json(report(&platform)))
}

/// Figures for Prometheus.
///
/// With the admin's token also those of single scripts.
#[utoipa::path(get, path = "/metrics", tag = "operation", security((), ("bearer" = [])), responses(
    (status = 200, description = "the figures", body = String, content_type = "text/plain"),
))]
pub async fn metrics(
    State(platform): State<Platform>,
    admin: Result<Admin, ApiError>,
) -> Result<impl IntoResponse, ApiError> {
    let sessions: i64 = sqlx::query("SELECT COUNT(*) AS total FROM sessions WHERE expires_at > $1")
        .bind(platform.clock().now_ms())
        .fetch_one(platform.db())
        .await?
        .try_get("total")?;
    let mut text = platform
        .metrics()
        .render(&platform.fleet().totals(), to_u32(sessions));
    if admin.is_ok() {
        // Names of server scripts are not for everybody (SCR-2).
        text.push_str(&platform.consoles().prometheus());
    }
    let content_type = "text/plain; version=0.0.4; charset=utf-8";
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, content_type)], text))
}

fn report(platform: &Platform) -> Health {
    let fleet = platform.fleet();
    let totals = fleet.totals();
    Health {
        status: if fleet.is_stopping() {
            "stopping"
        } else {
            "ok"
        }
        .to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        servers: totals.by_phase.iter().sum(),
        players: totals.players,
    }
}
