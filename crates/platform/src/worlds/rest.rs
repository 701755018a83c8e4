//! `GET /worlds`, `POST /worlds` and `GET|PATCH|DELETE /world/{id}`.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{COLUMNS, NewWorldSpec, WorldRow, find, unknown_world};
use crate::api::limits::{WORLD_DESCRIPTION_CHARS_MAX, WORLD_NAME_CHARS_MAX};
use crate::api::{NewWorld, WorldChange, WorldInfo, WorldList};
use crate::catalog::games::{self, GameRow};
use crate::catalog::{access, channels};
use crate::community::auth::{Principal, Session};
use crate::community::sanctions::{self, ActiveSession};
use crate::core::db::to_u32;
use crate::core::error::ApiError;
use crate::core::extract::{ApiJson, ApiPath, ApiQuery, OptionalJson};
use crate::core::names;
use crate::core::paging::{PER_PAGE, Page};
use crate::core::texts;
use crate::worlds::Worlds;

/// Worlds that one user may own.
const OWNED_MAX: i64 = 50;
/// Additional time that the process of a deleted or restored world gets to stop.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Routes of worlds, except those with large bodies.
pub fn routes() -> OpenApiRouter<Arc<Worlds>> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(show, change, delete))
}

/// Query of `GET /worlds`.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Only worlds of this game.
    #[serde(default)]
    game_id: Option<String>,
    /// Only your own worlds, including private and stopped ones.
    #[serde(default)]
    mine: bool,
    /// Page number, from 1.
    #[param(minimum = 1, maximum = 10_000)]
    page: Option<u32>,
    /// Worlds on a page.
    #[param(minimum = 1, maximum = 100)]
    per_page: Option<u32>,
}

/// Lists worlds, the fullest first. Private worlds and worlds of games that are not public are
/// shown to their owners only.
#[utoipa::path(
    get, path = "/worlds", tag = "worlds", params(ListQuery),
    responses(
        (status = 200, body = WorldList),
        (status = 401, description = "`mine` without a valid token"),
    ),
    security((), ("bearer" = []))
)]
async fn list(
    State(worlds): State<Arc<Worlds>>,
    principal: Principal,
    ApiQuery(query): ApiQuery<ListQuery>,
) -> Result<Json<WorldList>, ApiError> {
    if query.mine && principal.user_id.is_empty() {
        return Err(ApiError::unauthorized(
            "missing_token",
            "log in to see your own worlds",
        ));
    }
    let page = Page::of(query.page, query.per_page, PER_PAGE)?;
    // Both filters take the same two parameters, so that one query suffices.
    let (filter, order) = if query.mine {
        ("owner_id = $1", "updated_at DESC, world_id")
    } else {
        (
            "$1 = $1 AND private = 0 AND game_id IN (SELECT game_id FROM games WHERE visibility = 'public')",
            "player_count DESC, updated_at DESC, world_id",
        )
    };
    let filter = format!("{filter} AND ($2 = '' OR game_id = $2)");
    let game_id = query.game_id.unwrap_or_default();
    let count = format!("SELECT COUNT(*) AS total FROM worlds WHERE {filter}");
    let total: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(count))
        .bind(&principal.user_id)
        .bind(&game_id)
        .fetch_one(&worlds.core.db)
        .await?;
    let select =
        format!("SELECT {COLUMNS} FROM worlds WHERE {filter} ORDER BY {order} LIMIT $3 OFFSET $4");
    let rows: Vec<WorldRow> = sqlx::query_as(sqlx::AssertSqlSafe(select))
        .bind(&principal.user_id)
        .bind(&game_id)
        .bind(page.limit())
        .bind(page.offset())
        .fetch_all(&worlds.core.db)
        .await?;
    let worlds = rows.into_iter().map(|row| row.info(&worlds)).collect();
    Ok(Json(WorldList {
        worlds,
        total: to_u32(total),
        page: page.page,
        per_page: page.per_page,
    }))
}

