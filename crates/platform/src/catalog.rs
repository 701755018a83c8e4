//! The game catalog: publishing, finding, liking and managing games.
//!
//! [`publish`] and [`uploads`] accept packages. [`channels`] decide which player gets
//! which version. [`cache`] caches the public games in memory, and [`listing`]
//! answers from it. [`recorder`] records plays, players and script errors, and
//! [`dashboard`] shows them to creators.

pub mod access;
mod assets;
pub mod cache;
pub mod channels;
mod creator;
mod dashboard;
pub mod derived;
mod edit;
pub mod games;
mod likes;
mod listing;
mod pictures;
pub mod publish;
mod ranking;
pub mod recorder;
pub mod scaling;
mod text;
mod uploads;
mod versions;

use std::sync::{Arc, Mutex, PoisonError};

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;
use tokio::sync::{Semaphore, SemaphorePermit};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::cache::CatalogCache;
use self::derived::DerivedBlobs;
use self::publish::ScriptChecker;
use self::recorder::Recorder;
use crate::community::Community;
use crate::core::blobs::BlobStore;
use crate::core::error::ApiError;
use crate::core::ids;
use crate::core::{Core, Provides};
use crate::fleet::Fleet;

/// Packages that are unpacked and checked at the same time.
const CONCURRENT_UPLOADS_MAX: usize = 2;

/// The services of this layer.
pub struct Catalog {
    pub core: Arc<Core>,
    pub community: Arc<Community>,
    pub fleet: Fleet,
    /// Compiled client scripts, which are public.
    pub script_blobs: BlobStore,
    pub script_checker: Arc<dyn ScriptChecker>,
    /// Compressed and scaled-down copies of blobs.
    derived: DerivedBlobs,
    pub cache: CatalogCache,
    pub recorder: Recorder,
    upload_permits: Semaphore,
    default_game: Mutex<Option<String>>,
}

impl Catalog {
    pub fn new(
        community: Arc<Community>,
        fleet: Fleet,
        script_blobs: BlobStore,
        script_checker: Arc<dyn ScriptChecker>,
    ) -> Self {
        let core = community.core.clone();
        Self {
            default_game: Mutex::new(core.settings.default_game.clone()),
            core,
            community,
            fleet,
            script_blobs,
            script_checker,
            derived: DerivedBlobs::default(),
            cache: CatalogCache::default(),
            recorder: Recorder::default(),
            upload_permits: Semaphore::new(CONCURRENT_UPLOADS_MAX),
        }
    }

    /// The game that a join without a target opens.
    pub fn default_game(&self) -> Option<String> {
        let game = self.default_game.lock();
        game.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the game that a join without a target opens, unless one is set.
    pub fn set_first_game(&self, game_id: &str) {
        let game = self.default_game.lock();
        let mut game = game.unwrap_or_else(PoisonError::into_inner);
        game.get_or_insert_with(|| game_id.to_owned());
    }

    /// Waits until another package may be unpacked.
    async fn upload_permit(&self) -> Result<SemaphorePermit<'_>, ApiError> {
        let permit = self.upload_permits.acquire().await;
        permit
            .map_err(|_| ApiError::unavailable("shutting_down", "the platform is shutting down", 5))
    }
}

impl Provides<Community> for Arc<Catalog> {
    fn provide(&self) -> &Community {
        &self.community
    }
}

/// Routes with small bodies.
pub fn routes() -> OpenApiRouter<Arc<Catalog>> {
    OpenApiRouter::new()
        .routes(routes!(listing::list))
        .routes(routes!(listing::tags))
        .routes(routes!(ranking::formula))
        .routes(routes!(ranking::breakdown))
        .routes(routes!(games::show, edit::edit))
        .routes(routes!(assets::files))
        .routes(routes!(assets::cdn))
        .routes(routes!(assets::download))
        .routes(routes!(likes::like, likes::unlike))
        .routes(routes!(likes::liked))
        .routes(routes!(edit::publish))
        .routes(routes!(edit::unpublish))
        .routes(routes!(edit::feature))
        .routes(routes!(pictures::remove_screenshot))
        .routes(routes!(pictures::order_screenshots))
        .routes(routes!(assets::thumbnail, pictures::remove_thumbnail))
        .routes(routes!(channels::set))
        .routes(routes!(channels::roll_back))
        .routes(routes!(creator::games))
        .routes(routes!(creator::game))
        .routes(routes!(channels::show))
        .routes(routes!(versions::list))
        .routes(routes!(dashboard::show))
        .routes(routes!(uploads::start))
        .routes(routes!(uploads::show, uploads::give_up))
}

