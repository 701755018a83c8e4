//! A creator's own games, including hidden ones.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::assets::Grants;
use super::games::{SUMMARY_COLUMNS, players_now, summary, unknown_game};
use super::{access, channels, pictures};
use crate::api::{CreatorGame, CreatorGameList, GameVisibility};
use crate::catalog::Catalog;
use crate::community::auth::Session;
use crate::core::clock::rfc3339;
use crate::core::db::to_u32;
use crate::core::error::ApiError;
use crate::core::extract::{ApiPath, ApiQuery};
use crate::core::paging::PageQuery;

const COLUMNS: &str = "g.visibility, g.chosen_visibility, g.published, g.taken_down, g.featured, \
     g.downloads, g.edition, g.edited, g.created_at, g.updated_at";

/// Your games, the last changed first.
///
/// # Errors
/// 400 for an invalid page.
#[utoipa::path(
    get, path = "/api/creator/games", tag = "creator",
    params(PageQuery),
    responses((status = 200, body = CreatorGameList)),
    security(("bearer" = []))
)]
pub async fn games(
    State(catalog): State<Arc<Catalog>>,
    session: Session,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Result<Json<CreatorGameList>, ApiError> {
    let db = &catalog.core.db;
    let paging = query.page()?;
    let total = sqlx::query("SELECT COUNT(*) AS total FROM games WHERE creator_id = $1")
        .bind(&session.user_id)
        .fetch_one(db)
        .await?;
    let query = format!(
        "SELECT {SUMMARY_COLUMNS}, {COLUMNS} FROM games g JOIN users u ON u.user_id = g.creator_id
         WHERE g.creator_id = $1 ORDER BY g.updated_at DESC, g.game_id LIMIT $2 OFFSET $3"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(query))
        .bind(&session.user_id)
        .bind(paging.limit())
        .bind(paging.offset())
        .fetch_all(db)
        .await?;
    let mut games = Vec::with_capacity(rows.len());
    for row in &rows {
        games.push(read(&catalog, row).await?);
    }
    Ok(Json(CreatorGameList {
        games,
        total: to_u32(total.try_get("total")?),
        page: paging.page,
        page_size: paging.per_page,
    }))
}

/// One of your games.
///
/// # Errors
/// 404 for a game you cannot see, 403 for another creator's.
#[utoipa::path(
    get, path = "/api/creator/games/{id}", tag = "creator",
    responses(
        (status = 200, body = CreatorGame),
        (status = 403),
    ),
    security(("bearer" = []))
)]
pub async fn game(
    State(catalog): State<Arc<Catalog>>,
    session: Session,
    ApiPath(game_id): ApiPath<String>,
) -> Result<Json<CreatorGame>, ApiError> {
    access::owned(&catalog.core.db, &game_id, &session).await?;
    Ok(Json(find(&catalog, &game_id).await?))
}

/// A game as its creator sees it.
///
/// # Errors
/// 404 when it does not exist.
pub async fn find(catalog: &Catalog, game_id: &str) -> Result<CreatorGame, ApiError> {
    let query = format!(
        "SELECT {SUMMARY_COLUMNS}, {COLUMNS} FROM games g JOIN users u ON u.user_id = g.creator_id
         WHERE g.game_id = $1"
    );
    let row = sqlx::query(sqlx::AssertSqlSafe(query))
        .bind(game_id)
        .fetch_optional(&catalog.core.db)
        .await?
        .ok_or_else(unknown_game)?;
    Ok(read(catalog, &row).await?)
}

async fn read(catalog: &Catalog, row: &AnyRow) -> Result<CreatorGame, sqlx::Error> {
    let db = &catalog.core.db;
    let game_id: String = row.try_get("game_id")?;
    let visible_now = GameVisibility::from_name(row.try_get("visibility")?);
    let grants = Grants::of(catalog, visible_now, catalog.core.clock.now_s());
    let flag = |column| Ok::<_, sqlx::Error>(row.try_get::<i64, _>(column)? != 0);
    let edited: String = row.try_get("edited")?;
    Ok(CreatorGame {
        summary: summary(row, players_now(catalog, &game_id), &grants)?,
        visibility: GameVisibility::from_name(row.try_get("chosen_visibility")?),
        published: flag("published")?,
        taken_down: flag("taken_down")?,
        featured: flag("featured")?,
        downloads: flag("downloads")?,
        edition: to_u32(row.try_get("edition")?),
        edited: serde_json::from_str(&edited).unwrap_or_default(),
        screenshots: pictures::of_game(db, &game_id, &grants).await?,
        channels: channels::of_game(db, &game_id).await?,
        created_at: rfc3339(row.try_get("created_at")?),
        updated_at: rfc3339(row.try_get("updated_at")?),
    })
}