/// Creates a world that you own. It starts when a player joins it, and is stored until you delete
/// it.
#[utoipa::path(
    post, path = "/worlds", tag = "worlds", request_body = Option<NewWorld>,
    responses(
        (status = 201, body = WorldInfo),
        (status = 403, description = "the caller is suspended"),
        (status = 404, description = "no such game"),
        (status = 409, description = "the caller has too many worlds"),
        (status = 413, description = "the body is too large"),
    ),
    security(("bearer" = []))
)]
async fn create(
    State(worlds): State<Arc<Worlds>>,
    ActiveSession(session): ActiveSession,
    OptionalJson(request): OptionalJson<NewWorld>,
) -> Result<Response, ApiError> {
    let world = create_owned(&worlds, &session, request).await?;
    publish_list(&worlds).await?;
    let info = world.info(&worlds);
    let mut response = (StatusCode::CREATED, Json(&info)).into_response();
    if let Ok(location) = HeaderValue::from_str(&format!("/world/{}", info.world_id)) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// Creates a world owned by `owner`.
///
/// # Errors
/// 404 for a game that the user may not see, 409 when the user has too many worlds.
pub async fn create_owned(
    worlds: &Worlds,
    owner: &Session,
    request: NewWorld,
) -> Result<WorldRow, ApiError> {
    let db = &worlds.core.db;
    let game_id = request.game_id.or_else(|| worlds.catalog.default_game());
    let game = games::find(db, &game_id.unwrap_or_default())
        .await?
        .filter(|game| access::may_see(game, owner))
        .ok_or_else(games::unknown_game)?;
    let game = channels::for_player(db, game, owner, None).await?;
    let owned: i64 =
        sqlx::query_scalar("SELECT COUNT(*) AS owned FROM worlds WHERE owner_id = $1 AND kept = 1")
            .bind(&owner.user_id)
            .fetch_one(db)
            .await?;
    if owned >= OWNED_MAX {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "too_many_worlds",
            format!("you already have {OWNED_MAX} worlds; delete one first"),
        ));
    }
    let name = readable(request.name.as_deref().unwrap_or_default());
    if let Some(name) = &name {
        names::check_inoffensive(&worlds.core.settings, name)?;
    }
    let name = name.unwrap_or_else(|| default_name(owner, &game));
    let description = request.description.unwrap_or_default();
    let description = texts::lines(&description, WORLD_DESCRIPTION_CHARS_MAX);
    let spec = NewWorldSpec {
        name: &name,
        description: &description,
        created_by: &owner.user_id,
        owned: true,
        kept: true,
        private: request.private.unwrap_or(false),
    };
    let spec = super::create(db, &game, spec, worlds.core.clock.now_ms()).await?;
    let world = find(db, &spec.world_id).await?;
    world.ok_or_else(unknown_world)
}

fn default_name(owner: &Session, game: &GameRow) -> String {
    let name = format!("{}: {}", game.name, owner.username);
    readable(&name).unwrap_or_else(|| game.name.clone())
}

fn readable(name: &str) -> Option<String> {
    Some(texts::line(name, WORLD_NAME_CHARS_MAX)).filter(|name| !name.is_empty())
}

/// Returns one world.
#[utoipa::path(
    get, path = "/world/{id}", tag = "worlds",
    responses(
        (status = 200, body = WorldInfo),
        (status = 401, description = "invalid token"),
        (status = 404, description = "no such world, or the caller may not see it"),
    ),
    security((), ("bearer" = []))
)]
async fn show(
    State(worlds): State<Arc<Worlds>>,
    principal: Principal,
    ApiPath(world_id): ApiPath<String>,
) -> Result<Json<WorldInfo>, ApiError> {
    let world = visible(&worlds, &principal, &world_id).await?;
    Ok(Json(world.info(&worlds)))
}

/// The world, if `principal` may see it.
///
/// # Errors
/// 404 for worlds that do not exist and for those that the caller may not see.
pub(super) async fn visible(
    worlds: &Worlds,
    principal: &Principal,
    world_id: &str,
) -> Result<WorldRow, ApiError> {
    let db = &worlds.core.db;
    let world = find(db, world_id).await?.ok_or_else(unknown_world)?;
    let game = games::find(db, &world.spec.game_id).await?;
    game.filter(|game| {
        let open = !world.spec.private && game.open_to(&principal.user_id);
        open || principal.is_admin() || world.is_owned_by(&principal.user_id)
    })
    .map(|_| world)
    .ok_or_else(unknown_world)
}

/// The world, if `principal` may change it.
///
/// # Errors
/// 404, 401 or 403.
pub(super) async fn owned(
    worlds: &Worlds,
    principal: &Principal,
    world_id: &str,
) -> Result<WorldRow, ApiError> {
    principal.require_login()?;
    let world = visible(worlds, principal, world_id).await?;
    if principal.is_admin() || world.is_owned_by(&principal.user_id) {
        return Ok(world);
    }
    Err(ApiError::forbidden(
        "only the owner of this world and admins may do this",
    ))
}

