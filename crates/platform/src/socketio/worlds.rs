//! `world.…` and `ping`: list, create, join and leave worlds.

use serde_json::{Value, json};
use socketioxide::extract::SocketRef;

use super::connection::{HandlerResult, Reply, optional, text};
use super::visitor::Visitor;
use crate::Platform;
use crate::api::WorldInfo;
use crate::api::limits::{WORLD_DESCRIPTION_CHARS_MAX, WORLD_NAME_CHARS_MAX};
use crate::catalog::games::{self, GameRow};
use crate::core::error::ApiError;
use crate::core::names;
use crate::core::notifier::world_room;
use crate::core::texts;
use crate::fleet::WorldSpec;
use crate::worlds::events::{observers_room, send_log, user_in_world_room};
use crate::worlds::join::access::Via;
use crate::worlds::remote_commands::{self, WorldRef};
use crate::worlds::{self, NewWorldSpec};

/// Default game of new worlds, if it is installed.
const SANDBOX: &str = "sandbox";
/// Maximum number of worlds per user.
const WORLDS_PER_USER: i64 = 100;
/// Maximum number of worlds, and of spells, by all visitors without a session.
const CREATED_BY_VISITORS_MAX: i64 = 5000;

/// `world.list`; with `castable: true`, only worlds where the client may cast now.
pub async fn list(platform: &Platform, visitor: &Visitor, data: &Value) -> HandlerResult {
    let castable = data.get("castable").and_then(Value::as_bool);
    let worlds = match castable.unwrap_or(false) {
        true => worlds::castable::of(&platform.worlds, &visitor.actor).await?,
        false => worlds::public(&platform.worlds).await?,
    };
    Ok(Reply::Event(
        "world.list_result",
        json!({ "worlds": worlds }),
    ))
}

/// `world.create`.
pub async fn create(platform: &Platform, visitor: &Visitor, data: &Value) -> HandlerResult {
    let db = &platform.core.db;
    let name = optional(data, "name")?.unwrap_or_default();
    let name = texts::line(&name, WORLD_NAME_CHARS_MAX);
    names::check_inoffensive(&platform.core.settings, &name)?;
    let description = optional(data, "description")?.unwrap_or_default();
    let description = texts::lines(&description, WORLD_DESCRIPTION_CHARS_MAX);
    let game = game_of(platform, visitor, optional(data, "game_id")?).await?;
    let made: i64 = sqlx::query_scalar("SELECT COUNT(*) AS made FROM worlds WHERE created_by = $1")
        .bind(&visitor.actor.user_id)
        .fetch_one(db)
        .await?;
    if made >= WORLDS_PER_USER {
        return Err(ApiError::new(
            axum::http::StatusCode::TOO_MANY_REQUESTS,
            "too_many_worlds",
            format!("you have {WORLDS_PER_USER} worlds, which is the maximum; delete one first"),
        ));
    }
    if visitor.actor.is_anonymous() {
        limit_anonymous(platform, "worlds").await?;
    }
    let now = platform.core.clock.now_ms();
    let wish = NewWorldSpec {
        name: if name.is_empty() { &game.name } else { &name },
        description: &description,
        created_by: &visitor.actor.user_id,
        owned: true,
        kept: true,
        private: false,
    };
    let spec = worlds::create(db, &game, wish, now).await?;
    let world = find(platform, &spec.world_id).await?;
    let sockets = &platform.worlds.notifier;
    let listed = worlds::public(&platform.worlds).await?;
    sockets.broadcast("world.list_updated", &json!({ "worlds": listed }));
    Ok(Reply::Event("world.created", world_json(&world)))
}

/// A world with its fields in the message, and as one field.
fn world_json(world: &WorldInfo) -> Value {
    let mut data = json!(world);
    data["world"] = data.clone();
    data
}

