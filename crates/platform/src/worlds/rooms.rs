//! `/api/rooms/{code}/ws`: reaches every world through the public port. Proxies a WebSocket message
//! by message, with its subprotocol and query. The game server checks the ticket; a client with a
//! session and no ticket gets one during the upgrade (`entry.rs`).

mod entry;
mod newcomers;
mod relay;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{self, WebSocketUpgrade};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, header};
use axum::response::Response;
use frolic_fleet_api::process::CLIENT_ADDRESS_HEADER;
use frolic_protocol::packet::{CLIENT_MESSAGE_BYTES_MAX, SERVER_MESSAGE_BYTES_MAX};
use futures_util::SinkExt as _;
use tokio::net::TcpSocket;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite::{self, protocol::WebSocketConfig};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::entry::Entry;
pub use self::newcomers::Newcomers;
use self::relay::{IdleTimeouts, Upstream, relay};
use crate::core::error::ApiError;
use crate::core::extract::ApiPath;
use crate::core::ids;
use crate::core::limits::ClientAddress;
use crate::fleet::Phase;
use crate::fleet::address;
use crate::worlds::{self, Worlds};

/// Largest WebSocket message from a game server: its longest message with the length prefix, and
/// the messages sent in the same tick.
const DOWN_BYTES_MAX: usize = SERVER_MESSAGE_BYTES_MAX + 1024 * 1024;
/// Bytes buffered in one socket before its sender is blocked.
const SLACK_BYTES: usize = 256 * 1024;
/// The library's default of 128 KiB is zeroed at every read and allocated per player.
const READ_BUFFER_BYTES: usize = 8 * 1024;
/// Kernel buffer for messages to a client that does not read. Further messages stay in the game
/// server, which can drop outdated ones.
const KERNEL_BUFFER_BYTES: u32 = 128 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const QUERY_BYTES_MAX: usize = 4 * 1024;

/// The proxy route.
pub fn routes() -> OpenApiRouter<Arc<Worlds>> {
    OpenApiRouter::new().routes(routes!(proxy))
}

/// Connects to a world through the platform's own port.
///
/// A WebSocket to the world's game server, for clients that cannot reach its port.
#[utoipa::path(get, path = "/api/rooms/{code}/ws", tag = "joining",
    params(
        ("code" = String, Path, description = "room code of the world"),
        ("ticket" = Option<String>, Query, description = "ticket of POST /join; may also be sent in the first message"),
        ("token" = Option<String>, Query, description = "session token instead of a ticket: joins the room as POST /join does"),
        ("resumeToken" = Option<String>, Query, description = "with `token`: resume token of the last welcome, to reconnect"),
    ),
    responses(
        (status = 101, description = "the WebSocket is open"),
        (status = 400, description = "the request is not a WebSocket upgrade"),
        (status = 401, description = "missing or invalid session"),
        (status = 403, description = "the caller is suspended"),
        (status = 404, description = "no such room"),
        (status = 409, description = "the world is not running: join it first"),
        (status = 429, description = "too many sockets from this address have not sent a ticket"),
        (status = 503, description = "the game server is starting or cannot be reached, or too many sockets are open"),
    )
)]
pub async fn proxy(
    State(worlds): State<Arc<Worlds>>,
    ApiPath(code): ApiPath<String>,
    RawQuery(query): RawQuery,
    ClientAddress(address): ClientAddress,
    headers: HeaderMap,
    uri: Uri,
    upgrade: Result<WebSocketUpgrade, ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|_| {
        ApiError::bad_request("websocket_expected", "open this address as a WebSocket")
    })?;
    if let Some(address) = address {
        let taken = worlds.socket_rates.take(address, Instant::now()).await;
        taken.map_err(|wait| ApiError::rate_limited(wait.as_secs() + 1))?;
    }
    let newcomer = address.map(|address| worlds.newcomers.enter(address));
    let newcomer = newcomer.transpose()?;
    let permit = worlds.socket_permit().ok_or_else(|| {
        ApiError::unavailable(
            "too_many_sockets",
            "too many players are connected through this port; try again",
            5,
        )
    })?;
    let handshake = match Entry::of(&uri) {
        Some(entry) => Some(entry.join(&worlds, &headers, &code).await?),
        None => None,
    };
    let query = query.filter(|_| handshake.is_none());
    let room = room(&worlds, &code).await?;
    let (mut upstream, protocol) = connect(&room, query, &headers, address).await?;
    if let Some(handshake) = handshake {
        let sent = upstream.send(tungstenite::Message::text(handshake)).await;
        sent.map_err(|error| unreachable(room.target, &error))?;
    }
    let mut upgrade = upgrade
        .max_message_size(CLIENT_MESSAGE_BYTES_MAX)
        .max_frame_size(CLIENT_MESSAGE_BYTES_MAX)
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(DOWN_BYTES_MAX + SLACK_BYTES);
    if let Some(protocol) = protocol {
        upgrade = upgrade.protocols([protocol]);
    }
    let limits = &worlds.core.settings.limits;
    let timeouts = IdleTimeouts {
        silence_max: limits.proxied_silence_max,
        idle_max: limits.proxied_idle_max,
    };
    Ok(upgrade.on_upgrade(move |client| async move {
        relay(client, upstream, timeouts, newcomer).await;
        drop(permit);
    }))
}

