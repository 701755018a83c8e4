//! Screenshots and thumbnails uploaded on the site.
//!
//! Accepts only formats that browsers treat as nothing but a picture (PNG, JPEG,
//! WebP, detected from the bytes), in dimensions that a phone can decode.

mod header;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use bytes::Bytes;
use sqlx::{AnyPool, Row};

use super::assets::Grants;
use super::channels::bump_edition;
use super::edit::mark_edited;
use super::games::GameRow;
use super::{access, creator, game_changed};
use crate::api::limits::SCREENSHOTS_MAX;
use crate::api::{CreatorGame, Screenshot, ScreenshotList, ScreenshotOrder};
use crate::catalog::Catalog;
use crate::community::auth::Session;
use crate::community::sanctions::ActiveSession;
use crate::core::db::to_u32;
use crate::core::error::ApiError;
use crate::core::extract::{ApiBytes, ApiJson, ApiPath};
use crate::core::ids;
use header::PictureHeader;

/// Maximum size of a picture.
pub const PICTURE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum width and height in pixels.
pub(super) const SIDE_MAX: u32 = 4_096;

/// Appends a screenshot.
///
/// # Errors
/// 422 for an invalid picture, 409 when the game has 8 screenshots already.
#[utoipa::path(
    post, path = "/api/games/{id}/screenshots", tag = "creator",
    request_body(
        content = Vec<u8>, content_type = "application/octet-stream",
        description = "PNG, JPEG or WebP"
    ),
    responses(
        (status = 201, body = ScreenshotList),
        (status = 403), (status = 409), (status = 422),
    ),
    security(("bearer" = []))
)]
pub async fn add_screenshot(
    State(catalog): State<Arc<Catalog>>,
    ActiveSession(session): ActiveSession,
    ApiPath(game_id): ApiPath<String>,
    ApiBytes(bytes): ApiBytes,
) -> Result<(StatusCode, Json<ScreenshotList>), ApiError> {
    let db = &catalog.core.db;
    let game = access::owned(db, &game_id, &session).await?;
    let picture = check(&bytes)?;
    let sha256 = catalog.core.blobs.put(&bytes).await?;
    let now = catalog.core.clock.now_ms();
    let mut transaction = crate::core::db::begin(db).await?;
    bump_edition(&mut transaction, &game_id, None, now).await?;
    let row = sqlx::query(
        "SELECT COUNT(*) AS total, CAST(COALESCE(MAX(position), 0) AS BIGINT) AS last
         FROM game_pictures WHERE game_id = $1 AND kind = 'screenshot'",
    )
    .bind(&game_id)
    .fetch_one(&mut *transaction)
    .await?;
    if row.try_get::<i64, _>("total")? >= SCREENSHOTS_MAX as i64 {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "too_many_screenshots",
            format!("a game has at most {SCREENSHOTS_MAX} screenshots; remove one first"),
        ));
    }
    let position = row.try_get::<i64, _>("last")? + 1;
    insert(&game_id, "screenshot", &sha256, picture, position, now)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok((StatusCode::CREATED, list(&catalog, &game).await?))
}

/// Removes a screenshot.
///
/// # Errors
/// 404 when the screenshot does not exist.
#[utoipa::path(
    delete, path = "/api/games/{id}/screenshots/{picture}", tag = "creator",
    params(
        ("picture" = String, Path, description = "Screenshot id")
    ),
    responses(
        (status = 200, body = ScreenshotList),
        (status = 403),
    ),
    security(("bearer" = []))
)]
pub async fn remove_screenshot(
    State(catalog): State<Arc<Catalog>>,
    session: Session,
    ApiPath((game_id, picture_id)): ApiPath<(String, String)>,
) -> Result<Json<ScreenshotList>, ApiError> {
    let db = &catalog.core.db;
    let game = access::owned(db, &game_id, &session).await?;
    let mut transaction = crate::core::db::begin(db).await?;
    let removed = sqlx::query(
        "DELETE FROM game_pictures WHERE game_id = $1 AND picture_id = $2 AND kind = 'screenshot'",
    )
    .bind(&game_id)
    .bind(&picture_id)
    .execute(&mut *transaction)
    .await?;
    if removed.rows_affected() == 0 {
        return Err(ApiError::not_found(
            "screenshot_not_found",
            "this game has no such screenshot",
        ));
    }
    bump_edition(
        &mut transaction,
        &game_id,
        None,
        catalog.core.clock.now_ms(),
    )
    .await?;
    transaction.commit().await?;
    list(&catalog, &game).await
}

