//! `POST /world/{id}` and what goes with it: saves of what lasts of a world,
//! and going back to one.
//!
//! The database has what lasts at every moment (`world_log.rs`), so a save needs
//! nothing of the world's process. Going back ends the process first; the world's
//! epoch is counted up with the new state, so that one which comes between
//! stores nothing over it.

use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use frolic_protocol::keep::SavedWorld;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::rest::{end, owned, owned_to_edit};
use super::{Asker, state};
use crate::Platform;
use crate::api::{ErrorBody, WorldSave, WorldSaveList, WorldSaveRequest, WorldState};
use crate::clock::rfc3339;
use crate::db::to_u32;
use crate::error::ApiError;
use crate::extract::{ApiPath, ApiQuery, OptionalJson};
use crate::paging::PageQuery;
use crate::{ids, socketio, texts, world_log};

/// Saves that somebody made, per world.
const SAVES_MAX: i64 = 20;
/// Saves that were made before something took the world's place, per world.
const AUTOMATIC_MAX: i64 = 3;
/// A state that is handed in, as JSON.
const STATE_BODY_BYTES_MAX: usize = 24 * 1024 * 1024;
/// A state that is handed out: bytes of its sections.
const STATE_BYTES_MAX: usize = 16 * 1024 * 1024;
const LABEL_CHARS_MAX: usize = 60;

/// What is answered here.
pub fn routes() -> OpenApiRouter<Platform> {
    OpenApiRouter::new()
        .routes(routes!(save))
        .layer(DefaultBodyLimit::max(STATE_BODY_BYTES_MAX))
        .routes(routes!(list))
        .routes(routes!(delete))
        .routes(routes!(show_state))
}

/// Saves what lasts of the world now; or, with `restore` or `state`, saves it
/// and then goes back. Whoever is in the world is sent back in.
#[utoipa::path(
    post, path = "/world/{id}", tag = "worlds", request_body = WorldSaveRequest,
    params(("id" = String, Path, description = "id of the world")),
    responses(
        (status = 201, description = "the save that was made", body = WorldSave),
        (status = 400, description = "the body means nothing", body = ErrorBody),
        (status = 401, description = "no session", body = ErrorBody),
        (status = 403, description = "not your world", body = ErrorBody),
        (status = 404, description = "no such world or save", body = ErrorBody),
        (status = 409, description = "too many saves, or too large to save", body = ErrorBody),
        (status = 413, description = "the body is too large", body = ErrorBody),
    ),
    security(("bearer" = []))
)]
async fn save(
    State(platform): State<Platform>,
    asker: Asker,
    ApiPath(world_id): ApiPath<String>,
    OptionalJson(request): OptionalJson<WorldSaveRequest>,
) -> Result<(StatusCode, Json<WorldSave>), ApiError> {
    owned_to_edit(&platform, &asker, &world_id).await?;
    let label = request.label.as_deref();
    let label = label
        .map(|label| texts::line(label, LABEL_CHARS_MAX))
        .filter(|label| !label.is_empty());
    let back_to = match (request.restore, request.state) {
        (None, None) => None,
        (Some(save_id), None) => Some(read_save(&platform, &world_id, &save_id).await?),
        (None, Some(given)) => Some(state::given(given)?),
        (Some(_), Some(_)) => {
            return Err(ApiError::bad_request(
                "too_many_targets",
                "give only one of restore and state",
            ));
        }
    };
    let saved = match back_to {
        None => save_now(&platform, &asker, &world_id, label).await?,
        Some(world) => go_back(&platform, &asker, &world_id, world).await?,
    };
    Ok((StatusCode::CREATED, Json(saved)))
}

async fn save_now(
    platform: &Platform,
    asker: &Asker,
    world_id: &str,
    label: Option<String>,
) -> Result<WorldSave, ApiError> {
    let mut transaction = crate::db::begin(platform.db()).await?;
    lock(&mut transaction, world_id, 0).await?;
    let count: i64 = sqlx::query(
        "SELECT COUNT(*) AS saves FROM world_saves WHERE world_id = $1 AND automatic = 0",
    )
    .bind(world_id)
    .fetch_one(&mut *transaction)
    .await?
    .try_get("saves")?;
    if count >= SAVES_MAX {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "too_many_saves",
            format!("this world has {SAVES_MAX} saves already; delete one first"),
        ));
    }
    let world = world_log::read_world_in(&mut transaction, world_id).await?;
    let label = label.unwrap_or_else(|| format!("Save {}", count + 1));
    let now_ms = platform.clock().now_ms();
    let label = (label, false);
    let saved = write_save(&mut transaction, now_ms, asker, world_id, label, world).await?;
    transaction.commit().await?;
    Ok(saved)
}

