//! The files of games: pictures, models, sounds, and whole packages where the creator
//! allows downloads.
//!
//! Files are named by their hash and can be cached forever. Files that belong only to
//! private games need a signed grant in their URL, which the creator's pages and
//! worlds receive: an `<img>` element cannot send a token.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use serde::Deserialize;
use sha2::Sha256;
use sqlx::{AnyPool, Row};
use subtle::ConstantTimeEq;

use super::access::{self, OptionalSession};
use super::{games, scaling};
use crate::api::{GameFile, GameFiles, GameVisibility};
use crate::catalog::Catalog;
use crate::catalog::derived::Form;
use crate::community::auth::Role;
use crate::core::db::to_u32;
use crate::core::encoding::{self, Encoding};
use crate::core::error::ApiError;
use crate::core::extract::{ApiPath, ApiQuery};
use crate::core::ids;
use crate::fleet;

const SCRIPT_MEDIA_TYPE: &str = "application/octet-stream";
const CACHE_FOREVER: &str = "public, max-age=31536000, immutable";
const CACHE_SHORT: &str = "public, max-age=300";
const CACHE_PRIVATE: &str = "private, max-age=3600";
/// Grants expire on the hour, at least four hours ahead, so that URLs stay stable
/// long enough for browser caches.
const GRANT_STEP_S: u64 = 3_600;
const GRANT_STEPS: u64 = 5;

/// Builds the URLs of a game's files, with grants for a private game.
pub struct Grants {
    secret: Option<Vec<u8>>,
    expires_s: u64,
}

impl Grants {
    /// For a viewer who is allowed to see the game.
    pub fn of(catalog: &Catalog, visibility: GameVisibility, now_s: u64) -> Self {
        let private = visibility == GameVisibility::Private;
        Self {
            secret: private.then(|| catalog.core.settings.secret_key.clone()),
            expires_s: (now_s / GRANT_STEP_S + GRANT_STEPS) * GRANT_STEP_S,
        }
    }

    /// For public games, which need no grants.
    pub fn none() -> Self {
        Self {
            secret: None,
            expires_s: 0,
        }
    }

    /// URL of a file.
    pub fn cdn_url(&self, sha256: &str) -> String {
        match &self.secret {
            Some(secret) => {
                let grant = grant(secret, sha256, self.expires_s);
                format!("/cdn/{sha256}?grant={grant}")
            }
            None => format!("/cdn/{sha256}"),
        }
    }

    /// URL of a game's thumbnail; it changes with the picture.
    pub fn thumbnail_url(&self, game_id: &str, sha256: &str) -> String {
        match &self.secret {
            Some(_) => self.cdn_url(sha256),
            None => format!("/api/games/{game_id}/thumbnail?v={}", version(sha256)),
        }
    }
}

/// The part of the hash that identifies the picture in a thumbnail URL.
fn version(sha256: &str) -> &str {
    sha256.get(..8).unwrap_or("")
}

fn matches_version(sha256: &str, given: Option<&str>) -> bool {
    given.is_some_and(|given| !given.is_empty() && given == version(sha256))
}

fn grant(secret: &[u8], sha256: &str, expires_s: u64) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC accepts keys of any length");
    mac.update(format!("frolic cdn grant\n{sha256}\n{expires_s}").as_bytes());
    let code = hex::encode(mac.finalize().into_bytes());
    format!("{expires_s}.{}", code.get(..32).unwrap_or(&code))
}

fn is_granted(secret: &[u8], sha256: &str, given: &str, now_s: u64) -> bool {
    let Some(expires_s) = given.split('.').next().and_then(|text| text.parse().ok()) else {
        return false;
    };
    let expected = grant(secret, sha256, expires_s);
    expires_s > now_s && bool::from(expected.as_bytes().ct_eq(given.as_bytes()))
}

/// Query of `GET /api/games/{id}/files`.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct FilesQuery {
    /// Select the version that this world runs, instead of the current version.
    world_id: Option<String>,
}