/// Limits what visitors without a session create. They have a new id per connection,
/// so the limit is global.
///
/// # Errors
/// 429 with advice.
pub async fn limit_anonymous(platform: &Platform, table: &'static str) -> Result<(), ApiError> {
    let count = format!("SELECT COUNT(*) AS made FROM {table} WHERE created_by LIKE $1 ESCAPE '!'");
    let made: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(count))
        .bind("visitor!_%")
        .fetch_one(&platform.core.db)
        .await?;
    if made < CREATED_BY_VISITORS_MAX {
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
    let db = &platform.core.db;
    let found = match wanted {
        Some(id) => games::find(db, &id).await?,
        None => match games::find(db, SANDBOX).await? {
            Some(sandbox) => Some(sandbox),
            None => match platform.catalog.default_game() {
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
    let world = worlds::find(&platform.core.db, world_id).await?;
    Ok(world
        .ok_or_else(worlds::unknown_world)?
        .info(&platform.worlds))
}

/// `world.join`: leaves the previous world and sends the history of this one.
pub async fn join(
    platform: &Platform,
    socket: &SocketRef,
    visitor: &Visitor,
    data: &Value,
) -> HandlerResult {
    let place = destination(platform, data).await?;
    let world_id = place.world_id.clone();
    let row = remote_commands::world(&platform.worlds, &visitor.actor, &place).await?;
    remote_commands::must_have_room(&platform.worlds, &visitor.actor, &row).await?;
    let spec = row.spec.clone();
    let world = row.info(&platform.worlds);
    // Update the last use, so that the sweep does not delete the world.
    worlds::touch(&platform.core.db, &world_id, platform.core.clock.now_ms()).await?;
    if let Some(before) = visitor.move_to(Some(place))
        && before.world_id != world_id
    {
        leave_rooms(socket, visitor, &before.world_id);
    }
    // Join the room before reading the log: an operation in between then arrives
    // twice, not never, and clients can drop duplicates by number.
    let user_id = &visitor.actor.user_id;
    socket.join([
        world_room(&world_id),
        user_in_world_room(&world_id, user_id),
    ]);
    let oversees = visitor.actor.is_admin() || created_game(platform, visitor, &spec).await?;
    if oversees {
        socket.join(observers_room(&world_id));
    }
    let clients = platform.worlds.notifier.clients_in(&world_id);
    let ends = remote_commands::log_ends(&platform.worlds.core.db, &world_id).await?;
    let newest = ends.newest;
    let joined = json!({
        "world_id": world_id,
        "world": world,
        "clients": clients,
        "ops": newest,
        "client_id": visitor.actor.user_id,
    });
    let _ = socket.emit("world.joined", &joined);
    let send = |event, data: &Value| {
        let _ = socket.emit(event, data);
    };
    let only = (ends.near_only && !oversees).then_some(user_id.as_str());
    send_log(&platform.core.db, &world_id, ends, only, send).await?;
    Ok(Reply::Acknowledge(joined))
}

/// The world to join, by id or room code.
async fn destination(platform: &Platform, data: &Value) -> Result<WorldRef, ApiError> {
    let code = optional(data, "room_code")?;
    let (world_id, via) = match (optional(data, "world_id")?, code) {
        (None, Some(code)) => {
            let world = worlds::find_by_room_code(&platform.core.db, &code).await?;
            let world = world.ok_or_else(worlds::unknown_room)?;
            (world.spec.world_id, Via::Code)
        }
        _ => (text(data, "world_id")?, Via::Id),
    };
    Ok(WorldRef {
        world_id,
        via,
        joined: true,
    })
}

/// Whether the user created the world's game. Owning the world is not enough to see
/// everything in it: every player can create a world of a game.
async fn created_game(
    platform: &Platform,
    visitor: &Visitor,
    spec: &WorldSpec,
) -> Result<bool, ApiError> {
    let game = games::find(&platform.core.db, &spec.game_id).await?;
    Ok(game.is_some_and(|game| game.creator_id == visitor.actor.user_id))
}

/// Leaves the rooms of a world.
fn leave_rooms(socket: &SocketRef, visitor: &Visitor, world_id: &str) {
    socket.leave([
        world_room(world_id),
        user_in_world_room(world_id, &visitor.actor.user_id),
        observers_room(world_id),
    ]);
}

/// `world.leave`.
pub fn leave(socket: &SocketRef, visitor: &Visitor) -> HandlerResult {
    let left = visitor.move_to(None).map(|place| place.world_id);
    if let Some(world_id) = &left {
        leave_rooms(socket, visitor, world_id);
    }
    Ok(Reply::Event("world.left", json!({ "left_world_id": left })))
}

/// `world.get`: the named world, or the joined one.
pub async fn get(platform: &Platform, visitor: &Visitor, data: &Value) -> HandlerResult {
    let place = match (optional(data, "world_id")?, visitor.place()) {
        (Some(named), Some(joined)) if named == joined.world_id => joined,
        (Some(named), _) => WorldRef::named(named),
        (None, _) => joined_world(visitor)?,
    };
    let world = remote_commands::world(&platform.worlds, &visitor.actor, &place).await?;
    let mut info = world_json(&world.info(&platform.worlds));
    info["clients"] = json!(platform.worlds.notifier.clients_in(&place.world_id));
    Ok(Reply::Event("world.info", info))
}

/// `ping`.
pub async fn ping(platform: &Platform, visitor: &Visitor) -> HandlerResult {
    let world = visitor.place().map(|place| place.world_id);
    let (clients, ops) = match &world {
        Some(world_id) => (
            platform.worlds.notifier.clients_in(world_id),
            remote_commands::log_ends(&platform.worlds.core.db, world_id)
                .await?
                .newest,
        ),
        None => (platform.worlds.notifier.clients(), 0),
    };
    let pong = json!({ "clients": clients, "world_id": world, "ops": ops });
    Ok(Reply::Event("pong", pong))
}

/// The joined world.
pub fn joined_world(visitor: &Visitor) -> Result<WorldRef, ApiError> {
    visitor
        .place()
        .ok_or_else(|| ApiError::bad_request("no_world", "join a world first, with world.join"))
}
