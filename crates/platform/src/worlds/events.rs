//! Events of a world for clients that follow it from outside, over Socket.IO: each world is a room.
//! Where players see only nearby events, [`Audience`] applies the same limit to followers.

use frolic_fleet_api::ops::LoggedOp;
use frolic_fleet_api::remote_commands::CastNews;
use serde_json::{Value, json};
use sqlx::AnyPool;

use super::Worlds;
use super::remote_commands::{self, LogEnds, OpEvent};
use crate::core::error::ApiError;
use crate::core::notifier::{Notifier, Recipients, world_room};

/// Maximum number of operations per `sync_ops` message, and in total per join.
const OPS_PER_MESSAGE: i64 = 200;
const OPS_MAX: usize = 4000;

/// The room of clients that receive all events of a world.
pub fn observers_room(world_id: &str) -> String {
    format!("world:{world_id}:overseers")
}

/// The room of one user's connections in one world.
pub fn user_in_world_room(world_id: &str, user_id: &str) -> String {
    format!("world:{world_id}:of:{user_id}")
}

/// The followers of a world.
pub struct Audience<'a> {
    world_id: &'a str,
    /// Whether a client receives only the events of its own user. Players of such a
    /// world see only nearby events, and a player could otherwise follow all of them
    /// from outside.
    near_only: bool,
}

impl<'a> Audience<'a> {
    /// The audience of a world; `near_only` when its players see only nearby events.
    pub fn of(world_id: &'a str, near_only: bool) -> Self {
        Self {
            world_id,
            near_only,
        }
    }

    /// The rooms that receive an event caused by user `by`.
    fn recipients(&self, by: Option<&str>) -> Recipients {
        if !self.near_only {
            return Recipients::world(self.world_id);
        }
        let own = by.filter(|by| !by.is_empty());
        let own = own.map(|by| user_in_world_room(self.world_id, by));
        Recipients::Rooms(
            own.into_iter()
                .chain([observers_room(self.world_id)])
                .collect(),
        )
    }
}

impl dyn Notifier {
    /// `spell.cast_event`.
    pub fn send_cast(&self, audience: &Audience<'_>, cast_event: CastNews, timestamp: &str) {
        let (world_id, recipients) = (audience.world_id, audience.recipients(Some(&cast_event.by)));
        let mut payload = json!({ "world_id": world_id, "revision_id": cast_event.revision_id });
        let cast = &cast_event.cast;
        let name = cast["spellId"].as_str().unwrap_or_default();
        let (spell_id, channel) = name.split_once('@').unwrap_or((name, "stable"));
        payload["spell_id"] = json!(spell_id);
        payload["channel"] = json!(channel);
        payload["caster_id"] = json!(Some(cast_event.by).filter(|by| !by.is_empty()));
        for (ours, theirs) in [
            ("caster", "caster"),
            ("target", "target"),
            ("seed", "seed"),
            ("tick", "tick"),
            ("draws", "draws"),
            ("answers", "answers"),
        ] {
            payload[ours] = cast[theirs].clone();
        }
        payload["code_sha256"] = cast["revisionId"].clone();
        let params = cast["params"].get(0).cloned().unwrap_or(Value::Null);
        // Clients may use either of the two names for the parameters.
        payload["cast_params"] = params.clone();
        payload["params"] = params;
        payload["timestamp"] = json!(timestamp);
        self.send(recipients, "spell.cast_event", &payload);
    }

    /// `apply_op` and `world_cleared`, in log order.
    pub fn send_ops(&self, audience: &Audience<'_>, ops: &[LoggedOp]) {
        let world_id = audience.world_id;
        if ops.is_empty() || self.clients_in(world_id) == 0 {
            return;
        }
        for op in ops {
            let op = remote_commands::op_event(op);
            if op.op_type == "clear" {
                let payload = json!({ "world_id": world_id, "op_id": op.op_id, "by": op.by });
                self.send_to_world(world_id, "world_cleared", &payload);
            } else {
                // A removed structure has no position any more.
                let recipients = match op.op_type.as_str() {
                    "unbuild" => Recipients::world(world_id),
                    _ => audience.recipients(op.by.as_deref()),
                };
                let mut payload = flat(world_id, &op);
                payload["op"] = payload.clone();
                self.send(recipients, "apply_op", &payload);
            }
        }
    }
}

/// Tells Socket.IO clients in a world that it was reset, and sends its new history.
///
/// # Errors
/// When the database fails.
pub async fn send_reset(worlds: &Worlds, world_id: &str) -> Result<(), ApiError> {
    let sockets = &worlds.notifier;
    if sockets.clients_in(world_id) == 0 {
        return Ok(());
    }
    let ends = remote_commands::log_ends(&worlds.core.db, world_id).await?;
    let data = json!({ "world_id": world_id, "set_back": true });
    sockets.send_to_world(world_id, "world_cleared", &data);
    // Clients that receive only their own operations have none in the restored state.
    let recipients = match ends.near_only {
        true => observers_room(world_id),
        false => world_room(world_id),
    };
    let send = |event, data: &Value| {
        sockets.send(Recipients::Rooms(vec![recipients.clone()]), event, data)
    };
    send_log(&worlds.core.db, world_id, ends, None, send).await
}

/// Sends `sync_ops` with the log, or with one user's part of it; `sync_complete` when
/// it is empty.
///
/// # Errors
/// When the database fails.
pub async fn send_log(
    db: &AnyPool,
    world_id: &str,
    ends: LogEnds,
    only: Option<&str>,
    send: impl Fn(&'static str, &Value),
) -> Result<(), ApiError> {
    let mut after = 0;
    let mut sent = 0;
    loop {
        let page = remote_commands::log(db, world_id, only, after, OPS_PER_MESSAGE).await?;
        let Some(last) = page.last().map(|op| op.op_id) else {
            break;
        };
        after = last.cast_signed();
        sent += page.len();
        let more = page.len() as i64 == OPS_PER_MESSAGE && sent < OPS_MAX;
        let ops: Vec<Value> = page.iter().map(|op| flat(world_id, op)).collect();
        let data = json!({
            "world_id": world_id,
            "ops": ops,
            "complete": !more,
            // Operations up to this number are only in the world's checkpoint.
            "checkpoint": ends.checkpoint,
            "newest": ends.newest,
        });
        send("sync_ops", &data);
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
    send("sync_complete", &done);
    Ok(())
}

/// An operation with its content merged into the message, and as one field.
fn flat(world_id: &str, op: &OpEvent) -> Value {
    let mut payload = op.op_data.clone();
    if let Some(action) = payload.get("action").cloned() {
        payload["type"] = action;
    }
    payload["world_id"] = json!(world_id);
    payload["op_id"] = json!(op.op_id);
    payload["op_type"] = json!(op.op_type);
    payload["op_data"] = op.op_data.clone();
    payload["by"] = json!(op.by);
    payload
}
