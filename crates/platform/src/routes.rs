//! All HTTP routes: path, handler and limits.

use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::handler::Handler as _;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::core::limits::{finish, limit_rate, limit_time};
use crate::worlds::{
    self, console, datastore, internal, invites, join, log, remote_commands, rooms, scripts,
};
use crate::{
    Platform, account_deletion, admin, catalog, community, health, moderation, openapi, site,
    socketio, spells,
};

/// Upload of a large package over a slow connection.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// A full batch of data store requests with the overhead of JSON. Console reports are smaller.
const REPORT_BODY_BYTES_MAX: usize = 4 * frolic_fleet_api::store::BATCH_BYTES_MAX;

/// The router of the control plane.
pub fn router(platform: Platform) -> Router {
    let core = platform.core.clone();
    let limits = core.settings.limits.clone();
    let rated = from_fn_with_state(core.clone(), limit_rate);
    let timed = from_fn_with_state(limits.request_timeout, limit_time);
    let in_worlds = join::rated_routes()
        .layer(rated.clone())
        .merge(join::routes())
        .merge(worlds::rest::routes())
        .merge(worlds::helpers::routes())
        .merge(invites::routes())
        .route("/internal/worlds/{id}/blocks", post(internal::blocks))
        .route("/internal/worlds/{id}", get(internal::boot))
        .route("/internal/worlds/{id}/package", get(internal::package))
        .route("/internal/worlds/{id}/saved", get(log::saved))
        .route("/internal/worlds/{id}/ready", post(internal::ready))
        .route("/internal/worlds/{id}/heartbeat", post(internal::heartbeat))
        .route("/internal/worlds/{id}/stopped", post(internal::stopped))
        .merge(console::routes())
        .merge(rooms::routes());
    let of_spells = spells::routes()
        .route("/internal/worlds/{id}/spells", get(spells::teach::learned))
        .with_state(platform.spells.clone());
    let operation = moderation::rated_routes()
        .merge(account_deletion::rated_routes())
        .layer(rated.clone())
        .merge(moderation::routes())
        .merge(admin::routes())
        .merge(health::routes());
    let ordinary = OpenApiRouter::with_openapi(openapi::Document::openapi())
        .merge(in_worlds.with_state(platform.worlds.clone()))
        .merge(catalog::routes().with_state(platform.catalog.clone()))
        .merge(community::routes(&platform.community))
        .merge(of_spells)
        .merge(operation.with_state(platform.clone()))
        .layer(DefaultBodyLimit::max(limits.body_bytes_max))
        .layer(timed.clone());
    let reports = OpenApiRouter::new()
        .route("/internal/worlds/{id}/store", post(datastore::handle))
        .route("/internal/worlds/{id}/console", post(console::report))
        .route("/internal/worlds/{id}/news", post(remote_commands::news))
        .layer(DefaultBodyLimit::max(REPORT_BODY_BYTES_MAX))
        .merge(worlds::saves::routes())
        .layer(timed.clone());
    let pictures = catalog::picture_routes()
        .layer(DefaultBodyLimit::max(catalog::PICTURE_BYTES_MAX))
        .layer(timed);
    let packages = catalog::upload_routes().layer(DefaultBodyLimit::max(limits.package_bytes_max));
    let uploads = packages
        .layer(from_fn_with_state(UPLOAD_TIMEOUT, limit_time))
        .merge(pictures)
        .layer(rated);
    let persistence = OpenApiRouter::new()
        .route("/internal/worlds/{id}/scripts", post(scripts::publish))
        .route("/internal/worlds/{id}/keep", post(log::keep))
        .layer(DefaultBodyLimit::max(limits.package_bytes_max))
        .layer(from_fn_with_state(UPLOAD_TIMEOUT, limit_time));
    let others = uploads.with_state(platform.catalog.clone()).merge(
        reports
            .merge(persistence)
            .with_state(platform.worlds.clone()),
    );
    openapi::publish(ordinary.merge(others))
        .fallback_service(site::serve.with_state(platform.site.clone()))
        .layer(from_fn_with_state(core, finish))
        .layer(from_fn(crate::core::trace::trace))
        .layer(socketio::layer(&platform))
}
