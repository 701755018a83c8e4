//! Socket.IO: worlds, spells, builds and casts for any Socket.IO v4
//! client, on the same port as everything else.
//!
//! A world is a room; what is told to it reaches nobody else, and where players
//! are told only of what is near, no more than [`Followers`] says. [`Sockets`] is
//! what the rest of the platform tells things through; [`door`] lets clients in
//! and hands what they say to the handlers, one message of a client after the
//! other.

mod casts;
mod door;
mod spells;
mod visitor;
mod worlds;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use frolic_protocol::ops::LoggedOp;
use frolic_protocol::remote_commands::CastNews;
use serde::Serialize;
use serde_json::{Value, json};
use socketioxide::SocketIo;
use socketioxide::layer::SocketIoLayer;

use self::visitor::Visitor;
pub use self::worlds::set_back;
use crate::Platform;
use crate::remote_commands::{self, ToldOp};

/// Bytes of one message.
const MESSAGE_BYTES_MAX: usize = 128 * 1024;
/// A connection that joins no namespace is closed.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// Silence after which a client counts as gone: a ping each interval.
const PING_EVERY: Duration = Duration::from_secs(25);
const PING_PATIENCE: Duration = Duration::from_secs(20);
/// Messages that wait for a slow reader; more are dropped.
const WAITING_MAX: usize = 256;
/// Clients between the door and the room: more at once than ever are.
const ARRIVING_MAX: usize = 4096;

/// What the platform says to Socket.IO clients.
#[derive(Default)]
pub struct Sockets {
    io: OnceLock<SocketIo>,
    clients: AtomicUsize,
    /// Clients between the door and the room, by connection.
    arriving: Mutex<HashMap<String, Arc<Visitor>>>,
}

/// The layer that answers `/socket.io`.
pub fn layer(platform: &Platform) -> SocketIoLayer {
    let (layer, io) = SocketIo::builder()
        .max_payload(MESSAGE_BYTES_MAX as u64)
        .ws_max_message_size(MESSAGE_BYTES_MAX)
        .ws_max_frame_size(MESSAGE_BYTES_MAX)
        .max_buffer_size(WAITING_MAX)
        .ws_read_buffer_size(2048)
        .connect_timeout(CONNECT_PATIENCE)
        .ping_interval(PING_EVERY)
        .ping_timeout(PING_PATIENCE)
        .build_layer();
    door::open(&io, platform);
    // A second router of the same platform (there is none) would be mute.
    let _ = platform.sockets().io.set(io);
    layer
}

/// The room of a world.
fn room(world_id: &str) -> String {
    format!("world:{world_id}")
}

/// The room of those who may know everything that happens in a world.
fn overseers(world_id: &str) -> String {
    format!("world:{world_id}:overseers")
}

/// The room of one person's connections that are in a world.
fn visits_of(world_id: &str, user_id: &str) -> String {
    format!("world:{world_id}:of:{user_id}")
}

/// Who follows a world from outside.
pub struct Followers<'a> {
    world_id: &'a str,
    /// Whether only what somebody does themselves is told to them: players are
    /// told of nothing that is far, and whoever plays can follow as well.
    near_only: bool,
}

impl<'a> Followers<'a> {
    /// Those of a world, which tells its players only of what is near, or not.
    pub fn of(world_id: &'a str, near_only: bool) -> Self {
        Self {
            world_id,
            near_only,
        }
    }

    /// The rooms that hear of what somebody did somewhere.
    fn hear(&self, by: Option<&str>) -> To {
        if !self.near_only {
            return To::world(self.world_id);
        }
        let own = by.filter(|by| !by.is_empty());
        let own = own.map(|by| visits_of(self.world_id, by));
        To::Rooms(own.into_iter().chain([overseers(self.world_id)]).collect())
    }
}

/// Whom something is told to.
enum To {
    Everybody,
    Rooms(Vec<String>),
}

impl To {
    fn world(world_id: &str) -> Self {
        Self::Rooms(vec![room(world_id)])
    }
}

/// The room of all connections of one person.
fn home(user_id: &str) -> String {
    format!("user:{user_id}")
}

impl Sockets {
    /// Clients that are connected.
    pub fn clients(&self) -> usize {
        self.clients.load(Relaxed)
    }

    /// Clients that are in a world.
    pub fn clients_in(&self, world_id: &str) -> usize {
        let io = self.io.get();
        io.map_or(0, |io| io.within(room(world_id)).sockets().len())
    }