/// Routes that receive a picture.
pub fn picture_routes() -> OpenApiRouter<Arc<Catalog>> {
    OpenApiRouter::new()
        .routes(routes!(pictures::add_screenshot))
        .routes(routes!(pictures::set_thumbnail))
}

/// Routes that receive a package or a part of one, or unpack one.
pub fn upload_routes() -> OpenApiRouter<Arc<Catalog>> {
    OpenApiRouter::new()
        .routes(routes!(publish::upload))
        .routes(routes!(publish::validate))
        .routes(routes!(uploads::put_part))
        .routes(routes!(uploads::finish))
}

pub use pictures::PICTURE_BYTES_MAX;

/// Deletes expired statistics and abandoned uploads.
///
/// # Errors
/// When the database fails.
pub async fn sweep(catalog: &Catalog, now_ms: i64) -> Result<(), sqlx::Error> {
    recorder::sweep(&catalog.core.db, now_ms).await?;
    uploads::sweep(catalog, now_ms).await
}

/// Updates the listings after a game's row was changed.
///
/// # Errors
/// When the database fails.
pub async fn game_changed(catalog: &Catalog, game_id: &str) -> Result<(), sqlx::Error> {
    catalog.cache.refresh(&catalog.core.db, game_id).await
}

/// A response body with its ETag.
#[derive(Clone, Debug)]
struct TaggedBody {
    body: Bytes,
    etag: HeaderValue,
}

impl TaggedBody {
    fn json(value: &impl Serialize) -> Result<Self, ApiError> {
        let body = serde_json::to_vec(value).map_err(std::io::Error::other)?;
        Ok(Self::new(Bytes::from(body)))
    }

    fn new(body: Bytes) -> Self {
        let hash = ids::sha256_hex(&body);
        let etag = format!("\"{}\"", hash.get(..32).unwrap_or(&hash));
        let etag = HeaderValue::from_str(&etag).unwrap_or(HeaderValue::from_static("\"\""));
        Self { body, etag }
    }

    /// The body, or 304 if the client has it already.
    fn answer(&self, request: &HeaderMap) -> Response {
        let cache = HeaderValue::from_static("no-cache");
        let known = request.get(header::IF_NONE_MATCH);
        let mut response = if known.is_some_and(|known| etag_matches(known, &self.etag)) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            let mut response = Response::new(self.body.clone().into());
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
            response
        };
        let headers = response.headers_mut();
        headers.insert(header::ETAG, self.etag.clone());
        headers.insert(header::CACHE_CONTROL, cache);
        response
    }
}

/// Whether `If-None-Match` matches this tag: alone, in a list or as `*`.
fn etag_matches(known: &HeaderValue, etag: &HeaderValue) -> bool {
    let (Ok(known), Ok(etag)) = (known.to_str(), etag.to_str()) else {
        return false;
    };
    known.split(',').any(|one| {
        let one = one.trim();
        one == "*" || one.strip_prefix("W/").unwrap_or(one) == etag
    })
}

/// 409 for an edit that is based on an outdated edition.
fn edition_conflict(edition: u32) -> ApiError {
    ApiError::new(
        StatusCode::CONFLICT,
        "edited_meanwhile",
        "this game was changed in the meantime; load it again and repeat your change",
    )
    .with_details(serde_json::json!({ "edition": edition }))
}

/// 201 for a new object, 200 for an existing one.
fn created_or_ok<T: Serialize>(new: bool, body: T) -> (StatusCode, Json<T>) {
    let status = if new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    (status, Json(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_it_already_gets_304() {
        let tagged = TaggedBody::new(Bytes::from_static(b"{}"));
        let mut headers = HeaderMap::new();
        assert_eq!(tagged.answer(&headers).status(), StatusCode::OK);
        let list = format!("\"x\", W/{}", tagged.etag.to_str().unwrap());
        headers.insert(header::IF_NONE_MATCH, list.parse().unwrap());
        let answer = tagged.answer(&headers);
        assert_eq!(answer.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(answer.headers()[header::ETAG], tagged.etag);
    }
}
