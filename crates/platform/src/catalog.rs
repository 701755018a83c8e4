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

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Platform;
use crate::core::error::ApiError;
use crate::core::ids;

pub use uploads::Uploads;

/// Routes with small bodies.
pub fn routes() -> OpenApiRouter<Platform> {
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
pub fn picture_routes() -> OpenApiRouter<Platform> {
    OpenApiRouter::new()
        .routes(routes!(pictures::add_screenshot))
        .routes(routes!(pictures::set_thumbnail))
}

/// Routes that receive a package or a part of one, or unpack one.
pub fn upload_routes() -> OpenApiRouter<Platform> {
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
pub async fn sweep(platform: &Platform, now_ms: i64) -> Result<(), sqlx::Error> {
    recorder::sweep(platform.db(), now_ms).await?;
    uploads::sweep(platform, now_ms).await
}

/// Updates the listings after a game's row was changed.
///
/// # Errors
/// When the database fails.
pub async fn game_changed(platform: &Platform, game_id: &str) -> Result<(), sqlx::Error> {
    platform
        .catalog_cache()
        .refresh(platform.db(), game_id)
        .await
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
