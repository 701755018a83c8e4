//! `GET /worlds`, `POST /worlds` and `GET|PATCH|DELETE /world/{id}`.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use sqlx::Row;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{
    Asker, COLUMNS, DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX, NewWorldSpec, WorldRow, find,
    unknown_world,
};
use crate::Platform;
use crate::api::{ErrorBody, NewWorld, WorldChange, WorldInfo, WorldList};
use crate::catalog::games::{self, GameRow};
use crate::catalog::{access, channels};
use crate::core::auth::Session;
use crate::core::db::to_u32;
use crate::core::error::ApiError;
use crate::core::extract::{ApiJson, ApiPath, ApiQuery, OptionalJson};
use crate::core::names;
use crate::core::paging::{PER_PAGE, Page};
use crate::core::texts;
use crate::moderation::{self, ActiveSession};

/// Worlds that one user may own.
const OWNED_MAX: i64 = 50;
/// Additional time that the process of a deleted or restored world gets to stop.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Routes of worlds, except those with large bodies.
pub fn routes() -> OpenApiRouter<Platform> {
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
        (status = 400, description = "malformed query", body = ErrorBody),
        (status = 401, description = "`mine` without a valid token", body = ErrorBody),
    ),
    security((), ("bearer" = []))
)]
async fn list(
    State(platform): State<Platform>,
    asker: Asker,
    ApiQuery(query): ApiQuery<ListQuery>,
) -> Result<Json<WorldList>, ApiError> {
    if query.mine && asker.user_id().is_empty() {
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
    let total: i64 = sqlx::query(sqlx::AssertSqlSafe(count))
        .bind(asker.user_id())
        .bind(&game_id)
        .fetch_one(platform.db())
        .await?
        .try_get("total")?;
    let select =
        format!("SELECT {COLUMNS} FROM worlds WHERE {filter} ORDER BY {order} LIMIT $3 OFFSET $4");
    let rows = sqlx::query(sqlx::AssertSqlSafe(select))
        .bind(asker.user_id())
        .bind(&game_id)
        .bind(page.limit())
        .bind(page.offset())
        .fetch_all(platform.db())
        .await?;
    let worlds = rows
        .iter()
        .map(|row| Ok(WorldRow::read(row)?.info(&platform)))
        .collect::<Result<_, sqlx::Error>>()?;
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
        (status = 400, description = "malformed request body", body = ErrorBody),
        (status = 401, description = "missing or invalid token", body = ErrorBody),
        (status = 403, description = "the caller is suspended", body = ErrorBody),
        (status = 404, description = "no such game", body = ErrorBody),
        (status = 409, description = "the caller has too many worlds", body = ErrorBody),
        (status = 413, description = "the body is too large", body = ErrorBody),
    ),
    security(("bearer" = []))
)]
async fn create(
    State(platform): State<Platform>,
    ActiveSession(session): ActiveSession,
    OptionalJson(request): OptionalJson<NewWorld>,
) -> Result<Response, ApiError> {
    let world = create_owned(&platform, &session, request).await?;
    publish_list(&platform).await?;
    let info = world.info(&platform);
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
    platform: &Platform,
    owner: &Session,
    request: NewWorld,
) -> Result<WorldRow, ApiError> {
    let db = platform.db();
    let game_id = request.game_id.or_else(|| platform.default_game());
    let game = games::find(db, &game_id.unwrap_or_default())
        .await?
        .filter(|game| access::may_see(game, owner))
        .ok_or_else(games::unknown_game)?;
    let game = channels::for_player(db, game, owner, None).await?;
    let owned: i64 =
        sqlx::query("SELECT COUNT(*) AS owned FROM worlds WHERE owner_id = $1 AND kept = 1")
            .bind(&owner.user_id)
            .fetch_one(db)
            .await?
            .try_get("owned")?;
    if owned >= OWNED_MAX {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "too_many_worlds",
            format!("you already have {OWNED_MAX} worlds; delete one first"),
        ));
    }
    let name = readable(request.name.as_deref().unwrap_or_default());
    if let Some(name) = &name {
        names::check_inoffensive(platform, name)?;
    }
    let name = name.unwrap_or_else(|| default_name(owner, &game));
    let description = request.description.unwrap_or_default();
    let description = texts::lines(&description, DESCRIPTION_CHARS_MAX);
    let spec = NewWorldSpec {
        name: &name,
        description: &description,
        created_by: &owner.user_id,
        owned: true,
        kept: true,
        private: request.private.unwrap_or(false),
    };
    let spec = super::create(db, &game, spec, platform.clock().now_ms()).await?;
    let world = find(db, &spec.world_id).await?;
    world.ok_or_else(unknown_world)
}

fn default_name(owner: &Session, game: &GameRow) -> String {
    let name = format!("{}: {}", game.name, owner.username);
    readable(&name).unwrap_or_else(|| game.name.clone())
}

fn readable(name: &str) -> Option<String> {
    Some(texts::line(name, NAME_CHARS_MAX)).filter(|name| !name.is_empty())
}

/// Returns one world.
#[utoipa::path(
    get, path = "/world/{id}", tag = "worlds",
    params(("id" = String, Path, description = "id of the world")),
    responses(
        (status = 200, body = WorldInfo),
        (status = 400, description = "malformed path", body = ErrorBody),
        (status = 401, description = "invalid token", body = ErrorBody),
        (status = 404, description = "no such world, or the caller may not see it", body = ErrorBody),
    ),
    security((), ("bearer" = []))
)]
async fn show(
    State(platform): State<Platform>,
    asker: Asker,
    ApiPath(world_id): ApiPath<String>,
) -> Result<Json<WorldInfo>, ApiError> {
    let world = visible(&platform, &asker, &world_id).await?;
    Ok(Json(world.info(&platform)))
}

