//! Remote commands: requests to worlds over REST and Socket.IO. The platform forwards them to the
//! world's process, and starts it if necessary, so that there is one log and one set of rules for
//! all clients. Events of the world come back through `/internal/…/news` and with stored operations
//! (`log.rs`), and are sent to followers over Socket.IO.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use frolic_fleet_api::ops::LoggedOp;
use frolic_fleet_api::remote_commands::{NEWS_MAX, OutsideNews, OutsideReply, OutsideRequest};
use sqlx::AnyPool;

use crate::community::auth::Principal;
use crate::core::clock::rfc3339;
use crate::core::db::{flag, from_row, json, non_empty};
use crate::core::error::ApiError;
use crate::core::extract::ApiJson;
use crate::fleet::{FleetError, WorldProcess};
use crate::worlds::Worlds;
use crate::worlds::events::Audience;
use crate::worlds::internal::Caller;
use crate::worlds::join::access::{self, Via};
use crate::worlds::{self, WorldRow, helpers};

/// Timeout of a request to a world.
const WORLD_TIMEOUT: Duration = Duration::from_secs(8);

/// A world, and how the user addressed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldRef {
    /// Id of the world.
    pub world_id: String,
    /// How the user addressed the world.
    pub via: Via,
    /// Whether the user has joined the world over Socket.IO.
    pub joined: bool,
}

impl WorldRef {
    /// A world that was addressed by its id only.
    pub fn named(world_id: String) -> Self {
        Self {
            world_id,
            via: Via::Id,
            joined: false,
        }
    }
}

/// The world, if this user may enter it. The rules of `POST /join` are checked on every request.
///
/// # Errors
/// 404 when the user may not see the world, 403 for a game that was taken down.
pub async fn world(
    worlds: &Worlds,
    actor: &Principal,
    target: &WorldRef,
) -> Result<WorldRow, ApiError> {
    let world = worlds::find(&worlds.core.db, &target.world_id).await?;
    let world = world.ok_or_else(worlds::unknown_world)?;
    access::may_enter(worlds, actor, &world, target.via).await?;
    Ok(world)
}

/// The world, if this user may change it: the user joined it, plays in it, owns it, or is a helper
/// of its owner.
///
/// # Errors
/// The errors of [`world`]; 403 for a user who is not in the world.
pub async fn editable_world(
    worlds: &Worlds,
    actor: &Principal,
    target: &WorldRef,
) -> Result<WorldRow, ApiError> {
    let world = world(worlds, actor, target).await?;
    let allowed = target.joined
        || is_trusted(worlds, actor, &world).await?
        || plays_in(worlds, actor, &world).await?;
    if allowed {
        return Ok(world);
    }
    Err(ApiError::new(
        StatusCode::FORBIDDEN,
        "not_in_world",
        "You are not in this world. Join it first, or ask its owner to add you as a helper.",
    ))
}

/// Whether this user has all rights in a world: its owner, their helpers, and admins.
///
/// # Errors
/// When the database fails.
pub async fn is_trusted(
    worlds: &Worlds,
    actor: &Principal,
    world: &WorldRow,
) -> Result<bool, sqlx::Error> {
    if world.is_owned_by(&actor.user_id) || actor.is_admin() {
        return Ok(true);
    }
    helpers::is_helper(&worlds.core.db, &world.spec.world_id, &actor.user_id).await
}

/// Whether this user's character is in a running world.
///
/// # Errors
/// When the database fails.
pub async fn plays_in(
    worlds: &Worlds,
    actor: &Principal,
    world: &WorldRow,
) -> Result<bool, sqlx::Error> {
    let world_id = &world.spec.world_id;
    // Without a process, the stored presence is outdated.
    if worlds.fleet.server(world_id).is_none() {
        return Ok(false);
    }
    let row = sqlx::query(
        "SELECT 1 AS one FROM player_checkpoints
         WHERE world_id = $1 AND player_id = $2 AND online = 1",
    )
    .bind(world_id)
    .bind(&actor.user_id)
    .fetch_optional(&worlds.core.db)
    .await?;
    Ok(row.is_some())
}

/// Rejects users who come to a full world, as `POST /join` does. Users who already play there and
/// those with all rights may follow it anyway.
///
/// # Errors
/// 409 when the world is full.
pub async fn must_have_room(
    worlds: &Worlds,
    actor: &Principal,
    world: &WorldRow,
) -> Result<(), ApiError> {
    let server = worlds.fleet.server(&world.spec.world_id);
    if !server.is_some_and(|server| server.is_full_for(&actor.user_id))
        || is_trusted(worlds, actor, world).await?
        || plays_in(worlds, actor, world).await?
    {
        return Ok(());
    }
    let max_players = world.spec.max_players;
    Err(FleetError::WorldFull { max_players }.into())
}

/// Sends a request to the process of a world.
///
/// # Errors
/// 503 when the process does not respond.
pub async fn send(
    worlds: &Worlds,
    server: &WorldProcess,
    request: &OutsideRequest,
) -> Result<OutsideReply, ApiError> {
    let unavailable = || {
        ApiError::unavailable(
            "world_silent",
            "the world's server does not respond; try again in a moment",
            1,
        )
    };
    let endpoint = worlds
        .fleet
        .internal_endpoint(server)
        .ok_or_else(unavailable)?;
    let response = client()
        .post(format!("{}/outside", endpoint.url))
        .bearer_auth(&endpoint.token)
        .json(request)
        .timeout(WORLD_TIMEOUT)
        .send()
        .await
        .and_then(reqwest::Response::error_for_status);
    let reply = match response {
        Ok(response) => response.json().await,
        Err(error) => Err(error),
    };
    reply.map_err(|error| {
        tracing::warn!(%error, world = server.spec.world_id, "a world does not respond");
        unavailable()
    })
}

