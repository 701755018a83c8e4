//! Saves of a world's persisted state, and restoring them: `POST /world/{id}` and related routes.
//!
//! The database always contains the complete persisted state (`log.rs`), so a save does not
//! involve the world's process. A restore stops the process first. It also increments the world's
//! epoch, so that a process started in between cannot overwrite the restored state.

use std::sync::Arc;

use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use frolic_fleet_api::persist::SavedWorld;
use sqlx::{AnyConnection, Row};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::rest::{end, owned, owned_to_edit};
use super::state;
use crate::api::limits::SAVE_LABEL_CHARS_MAX;
use crate::api::{WorldSave, WorldSaveList, WorldSaveRequest, WorldState};
use crate::community::auth::Principal;
use crate::core::clock::rfc3339;
use crate::core::db::{flag, from_row, to_u32};
use crate::core::error::ApiError;
use crate::core::extract::{ApiPath, ApiQuery, OptionalJson};
use crate::core::paging::PageQuery;
use crate::core::{ids, texts};
use crate::worlds::Worlds;
use crate::worlds::{events, log};

/// Manual saves per world.
const SAVES_MAX: i64 = 20;
/// Saves per world that were created automatically before a restore.
const AUTOMATIC_MAX: i64 = 3;
/// Body size of a request with a state, as JSON.
const STATE_BODY_BYTES_MAX: usize = 24 * 1024 * 1024;
/// Bytes of the sections of a state in a response.
const STATE_BYTES_MAX: usize = 16 * 1024 * 1024;

from_row!(WorldSave {
    save_id, world_id, label, automatic => flag, created_by, created_at => rfc3339,
    newest_op: "op_seq" => i64::cast_unsigned, size_bytes => to_u32
});

/// Routes of saves.
pub fn routes() -> OpenApiRouter<Arc<Worlds>> {
    OpenApiRouter::new()
        .routes(routes!(save))
        .layer(DefaultBodyLimit::max(STATE_BODY_BYTES_MAX))
        .routes(routes!(list))
        .routes(routes!(delete))
        .routes(routes!(show_state))
}

/// Saves the current state of the world. With `restore` or `state`, saves it and then replaces it;
/// connected players rejoin.
#[utoipa::path(
    post, path = "/world/{id}", tag = "worlds", request_body = WorldSaveRequest,
    responses(
        (status = 201, description = "the new save", body = WorldSave),
        (status = 403, description = "the caller does not own the world"),
        (status = 404, description = "no such world or save"),
        (status = 409, description = "too many saves, or the world is too large to save"),
        (status = 413, description = "the body is too large"),
    ),
    security(("bearer" = []))
)]
async fn save(
    State(worlds): State<Arc<Worlds>>,
    principal: Principal,
    ApiPath(world_id): ApiPath<String>,
    OptionalJson(request): OptionalJson<WorldSaveRequest>,
) -> Result<(StatusCode, Json<WorldSave>), ApiError> {
    owned_to_edit(&worlds, &principal, &world_id).await?;
    let label = request.label.as_deref();
    let label = label
        .map(|label| texts::line(label, SAVE_LABEL_CHARS_MAX))
        .filter(|label| !label.is_empty());
    let target = match (request.restore, request.state) {
        (None, None) => None,
        (Some(save_id), None) => Some(read_save(&worlds, &world_id, &save_id).await?),
        (None, Some(given)) => Some(state::from_api(given)?),
        (Some(_), Some(_)) => {
            return Err(ApiError::bad_request(
                "too_many_targets",
                "send only one of restore and state",
            ));
        }
    };
    let saved = match target {
        None => save_now(&worlds, &principal, &world_id, label).await?,
        Some(world) => restore(&worlds, &principal, &world_id, world).await?,
    };
    Ok((StatusCode::CREATED, Json(saved)))
}

async fn save_now(
    worlds: &Worlds,
    principal: &Principal,
    world_id: &str,
    label: Option<String>,
) -> Result<WorldSave, ApiError> {
    let mut transaction = crate::core::db::begin(&worlds.core.db).await?;
    lock(&mut transaction, world_id, 0).await?;
    let count: i64 = sqlx::query_scalar(
        "SELECT COUNT(*) AS saves FROM world_saves WHERE world_id = $1 AND automatic = 0",
    )
    .bind(world_id)
    .fetch_one(&mut *transaction)
    .await?;
    if count >= SAVES_MAX {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "too_many_saves",
            format!("this world already has {SAVES_MAX} saves; delete one first"),
        ));
    }
    let world = log::read_world_in(&mut transaction, world_id).await?;
    let label = label.unwrap_or_else(|| format!("Save {}", count + 1));
    let now_ms = worlds.core.clock.now_ms();
    let label = (label, false);
    let saved = write_save(&mut transaction, now_ms, principal, world_id, label, world).await?;
    transaction.commit().await?;
    Ok(saved)
}