/// Saves what is there, then puts `world` in its place.
async fn go_back(
    platform: &Platform,
    asker: &Asker,
    world_id: &str,
    world: SavedWorld,
) -> Result<WorldSave, ApiError> {
    // Its last checkpoint belongs into the save.
    end(platform, world_id).await;
    let mut transaction = crate::db::begin(platform.db()).await?;
    lock(&mut transaction, world_id, 1).await?;
    let before = world_log::read_world_in(&mut transaction, world_id).await?;
    let newest: i64 = sqlx::query("SELECT op_seq FROM world_runs WHERE world_id = $1")
        .bind(world_id)
        .fetch_one(&mut *transaction)
        .await?
        .try_get("op_seq")?;
    let label = ("Before going back".to_owned(), true);
    let now_ms = platform.clock().now_ms();
    let saved = write_save(&mut transaction, now_ms, asker, world_id, label, before).await?;
    drop_old_automatic(&mut transaction, world_id).await?;
    let world = state::renumbered(world, newest.max(0).cast_unsigned());
    world_log::replace_world(&mut transaction, world_id, &world, now_ms).await?;
    transaction.commit().await?;
    // One that was started meanwhile has the old state in its hands, and may
    // store nothing any more.
    end(platform, world_id).await;
    socketio::set_back(platform, world_id).await?;
    tracing::info!(world = world_id, by = asker.user_id(), "world set back");
    Ok(saved)
}

/// Begins with a write to the world's row, so that no batch of its process
/// comes between; `epochs` is 1 when whoever runs it now must store no more.
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

/// What a save is to be called, and whether the platform made it.
type Label = (String, bool);