/// The files of a game with their URLs.
///
/// # Errors
/// 404 when the game does not exist.
#[utoipa::path(
    get, path = "/api/games/{id}/files", tag = "store",
    params(FilesQuery),
    responses((status = 200, body = GameFiles)),
    security((), ("bearer" = []))
)]
pub async fn files(
    State(catalog): State<Arc<Catalog>>,
    viewer: OptionalSession,
    ApiPath(game_id): ApiPath<String>,
    ApiQuery(query): ApiQuery<FilesQuery>,
) -> Result<Json<GameFiles>, ApiError> {
    let db = &catalog.core.db;
    let game = access::visible(db, &game_id, &viewer).await?;
    let revision = match query.world_id {
        // A world of an older version needs its own files after an update was
        // released.
        Some(world_id) => fleet::find_spec(db, &world_id)
            .await?
            .filter(|world| world.game_id == game_id)
            .map(|world| match catalog.fleet.server(&world_id) {
                Some(server) => server.revision(),
                None => world.revision,
            })
            .ok_or_else(fleet::unknown_world)?,
        None => game.revision,
    };
    let rows = sqlx::query(
        "SELECT path, sha256, media_type, size_bytes FROM version_files WHERE revision = $1 ORDER BY path",
    )
    .bind(&revision)
    .fetch_all(db)
    .await?;
    let grants = Grants::of(&catalog, game.visibility, catalog.core.clock.now_s());
    let files = rows
        .iter()
        .map(|row| {
            Ok(GameFile {
                path: row.try_get("path")?,
                url: grants.cdn_url(row.try_get("sha256")?),
                media_type: row.try_get("media_type")?,
                size_bytes: to_u32(row.try_get("size_bytes")?),
            })
        })
        .collect::<Result<_, sqlx::Error>>()?;
    Ok(Json(GameFiles { revision, files }))
}

/// Query of `GET /api/games/{id}/thumbnail`.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ThumbnailQuery {
    /// Requested width in pixels; the copy is WebP.
    #[serde(default)]
    w: Option<u32>,
    /// Prefix of the picture's hash. URLs given out contain it, so that responses can
    /// be cached until the picture changes.
    v: Option<String>,
}

/// A game's thumbnail.
///
/// # Errors
/// 404 when the game does not exist or has no thumbnail.
#[utoipa::path(
    get, path = "/api/games/{id}/thumbnail", tag = "store",
    params(ThumbnailQuery),
    responses(
        (status = 200, description = "PNG, JPEG or WebP", content_type = "image/*"),
        (status = 304, description = "Not modified since `If-None-Match`"),
    ),
    security((), ("bearer" = []))
)]
pub async fn thumbnail(
    State(catalog): State<Arc<Catalog>>,
    viewer: OptionalSession,
    ApiPath(game_id): ApiPath<String>,
    ApiQuery(query): ApiQuery<ThumbnailQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let game = access::visible(&catalog.core.db, &game_id, &viewer).await?;
    let row = sqlx::query("SELECT thumbnail_sha256 FROM games WHERE game_id = $1")
        .bind(&game_id)
        .fetch_optional(&catalog.core.db)
        .await?
        .ok_or_else(games::unknown_game)?;
    let sha256: Option<String> = row.try_get("thumbnail_sha256")?;
    let sha256 = sha256
        .filter(|sha256| !sha256.is_empty())
        .ok_or_else(|| ApiError::not_found("no_thumbnail", "this game has no thumbnail"))?;
    let file = find(&catalog.core.db, &sha256).await?;
    let cache = match game.visibility {
        GameVisibility::Private => CACHE_PRIVATE,
        _ if matches_version(&sha256, query.v.as_deref()) => CACHE_FOREVER,
        _ => CACHE_SHORT,
    };
    send(&catalog, &sha256, file, &headers, cache, query.w).await
}

/// Query of `GET /cdn/{sha256}`.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CdnQuery {
    /// Signed grant for files of private games; part of the URLs given out.
    grant: Option<String>,
    /// Requested width of a picture in pixels; the copy is WebP.
    w: Option<u32>,
}