/// The game server of a room code.
struct Room {
    target: SocketAddr,
    /// Authenticates the platform to the server. Not known for an adopted server before its first
    /// heartbeat.
    token: Option<String>,
}

async fn room(worlds: &Worlds, code: &str) -> Result<Room, ApiError> {
    let code = ids::canonical_room_code(code).ok_or_else(worlds::unknown_room)?;
    let running = worlds.fleet.world_of_room(&code);
    let world_id = match running {
        Some(world_id) => world_id,
        None => worlds::find_by_room_code(&worlds.core.db, &code)
            .await?
            .map(|world| world.spec.world_id)
            .ok_or_else(worlds::unknown_room)?,
    };
    let fleet = &worlds.fleet;
    let server = fleet.server(&world_id).ok_or_else(not_running)?;
    let endpoints = match server.phase() {
        Phase::Ready(endpoints) => endpoints,
        Phase::Starting => return Err(starting(fleet.average_start())),
        // The process crashed. Its players have reserved slots in the next one.
        Phase::BackingOff { until } => {
            let pause = until.saturating_duration_since(Instant::now());
            return Err(starting(pause + fleet.average_start()));
        }
        Phase::Stopping | Phase::Ended(_) => return Err(not_running()),
    };
    let local = address::local_ip(fleet.host());
    Ok(Room {
        target: SocketAddr::new(local, endpoints.websocket_port),
        token: server.token(),
    })
}

fn not_running() -> ApiError {
    ApiError::new(
        StatusCode::CONFLICT,
        "world_asleep",
        "this world is not running; join it first (POST /join with its room_code)",
    )
}

fn starting(wait: Duration) -> ApiError {
    let message = "this world's server is starting; try again in a moment";
    ApiError::unavailable("world_starting", message, wait.as_secs() + 1)
}

/// All subprotocols that a client offers in one header; the client may send several headers.
fn subprotocols(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let names: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn unreachable(target: SocketAddr, error: &dyn std::fmt::Display) -> ApiError {
    tracing::warn!(%target, %error, "could not reach a game server");
    let message = "the world's server did not respond; join again";
    ApiError::unavailable("server_unreachable", message, 1)
}

async fn connect(
    room: &Room,
    query: Option<String>,
    headers: &HeaderMap,
    client: Option<IpAddr>,
) -> Result<(Upstream, Option<String>), ApiError> {
    let target = room.target;
    let query = query.filter(|query| query.len() <= QUERY_BYTES_MAX);
    let path = query.map_or_else(|| "/ws".to_owned(), |query| format!("/ws?{query}"));
    let mut request = Request::builder()
        .uri(format!("ws://{target}{path}"))
        .header(header::HOST, target.to_string())
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(
            header::SEC_WEBSOCKET_KEY,
            tungstenite::handshake::client::generate_key(),
        );
    if let Some(protocols) = subprotocols(headers) {
        request = request.header(header::SEC_WEBSOCKET_PROTOCOL, protocols);
    }
    if let (Some(token), Some(client)) = (&room.token, client) {
        // Otherwise all proxied clients would share the limits of one address.
        request = request
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(CLIENT_ADDRESS_HEADER, client.to_string());
    }
    let request = request
        .body(())
        .map_err(|_| ApiError::bad_request("invalid_query", "the query cannot be forwarded"))?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(DOWN_BYTES_MAX))
        .max_frame_size(Some(DOWN_BYTES_MAX))
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(CLIENT_MESSAGE_BYTES_MAX + SLACK_BYTES);
    let opening = async {
        let socket = match target {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_recv_buffer_size(KERNEL_BUFFER_BYTES)?;
        let stream = socket.connect(target).await?;
        // Packets are small and frequent; waiting to fill a segment would add latency.
        stream.set_nodelay(true)?;
        client_async_with_config(request, stream, Some(config)).await
    };
    let (upstream, response) = timeout(CONNECT_TIMEOUT, opening)
        .await
        .map_err(|error| unreachable(target, &error))?
        .map_err(|error| unreachable(target, &error))?;
    let protocol = response
        .headers()
        .get(header::SEC_WEBSOCKET_PROTOCOL)
        .and_then(|protocol: &HeaderValue| protocol.to_str().ok())
        .map(str::to_owned);
    Ok((upstream, protocol))
}