/// Changes the order of the screenshots.
///
/// # Errors
/// 409 unless the list contains every id exactly once.
#[utoipa::path(
    put, path = "/api/games/{id}/screenshots/order", tag = "creator",
    request_body = ScreenshotOrder,
    responses(
        (status = 200, body = ScreenshotList),
        (status = 403), (status = 409),
    ),
    security(("bearer" = []))
)]
pub async fn order_screenshots(
    State(catalog): State<Arc<Catalog>>,
    session: Session,
    ApiPath(game_id): ApiPath<String>,
    ApiJson(order): ApiJson<ScreenshotOrder>,
) -> Result<Json<ScreenshotList>, ApiError> {
    let db = &catalog.core.db;
    let game = access::owned(db, &game_id, &session).await?;
    let mut transaction = crate::core::db::begin(db).await?;
    bump_edition(
        &mut transaction,
        &game_id,
        None,
        catalog.core.clock.now_ms(),
    )
    .await?;
    let rows = sqlx::query(
        "SELECT picture_id FROM game_pictures WHERE game_id = $1 AND kind = 'screenshot'
         ORDER BY picture_id",
    )
    .bind(&game_id)
    .fetch_all(&mut *transaction)
    .await?;
    let known = rows.iter().map(|row| row.try_get("picture_id"));
    let known: Vec<String> = known.collect::<Result<_, _>>()?;
    let mut given = order.ids.clone();
    given.sort_unstable();
    if given != known {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "edited_meanwhile",
            "list the id of every screenshot exactly once; load the game again for its current \
                screenshots",
        ));
    }
    for (position, picture_id) in order.ids.iter().enumerate() {
        sqlx::query("UPDATE game_pictures SET position = $1 WHERE picture_id = $2")
            .bind(i64::try_from(position).unwrap_or(i64::MAX))
            .bind(picture_id)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    list(&catalog, &game).await
}

/// Replaces the thumbnail from the game's package.
///
/// # Errors
/// 422 for an invalid picture.
#[utoipa::path(
    put, path = "/api/games/{id}/thumbnail", tag = "creator",
    request_body(
        content = Vec<u8>, content_type = "application/octet-stream",
        description = "PNG, JPEG or WebP, preferably 16:9"
    ),
    responses(
        (status = 200, body = CreatorGame),
        (status = 403), (status = 422),
    ),
    security(("bearer" = []))
)]
pub async fn set_thumbnail(
    State(catalog): State<Arc<Catalog>>,
    ActiveSession(session): ActiveSession,
    ApiPath(game_id): ApiPath<String>,
    ApiBytes(bytes): ApiBytes,
) -> Result<Json<CreatorGame>, ApiError> {
    access::owned(&catalog.core.db, &game_id, &session).await?;
    let picture = check(&bytes)?;
    let sha256 = catalog.core.blobs.put(&bytes).await?;
    replace_thumbnail(&catalog, &game_id, Some((sha256, picture))).await
}

/// Restores the thumbnail from the package.
///
/// # Errors
/// 404 for a game you cannot see, 403 for another creator's.
#[utoipa::path(
    delete, path = "/api/games/{id}/thumbnail", tag = "creator",
    responses(
        (status = 200, body = CreatorGame),
        (status = 403),
    ),
    security(("bearer" = []))
)]
pub async fn remove_thumbnail(
    State(catalog): State<Arc<Catalog>>,
    session: Session,
    ApiPath(game_id): ApiPath<String>,
) -> Result<Json<CreatorGame>, ApiError> {
    access::owned(&catalog.core.db, &game_id, &session).await?;
    replace_thumbnail(&catalog, &game_id, None).await
}