/// A file by its SHA-256: an asset of a game, never a package.
///
/// # Errors
/// 404 when no asset has this hash.
#[utoipa::path(
    get, path = "/cdn/{sha256}", tag = "store",
    params(("sha256" = String, Path, description = "SHA-256 in lower-case hex"), CdnQuery),
    responses(
        (status = 200, description = "The file", content_type = "application/octet-stream"),
        (status = 304, description = "Not modified since `If-None-Match`"),
    )
)]
pub async fn cdn(
    State(catalog): State<Arc<Catalog>>,
    ApiPath(sha256): ApiPath<String>,
    ApiQuery(query): ApiQuery<CdnQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if !ids::is_sha256_hex(&sha256) {
        return Err(unknown_file());
    }
    let file = find(&catalog.core.db, &sha256).await?;
    if file.as_ref().is_some_and(|file| file.private) {
        let now_s = catalog.core.clock.now_s();
        let secret = &catalog.core.settings.secret_key;
        let given = query.grant.as_deref().unwrap_or("");
        if !is_granted(secret, &sha256, given, now_s) {
            return Err(unknown_file());
        }
        return send(&catalog, &sha256, file, &headers, CACHE_PRIVATE, query.w).await;
    }
    send(&catalog, &sha256, file, &headers, CACHE_FOREVER, query.w).await
}

/// Query of `GET /api/games/{id}/download`.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DownloadQuery {
    /// Revision to download instead of the current one; for the creator.
    revision: Option<String>,
}

/// The package of a game, if its creator allows downloads.
///
/// # Errors
/// 403 if they do not, 404 when the game or version does not exist.
#[utoipa::path(
    get, path = "/api/games/{id}/download", tag = "store",
    params(DownloadQuery),
    responses(
        (status = 200, description = "A `.game` file", content_type = "application/zip"),
        (status = 403),
    ),
    security((), ("bearer" = []))
)]
pub async fn download(
    State(catalog): State<Arc<Catalog>>,
    viewer: OptionalSession,
    ApiPath(game_id): ApiPath<String>,
    ApiQuery(query): ApiQuery<DownloadQuery>,
) -> Result<Response, ApiError> {
    let db = &catalog.core.db;
    let game = access::visible(db, &game_id, &viewer).await?;
    let theirs = viewer.0.as_ref().is_some_and(|session| {
        session.user_id == game.creator_id || session.role >= Role::Moderator
    });
    let row = sqlx::query("SELECT downloads FROM games WHERE game_id = $1")
        .bind(&game_id)
        .fetch_one(db)
        .await?;
    let allowed = row.try_get::<i64, _>("downloads")? != 0;
    let wanted = query.revision.as_ref();
    let other = wanted.is_some_and(|wanted| *wanted != game.revision);
    if !theirs && (other || !allowed) {
        return Err(ApiError::forbidden(
            "the creator of this game does not allow downloads",
        ));
    }
    let revision = match query.revision {
        Some(revision) => {
            let version = super::versions::find(db, &game_id, &revision).await?;
            version
                .ok_or_else(super::versions::unknown_version)?
                .revision
        }
        None => game.revision,
    };
    let archive = catalog.core.blobs.get(&revision).await?;
    let archive = archive
        .ok_or_else(|| ApiError::not_found("package_not_found", "this package no longer exists"))?;
    let name = format!("attachment; filename=\"{game_id}.game\"");
    let name = HeaderValue::from_str(&name).unwrap_or(HeaderValue::from_static("attachment"));
    let mut response = Response::new(Body::from(archive));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_DISPOSITION, name);
    let zip = HeaderValue::from_static("application/zip");
    headers.insert(header::CONTENT_TYPE, zip);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

/// A file of at least one game.
struct FileRow {
    media_type: String,
    /// Whether all games with this file are private.
    private: bool,
}

