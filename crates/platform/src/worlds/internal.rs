//! `/internal/worlds/{id}/…`: requests and reports of game servers. Each request carries the token
//! of the current process of the world.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use frolic_fleet_api::console::ClientPrints;
use frolic_fleet_api::process::{
    AskBlocks, BLOCKS_MAX, Expelled, Heartbeat, HeartbeatReply, PlayerBlocks, ServerReady,
    ServerStopped, WorldBoot,
};
use sqlx::AnyPool;

use crate::catalog::games;
use crate::community::auth::bearer;
use crate::community::expulsions::Expulsion;
use crate::core::Provides;
use crate::core::error::ApiError;
use crate::core::extract::ApiJson;
use crate::fleet::{self, WorldProcess, lease};
use crate::worlds;
use crate::worlds::Worlds;
use crate::worlds::join::access;

/// Characters of a stop reason that are logged.
const REASON_CHARS_MAX: usize = 200;

/// An authenticated game server.
pub struct Caller(pub Arc<WorldProcess>);

impl<S: Provides<Worlds>> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let worlds = state.provide();
        // The same error for unknown worlds and wrong tokens, so that worlds cannot be probed. A
        // process that was replaced ends when it receives this error.
        let refused = || {
            ApiError::unauthorized(
                "not_your_world",
                "this token does not belong to the current process of this world",
            )
        };
        let Path(world_id) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| refused())?;
        let token = bearer(&parts.headers)?;
        worlds
            .fleet
            .server(&world_id)
            .filter(|server| server.accepts_token(token))
            .map(Caller)
            .ok_or_else(refused)
    }
}

/// `GET /internal/worlds/{id}`.
///
/// # Errors
/// 404 when the world was deleted in the meantime.
pub async fn boot(
    State(worlds): State<Arc<Worlds>>,
    Caller(server): Caller,
) -> Result<Json<WorldBoot>, ApiError> {
    let world = worlds::find(&worlds.core.db, &server.spec.world_id)
        .await?
        .ok_or_else(worlds::unknown_world)?;
    let game = games::find(&worlds.core.db, &world.spec.game_id).await?;
    let client_prints = ClientPrints {
        everybody: prints_wanted(&worlds, &server),
        creator_id: game.map(|game| game.creator_id).unwrap_or_default(),
    };
    Ok(Json(WorldBoot {
        world_id: world.spec.world_id,
        room_code: world.spec.room_code,
        game_id: world.spec.game_id,
        revision: server.revision(),
        seed: world.seed,
        disabled_scripts: server.disabled_scripts(),
        epoch: server.epoch(),
        persistent: world.spec.persistent,
        client_prints,
        filter_chat: worlds.core.settings.text_filter,
    }))
}

/// `GET /internal/worlds/{id}/package`.
///
/// # Errors
/// 404 when the package no longer exists.
pub async fn package(
    State(worlds): State<Arc<Worlds>>,
    Caller(server): Caller,
) -> Result<Response, ApiError> {
    let archive = worlds
        .core
        .blobs
        .get(&server.revision())
        .await?
        .ok_or_else(|| {
            ApiError::not_found("package_not_found", "the world's package no longer exists")
        })?;
    Ok(([(header::CONTENT_TYPE, "application/zip")], archive).into_response())
}

/// `POST /internal/worlds/{id}/ready`.
///
/// # Errors
/// 409 when this server is no longer expected.
pub async fn ready(
    State(worlds): State<Arc<Worlds>>,
    Caller(server): Caller,
    ApiJson(ready): ApiJson<ServerReady>,
) -> Result<StatusCode, ApiError> {
    // Stored first, so that the next control plane finds every process that players can reach.
    let world_id = &server.spec.world_id;
    lease::ready(&worlds.core.db, world_id, server.epoch(), &ready).await?;
    if server.ready(ready) {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError::new(
            StatusCode::CONFLICT,
            "not_expected",
            "this game server is not expected any more; stop",
        ))
    }
}

