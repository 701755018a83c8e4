//! The map of the REST interface: every address, its handler and its bounds.

use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::limits::{finish, limit_rate, limit_time};
use crate::{
    Platform, accounts, admin, console, gamedata, games, health, internal, join, keep, openapi,
    publish, rooms, scripts, site, socketio, spells, visits, worlds,
};

/// A slow line may take this long for a large package.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// A full batch of requests to the store, with room for what JSON adds; more
/// than a report of scripts takes.
const REPORT_BODY_BYTES_MAX: usize = 4 * frolic_protocol::store::BATCH_BYTES_MAX;

/// Everything the control plane answers.
pub fn router(platform: Platform) -> Router {
    let limits = platform.settings().limits.clone();
    let rated = from_fn_with_state(platform.clone(), limit_rate);
    let ordinary = OpenApiRouter::with_openapi(openapi::Document::openapi())
        .route("/join", post(join::join).layer(rated.clone()))
        .route("/worlds", get(worlds::list))
        .route("/world/{id}", get(worlds::show))
        .route("/api/games", get(games::list))
        .route("/api/games/{id}", get(games::show))
        .route("/api/games/{id}/files", get(games::files))
        .route("/api/games/{id}/console", get(console::page))
        .route("/api/games/{id}/thumbnail", get(games::thumbnail))
        .route("/cdn/{sha256}", get(games::cdn))
        .route("/api/rooms/{code}/ws", get(rooms::proxy))
        .route("/internal/worlds/{id}", get(internal::boot))
        .route("/internal/worlds/{id}/package", get(internal::package))
        .route("/internal/worlds/{id}/saved", get(keep::saved))
        .route("/internal/worlds/{id}/spells", get(spells::teach::learned))
        .route("/internal/worlds/{id}/ready", post(internal::ready))
        .route("/internal/worlds/{id}/heartbeat", post(internal::heartbeat))
        .route("/internal/worlds/{id}/stopped", post(internal::stopped))
        .route("/health", get(health::health))
        .route("/healthz", get(health::health))
        .route("/api/health", get(health::health))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .merge(spells::routes())
        .merge(accounts::routes(&platform))
        .merge(admin::routes())
        .layer(DefaultBodyLimit::max(limits.body_bytes_max))
        .layer(from_fn_with_state(limits.request_timeout, limit_time));
    let reports = OpenApiRouter::new()
        .route("/internal/worlds/{id}/store", post(gamedata::handle))
        .route("/internal/worlds/{id}/console", post(console::report))
        .route("/internal/worlds/{id}/news", post(visits::news))
        .layer(DefaultBodyLimit::max(REPORT_BODY_BYTES_MAX))
        .layer(from_fn_with_state(limits.request_timeout, limit_time));
    let uploads = OpenApiRouter::new()
        .route("/api/games", post(publish::upload).layer(rated))
        .route("/internal/worlds/{id}/scripts", post(scripts::publish))
        .route("/internal/worlds/{id}/keep", post(keep::keep))
        .layer(DefaultBodyLimit::max(limits.package_bytes_max))
        .layer(from_fn_with_state(UPLOAD_TIMEOUT, limit_time));
    openapi::publish(ordinary.merge(uploads).merge(reports))
        .fallback(site::serve)
        .layer(from_fn_with_state(platform.clone(), finish))
        .layer(from_fn(crate::trace::trace))
        .layer(socketio::layer(&platform))
        .with_state(platform)
}