    fn arriving(&self, connection: String, visitor: Arc<Visitor>) {
        let mut arriving = self.arriving.lock().unwrap_or_else(PoisonError::into_inner);
        if arriving.len() >= ARRIVING_MAX {
            // Connections that broke at the door.
            arriving.clear();
        }
        arriving.insert(connection, visitor);
    }

    fn arrived(&self, connection: &str) -> Option<Arc<Visitor>> {
        let mut arriving = self.arriving.lock().unwrap_or_else(PoisonError::into_inner);
        arriving.remove(connection)
    }

    /// Tells everybody.
    pub fn tell_all(&self, event: &'static str, data: &impl Serialize) {
        self.tell(To::Everybody, event, data);
    }

    /// Tells those who are in a world.
    pub fn tell_world(&self, world_id: &str, event: &'static str, data: &impl Serialize) {
        self.tell(To::world(world_id), event, data);
    }

    /// Tells all connections of one person.
    pub fn tell_user(&self, user_id: &str, event: &'static str, data: &impl Serialize) {
        self.tell(To::Rooms(vec![home(user_id)]), event, data);
    }

    fn tell(&self, to: To, event: &'static str, data: &impl Serialize) {
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
                To::Rooms(rooms) => io.to(rooms).emit(event, &data).await,
                To::Everybody => io.emit(event, &data).await,
            };
            // Whoever reads too slowly misses it; the others have it.
            if let Err(error) = sent {
                tracing::debug!(%error, event, "not everybody was told");
            }
        };
        // The way through the rooms never waits for a client: done at once, in
        // order, unless an adapter to other machines takes its time.
        let mut sending = Box::pin(sending);
        let waker = std::task::Waker::noop();
        let mut context = std::task::Context::from_waker(waker);
        if sending.as_mut().poll(&mut context).is_pending() {
            runtime.spawn(sending);
        }
    }

    /// `spell.cast_event`.
    pub fn tell_cast(&self, followers: &Followers<'_>, news: CastNews, timestamp: &str) {
        let (world_id, hear) = (followers.world_id, followers.hear(Some(&news.by)));
        let mut told = json!({ "world_id": world_id, "revision_id": news.revision_id });
        let cast = &news.cast;
        let name = cast["spellId"].as_str().unwrap_or_default();
        let (spell_id, channel) = name.split_once('@').unwrap_or((name, "stable"));
        told["spell_id"] = json!(spell_id);
        told["channel"] = json!(channel);
        told["caster_id"] = json!(Some(news.by).filter(|by| !by.is_empty()));
        for (ours, theirs) in [
            ("caster", "caster"),
            ("target", "target"),
            ("seed", "seed"),
            ("tick", "tick"),
            ("draws", "draws"),
            ("answers", "answers"),
        ] {
            told[ours] = cast[theirs].clone();
        }
        told["code_sha256"] = cast["revisionId"].clone();
        let params = cast["params"].get(0).cloned().unwrap_or(Value::Null);
        // Two names for the same: programs are written for either.
        told["cast_params"] = params.clone();
        told["params"] = params;
        told["timestamp"] = json!(timestamp);
        self.tell(hear, "spell.cast_event", &told);
    }

    /// `apply_op` and `world_cleared`, in the order of the log.
    pub fn tell_ops(&self, followers: &Followers<'_>, ops: &[LoggedOp]) {
        let world_id = followers.world_id;
        if ops.is_empty() || self.clients_in(world_id) == 0 {
            return;
        }
        for op in ops {
            let op = remote_commands::told(op);
            if op.op_type == "clear" {
                let told = json!({ "world_id": world_id, "op_id": op.op_id, "by": op.by });
                self.tell_world(world_id, "world_cleared", &told);
            } else {
                // What is gone has no place any more.
                let hear = match op.op_type.as_str() {
                    "unbuild" => To::world(world_id),
                    _ => followers.hear(op.by.as_deref()),
                };
                let mut told = flat(world_id, &op);
                told["op"] = told.clone();
                self.tell(hear, "apply_op", &told);
            }
        }
    }

    /// Ends all connections.
    pub async fn close(&self) {
        if let Some(io) = self.io.get() {
            let closing = io.close();
            let _ = tokio::time::timeout(Duration::from_secs(2), closing).await;
        }
    }
}

/// An operation with what it did beside its number, and as a whole.
fn flat(world_id: &str, op: &ToldOp) -> Value {
    let mut told = op.op_data.clone();
    if let Some(action) = told.get("action").cloned() {
        told["type"] = action;
    }
    told["world_id"] = json!(world_id);
    told["op_id"] = json!(op.op_id);
    told["op_type"] = json!(op.op_type);
    told["op_data"] = op.op_data.clone();
    told["by"] = json!(op.by);
    told
}
