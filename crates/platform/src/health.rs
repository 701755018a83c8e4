//! Liveness, readiness and metrics.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use sqlx::{AnyPool, Row};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Platform;
use crate::api::Health;
use crate::community::auth::Admin;
use crate::core::db::to_u32;
use crate::core::error::ApiError;
use crate::core::write_health;

/// Health routes. `/healthz` and `/api/health` are aliases of `/health`.
pub fn routes() -> OpenApiRouter<Platform> {
    OpenApiRouter::new()
        .routes(routes!(health))
        .route("/healthz", get(health))
        .route("/api/health", get(health))
        .routes(routes!(ready))
        .routes(routes!(metrics))
}

/// Liveness check.
///
/// Succeeds as long as the process runs; `/healthz` and `/api/health` are aliases.
#[utoipa::path(get, path = "/health", tag = "operation", responses(
    (status = 200, description = "the process is alive", body = Health),
))]
pub async fn health(State(platform): State<Platform>) -> Json<Health> {
    Json(report(&platform))
}

/// Readiness check: whether new players should be sent here.
///
/// Fails while the database cannot store data. The message names the reason, and the check succeeds
/// again by itself when the cause is gone.
#[utoipa::path(get, path = "/readyz", tag = "operation", responses(
    (status = 200, description = "the platform is ready", body = Health),
    (status = 503, description = "the database does not respond or cannot store data, or the platform is shutting down"),
))]
pub async fn ready(State(platform): State<Platform>) -> Result<Json<Health>, ApiError> {
    if platform.worlds.fleet.is_stopping() {
        return Err(ApiError::unavailable(
            "shutting_down",
            "the platform is shutting down",
            5,
        ));
    }
    write_health::settle(&platform.core).await;
    if let Some(fault) = platform.core.write_health.fault() {
        let message = format!("Nothing can be stored: {}.", fault.reason);
        return Err(ApiError::unavailable("database_unavailable", message, 1));
    }
    sqlx::query("SELECT 1 AS one")
        .fetch_one(&platform.core.db)
        .await?;
    Ok(Json(report(&platform)))
}

/// Metrics for Prometheus.
///
/// With an admin's token, includes metrics per script.
#[utoipa::path(get, path = "/metrics", tag = "operation", security((), ("bearer" = [])), responses(
    (status = 200, description = "metrics in the Prometheus text format", body = String, content_type = "text/plain"),
))]
pub async fn metrics(
    State(platform): State<Platform>,
    admin: Result<Admin, ApiError>,
) -> impl IntoResponse {
    // Metrics must be available while the database is down, because they are needed most then.
    let health = &platform.core.write_health;
    let sessions = match health.fault() {
        Some(_) => None,
        None => match count_sessions(&platform.core.db, platform.core.clock.now_ms()).await {
            Ok(sessions) => Some(sessions),
            Err(error) => {
                tracing::warn!(%error, "could not count sessions");
                health.failed(&error);
                None
            }
        },
    };
    let mut text = platform
        .core
        .metrics
        .render(&platform.worlds.fleet.totals(), sessions);
    text.push_str(&health.prometheus());
    if admin.is_ok() {
        // Names of server scripts are visible to admins only.
        text.push_str(&platform.worlds.consoles.prometheus());
    }
    let content_type = "text/plain; version=0.0.4; charset=utf-8";
    (StatusCode::OK, [(header::CONTENT_TYPE, content_type)], text)
}

async fn count_sessions(db: &AnyPool, now_ms: i64) -> Result<u32, sqlx::Error> {
    let row = sqlx::query("SELECT COUNT(*) AS total FROM sessions WHERE expires_at > $1")
        .bind(now_ms)
        .fetch_one(db)
        .await?;
    row.try_get("total").map(to_u32)
}

fn report(platform: &Platform) -> Health {
    let fleet = &platform.worlds.fleet;
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
