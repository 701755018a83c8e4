//! `world.…` and `ping`: list, create, join and leave worlds.

use serde_json::{Value, json};
use socketioxide::extract::SocketRef;
use sqlx::Row;

use super::door::{Answer, Reply, optional, text};
use super::visitor::Visitor;
use super::{To, overseers, room, visits_of};
use crate::Platform;
use crate::api::WorldInfo;
use crate::error::ApiError;
use crate::fleet::WorldSpec;
use crate::games::{self, GameRow};
use crate::join::access::Via;
use crate::names;
use crate::remote_commands::{self, LogEnds, Place};
use crate::texts;
use crate::worlds::{self, DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX, Wish};

/// Default game of new worlds, if it is installed.
const SANDBOX: &str = "sandbox";
/// Maximum number of worlds per user.
const WORLDS_PER_USER: i64 = 100;
/// Maximum number of worlds, and of spells, by all visitors without a session.
const MADE_BY_VISITORS: i64 = 5000;
/// Maximum number of operations per `sync_ops` message, and in total per join.
const OPS_PER_MESSAGE: i64 = 200;
const OPS_MAX: usize = 4000;

/// `world.list`; with `castable: true`, only worlds where the client may cast now.
pub async fn list(platform: &Platform, visitor: &Visitor, data: &Value) -> Answer {
    let castable = data.get("castable").and_then(Value::as_bool);
    let worlds = match castable.unwrap_or(false) {
        true => worlds::castable::of(platform, &visitor.actor).await?,
        false => worlds::public(platform).await?,
    };
    Ok(Reply::Event(
        "world.list_result",
        json!({ "worlds": worlds }),
    ))
}

/// `world.create`.
pub async fn create(platform: &Platform, visitor: &Visitor, data: &Value) -> Answer {
    let db = platform.db();
    let name = optional(data, "name")?.unwrap_or_default();
    let name = texts::line(&name, NAME_CHARS_MAX);
    names::check_decent(platform, &name)?;
    let description = optional(data, "description")?.unwrap_or_default();
    let description = texts::lines(&description, DESCRIPTION_CHARS_MAX);
    let game = game_of(platform, visitor, optional(data, "game_id")?).await?;
    let made: i64 = sqlx::query("SELECT COUNT(*) AS made FROM worlds WHERE created_by = $1")
        .bind(&visitor.actor.user_id)
        .fetch_one(db)
        .await?
        .try_get("made")?;
    if made >= WORLDS_PER_USER {
        return Err(ApiError::new(
            axum::http::StatusCode::TOO_MANY_REQUESTS,
            "too_many_worlds",
            format!("you have {WORLDS_PER_USER} worlds, which is the maximum; delete one first"),
        ));
    }
    if visitor.username.is_none() {
        bound_visitors(platform, "worlds").await?;
    }
    let now = platform.clock().now_ms();
    let wish = Wish {
        name: if name.is_empty() { &game.name } else { &name },
        description: &description,
        created_by: &visitor.actor.user_id,
        owned: true,
        kept: true,
        private: false,
    };
    let spec = worlds::create(db, &game, wish, now).await?;
    let world = find(platform, &spec.world_id).await?;
    let sockets = platform.sockets();
    let listed = worlds::public(platform).await?;
    sockets.tell_all("world.list_updated", &json!({ "worlds": listed }));
    Ok(Reply::Event("world.created", told(&world)))
}

/// A world with its fields in the message, and as one field.
fn told(world: &WorldInfo) -> Value {
    let mut told = json!(world);
    told["world"] = told.clone();
    told
}

/// Limits what visitors without a session create. They have a new id per connection,
/// so the limit is global.
///
/// # Errors
/// 429 with advice.
pub async fn bound_visitors(platform: &Platform, table: &'static str) -> Result<(), ApiError> {
    let count = format!("SELECT COUNT(*) AS made FROM {table} WHERE created_by LIKE $1 ESCAPE '!'");
    let made: i64 = sqlx::query(sqlx::AssertSqlSafe(count))
        .bind("visitor!_%")
        .fetch_one(platform.db())
        .await?
        .try_get("made")?;
    if made < MADE_BY_VISITORS {
        return Ok(());
    }
    Err(ApiError::new(
        axum::http::StatusCode::TOO_MANY_REQUESTS,
        "too_many_visitors",
        "visitors have created too much already; log in (POST /login) and connect with the token",
    ))
}