/// The world, if `asker` may see it.
///
/// # Errors
/// 404 for worlds that do not exist and for those that the caller may not see.
pub(super) async fn visible(
    platform: &Platform,
    asker: &Asker,
    world_id: &str,
) -> Result<WorldRow, ApiError> {
    let db = platform.db();
    let world = find(db, world_id).await?.ok_or_else(unknown_world)?;
    let game = games::find(db, &world.spec.game_id).await?;
    game.filter(|game| asker.sees(&world, game))
        .map(|_| world)
        .ok_or_else(unknown_world)
}

/// The world, if `asker` may change it.
///
/// # Errors
/// 404, 401 or 403.
pub(super) async fn owned(
    platform: &Platform,
    asker: &Asker,
    world_id: &str,
) -> Result<WorldRow, ApiError> {
    asker.require_login()?;
    let world = visible(platform, asker, world_id).await?;
    asker.require_owner(&world)?;
    Ok(world)
}

/// Loads a world that `asker` may change, and rejects suspended users. Calls that only remove
/// things use [`owned`], which admits suspended owners.
///
/// # Errors
/// 404, 401 or 403.
pub(super) async fn owned_to_edit(
    platform: &Platform,
    asker: &Asker,
    world_id: &str,
) -> Result<WorldRow, ApiError> {
    let world = owned(platform, asker, world_id).await?;
    let now = platform.clock().now_ms();
    moderation::refuse_suspended(platform.db(), asker.user_id(), now).await?;
    Ok(world)
}

/// Changes the name, the description and the privacy of a world.
#[utoipa::path(
    patch, path = "/world/{id}", tag = "worlds", request_body = WorldChange,
    params(("id" = String, Path, description = "id of the world")),
    responses(
        (status = 200, body = WorldInfo),
        (status = 400, description = "malformed request body", body = ErrorBody),
        (status = 401, description = "missing or invalid token", body = ErrorBody),
        (status = 403, description = "the caller does not own the world", body = ErrorBody),
        (status = 404, description = "no such world", body = ErrorBody),
        (status = 409, description = "the world was changed since `version`", body = ErrorBody),
        (status = 413, description = "the body is too large", body = ErrorBody),
    ),
    security(("bearer" = []))
)]
async fn change(
    State(platform): State<Platform>,
    asker: Asker,
    ApiPath(world_id): ApiPath<String>,
    ApiJson(change): ApiJson<WorldChange>,
) -> Result<Json<WorldInfo>, ApiError> {
    let world = owned_to_edit(&platform, &asker, &world_id).await?;
    let name = match &change.name {
        None => world.name.clone(),
        Some(typed) => readable(typed).ok_or_else(|| {
            ApiError::bad_request(
                "invalid_name",
                "the name of a world must contain readable characters",
            )
        })?,
    };
    names::check_inoffensive(&platform, &name)?;
    let description = change.description.as_ref();
    let description = description.map_or(world.description.clone(), |typed| {
        texts::lines(typed, DESCRIPTION_CHARS_MAX)
    });
    let private = change.private.unwrap_or(world.spec.private);
    let changed = sqlx::query(
        "UPDATE worlds SET name = $1, description = $2, private = $3, version = version + 1,
           updated_at = $4 WHERE world_id = $5 AND version = $6",
    )
    .bind(&name)
    .bind(&description)
    .bind(i64::from(private))
    .bind(platform.clock().now_ms())
    .bind(&world_id)
    .bind(i64::from(change.version))
    .execute(platform.db())
    .await?;
    let now = find(platform.db(), &world_id)
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
    if let Some(server) = platform.fleet().server(&world_id) {
        server.set_private(private);
    }
    publish_list(&platform).await?;
    Ok(Json(now.info(&platform)))
}

/// Deletes a world with its persisted state, and disconnects its players.
#[utoipa::path(
    delete, path = "/world/{id}", tag = "worlds",
    params(("id" = String, Path, description = "id of the world")),
    responses(
        (status = 204, description = "the world is deleted"),
        (status = 400, description = "malformed path", body = ErrorBody),
        (status = 401, description = "missing or invalid token", body = ErrorBody),
        (status = 403, description = "the caller does not own the world", body = ErrorBody),
        (status = 404, description = "no such world", body = ErrorBody),
    ),
    security(("bearer" = []))
)]
async fn delete(
    State(platform): State<Platform>,
    asker: Asker,
    ApiPath(world_id): ApiPath<String>,
) -> Result<StatusCode, ApiError> {
    owned(&platform, &asker, &world_id).await?;
    // The row is deleted first: from then on no player can join, and writes of its process are
    // refused.
    super::delete(platform.db(), &world_id).await?;
    end(&platform, &world_id).await;
    publish_list(&platform).await?;
    tracing::info!(world = world_id, by = asker.user_id(), "world deleted");
    Ok(StatusCode::NO_CONTENT)
}

/// Sends the new list of worlds to Socket.IO clients.
async fn publish_list(platform: &Platform) -> Result<(), sqlx::Error> {
    let listed = super::public(platform).await?;
    let event = serde_json::json!({ "worlds": listed });
    platform.sockets().broadcast("world.list_updated", &event);
    Ok(())
}

/// Stops a world's process and waits for its end, up to a timeout.
pub(super) async fn end(platform: &Platform, world_id: &str) {
    if let Some(server) = platform.fleet().server(world_id) {
        platform.fleet().stop(world_id);
        let limit = platform.settings().fleet.stop_grace + END_TIMEOUT;
        let _ = tokio::time::timeout(limit, server.ended()).await;
    }
}