/// Saves the current state, then replaces it by `world`.
async fn restore(
    worlds: &Worlds,
    principal: &Principal,
    world_id: &str,
    world: SavedWorld,
) -> Result<WorldSave, ApiError> {
    // The process is stopped first, so that the save contains its last checkpoint.
    end(worlds, world_id).await;
    let mut transaction = crate::core::db::begin(&worlds.core.db).await?;
    lock(&mut transaction, world_id, 1).await?;
    let before = log::read_world_in(&mut transaction, world_id).await?;
    let newest: i64 = sqlx::query_scalar("SELECT op_seq FROM world_runs WHERE world_id = $1")
        .bind(world_id)
        .fetch_one(&mut *transaction)
        .await?;
    let label = ("Before restoring".to_owned(), true);
    let now_ms = worlds.core.clock.now_ms();
    let saved = write_save(&mut transaction, now_ms, principal, world_id, label, before).await?;
    delete_old_automatic(&mut transaction, world_id).await?;
    let world = state::renumbered(world, newest.max(0).cast_unsigned());
    log::replace_world(&mut transaction, world_id, &world, now_ms).await?;
    transaction.commit().await?;
    // A process that was started in the meantime has loaded the old state and must not store it.
    end(worlds, world_id).await;
    events::send_reset(worlds, world_id).await?;
    tracing::info!(world = world_id, by = principal.user_id, "world restored");
    Ok(saved)
}

/// Begins with a write to the world's row, so that no batch of its process interferes. With
/// `epochs` 1, the current process loses its right to store.
async fn lock(
    connection: &mut AnyConnection,
    world_id: &str,
    epochs: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO world_runs (world_id, epoch, op_seq, checkpoint_seq, token_sha256, pid,
           websocket_port, webtransport, disabled_scripts)
         VALUES ($1, $2, 0, 0, '', 0, 0, '', '[]')
         ON CONFLICT (world_id) DO UPDATE SET epoch = world_runs.epoch + $2",
    )
    .bind(world_id)
    .bind(epochs)
    .execute(connection)
    .await?;
    Ok(())
}

/// Label of a save, and whether it was created automatically.
type Label = (String, bool);

async fn write_save(
    connection: &mut AnyConnection,
    now_ms: i64,
    principal: &Principal,
    world_id: &str,
    (label, automatic): Label,
    world: SavedWorld,
) -> Result<WorldSave, ApiError> {
    let newest_op = world.newest();
    let packed = tokio::task::spawn_blocking(move || state::pack(&world)).await;
    let data = packed.ok().flatten().ok_or_else(too_large)?;
    let save = WorldSave {
        save_id: ids::new_id("save"),
        world_id: world_id.to_owned(),
        label,
        automatic,
        created_by: principal.user_id.clone(),
        created_at: rfc3339(now_ms),
        newest_op,
        size_bytes: u32::try_from(data.len()).unwrap_or(u32::MAX),
    };
    sqlx::query(
        "INSERT INTO world_saves (save_id, world_id, label, created_by, created_at, op_seq,
           automatic, size_bytes, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(&save.save_id)
    .bind(&save.world_id)
    .bind(&save.label)
    .bind(&save.created_by)
    .bind(now_ms)
    .bind(save.newest_op.cast_signed())
    .bind(i64::from(save.automatic))
    .bind(i64::from(save.size_bytes))
    .bind(data)
    .execute(connection)
    .await?;
    Ok(save)
}

async fn delete_old_automatic(
    connection: &mut AnyConnection,
    world_id: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "DELETE FROM world_saves WHERE world_id = $1 AND automatic = 1 AND save_id NOT IN
           (SELECT save_id FROM world_saves WHERE world_id = $1 AND automatic = 1
            ORDER BY created_at DESC, op_seq DESC, save_id LIMIT $2)",
    )
    .bind(world_id)
    .bind(AUTOMATIC_MAX)
    .execute(connection)
    .await?;
    Ok(())
}