async fn game_of(
    platform: &Platform,
    visitor: &Visitor,
    wanted: Option<String>,
) -> Result<GameRow, ApiError> {
    let db = platform.db();
    let found = match wanted {
        Some(id) => games::find(db, &id).await?,
        None => match games::find(db, SANDBOX).await? {
            Some(sandbox) => Some(sandbox),
            None => match platform.default_game() {
                Some(id) => games::find(db, &id).await?,
                None => None,
            },
        },
    };
    found
        .filter(|game| game.open_to(&visitor.actor.user_id))
        .ok_or_else(games::unknown_game)
}

async fn find(platform: &Platform, world_id: &str) -> Result<WorldInfo, ApiError> {
    let world = worlds::find(platform.db(), world_id).await?;
    Ok(world.ok_or_else(worlds::unknown_world)?.info(platform))
}

/// `world.join`: leaves the previous world and sends the history of this one.
pub async fn join(
    platform: &Platform,
    socket: &SocketRef,
    visitor: &Visitor,
    data: &Value,
) -> Answer {
    let place = destination(platform, data).await?;
    let world_id = place.world_id.clone();
    let row = remote_commands::world(platform, &visitor.actor, &place).await?;
    remote_commands::must_have_room(platform, &visitor.actor, &row).await?;
    let spec = row.spec.clone();
    let world = row.info(platform);
    // Update the last use, so that the sweep does not delete the world.
    worlds::touch(platform.db(), &world_id, platform.clock().now_ms()).await?;
    if let Some(before) = visitor.move_to(Some(place))
        && before.world_id != world_id
    {
        go_out(socket, visitor, &before.world_id);
    }
    // Join the room before reading the log: an operation in between then arrives
    // twice, not never, and clients can drop duplicates by number.
    let user_id = &visitor.actor.user_id;
    socket.join([room(&world_id), visits_of(&world_id, user_id)]);
    let oversees = visitor.is_admin() || made_game(platform, visitor, &spec).await?;
    if oversees {
        socket.join(overseers(&world_id));
    }
    let clients = platform.sockets().clients_in(&world_id);
    let ends = remote_commands::log_ends(platform.db(), &world_id).await?;
    let newest = ends.newest;
    let joined = json!({
        "world_id": world_id,
        "world": world,
        "clients": clients,
        "ops": newest,
        "client_id": visitor.actor.user_id,
    });
    let _ = socket.emit("world.joined", &joined);
    let tell = |event, told: &Value| {
        let _ = socket.emit(event, told);
    };
    let only = (ends.near_only && !oversees).then_some(user_id.as_str());
    send_log(platform, &world_id, ends, only, tell).await?;
    Ok(Reply::Told(joined))
}

/// The world to join, by id or room code.
async fn destination(platform: &Platform, data: &Value) -> Result<Place, ApiError> {
    let code = optional(data, "room_code")?;
    let (world_id, via) = match (optional(data, "world_id")?, code) {
        (None, Some(code)) => {
            let world = worlds::find_by_room_code(platform.db(), &code).await?;
            let world = world.ok_or_else(worlds::unknown_room)?;
            (world.spec.world_id, Via::Code)
        }
        _ => (text(data, "world_id")?, Via::Id),
    };
    Ok(Place {
        world_id,
        via,
        joined: true,
    })
}

/// Tells Socket.IO clients in a world that it was reset, and sends its new history.
///
/// # Errors
/// When the database fails.
pub async fn set_back(platform: &Platform, world_id: &str) -> Result<(), ApiError> {
    let sockets = platform.sockets();
    if sockets.clients_in(world_id) == 0 {
        return Ok(());
    }
    let ends = remote_commands::log_ends(platform.db(), world_id).await?;
    let told = json!({ "world_id": world_id, "set_back": true });
    sockets.tell_world(world_id, "world_cleared", &told);
    // Clients that receive only their own operations have none in the restored state.
    let hear = match ends.near_only {
        true => overseers(world_id),
        false => room(world_id),
    };
    let tell = |event, told: &Value| sockets.tell(To::Rooms(vec![hear.clone()]), event, told);
    send_log(platform, world_id, ends, None, tell).await
}

