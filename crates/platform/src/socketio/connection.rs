//! Admits clients, and dispatches their messages.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{ConnectInfo, FromRequestParts as _};
use axum::http::{Request, header};
use serde_json::{Value, json};
use socketioxide::SocketIo;
use socketioxide::extract::{AckSender, Event, SocketRef, TryData};
use socketioxide::handler::ConnectHandler as _;
use tokio::time::Instant;

use super::visitor::{ReceivedMessage, Visitor};
use super::{casts, spells, worlds};
use crate::Platform;
use crate::community::auth::{Principal, Session};
use crate::community::sanctions;
use crate::core::error::ApiError;
use crate::core::ids;
use crate::core::limits::client_address;
use crate::core::notifier::{Notifier as _, user_room};

/// Maximum number of clients between admission and joining their room; more than ever
/// occur.
const PENDING_MAX: usize = 4096;

/// Result of a message.
pub type HandlerResult = Result<Reply, ApiError>;

/// The answer to a message.
pub enum Reply {
    /// An event for the sender, which is also the acknowledgement.
    Event(&'static str, Value),
    /// Only an acknowledgement: the events were sent already.
    Acknowledge(Value),
}

/// Registers the namespace.
pub fn open(io: &SocketIo, platform: &Platform) {
    let (checked, served) = (platform.clone(), platform.clone());
    let pending = Arc::<PendingVisitors>::default();
    let admitted = pending.clone();
    let check = async move |socket: SocketRef, TryData(auth): TryData<Value>| {
        let visitor = admit(&checked, &socket, &auth.unwrap_or_default()).await;
        let visitor = Arc::new(visitor.map_err(AdmissionError)?);
        // Before the client knows that it is connected, because it may send at once.
        listen(checked.clone(), &socket, visitor.clone());
        admitted.add(socket.id.to_string(), visitor);
        Ok::<_, AdmissionError>(())
    };
    // Not an async function, so that it has completed before the next message is
    // read.
    let serve = move |socket: SocketRef| {
        if let Some(visitor) = pending.take(&socket.id.to_string()) {
            welcome(served, &socket, &visitor);
        }
        std::future::ready(())
    };
    io.ns("/", serve.with(check));
}

/// Clients between admission and joining their room, by connection.
#[derive(Default)]
struct PendingVisitors(Mutex<HashMap<String, Arc<Visitor>>>);

impl PendingVisitors {
    fn add(&self, connection: String, visitor: Arc<Visitor>) {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.len() >= PENDING_MAX {
            // Remove connections that broke during admission.
            pending.clear();
        }
        pending.insert(connection, visitor);
    }

    fn take(&self, connection: &str) -> Option<Arc<Visitor>> {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pending.remove(connection)
    }
}

/// Why a client is rejected; it receives this as `connect_error`.
#[derive(Debug)]
struct AdmissionError(ApiError);

impl std::fmt::Display for AdmissionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.message())
    }
}

/// Authenticates a client. Without a token it is a guest for the lifetime of the
/// connection.
async fn admit(platform: &Platform, socket: &SocketRef, auth: &Value) -> Result<Visitor, ApiError> {
    let most = platform.core.settings.limits.socketio_clients_max;
    if platform.sockets.clients() >= most {
        let message = "too many clients are connected; try again later";
        return Err(ApiError::unavailable("too_many_clients", message, 10));
    }
    let token = ["token", "session_token"]
        .into_iter()
        .find_map(|name| auth.get(name)?.as_str());
    let header = socket.req_parts().headers.get(header::AUTHORIZATION);
    let bearer = match (token, header) {
        (Some(token), _) => format!("Bearer {token}"),
        (None, Some(header)) => header.to_str().unwrap_or_default().to_owned(),
        (None, None) => {
            return Ok(Visitor::new(Principal::anonymous(ids::new_id("visitor"))));
        }
    };
    // The same authentication as for HTTP requests.
    let request = Request::builder().header(header::AUTHORIZATION, bearer);
    let request = request.body(()).map_err(|_| {
        ApiError::unauthorized("invalid_token", "the token contains invalid characters")
    })?;
    let (mut parts, ()) = request.into_parts();
    let session = Session::from_request_parts(&mut parts, platform).await?;
    Ok(Visitor::new(Principal::from(&session)))
}

fn welcome(platform: Platform, socket: &SocketRef, visitor: &Visitor) {
    platform.sockets.add_client();
    socket.on_disconnect(move || {
        platform.sockets.remove_client();
        std::future::ready(())
    });
    socket.join(user_room(&visitor.actor.user_id));
    let username = (!visitor.actor.is_anonymous()).then_some(&visitor.actor.username);
    let hello = json!({
        "client_id": visitor.actor.user_id,
        "username": username,
        "sid": socket.id.to_string(),
    });
    let _ = socket.emit("connected", &hello);
}

/// Registers one handler for all events, to save memory per idle client.
fn listen(platform: Platform, socket: &SocketRef, visitor: Arc<Visitor>) {
    socket.on_fallback(
        move |socket: SocketRef,
              Event(event): Event,
              TryData(data): TryData<Value>,
              ack: AckSender| {
            let data = data.unwrap_or(Value::Null);
            let message = ReceivedMessage { event, data, ack };
            match visitor.enqueue(socket.clone(), message) {
                Ok(true) => {
                    tokio::spawn(work(platform, visitor));
                }
                Ok(false) => {}
                Err(message) => {
                    let error = ApiError::new(
                        axum::http::StatusCode::TOO_MANY_REQUESTS,
                        "too_fast",
                        "too many messages; slow down",
                    );
                    answer(&socket, message, Err(error));
                }
            }
            // Not an async function, so that messages keep their order.
            std::future::ready(())
        },
    );
}

