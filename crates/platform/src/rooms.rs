//! `/api/rooms/{code}/ws`: one public port reaches every world (NET-10). A
//! WebSocket is passed through message by message, with its subprotocol and
//! query; who may enter is for the game server and its ticket to say.

use std::net::SocketAddr;

use axum::extract::ws::{self, WebSocket, WebSocketUpgrade};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, Request, header};
use axum::response::Response;
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_tungstenite::tungstenite::{self, protocol::WebSocketConfig};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::error::ApiError;
use crate::extract::ApiPath;
use crate::{Platform, address, ids, worlds};

/// Largest message in either direction; game servers send bundles of scripts.
const MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// What may wait in one socket before its sender has to wait too.
const WRITE_BUFFER_BYTES_MAX: usize = MESSAGE_BYTES_MAX + 256 * 1024;
const QUERY_BYTES_MAX: usize = 4 * 1024;

type Upstream = WebSocketStream<TcpStream>;

/// `GET /api/rooms/{code}/ws`.
///
/// # Errors
/// 404 for an unknown room, 409 when its world sleeps, 503 when the server
/// cannot be reached or too many sockets are open.
pub async fn proxy(
    State(platform): State<Platform>,
    ApiPath(code): ApiPath<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|_| {
        ApiError::bad_request("websocket_expected", "open this address as a WebSocket")
    })?;
    let permit = platform.socket_permit().ok_or_else(|| {
        ApiError::unavailable(
            "too_many_sockets",
            "too many players connect through here; try again",
            5,
        )
    })?;
    let port = room_port(&platform, &code).await?;
    let target = SocketAddr::new(address::local_ip(platform.fleet().host()), port);
    let (upstream, protocol) = connect(target, query, &headers).await?;
    let mut upgrade = upgrade
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .max_write_buffer_size(WRITE_BUFFER_BYTES_MAX);
    if let Some(protocol) = protocol {
        upgrade = upgrade.protocols([protocol]);
    }
    Ok(upgrade.on_upgrade(move |client| pass_through(client, upstream, permit)))
}

async fn room_port(platform: &Platform, code: &str) -> Result<u16, ApiError> {
    let code = ids::canonical_room_code(code).ok_or_else(worlds::unknown_room)?;
    let running = platform.fleet().world_of_room(&code);
    let world_id = match running {
        Some(world_id) => world_id,
        None => worlds::find_by_room_code(platform.db(), &code)
            .await?
            .map(|world| world.spec.world_id)
            .ok_or_else(worlds::unknown_room)?,
    };
    let endpoints = platform.fleet().endpoints(&world_id).ok_or_else(|| {
        ApiError::new(
            axum::http::StatusCode::CONFLICT,
            "world_asleep",
            "this world is not running; join it first (POST /join with its room_code)",
        )
    })?;
    Ok(endpoints.websocket_port)
}

async fn connect(
    target: SocketAddr,
    query: Option<String>,
    headers: &HeaderMap,
) -> Result<(Upstream, Option<String>), ApiError> {
    let unreachable = |error: &dyn std::fmt::Display| {
        tracing::warn!(%target, %error, "could not reach a game server");
        ApiError::unavailable(
            "server_unreachable",
            "the world's server did not answer; join again",
            1,
        )
    };
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
    if let Some(protocols) = headers.get(header::SEC_WEBSOCKET_PROTOCOL) {
        request = request.header(header::SEC_WEBSOCKET_PROTOCOL, protocols);
    }
    let request = request
        .body(())
        .map_err(|_| ApiError::bad_request("invalid_query", "the query cannot be passed on"))?;
    let stream = TcpStream::connect(target)
        .await
        .map_err(|error| unreachable(&error))?;
    // Small packets many times a second: waiting to fill a segment is lag.
    stream.set_nodelay(true)?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX))
        .max_write_buffer_size(WRITE_BUFFER_BYTES_MAX);
    let (upstream, response) = client_async_with_config(request, stream, Some(config))
        .await
        .map_err(|error| unreachable(&error))?;
    let protocol = response
        .headers()
        .get(header::SEC_WEBSOCKET_PROTOCOL)
        .and_then(|protocol: &HeaderValue| protocol.to_str().ok())
        .map(str::to_owned);
    Ok((upstream, protocol))
}

/// Copies both ways until either side ends. A slow reader slows its own
/// sender down: nothing piles up here.
async fn pass_through(client: WebSocket, upstream: Upstream, permit: OwnedSemaphorePermit) {
    let (mut to_client, mut from_client) = client.split();
    let (mut to_server, mut from_server) = upstream.split();
    let upward = async {
        while let Some(Ok(message)) = from_client.next().await {
            let closing = matches!(message, ws::Message::Close(_));
            if to_server.send(to_upstream(message)).await.is_err() || closing {
                break;
            }
        }
    };
    let downward = async {
        while let Some(Ok(message)) = from_server.next().await {
            let closing = message.is_close();
            let Some(message) = to_downstream(message) else {
                continue;
            };
            if to_client.send(message).await.is_err() || closing {
                break;
            }
        }
    };
    tokio::select! {
        () = upward => {}
        () = downward => {}
    }
    let _ = to_server.close().await;
    let _ = to_client.close().await;
    drop(permit);
}

fn to_upstream(message: ws::Message) -> tungstenite::Message {
    match message {
        ws::Message::Text(text) => tungstenite::Message::Text(text.as_str().into()),
        ws::Message::Binary(bytes) => tungstenite::Message::Binary(bytes),
        ws::Message::Ping(bytes) => tungstenite::Message::Ping(bytes),
        ws::Message::Pong(bytes) => tungstenite::Message::Pong(bytes),
        ws::Message::Close(frame) => {
            tungstenite::Message::Close(frame.map(|frame| tungstenite::protocol::CloseFrame {
                code: frame.code.into(),
                reason: frame.reason.as_str().into(),
            }))
        }
    }
}

fn to_downstream(message: tungstenite::Message) -> Option<ws::Message> {
    Some(match message {
        tungstenite::Message::Text(text) => ws::Message::Text(text.as_str().into()),
        tungstenite::Message::Binary(bytes) => ws::Message::Binary(bytes),
        tungstenite::Message::Ping(bytes) => ws::Message::Ping(bytes),
        tungstenite::Message::Pong(bytes) => ws::Message::Pong(bytes),
        tungstenite::Message::Close(frame) => {
            ws::Message::Close(frame.map(|frame| ws::CloseFrame {
                code: frame.code.into(),
                reason: frame.reason.as_str().into(),
            }))
        }
        tungstenite::Message::Frame(_) => return None,
    })
}