/// Whether the user may create worlds of this game: everyone who may play it can.
async fn made_game(
    platform: &Platform,
    visitor: &Visitor,
    spec: &WorldSpec,
) -> Result<bool, ApiError> {
    let game = games::find(platform.db(), &spec.game_id).await?;
    Ok(game.is_some_and(|game| game.creator_id == visitor.actor.user_id))
}

/// Leaves the rooms of a world.
fn go_out(socket: &SocketRef, visitor: &Visitor, world_id: &str) {
    socket.leave([
        room(world_id),
        visits_of(world_id, &visitor.actor.user_id),
        overseers(world_id),
    ]);
}

/// Sends `sync_ops` with the log, or with one user's part of it; `sync_complete` when
/// it is empty.
async fn send_log(
    platform: &Platform,
    world_id: &str,
    ends: LogEnds,
    only: Option<&str>,
    tell: impl Fn(&'static str, &Value),
) -> Result<(), ApiError> {
    let mut after = 0;
    let mut sent = 0;
    loop {
        let page =
            remote_commands::log(platform.db(), world_id, only, after, OPS_PER_MESSAGE).await?;
        let Some(last) = page.last().map(|op| op.op_id) else {
            break;
        };
        after = last.cast_signed();
        sent += page.len();
        let more = page.len() as i64 == OPS_PER_MESSAGE && sent < OPS_MAX;
        let ops: Vec<Value> = page.iter().map(|op| super::flat(world_id, op)).collect();
        let told = json!({
            "world_id": world_id,
            "ops": ops,
            "complete": !more,
            // Operations up to this number are only in the world's checkpoint.
            "checkpoint": ends.checkpoint,
            "newest": ends.newest,
        });
        tell("sync_ops", &told);
        if !more {
            return Ok(());
        }
    }
    let done = json!({
        "world_id": world_id,
        "message": "This world has no operations to catch up on.",
        "checkpoint": ends.checkpoint,
        "newest": ends.newest,
    });
    tell("sync_complete", &done);
    Ok(())
}

/// `world.leave`.
pub fn leave(socket: &SocketRef, visitor: &Visitor) -> Answer {
    let left = visitor.move_to(None).map(|place| place.world_id);
    if let Some(world_id) = &left {
        go_out(socket, visitor, world_id);
    }
    Ok(Reply::Event("world.left", json!({ "left_world_id": left })))
}

/// `world.get`: the named world, or the joined one.
pub async fn get(platform: &Platform, visitor: &Visitor, data: &Value) -> Answer {
    let place = match (optional(data, "world_id")?, visitor.place()) {
        (Some(named), Some(joined)) if named == joined.world_id => joined,
        (Some(named), _) => Place::named(named),
        (None, _) => here(visitor)?,
    };
    let world = remote_commands::world(platform, &visitor.actor, &place).await?;
    let mut info = told(&world.info(platform));
    info["clients"] = json!(platform.sockets().clients_in(&place.world_id));
    Ok(Reply::Event("world.info", info))
}

/// `ping`.
pub async fn ping(platform: &Platform, visitor: &Visitor) -> Answer {
    let world = visitor.place().map(|place| place.world_id);
    let (clients, ops) = match &world {
        Some(world_id) => (
            platform.sockets().clients_in(world_id),
            remote_commands::log_ends(platform.db(), world_id)
                .await?
                .newest,
        ),
        None => (platform.sockets().clients(), 0),
    };
    let pong = json!({ "clients": clients, "world_id": world, "ops": ops });
    Ok(Reply::Event("pong", pong))
}

/// The joined world.
pub fn here(visitor: &Visitor) -> Result<Place, ApiError> {
    visitor
        .place()
        .ok_or_else(|| ApiError::bad_request("no_world", "join a world first, with world.join"))
}