/// Processes one client's messages in order until its queue is empty.
async fn work(platform: Platform, visitor: Arc<Visitor>) {
    while let Some((socket, message)) = visitor.next() {
        let outcome = handle(&platform, &socket, &visitor, &message).await;
        answer(&socket, message, outcome);
    }
}

async fn handle(
    platform: &Platform,
    socket: &SocketRef,
    visitor: &Visitor,
    message: &ReceivedMessage,
) -> HandlerResult {
    let data = &message.data;
    if !message.event.chars().all(frolic_scene::is_visible) {
        return Err(ApiError::bad_request(
            "bad_event_name",
            "event names must not contain control, invisible or direction-changing characters",
        ));
    }
    if is_for_members(&message.event) {
        let (db, now) = (&platform.core.db, platform.core.clock.now_ms());
        sanctions::refuse_suspended(db, &visitor.actor.user_id, now).await?;
    }
    match message.event.as_str() {
        "world.list" => worlds::list(platform, visitor, data).await,
        "world.create" => {
            charge_rate_limit(platform, socket).await?;
            worlds::create(platform, visitor, data).await
        }
        "world.join" | "join_world" => worlds::join(platform, socket, visitor, data).await,
        "world.leave" | "leave_world" => worlds::leave(socket, visitor),
        "world.get" => worlds::get(platform, visitor, data).await,
        "ping" => worlds::ping(platform, visitor).await,
        "spell.create_draft" => {
            charge_rate_limit(platform, socket).await?;
            spells::create_draft(platform, visitor, data).await
        }
        "spell.start_build" => {
            charge_rate_limit(platform, socket).await?;
            spells::start_build(platform, visitor, data).await
        }
        "spell.publish" => spells::publish(platform, visitor, data).await,
        "spell.list" => spells::list(platform, visitor, data).await,
        "spell.get_revisions" => spells::revisions(platform, visitor, data).await,
        "content.get_manifest" => spells::manifest(platform, visitor, data).await,
        "content.get_file" => spells::file(platform, visitor, data).await,
        "content.list_files" => spells::files(platform, visitor, data).await,
        "job.get" => spells::job(platform, visitor, data).await,
        "job.cancel" => spells::cancel(platform, visitor, data).await,
        "spell.cast_request" => casts::cast(platform, visitor, data).await,
        "request_spell" => casts::edit_terrain(platform, visitor, data).await,
        "clear_world" => casts::clear(platform, visitor, data).await,
        other => {
            let name: String = other.chars().take(64).collect();
            let message = format!("unknown event '{name}'; see docs/protocol/socketio.md");
            Err(ApiError::bad_request("unknown_event", message))
        }
    }
}

/// Whether the event is rejected for suspended users, because others see its effect.
fn is_for_members(event: &str) -> bool {
    matches!(
        event,
        "world.create"
            | "world.join"
            | "join_world"
            | "spell.create_draft"
            | "spell.start_build"
            | "spell.publish"
            | "spell.cast_request"
            | "request_spell"
            | "clear_world"
    )
}

/// Charges expensive events to the rate limit of the client's address, as logins are.
async fn charge_rate_limit(platform: &Platform, socket: &SocketRef) -> Result<(), ApiError> {
    let extensions = &socket.req_parts().extensions;
    let Some(ConnectInfo(peer)) = extensions.get::<ConnectInfo<SocketAddr>>() else {
        return Ok(());
    };
    let address = client_address(peer.ip(), &socket.req_parts().headers);
    let taken = platform.core.rates.take(address, Instant::now()).await;
    taken.map_err(|wait| ApiError::rate_limited(wait.as_secs() + 1))
}

/// Answers the sender: as an event, and as the acknowledgement if requested.
fn answer(socket: &SocketRef, message: ReceivedMessage, outcome: HandlerResult) {
    let acknowledged = match outcome {
        Ok(Reply::Event(event, data)) => {
            let _ = socket.emit(event, &data);
            data
        }
        Ok(Reply::Acknowledge(data)) => data,
        Err(error) => {
            let visible = |c: &char| frolic_scene::is_visible(*c);
            let event: String = message.event.chars().filter(visible).take(64).collect();
            let data = json!({ "code": error.code(), "message": error.message(), "event": event });
            if message.event == "spell.cast_request" {
                let spell = message.data.get("spell_id").and_then(Value::as_str);
                let rejected = json!({
                    "spell_id": spell.map(|id| id.chars().take(64).collect::<String>()),
                    "error": error.message(),
                    "code": error.code(),
                });
                let _ = socket.emit("spell.cast_rejected", &rejected);
            } else {
                let _ = socket.emit("error", &data);
            }
            json!({ "error": data })
        }
    };
    let _ = message.ack.send(&acknowledged);
}

/// A required text field of a message.
pub fn text(data: &Value, name: &'static str) -> Result<String, ApiError> {
    optional(data, name)?.ok_or_else(|| {
        ApiError::bad_request("missing_field", format!("{name} is missing or not a text"))
    })
}

/// An optional text field of a message.
pub fn optional(data: &Value, name: &'static str) -> Result<Option<String>, ApiError> {
    match data.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(ApiError::bad_request(
            "invalid_field",
            format!("{name} must be a text"),
        )),
    }
}

/// Deserializes a message.
pub fn parsed<T: serde::de::DeserializeOwned>(data: &Value) -> Result<T, ApiError> {
    let object = if data.is_null() { &json!({}) } else { data };
    T::deserialize(object).map_err(|error| {
        ApiError::bad_request("invalid_field", format!("invalid message: {error}"))
    })
}
