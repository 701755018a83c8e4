//! `/api/blocks`: blocks are stored with the account and requested by worlds.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use frolic_fleet_api::process::BLOCKS_MAX;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::{Block, BlockList};
use crate::community::Community;
use crate::community::auth::Session;
use crate::community::profiles::unknown_user;
use crate::core::clock::rfc3339;
use crate::core::db::{from_row, to_u32};
use crate::core::error::ApiError;
use crate::core::extract::{ApiPath, ApiQuery};
use crate::core::paging::PageQuery;

pub fn routes() -> OpenApiRouter<Arc<Community>> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(block, unblock))
}

from_row!(Block { user_id: "blocked_id", username, blocked_at: "created_at" => rfc3339 });

/// The users you have blocked
#[utoipa::path(get, path = "/api/blocks", tag = "social", params(PageQuery), security(("bearer" = [])),
    responses((status = 200, body = BlockList)))]
async fn list(
    State(community): State<Arc<Community>>,
    session: Session,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Result<Json<BlockList>, ApiError> {
    let page = query.page()?;
    let total: i64 = sqlx::query_scalar("SELECT COUNT(*) AS total FROM blocks WHERE user_id = $1")
        .bind(&session.user_id)
        .fetch_one(&community.core.db)
        .await?;
    let blocks = sqlx::query_as(
        "SELECT b.blocked_id, u.username, b.created_at FROM blocks b
         JOIN users u ON u.user_id = b.blocked_id WHERE b.user_id = $1
         ORDER BY b.created_at DESC, b.blocked_id LIMIT $2 OFFSET $3",
    )
    .bind(&session.user_id)
    .bind(page.limit())
    .bind(page.offset())
    .fetch_all(&community.core.db)
    .await?;
    Ok(Json(BlockList {
        blocks,
        total: to_u32(total),
        page: page.page,
        per_page: page.per_page,
    }))
}

/// Block a user: neither reads the other's chat
#[utoipa::path(put, path = "/api/blocks/{user_id}", tag = "social", security(("bearer" = [])),
    responses((status = 204), (status = 409)))]
async fn block(
    State(community): State<Arc<Community>>,
    session: Session,
    ApiPath(user_id): ApiPath<String>,
) -> Result<StatusCode, ApiError> {
    if user_id == session.user_id {
        return Err(ApiError::bad_request(
            "cannot_block_yourself",
            "you cannot block yourself",
        ));
    }
    let db = &community.core.db;
    let known = sqlx::query("SELECT user_id FROM users WHERE user_id = $1")
        .bind(&user_id)
        .fetch_optional(db)
        .await?;
    known.ok_or_else(unknown_user)?;
    let limit = i64::try_from(BLOCKS_MAX).unwrap_or(i64::MAX);
    let blocked = sqlx::query(
        "INSERT INTO blocks (user_id, blocked_id, created_at)
         SELECT $1, $2, $3 WHERE (SELECT COUNT(*) FROM blocks WHERE user_id = $1) < $4
           OR EXISTS (SELECT 1 FROM blocks WHERE user_id = $1 AND blocked_id = $2)
         ON CONFLICT (user_id, blocked_id) DO UPDATE SET created_at = blocks.created_at",
    )
    .bind(&session.user_id)
    .bind(&user_id)
    .bind(community.core.clock.now_ms())
    .bind(limit)
    .execute(db)
    .await?;
    if blocked.rows_affected() == 0 {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "too_many_blocks",
            format!("you have already blocked {BLOCKS_MAX} users; unblock one first"),
        ));
    }
    let expulsions = &community.expulsions;
    expulsions.block(&session.user_id, &user_id).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Unblock a user
#[utoipa::path(delete, path = "/api/blocks/{user_id}", tag = "social", security(("bearer" = [])),
    responses((status = 204, description = "also if the user was not blocked")))]
async fn unblock(
    State(community): State<Arc<Community>>,
    session: Session,
    ApiPath(user_id): ApiPath<String>,
) -> Result<StatusCode, ApiError> {
    sqlx::query("DELETE FROM blocks WHERE user_id = $1 AND blocked_id = $2")
        .bind(&session.user_id)
        .bind(&user_id)
        .execute(&community.core.db)
        .await?;
    let expulsions = &community.expulsions;
    expulsions.forget(&user_id, Some(&session.user_id)).await;
    Ok(StatusCode::NO_CONTENT)
}