fn client() -> &'static reqwest::Client {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        crate::core::tls::use_ring();
        reqwest::Client::new()
    })
}

/// Converts a refusal of a world to an API error.
pub fn refused(code: &str, message: String) -> ApiError {
    // Error codes are static strings; the message carries an unknown code's meaning.
    let known = [
        "spells_not_allowed",
        "no_such_spell",
        "spell_caster",
        "spell_dead",
        "spell_cooldown",
        "spell_cost",
        "spell_target",
        "spell_range",
        "spell_busy",
        "spell_broken",
        "spell_of_the_game",
        "no_terrain",
        "not_editable",
        "unknown_material",
        "bad_op",
        "forbidden_material",
        "too_large",
        "out_of_reach",
        "protected",
        "occupied",
        "not_alive",
        "too_fast",
        "busy",
    ];
    let code = known.into_iter().find(|known| *known == code);
    ApiError::new(
        StatusCode::CONFLICT,
        code.unwrap_or("world_refused"),
        message,
    )
}

/// `POST /internal/worlds/{id}/news`.
///
/// # Errors
/// 400 when there are more events than a game server sends in one request.
pub async fn news(
    State(worlds): State<Arc<Worlds>>,
    Caller(server): Caller,
    ApiJson(news): ApiJson<OutsideNews>,
) -> Result<StatusCode, ApiError> {
    if news.casts.len() > NEWS_MAX || news.ops.len() > NEWS_MAX {
        return Err(ApiError::bad_request(
            "invalid_news",
            "too many events in one request",
        ));
    }
    let world_id = &server.spec.world_id;
    let sockets = &worlds.notifier;
    let followers = Audience::of(world_id, news.near_only);
    let timestamp = rfc3339(worlds.core.clock.now_ms());
    for cast in news.casts {
        sockets.send_cast(&followers, cast, &timestamp);
    }
    sockets.send_ops(&followers, &news.ops);
    Ok(StatusCode::NO_CONTENT)
}

/// An operation of a world's log, as it is sent to followers.
#[derive(Clone, Debug, serde::Serialize)]
pub struct OpEvent {
    /// Sequence number in the log.
    pub op_id: u64,
    /// Kind of operation: terrain, build, unbuild or clear.
    pub op_type: String,
    /// Parameters of the operation.
    pub op_data: serde_json::Value,
    /// User who requested it; `None` for a script.
    #[serde(rename = "by")]
    pub by: Option<String>,
}

from_row!(OpEvent {
    op_id => i64::cast_unsigned, op_type, op_data => plain_json, by: "player_id" => non_empty
});

/// One page of a world's log after `after`. With `by`, only the operations of one user and
/// removals.
///
/// # Errors
/// When the database fails.
pub async fn log(
    db: &AnyPool,
    world_id: &str,
    by: Option<&str>,
    after: i64,
    limit: i64,
) -> Result<Vec<OpEvent>, sqlx::Error> {
    sqlx::query_as(
        "SELECT op_id, op_type, op_data, player_id FROM world_ops
         WHERE world_id = $1 AND op_id > $2 AND ($3 = '' OR player_id = $3 OR op_type IN ('unbuild', 'clear'))
         ORDER BY op_id LIMIT $4",
    )
    .bind(world_id)
    .bind(after)
    .bind(by.unwrap_or_default())
    .bind(limit)
    .fetch_all(db)
    .await
}

/// Positions in the log of a world.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogEnds {
    /// Sequence number of the newest operation.
    pub newest: u64,
    /// Sequence number of the last operation that is only in the checkpoint.
    pub checkpoint: u64,
    /// Whether operations are replicated only to players near them.
    pub near_only: bool,
}

from_row!(LogEnds {
    newest: "op_seq" => i64::cast_unsigned, checkpoint: "checkpoint_seq" => i64::cast_unsigned,
    near_only => flag
});

/// Reads the positions in the log of a world.
///
/// # Errors
/// When the database fails.
pub async fn log_ends(db: &AnyPool, world_id: &str) -> Result<LogEnds, sqlx::Error> {
    let ends: Option<LogEnds> = sqlx::query_as(
        "SELECT op_seq, checkpoint_seq, near_only FROM world_runs WHERE world_id = $1",
    )
    .bind(world_id)
    .fetch_optional(db)
    .await?;
    Ok(ends.unwrap_or_default())
}

/// The event of an operation that was just logged.
pub fn op_event(op: &LoggedOp) -> OpEvent {
    let data = serde_json::to_value(&op.op).unwrap_or_default();
    let kind = match &data {
        serde_json::Value::Object(map) => map.keys().next().map(|kind| kind.to_lowercase()),
        serde_json::Value::String(kind) => Some(kind.to_lowercase()),
        _ => None,
    };
    OpEvent {
        op_id: op.seq,
        op_type: kind.unwrap_or_default(),
        op_data: plain(data),
        by: op.by.clone(),
    }
}

fn plain_json(text: String) -> serde_json::Value {
    plain(json(text))
}

/// Removes the outer part of `{"Terrain": {…}}` and writes shapes as `radius` or `size`, as the
/// other interfaces do.
fn plain(data: serde_json::Value) -> serde_json::Value {
    let serde_json::Value::Object(map) = data else {
        return serde_json::json!({});
    };
    let Some((_, serde_json::Value::Object(mut inner))) = map.into_iter().next() else {
        return serde_json::json!({});
    };
    if let Some(serde_json::Value::Object(shape)) = inner.remove("shape") {
        for (_, form) in shape {
            if let serde_json::Value::Object(form) = form {
                inner.extend(form);
            }
        }
    }
    serde_json::Value::Object(inner)
}