async fn find(db: &AnyPool, sha256: &str) -> Result<Option<FileRow>, sqlx::Error> {
    for query in [
        "SELECT f.media_type, g.visibility FROM version_files f
         JOIN game_versions v ON v.revision = f.revision JOIN games g ON g.game_id = v.game_id
         WHERE f.sha256 = $1
         ORDER BY CASE WHEN g.visibility = 'private' THEN 1 ELSE 0 END LIMIT 1",
        "SELECT p.media_type, g.visibility FROM game_pictures p
         JOIN games g ON g.game_id = p.game_id WHERE p.sha256 = $1
         ORDER BY CASE WHEN g.visibility = 'private' THEN 1 ELSE 0 END LIMIT 1",
    ] {
        let row = sqlx::query(query).bind(sha256).fetch_optional(db).await?;
        if let Some(row) = row {
            let visibility: String = row.try_get("visibility")?;
            return Ok(Some(FileRow {
                media_type: row.try_get("media_type")?,
                private: visibility == "private",
            }));
        }
    }
    Ok(None)
}

fn unknown_file() -> ApiError {
    ApiError::not_found("file_not_found", "file not found")
}

async fn send(
    catalog: &Catalog,
    sha256: &str,
    file: Option<FileRow>,
    request: &HeaderMap,
    cache: &'static str,
    width: Option<u32>,
) -> Result<Response, ApiError> {
    let (blobs, media_type) = match file {
        Some(file) => (&catalog.core.blobs, file.media_type),
        // Compiled scripts belong to no package.
        None => (&catalog.script_blobs, SCRIPT_MEDIA_TYPE.to_owned()),
    };
    let compressible = encoding::is_compressible(&media_type);
    let form = match width {
        Some(width) if scaling::is_picture(&media_type) => {
            Some(Form::Picture(scaling::round_width(width)))
        }
        _ if compressible => {
            encoding::negotiate(request, &[Encoding::Zstd, Encoding::Gzip]).map(Form::Compressed)
        }
        _ => None,
    };
    let etag = match form {
        Some(Form::Picture(width)) => format!("\"{sha256}-{width}\""),
        _ => format!("\"{sha256}\""),
    };
    let etag = HeaderValue::from_str(&etag).map_err(std::io::Error::other)?;
    let known = request.get(header::IF_NONE_MATCH);
    let mut response = if known.is_some_and(|known| super::etag_matches(known, &etag)) {
        if !blobs.has(sha256).await? {
            return Err(unknown_file());
        }
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let made = match form {
            Some(form) => {
                let made = catalog.derived.get(blobs, sha256, form).await?;
                made.map(|bytes| (bytes, Some(form)))
            }
            None => None,
        };
        let (bytes, form) = match made {
            Some(made) => made,
            None => {
                let bytes = blobs.get(sha256).await?;
                (bytes.ok_or_else(unknown_file)?, None)
            }
        };
        file_response(bytes, &media_type, form)
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, etag);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    if compressible {
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    Ok(response)
}

fn file_response(bytes: Bytes, media_type: &str, form: Option<Form>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    let media_type = match form {
        Some(Form::Picture(_)) => HeaderValue::from_static("image/webp"),
        _ => HeaderValue::from_str(media_type)
            .unwrap_or(HeaderValue::from_static("application/octet-stream")),
    };
    headers.insert(header::CONTENT_TYPE, media_type);
    if let Some(Form::Compressed(encoding)) = form {
        let name = HeaderValue::from_static(encoding.name());
        headers.insert(header::CONTENT_ENCODING, name);
    }
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; sandbox"),
    );
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_opens_one_file_for_a_while() {
        let (secret, sha256) = (b"secret".as_slice(), "ab".repeat(32));
        let given = grant(secret, &sha256, 7_200);
        assert!(is_granted(secret, &sha256, &given, 7_199));
        assert!(!is_granted(secret, &sha256, &given, 7_200));
        assert!(!is_granted(secret, &"cd".repeat(32), &given, 0));
        assert!(!is_granted(b"other", &sha256, &given, 0));
        let longer = given.replace("7200.", "9999.");
        for bad in ["", ".", "x.y", "99999999999999999999.x", &longer] {
            assert!(!is_granted(secret, &sha256, bad, 0), "{bad}");
        }
    }
}
