//! Helpers: users whom the owner of a world allows to enter it while it is private, to cast into it
//! and edit it without playing there, and to clear it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use sqlx::{AnyPool, Row};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::rest::{owned, owned_to_edit};
use crate::api::{WorldHelper, WorldHelpers};
use crate::community::auth::Principal;
use crate::community::profiles::unknown_user;
use crate::core::db::from_row;
use crate::core::error::ApiError;
use crate::core::extract::ApiPath;
use crate::core::names;
use crate::worlds::Worlds;
use crate::worlds::join::access;

/// Helpers per world.
const HELPERS_MAX: i64 = 50;

/// Routes of helpers.
pub fn routes() -> OpenApiRouter<Arc<Worlds>> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(allow, disallow))
}

/// Whether the user is a helper of the world.
///
/// # Errors
/// When the database fails.
pub async fn is_helper(db: &AnyPool, world_id: &str, user_id: &str) -> Result<bool, sqlx::Error> {
    let row =
        sqlx::query("SELECT 1 AS one FROM world_helpers WHERE world_id = $1 AND user_id = $2")
            .bind(world_id)
            .bind(user_id)
            .fetch_optional(db)
            .await?;
    Ok(row.is_some())
}

/// Helpers of your world
#[utoipa::path(
    get, path = "/world/{id}/helpers", tag = "worlds",
    responses(
        (status = 200, body = WorldHelpers),
        (status = 403, description = "the caller does not own the world"),
        (status = 404, description = "no such world"),
    ),
    security(("bearer" = []))
)]
async fn list(
    State(worlds): State<Arc<Worlds>>,
    principal: Principal,
    ApiPath(world_id): ApiPath<String>,
) -> Result<Json<WorldHelpers>, ApiError> {
    owned(&worlds, &principal, &world_id).await?;
    Ok(Json(of_world(&worlds.core.db, &world_id).await?))
}

/// Adds a helper, who may cast into your world and edit it without playing there
#[utoipa::path(
    put, path = "/world/{id}/helpers/{username}", tag = "worlds",
    params(
        ("username" = String, Path, description = "name of the user"),
    ),
    responses(
        (status = 200, body = WorldHelpers),
        (status = 403, description = "the caller does not own the world"),
        (status = 404, description = "no such world or user"),
        (status = 409, description = "the world has too many helpers"),
    ),
    security(("bearer" = []))
)]
async fn allow(
    State(worlds): State<Arc<Worlds>>,
    principal: Principal,
    ApiPath((world_id, username)): ApiPath<(String, String)>,
) -> Result<Json<WorldHelpers>, ApiError> {
    owned_to_edit(&worlds, &principal, &world_id).await?;
    let db = &worlds.core.db;
    let user_id = user_named(db, &username).await?;
    let mut transaction = crate::core::db::begin(db).await?;
    sqlx::query(
        "INSERT INTO world_helpers (world_id, user_id, created_at) VALUES ($1, $2, $3)
         ON CONFLICT (world_id, user_id) DO NOTHING",
    )
    .bind(&world_id)
    .bind(&user_id)
    .bind(worlds.core.clock.now_ms())
    .execute(&mut *transaction)
    .await?;
    let count: i64 =
        sqlx::query_scalar("SELECT COUNT(*) AS helpers FROM world_helpers WHERE world_id = $1")
            .bind(&world_id)
            .fetch_one(&mut *transaction)
            .await?;
    if count > HELPERS_MAX {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "too_many_helpers",
            format!("A world can have at most {HELPERS_MAX} helpers. Remove one first."),
        ));
    }
    transaction.commit().await?;
    Ok(Json(of_world(db, &world_id).await?))
}

/// Removes a helper
#[utoipa::path(
    delete, path = "/world/{id}/helpers/{username}", tag = "worlds",
    params(
        ("username" = String, Path, description = "name of the user"),
    ),
    responses(
        (status = 200, body = WorldHelpers),
        (status = 403, description = "the caller does not own the world"),
        (status = 404, description = "no such world or user"),
    ),
    security(("bearer" = []))
)]
async fn disallow(
    State(worlds): State<Arc<Worlds>>,
    principal: Principal,
    ApiPath((world_id, username)): ApiPath<(String, String)>,
) -> Result<Json<WorldHelpers>, ApiError> {
    let world = owned(&worlds, &principal, &world_id).await?;
    let db = &worlds.core.db;
    let user_id = user_named(db, &username).await?;
    sqlx::query("DELETE FROM world_helpers WHERE world_id = $1 AND user_id = $2")
        .bind(&world_id)
        .bind(&user_id)
        .execute(db)
        .await?;
    // A block did not concern them while they were a helper.
    if access::is_blocked(db, world.owner_id(), &user_id).await? {
        let expulsions = &worlds.community.expulsions;
        expulsions.block(world.owner_id(), &user_id).await;
    }
    Ok(Json(of_world(db, &world_id).await?))
}

async fn user_named(db: &AnyPool, username: &str) -> Result<String, ApiError> {
    let name = names::clean(username).ok_or_else(unknown_user)?;
    let row = sqlx::query("SELECT user_id FROM users WHERE username_key = $1")
        .bind(names::key(&name))
        .fetch_optional(db)
        .await?;
    Ok(row.ok_or_else(unknown_user)?.try_get("user_id")?)
}

from_row!(WorldHelper { user_id, username });

async fn of_world(db: &AnyPool, world_id: &str) -> Result<WorldHelpers, sqlx::Error> {
    let helpers = sqlx::query_as(
        "SELECT h.user_id, u.username FROM world_helpers h JOIN users u ON u.user_id = h.user_id
         WHERE h.world_id = $1 ORDER BY u.username_key",
    )
    .bind(world_id)
    .fetch_all(db)
    .await?;
    Ok(WorldHelpers { helpers })
}