async fn write_save(
    connection: &mut AnyConnection,
    now_ms: i64,
    asker: &Asker,
    world_id: &str,
    (label, automatic): Label,
    world: SavedWorld,
) -> Result<WorldSave, ApiError> {
    let newest_op = world.newest();
    let packed = tokio::task::spawn_blocking(move || state::packed(&world)).await;
    let data = packed.ok().flatten().ok_or_else(too_large)?;
    let save = WorldSave {
        save_id: ids::new_id("save"),
        world_id: world_id.to_owned(),
        label,
        automatic,
        created_by: asker.user_id().to_owned(),
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

async fn drop_old_automatic(
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

async fn read_save(
    platform: &Platform,
    world_id: &str,
    save_id: &str,
) -> Result<SavedWorld, ApiError> {
    let row = sqlx::query("SELECT data FROM world_saves WHERE world_id = $1 AND save_id = $2")
        .bind(world_id)
        .bind(save_id)
        .fetch_optional(platform.db())
        .await?
        .ok_or_else(unknown_save)?;
    let data: String = row.try_get("data")?;
    let unpacked = tokio::task::spawn_blocking(move || state::unpacked(&data)).await;
    unpacked.ok().flatten().ok_or_else(|| {
        ApiError::new(
            StatusCode::CONFLICT,
            "damaged_save",
            "this save cannot be read any more; choose another one",
        )
    })
}

fn unknown_save() -> ApiError {
    ApiError::not_found("save_not_found", "this world has no such save (any more)")
}

fn too_large() -> ApiError {
    ApiError::new(
        StatusCode::CONFLICT,
        "state_too_large",
        "too much was built here for this; ask the operator for a backup",
    )
}

/// The saves of a world, the newest first.
#[utoipa::path(
    get, path = "/world/{id}/saves", tag = "worlds",
    params(("id" = String, Path, description = "id of the world"), PageQuery),
    responses(
        (status = 200, body = WorldSaveList),
        (status = 400, description = "the query means nothing", body = ErrorBody),
        (status = 401, description = "no session", body = ErrorBody),
        (status = 403, description = "not your world", body = ErrorBody),
        (status = 404, description = "no such world", body = ErrorBody),
    ),
    security(("bearer" = []))
)]
async fn list(
    State(platform): State<Platform>,
    asker: Asker,
    ApiPath(world_id): ApiPath<String>,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Result<Json<WorldSaveList>, ApiError> {
    let page = query.page()?;
    owned(&platform, &asker, &world_id).await?;
    let total: i64 = sqlx::query("SELECT COUNT(*) AS total FROM world_saves WHERE world_id = $1")
        .bind(&world_id)
        .fetch_one(platform.db())
        .await?
        .try_get("total")?;
    let rows = sqlx::query(
        "SELECT save_id, world_id, label, created_by, created_at, op_seq, automatic, size_bytes
         FROM world_saves WHERE world_id = $1
         ORDER BY created_at DESC, op_seq DESC, save_id LIMIT $2 OFFSET $3",
    )
    .bind(&world_id)
    .bind(page.limit())
    .bind(page.offset())
    .fetch_all(platform.db())
    .await?;
    Ok(Json(WorldSaveList {
        saves: rows.iter().map(read).collect::<Result<_, _>>()?,
        total: to_u32(total),
        page: page.page,
        per_page: page.per_page,
    }))
}

fn read(row: &AnyRow) -> Result<WorldSave, sqlx::Error> {
    Ok(WorldSave {
        save_id: row.try_get("save_id")?,
        world_id: row.try_get("world_id")?,
        label: row.try_get("label")?,
        automatic: row.try_get::<i64, _>("automatic")? != 0,
        created_by: row.try_get("created_by")?,
        created_at: rfc3339(row.try_get("created_at")?),
        newest_op: row.try_get::<i64, _>("op_seq")?.cast_unsigned(),
        size_bytes: to_u32(row.try_get("size_bytes")?),
    })
}

/// Deletes a save.
#[utoipa::path(
    delete, path = "/world/{id}/saves/{save_id}", tag = "worlds",
    params(
        ("id" = String, Path, description = "id of the world"),
        ("save_id" = String, Path, description = "id of the save"),
    ),
    responses(
        (status = 204, description = "it is gone"),
        (status = 400, description = "the path means nothing", body = ErrorBody),
        (status = 401, description = "no session", body = ErrorBody),
        (status = 403, description = "not your world", body = ErrorBody),
        (status = 404, description = "no such world or save", body = ErrorBody),
    ),
    security(("bearer" = []))
)]
async fn delete(
    State(platform): State<Platform>,
    asker: Asker,
    ApiPath((world_id, save_id)): ApiPath<(String, String)>,
) -> Result<StatusCode, ApiError> {
    owned(&platform, &asker, &world_id).await?;
    let deleted = sqlx::query("DELETE FROM world_saves WHERE world_id = $1 AND save_id = $2")
        .bind(&world_id)
        .bind(&save_id)
        .execute(platform.db())
        .await?;
    match deleted.rows_affected() {
        0 => Err(unknown_save()),
        _ => Ok(StatusCode::NO_CONTENT),
    }
}

/// Everything that lasts of the world, to keep elsewhere or to look at.
#[utoipa::path(
    get, path = "/world/{id}/state", tag = "worlds",
    params(("id" = String, Path, description = "id of the world")),
    responses(
        (status = 200, body = WorldState),
        (status = 400, description = "the path means nothing", body = ErrorBody),
        (status = 401, description = "no session", body = ErrorBody),
        (status = 403, description = "not your world", body = ErrorBody),
        (status = 404, description = "no such world", body = ErrorBody),
        (status = 409, description = "too large for this", body = ErrorBody),
    ),
    security(("bearer" = []))
)]
async fn show_state(
    State(platform): State<Platform>,
    asker: Asker,
    ApiPath(world_id): ApiPath<String>,
) -> Result<Json<WorldState>, ApiError> {
    owned(&platform, &asker, &world_id).await?;
    let mut transaction = crate::db::begin(platform.db()).await?;
    lock(&mut transaction, &world_id, 0).await?;
    let world = world_log::read_world_in(&mut transaction, &world_id).await?;
    transaction.commit().await?;
    let sections = world.checkpoint.sections.values();
    let bytes: usize = sections.map(|section| section.bytes.len()).sum();
    if bytes > STATE_BYTES_MAX {
        return Err(too_large());
    }
    let shown = state::shown(world);
    shown.map(Json).map_err(|error| {
        tracing::error!(%error, world = world_id, "a world has no text form");
        too_large()
    })
}
