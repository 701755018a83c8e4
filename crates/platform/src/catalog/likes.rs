//! Likes: one per user and game, and the list of a user's.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use sqlx::{AnyPool, Row};

use super::access::{self, OptionalSession};
use super::games::{self, SUMMARY_COLUMNS};
use super::{assets, ranking};
use crate::api::{GameList, GameVisibility, LikeState};
use crate::catalog::Catalog;
use crate::community::auth::Session;
use crate::core::db::to_u32;
use crate::core::error::ApiError;
use crate::core::extract::{ApiPath, ApiQuery};
use crate::core::paging::PageQuery;

/// Games of `game_likes l` that their user may still see.
const VISIBLE: &str = "game_likes l JOIN games g ON g.game_id = l.game_id
     JOIN users u ON u.user_id = g.creator_id
     WHERE l.user_id = $1 AND (g.visibility <> 'private' OR g.creator_id = $1)";

/// Lists the games that you like, the last liked first.
///
/// # Errors
/// 400 for an invalid page.
#[utoipa::path(
    get, path = "/api/me/likes", tag = "store", params(PageQuery),
    responses((status = 200, body = GameList)),
    security(("bearer" = []))
)]
pub async fn liked(
    State(catalog): State<Arc<Catalog>>,
    session: Session,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Result<Json<GameList>, ApiError> {
    let page = query.page()?;
    let (db, now_s) = (&catalog.core.db, catalog.core.clock.now_s());
    let count = format!("SELECT COUNT(*) AS total FROM {VISIBLE}");
    let total: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(count))
        .bind(&session.user_id)
        .fetch_one(db)
        .await?;
    let query = format!(
        "SELECT {SUMMARY_COLUMNS}, g.visibility FROM {VISIBLE}
         ORDER BY l.created_at DESC, g.game_id LIMIT $2 OFFSET $3"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(query))
        .bind(&session.user_id)
        .bind(page.limit())
        .bind(page.offset())
        .fetch_all(db)
        .await?;
    let summaries = rows.iter().map(|row| {
        let visibility = GameVisibility::from_name(row.try_get("visibility")?);
        let grants = assets::Grants::of(&catalog, visibility, now_s);
        let players = games::players_now(&catalog, row.try_get("game_id")?);
        games::summary(row, players, &grants)
    });
    Ok(Json(GameList {
        games: summaries.collect::<Result<_, sqlx::Error>>()?,
        total: to_u32(total),
        page: page.page,
        page_size: page.per_page,
    }))
}

/// Likes a game. Idempotent.
///
/// # Errors
/// 404 when the game does not exist.
#[utoipa::path(
    put, path = "/api/games/{id}/like", tag = "store",
    responses((status = 200, body = LikeState)),
    security(("bearer" = []))
)]
pub async fn like(
    State(catalog): State<Arc<Catalog>>,
    session: Session,
    ApiPath(game_id): ApiPath<String>,
) -> Result<Json<LikeState>, ApiError> {
    set(&catalog, session, &game_id, true).await
}

/// Removes your like. Idempotent.
///
/// # Errors
/// 404 when the game does not exist.
#[utoipa::path(
    delete, path = "/api/games/{id}/like", tag = "store",
    responses((status = 200, body = LikeState)),
    security(("bearer" = []))
)]
pub async fn unlike(
    State(catalog): State<Arc<Catalog>>,
    session: Session,
    ApiPath(game_id): ApiPath<String>,
) -> Result<Json<LikeState>, ApiError> {
    set(&catalog, session, &game_id, false).await
}

/// Whether a user likes a game.
///
/// # Errors
/// When the database fails.
pub async fn likes(db: &AnyPool, game_id: &str, user_id: &str) -> Result<bool, sqlx::Error> {
    let row = sqlx::query("SELECT 1 AS liked FROM game_likes WHERE game_id = $1 AND user_id = $2")
        .bind(game_id)
        .bind(user_id)
        .fetch_optional(db)
        .await?;
    Ok(row.is_some())
}

async fn set(
    catalog: &Catalog,
    session: Session,
    game_id: &str,
    liked: bool,
) -> Result<Json<LikeState>, ApiError> {
    let user_id = session.user_id.clone();
    let viewer = OptionalSession(Some(session));
    access::visible(&catalog.core.db, game_id, &viewer).await?;
    let now = catalog.core.clock.now_ms();
    let mut transaction = crate::core::db::begin(&catalog.core.db).await?;
    // Lock the game's row first, which serializes concurrent likes of one user.
    sqlx::query("UPDATE games SET likes = likes WHERE game_id = $1")
        .bind(game_id)
        .execute(&mut *transaction)
        .await?;
    let row = sqlx::query("SELECT created_at FROM game_likes WHERE game_id = $1 AND user_id = $2")
        .bind(game_id)
        .bind(&user_id)
        .fetch_optional(&mut *transaction)
        .await?;
    let since: Option<i64> = row.map(|row| row.try_get("created_at")).transpose()?;
    let (change, heat): (i64, f64) = match (since, liked) {
        (None, true) => {
            sqlx::query(
                "INSERT INTO game_likes (game_id, user_id, created_at) VALUES ($1, $2, $3)",
            )
            .bind(game_id)
            .bind(&user_id)
            .bind(now)
            .execute(&mut *transaction)
            .await?;
            (1, ranking::like_heat(now))
        }
        (Some(since), false) => {
            sqlx::query("DELETE FROM game_likes WHERE game_id = $1 AND user_id = $2")
                .bind(game_id)
                .bind(&user_id)
                .execute(&mut *transaction)
                .await?;
            (-1, -ranking::like_heat(since))
        }
        _ => (0, 0.0),
    };
    sqlx::query(
        "UPDATE games SET likes = likes + $1, like_heat = like_heat + $2 WHERE game_id = $3",
    )
    .bind(change)
    .bind(heat)
    .bind(game_id)
    .execute(&mut *transaction)
    .await?;
    let row = sqlx::query("SELECT likes FROM games WHERE game_id = $1")
        .bind(game_id)
        .fetch_one(&mut *transaction)
        .await?;
    let likes = to_u32(row.try_get("likes")?);
    transaction.commit().await?;
    catalog.cache.set_likes(game_id, likes, heat);
    Ok(Json(LikeState { liked, likes }))
}