/// Whether client scripts report their output: the creator has the console open, or the setting
/// enables it for all games.
fn prints_wanted(worlds: &Worlds, server: &WorldProcess) -> bool {
    let now = worlds.core.clock.now_ms();
    let watched = worlds.consoles.is_watched(&server.spec.game_id, now);
    worlds.core.settings.client_prints || watched
}

/// `POST /internal/worlds/{id}/heartbeat`.
///
/// 401 and 400 when the caller or the body is invalid.
pub async fn heartbeat(
    State(worlds): State<Arc<Worlds>>,
    Caller(server): Caller,
    ApiJson(beat): ApiJson<Heartbeat>,
) -> Result<Json<HeartbeatReply>, ApiError> {
    let players_before = server.players();
    let action = server.heartbeat(&beat);
    if beat.players != players_before {
        worlds.catalog.cache.players_changed();
        let now = worlds.core.clock.now_ms();
        let world_id = &server.spec.world_id;
        let db = &worlds.core.db;
        let noted = fleet::set_player_count(db, world_id, beat.players, Some(now)).await;
        // A world continues while the database is unavailable.
        if let Err(error) = noted {
            tracing::warn!(world_id, %error, "could not store the player count");
        }
    }
    let expelled = expelled(&worlds, &server.spec.world_id).await;
    Ok(Json(HeartbeatReply {
        action,
        expelled,
        prints_wanted: prints_wanted(&worlds, &server),
    }))
}

/// The players that a world must disconnect.
async fn expelled(worlds: &Worlds, world_id: &str) -> Vec<Expelled> {
    let recent = worlds.community.expulsions.recent().await;
    let (blocks, suspensions): (Vec<_>, Vec<_>) =
        recent.into_iter().partition(|one| one.owner_id.is_some());
    // Suspensions are sent even while the database is unavailable.
    let mut expelled: Vec<_> = suspensions.into_iter().map(|one| one.expelled).collect();
    // Blocks that were not looked up are sent with the next heartbeat.
    if let Err(error) = add_blocked(&worlds.core.db, world_id, blocks, &mut expelled).await {
        tracing::warn!(world_id, %error, "could not look up blocks");
    }
    expelled
}

/// Adds the players of `blocks` who may no longer be in the world.
async fn add_blocked(
    db: &AnyPool,
    world_id: &str,
    blocks: Vec<Expulsion>,
    expelled: &mut Vec<Expelled>,
) -> Result<(), sqlx::Error> {
    if blocks.is_empty() {
        return Ok(());
    }
    let Some(world) = worlds::find(db, world_id).await? else {
        return Ok(());
    };
    for one in blocks {
        let owner_id = one.owner_id.as_deref().unwrap_or_default();
        if world.is_owned_by(owner_id)
            && access::shuts_out(db, &world, &one.expelled.player_id).await?
        {
            expelled.push(one.expelled);
        }
    }
    Ok(())
}

/// `POST /internal/worlds/{id}/stopped`.
pub async fn stopped(
    State(worlds): State<Arc<Worlds>>,
    Caller(server): Caller,
    ApiJson(stopped): ApiJson<ServerStopped>,
) -> StatusCode {
    let reason: String = stopped.reason.chars().take(REASON_CHARS_MAX).collect();
    tracing::info!(
        world = server.spec.world_id,
        reason,
        "game server is stopping by itself"
    );
    worlds.fleet.stop(&server.spec.world_id);
    StatusCode::NO_CONTENT
}

/// `POST /internal/worlds/{id}/blocks`: the users whom a player has blocked.
///
/// # Errors
/// When the database fails.
pub async fn blocks(
    State(worlds): State<Arc<Worlds>>,
    _: Caller,
    ApiJson(request): ApiJson<AskBlocks>,
) -> Result<Json<PlayerBlocks>, ApiError> {
    let player_ids =
        sqlx::query_scalar("SELECT blocked_id FROM blocks WHERE user_id = $1 LIMIT $2")
            .bind(&request.player_id)
            .bind(i64::try_from(BLOCKS_MAX).unwrap_or(i64::MAX))
            .fetch_all(&worlds.core.db)
            .await?;
    Ok(Json(PlayerBlocks { player_ids }))
}