async fn replace_thumbnail(
    catalog: &Catalog,
    game_id: &str,
    picture: Option<(String, PictureHeader)>,
) -> Result<Json<CreatorGame>, ApiError> {
    let now = catalog.core.clock.now_ms();
    let mut transaction = crate::core::db::begin(&catalog.core.db).await?;
    bump_edition(&mut transaction, game_id, None, now).await?;
    sqlx::query("DELETE FROM game_pictures WHERE game_id = $1 AND kind = 'thumbnail'")
        .bind(game_id)
        .execute(&mut *transaction)
        .await?;
    match picture {
        Some((sha256, picture)) => {
            insert(game_id, "thumbnail", &sha256, picture, 0, now)
                .execute(&mut *transaction)
                .await?;
            sqlx::query("UPDATE games SET thumbnail_sha256 = $1 WHERE game_id = $2")
                .bind(&sha256)
                .bind(game_id)
                .execute(&mut *transaction)
                .await?;
            mark_edited(&mut transaction, game_id, &["thumbnail"], &[]).await?;
        }
        None => {
            sqlx::query(
                "UPDATE games SET thumbnail_sha256 = COALESCE((SELECT v.thumbnail_sha256
                   FROM game_versions v WHERE v.game_id = games.game_id AND v.revision = games.revision), '')
                 WHERE game_id = $1",
            )
            .bind(game_id)
            .execute(&mut *transaction)
            .await?;
            mark_edited(&mut transaction, game_id, &[], &["thumbnail"]).await?;
        }
    }
    transaction.commit().await?;
    game_changed(catalog, game_id).await?;
    Ok(Json(creator::find(catalog, game_id).await?))
}

/// The screenshots of a game, in order.
///
/// # Errors
/// When the database fails.
pub async fn of_game(
    db: &AnyPool,
    game_id: &str,
    grants: &Grants,
) -> Result<Vec<Screenshot>, sqlx::Error> {
    let rows = sqlx::query(
        "SELECT picture_id, sha256, width, height FROM game_pictures
         WHERE game_id = $1 AND kind = 'screenshot' ORDER BY position, picture_id LIMIT $2",
    )
    .bind(game_id)
    .bind(SCREENSHOTS_MAX as i64)
    .fetch_all(db)
    .await?;
    rows.iter()
        .map(|row| {
            Ok(Screenshot {
                id: row.try_get("picture_id")?,
                url: grants.cdn_url(row.try_get("sha256")?),
                width: to_u32(row.try_get("width")?),
                height: to_u32(row.try_get("height")?),
            })
        })
        .collect()
}

async fn list(catalog: &Catalog, game: &GameRow) -> Result<Json<ScreenshotList>, ApiError> {
    let grants = Grants::of(catalog, game.visibility, catalog.core.clock.now_s());
    let screenshots = of_game(&catalog.core.db, &game.game_id, &grants).await?;
    Ok(Json(ScreenshotList { screenshots }))
}

fn check(bytes: &Bytes) -> Result<PictureHeader, ApiError> {
    let refused = |message: String| {
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_picture", message)
    };
    let picture = header::read(bytes)
        .ok_or_else(|| refused("send a picture as PNG, JPEG or WebP".to_owned()))?;
    let sides = 1..=SIDE_MAX;
    if !sides.contains(&picture.width) || !sides.contains(&picture.height) {
        return Err(refused(format!(
            "the picture has {} × {} pixels; the maximum is {SIDE_MAX} × {SIDE_MAX}",
            picture.width, picture.height
        )));
    }
    Ok(picture)
}

fn insert<'q>(
    game_id: &'q str,
    kind: &'static str,
    sha256: &'q str,
    picture: PictureHeader,
    position: i64,
    now: i64,
) -> sqlx::query::Query<'q, sqlx::Any, sqlx::any::AnyArguments> {
    sqlx::query(
        "INSERT INTO game_pictures (picture_id, game_id, kind, sha256, media_type, width, height,
           position, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(ids::new_id("picture"))
    .bind(game_id)
    .bind(kind)
    .bind(sha256)
    .bind(picture.media_type)
    .bind(i64::from(picture.width))
    .bind(i64::from(picture.height))
    .bind(position)
    .bind(now)
}
