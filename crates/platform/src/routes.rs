//! All HTTP routes: path, handler and limits.

use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::community::{accounts, profiles, social};
use crate::core::limits::{finish, limit_rate, limit_time};
use crate::worlds::{
    self, console, datastore, internal, join, log, remote_commands, rooms, scripts,
};
use crate::{Platform, admin, catalog, health, moderation, openapi, site, socketio, spells};

/// Upload of a large package over a slow connection.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// A full batch of data store requests with the overhead of JSON. Console reports are smaller.
const REPORT_BODY_BYTES_MAX: usize = 4 * frolic_fleet_api::store::BATCH_BYTES_MAX;

/// The router of the control plane.
pub fn router(platform: Platform) -> Router {
    let limits = platform.settings().limits.clone();
    let rated = from_fn_with_state(platform.clone(), limit_rate);
    let ordinary = OpenApiRouter::with_openapi(openapi::Document::openapi())
        .merge(join::rated_routes().layer(rated.clone()))
        .merge(moderation::rated_routes().layer(rated.clone()))
        .merge(join::routes())
        .merge(worlds::rest::routes())
        .merge(worlds::helpers::routes())
        .merge(catalog::routes())
        .merge(profiles::routes())
        .merge(social::routes())
        .merge(moderation::routes())
        .route(
            "/internal/worlds/{id}/blocks",
            post(social::blocks_for_world),
        )
        .route("/internal/worlds/{id}", get(internal::boot))
        .route("/internal/worlds/{id}/package", get(internal::package))
        .route("/internal/worlds/{id}/saved", get(log::saved))
        .route("/internal/worlds/{id}/spells", get(spells::teach::learned))
        .route("/internal/worlds/{id}/ready", post(internal::ready))
        .route("/internal/worlds/{id}/heartbeat", post(internal::heartbeat))
        .route("/internal/worlds/{id}/stopped", post(internal::stopped))
        .merge(spells::routes())
        .merge(accounts::routes(&platform))
        .merge(admin::routes())
        .merge(console::routes())
        .merge(health::routes())
        .merge(rooms::routes())
        .layer(DefaultBodyLimit::max(limits.body_bytes_max))
        .layer(from_fn_with_state(limits.request_timeout, limit_time));
    let reports = OpenApiRouter::new()
        .route("/internal/worlds/{id}/store", post(datastore::handle))
        .route("/internal/worlds/{id}/console", post(console::report))
        .route("/internal/worlds/{id}/news", post(remote_commands::news))
        .layer(DefaultBodyLimit::max(REPORT_BODY_BYTES_MAX))
        .layer(from_fn_with_state(limits.request_timeout, limit_time));
    let pictures = catalog::picture_routes()
        .layer(rated.clone())
        .layer(DefaultBodyLimit::max(catalog::PICTURE_BYTES_MAX))
        .layer(from_fn_with_state(limits.request_timeout, limit_time));
    let uploads = OpenApiRouter::new()
        .merge(catalog::upload_routes().layer(rated))
        .route("/internal/worlds/{id}/scripts", post(scripts::publish))
        .route("/internal/worlds/{id}/keep", post(log::keep))
        .layer(DefaultBodyLimit::max(limits.package_bytes_max))
        .layer(from_fn_with_state(UPLOAD_TIMEOUT, limit_time));
    let saves =
        worlds::saves::routes().layer(from_fn_with_state(limits.request_timeout, limit_time));
    let others = uploads.merge(pictures).merge(reports).merge(saves);
    openapi::publish(ordinary.merge(others))
        .fallback(site::serve)
        .layer(from_fn_with_state(platform.clone(), finish))
        .layer(from_fn(crate::core::trace::trace))
        .layer(socketio::layer(&platform))
        .with_state(platform)
}