/// Loads a world that `principal` may change, and rejects suspended users. Calls that only remove
/// things use [`owned`], which admits suspended owners.
///
/// # Errors
/// 404, 401 or 403.
pub(super) async fn owned_to_edit(
    worlds: &Worlds,
    principal: &Principal,
    world_id: &str,
) -> Result<WorldRow, ApiError> {
    let world = owned(worlds, principal, world_id).await?;
    let now = worlds.core.clock.now_ms();
    sanctions::refuse_suspended(&worlds.core.db, &principal.user_id, now).await?;
    Ok(world)
}

/// Changes the name, the description and the privacy of a world.
#[utoipa::path(
    patch, path = "/world/{id}", tag = "worlds", request_body = WorldChange,
    responses(
        (status = 200, body = WorldInfo),
        (status = 403, description = "the caller does not own the world"),
        (status = 404, description = "no such world"),
        (status = 409, description = "the world was changed since `version`"),
        (status = 413, description = "the body is too large"),
    ),
    security(("bearer" = []))
)]
async fn change(
    State(worlds): State<Arc<Worlds>>,
    principal: Principal,
    ApiPath(world_id): ApiPath<String>,
    ApiJson(change): ApiJson<WorldChange>,
) -> Result<Json<WorldInfo>, ApiError> {
    let world = owned_to_edit(&worlds, &principal, &world_id).await?;
    let name = match &change.name {
        None => world.name.clone(),
        Some(typed) => readable(typed).ok_or_else(|| {
            ApiError::bad_request(
                "invalid_name",
                "the name of a world must contain readable characters",
            )
        })?,
    };
    names::check_inoffensive(&worlds.core.settings, &name)?;
    let description = change.description.as_ref();
    let description = description.map_or(world.description.clone(), |typed| {
        texts::lines(typed, WORLD_DESCRIPTION_CHARS_MAX)
    });
    let private = change.private.unwrap_or(world.spec.private);
    let changed = sqlx::query(
        "UPDATE worlds SET name = $1, description = $2, private = $3, version = version + 1,
           updated_at = $4 WHERE world_id = $5 AND version = $6",
    )
    .bind(&name)
    .bind(&description)
    .bind(i64::from(private))
    .bind(worlds.core.clock.now_ms())
    .bind(&world_id)
    .bind(i64::from(change.version))
    .execute(&worlds.core.db)
    .await?;
    let now = find(&worlds.core.db, &world_id)
        .await?
        .ok_or_else(unknown_world)?;
    if changed.rows_affected() == 0 {
        let error = ApiError::new(
            StatusCode::CONFLICT,
            "changed_meanwhile",
            "this world was changed in the meantime; reload it and repeat your change",
        );
        return Err(error.with_details(serde_json::json!({ "version": now.version })));
    }
    if let Some(server) = worlds.fleet.server(&world_id) {
        server.set_private(private);
    }
    publish_list(&worlds).await?;
    Ok(Json(now.info(&worlds)))
}

/// Deletes a world with its persisted state, and disconnects its players.
#[utoipa::path(
    delete, path = "/world/{id}", tag = "worlds",
    responses(
        (status = 204, description = "the world is deleted"),
        (status = 403, description = "the caller does not own the world"),
        (status = 404, description = "no such world"),
    ),
    security(("bearer" = []))
)]
async fn delete(
    State(worlds): State<Arc<Worlds>>,
    principal: Principal,
    ApiPath(world_id): ApiPath<String>,
) -> Result<StatusCode, ApiError> {
    owned(&worlds, &principal, &world_id).await?;
    // The row is deleted first: from then on no player can join, and writes of its process are
    // refused.
    super::delete(&worlds.core.db, &world_id).await?;
    end(&worlds, &world_id).await;
    publish_list(&worlds).await?;
    tracing::info!(world = world_id, by = principal.user_id, "world deleted");
    Ok(StatusCode::NO_CONTENT)
}

/// Sends the new list of worlds to Socket.IO clients.
async fn publish_list(worlds: &Worlds) -> Result<(), sqlx::Error> {
    let listed = super::public(worlds).await?;
    let event = serde_json::json!({ "worlds": listed });
    worlds.notifier.broadcast("world.list_updated", &event);
    Ok(())
}

/// Stops a world's process and waits for its end, up to a timeout.
pub(super) async fn end(worlds: &Worlds, world_id: &str) {
    if let Some(server) = worlds.fleet.server(world_id) {
        worlds.fleet.stop(world_id);
        let limit = worlds.core.settings.fleet.stop_grace + END_TIMEOUT;
        let _ = tokio::time::timeout(limit, server.ended()).await;
    }
}