async fn read_save(worlds: &Worlds, world_id: &str, save_id: &str) -> Result<SavedWorld, ApiError> {
    let row = sqlx::query("SELECT data FROM world_saves WHERE world_id = $1 AND save_id = $2")
        .bind(world_id)
        .bind(save_id)
        .fetch_optional(&worlds.core.db)
        .await?
        .ok_or_else(unknown_save)?;
    let data: String = row.try_get("data")?;
    let unpacked = tokio::task::spawn_blocking(move || state::unpack(&data)).await;
    unpacked.ok().flatten().ok_or_else(|| {
        ApiError::new(
            StatusCode::CONFLICT,
            "damaged_save",
            "this save is damaged; choose another one",
        )
    })
}

fn unknown_save() -> ApiError {
    ApiError::not_found("save_not_found", "this world has no such save")
}

fn too_large() -> ApiError {
    ApiError::new(
        StatusCode::CONFLICT,
        "state_too_large",
        "this world is too large for this; ask the operator for a backup",
    )
}

/// The saves of a world, newest first.
#[utoipa::path(
    get, path = "/world/{id}/saves", tag = "worlds",
    params(PageQuery),
    responses(
        (status = 200, body = WorldSaveList),
        (status = 403, description = "the caller does not own the world"),
        (status = 404, description = "no such world"),
    ),
    security(("bearer" = []))
)]
async fn list(
    State(worlds): State<Arc<Worlds>>,
    principal: Principal,
    ApiPath(world_id): ApiPath<String>,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Result<Json<WorldSaveList>, ApiError> {
    let page = query.page()?;
    owned(&worlds, &principal, &world_id).await?;
    let total: i64 =
        sqlx::query_scalar("SELECT COUNT(*) AS total FROM world_saves WHERE world_id = $1")
            .bind(&world_id)
            .fetch_one(&worlds.core.db)
            .await?;
    let saves = sqlx::query_as(
        "SELECT save_id, world_id, label, created_by, created_at, op_seq, automatic, size_bytes
         FROM world_saves WHERE world_id = $1
         ORDER BY created_at DESC, op_seq DESC, save_id LIMIT $2 OFFSET $3",
    )
    .bind(&world_id)
    .bind(page.limit())
    .bind(page.offset())
    .fetch_all(&worlds.core.db)
    .await?;
    Ok(Json(WorldSaveList {
        saves,
        total: to_u32(total),
        page: page.page,
        per_page: page.per_page,
    }))
}

/// Deletes a save.
#[utoipa::path(
    delete, path = "/world/{id}/saves/{save_id}", tag = "worlds",
    params(
        ("save_id" = String, Path, description = "id of the save"),
    ),
    responses(
        (status = 204, description = "the save is deleted"),
        (status = 403, description = "the caller does not own the world"),
        (status = 404, description = "no such world or save"),
    ),
    security(("bearer" = []))
)]
async fn delete(
    State(worlds): State<Arc<Worlds>>,
    principal: Principal,
    ApiPath((world_id, save_id)): ApiPath<(String, String)>,
) -> Result<StatusCode, ApiError> {
    owned(&worlds, &principal, &world_id).await?;
    let deleted = sqlx::query("DELETE FROM world_saves WHERE world_id = $1 AND save_id = $2")
        .bind(&world_id)
        .bind(&save_id)
        .execute(&worlds.core.db)
        .await?;
    match deleted.rows_affected() {
        0 => Err(unknown_save()),
        _ => Ok(StatusCode::NO_CONTENT),
    }
}

/// Returns the persisted state of the world, for a backup or for inspection.
#[utoipa::path(
    get, path = "/world/{id}/state", tag = "worlds",
    responses(
        (status = 200, body = WorldState),
        (status = 403, description = "the caller does not own the world"),
        (status = 404, description = "no such world"),
        (status = 409, description = "the state is too large for a response"),
    ),
    security(("bearer" = []))
)]
async fn show_state(
    State(worlds): State<Arc<Worlds>>,
    principal: Principal,
    ApiPath(world_id): ApiPath<String>,
) -> Result<Json<WorldState>, ApiError> {
    owned(&worlds, &principal, &world_id).await?;
    let mut transaction = crate::core::db::begin(&worlds.core.db).await?;
    lock(&mut transaction, &world_id, 0).await?;
    let world = log::read_world_in(&mut transaction, &world_id).await?;
    transaction.commit().await?;
    let sections = world.checkpoint.sections.values();
    let bytes: usize = sections.map(|section| section.bytes.len()).sum();
    if bytes > STATE_BYTES_MAX {
        return Err(too_large());
    }
    let rendered = state::to_api(world);
    rendered.map(Json).map_err(|error| {
        tracing::error!(%error, world = world_id, "could not serialise the state of a world");
        too_large()
    })
}
