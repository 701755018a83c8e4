//! Socket.IO: worlds, spells, builds and casts for any Socket.IO v4 client, on the
//! platform's own port.
//!
//! Each world is a room, and its events reach only that room; where players see only
//! nearby events, [`Audience`] applies the same limit. The rest of the platform
//! sends events through [`Sockets`]. [`connection`] admits clients and passes their
//! messages to the handlers, one message per client at a time.

mod casts;
mod connection;
mod spells;
mod visitor;
mod worlds;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use frolic_fleet_api::ops::LoggedOp;
use frolic_fleet_api::remote_commands::CastNews;
use serde::Serialize;
use serde_json::{Value, json};
use socketioxide::SocketIo;
use socketioxide::layer::SocketIoLayer;

use self::visitor::Visitor;
pub use self::worlds::send_reset;
use crate::Platform;
use crate::worlds::remote_commands::{self, OpEvent};

/// Maximum size of a message.
const MESSAGE_BYTES_MAX: usize = 128 * 1024;
/// Time after which a connection that joined no namespace is closed.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Ping interval; bounds the time until a dead connection is noticed.
const PING_INTERVAL: Duration = Duration::from_secs(25);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum number of queued messages per client; further ones are dropped.
const QUEUE_MAX: usize = 256;
/// Maximum number of clients between admission and joining their room; more than ever
/// occur.
const PENDING_MAX: usize = 4096;

/// Sends events to Socket.IO clients.
#[derive(Default)]
pub struct Sockets {
    io: OnceLock<SocketIo>,
    clients: AtomicUsize,
    /// Clients between admission and joining their room, by connection.
    pending: Mutex<HashMap<String, Arc<Visitor>>>,
}

/// The layer that serves `/socket.io`.
pub fn layer(platform: &Platform) -> SocketIoLayer {
    let (layer, io) = SocketIo::builder()
        .max_payload(MESSAGE_BYTES_MAX as u64)
        .ws_max_message_size(MESSAGE_BYTES_MAX)
        .ws_max_frame_size(MESSAGE_BYTES_MAX)
        .max_buffer_size(QUEUE_MAX)
        .ws_read_buffer_size(2048)
        .connect_timeout(CONNECT_TIMEOUT)
        .ping_interval(PING_INTERVAL)
        .ping_timeout(PING_TIMEOUT)
        .build_layer();
    connection::open(&io, platform);
    // Fails only for a second router of the same platform, which does not exist.
    let _ = platform.sockets().io.set(io);
    layer
}

/// The room of a world.
fn world_room(world_id: &str) -> String {
    format!("world:{world_id}")
}

/// The room of clients that receive all events of a world.
fn observers_room(world_id: &str) -> String {
    format!("world:{world_id}:overseers")
}

/// The room of one user's connections in one world.
fn user_in_world_room(world_id: &str, user_id: &str) -> String {
    format!("world:{world_id}:of:{user_id}")
}

/// The Socket.IO audience of a world.
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

/// Recipients of an event.
enum Recipients {
    All,
    Rooms(Vec<String>),
}

impl Recipients {
    fn world(world_id: &str) -> Self {
        Self::Rooms(vec![world_room(world_id)])
    }
}

/// The room of all connections of one user.
fn user_room(user_id: &str) -> String {
    format!("user:{user_id}")
}

impl Sockets {
    /// Number of connected clients.
    pub fn clients(&self) -> usize {
        self.clients.load(Relaxed)
    }

    /// Number of clients in a world.
    pub fn clients_in(&self, world_id: &str) -> usize {
        let io = self.io.get();
        io.map_or(0, |io| io.within(world_room(world_id)).sockets().len())
    }

    fn add_pending(&self, connection: String, visitor: Arc<Visitor>) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.len() >= PENDING_MAX {
            // Remove connections that broke during admission.
            pending.clear();
        }
        pending.insert(connection, visitor);
    }

    fn take_pending(&self, connection: &str) -> Option<Arc<Visitor>> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.remove(connection)
    }

    /// Sends an event to all clients.
    pub fn broadcast(&self, event: &'static str, data: &impl Serialize) {
        self.send(Recipients::All, event, data);
    }

    /// Sends an event to the clients in a world.
    pub fn send_to_world(&self, world_id: &str, event: &'static str, data: &impl Serialize) {
        self.send(Recipients::world(world_id), event, data);
    }

    /// Sends an event to all connections of one user.
    pub fn send_to_user(&self, user_id: &str, event: &'static str, data: &impl Serialize) {
        self.send(Recipients::Rooms(vec![user_room(user_id)]), event, data);
    }

    fn send(&self, to: Recipients, event: &'static str, data: &impl Serialize) {
        let (Some(io), Ok(runtime)) = (self.io.get(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        if self.clients() == 0 {
            return;
        }
        let Ok(data) = serde_json::to_value(data) else {
            return;
        };
        let io = io.clone();
        let sending = async move {
            let sent = match to {
                Recipients::Rooms(rooms) => io.to(rooms).emit(event, &data).await,
                Recipients::All => io.emit(event, &data).await,
            };
            // Only clients that read too slowly miss the event.
            if let Err(error) = sent {
                tracing::debug!(%error, event, "some clients did not receive an event");
            }
        };
        // Emitting to rooms of this process never waits, so one poll completes it, in
        // order. Only a remote adapter could be pending.
        let mut sending = Box::pin(sending);
        let waker = std::task::Waker::noop();
        let mut context = std::task::Context::from_waker(waker);
        if sending.as_mut().poll(&mut context).is_pending() {
            runtime.spawn(sending);
        }
    }

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

    /// Closes all connections.
    pub async fn close(&self) {
        if let Some(io) = self.io.get() {
            let closing = io.close();
            let _ = tokio::time::timeout(Duration::from_secs(2), closing).await;
        }
    }
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
