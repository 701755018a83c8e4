//! WebSocket: binary packets for our client, JSON for everybody else's.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use frolic_protocol::json::{BINARY_SUBPROTOCOL, SUBPROTOCOL};
use frolic_protocol::packet::CLIENT_MESSAGE_BYTES_MAX;
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use tokio::sync::mpsc;

use super::Transports;
use crate::link::{Encoding, LinkError, LinkReader, OUTBOX_PACKETS, Outbound};

/// How often a client is asked whether it is still there.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// A client that has been silent for this long, pongs included, is gone.
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// How long a client has to take its last message in.
const FAREWELL: Duration = Duration::from_secs(2);

/// What may stand in the address.
#[derive(Deserialize)]
pub struct Address {
    ticket: Option<String>,
}

/// `GET /` and `/ws`
pub async fn upgrade(
    State(transports): State<Transports>,
    Query(address): Query<Address>,
    upgrade: WebSocketUpgrade,
) -> Response {
    if transports.is_full() {
        let message = "this world has no room for more connections; try again later";
        return (StatusCode::SERVICE_UNAVAILABLE, message).into_response();
    }
    let upgrade = upgrade
        .protocols([BINARY_SUBPROTOCOL, SUBPROTOCOL])
        .max_message_size(CLIENT_MESSAGE_BYTES_MAX)
        .max_frame_size(CLIENT_MESSAGE_BYTES_MAX)
        // The default of 128 KiB is zeroed on every read and held per client.
        .read_buffer_size(4 * 1024)
        .write_buffer_size(0);
    // Our own client names the binary form; whoever names none is a stranger.
    let binary = upgrade
        .selected_protocol()
        .is_some_and(|protocol| protocol == BINARY_SUBPROTOCOL);
    let encoding = if binary {
        Encoding::Binary
    } else {
        Encoding::Json
    };
    upgrade.on_upgrade(move |socket| serve(transports, socket, encoding, address.ticket))
}

async fn serve(
    transports: Transports,
    socket: WebSocket,
    encoding: Encoding,
    ticket: Option<String>,
) {
    let (outbox, mut outgoing) = mpsc::channel(OUTBOX_PACKETS);
    let inbox = transports.inbox.clone();
    let metrics = transports.metrics.clone();
    let opened = LinkReader::open(
        transports.link(),
        encoding,
        ticket,
        inbox,
        outbox,
        metrics.clone(),
    );
    let Ok(mut reader) = opened.await else {
        return;
    };
    let (mut sink, mut source) = socket.split();
    let mut ping = tokio::time::interval(PING_INTERVAL);
    let mut heard = Instant::now();
    let last_word = loop {
        tokio::select! {
            outbound = outgoing.recv() => match outbound {
                Some(Outbound::Close(reason)) => break Some((close_code::NORMAL, reason)),
                Some(outbound) => {
                    let message = to_message(outbound);
                    metrics.bytes_out.fetch_add(size(&message), Relaxed);
                    if !sent(&mut sink, message).await {
                        break None;
                    }
                }
                None => break None,
            },
            incoming = source.next() => {
                heard = Instant::now();
                let outcome = match incoming {
                    Some(Ok(message)) => receive(&mut reader, message).await,
                    Some(Err(error)) => break Some(broken_message(&error)),
                    None => break None,
                };
                if let Err(error) = outcome {
                    let reason = error.to_string();
                    sent(&mut sink, to_message(reader.kick(&reason))).await;
                    break Some((close_code::POLICY, reason));
                }
            }
            _ = ping.tick() => {
                if heard.elapsed() > SILENCE_MAX || !sent(&mut sink, Message::Ping(Default::default())).await {
                    break None;
                }
            }
        }
    };
    reader.close().await;
    if let Some((code, reason)) = last_word {
        let farewell = async {
            while let Ok(outbound @ Outbound::Text(_)) = outgoing.try_recv() {
                sent(&mut sink, to_message(outbound)).await;
            }
            sent(&mut sink, close_frame(code, &reason)).await;
            // A socket that is dropped with unread input is reset, and the
            // client would lose what we just told it: read until it is gone.
            while let Some(Ok(_)) = source.next().await {}
            // Nothing can be read behind a broken message; leave the socket
            // open for as long as the close frame needs.
            if code == close_code::SIZE || code == close_code::INVALID {
                tokio::time::sleep(FAREWELL).await;
            }
        };
        let _ = tokio::time::timeout(FAREWELL, farewell).await;
    }
}

/// Sends, unless the client does not take it for too long.
async fn sent(sink: &mut SplitSink<WebSocket, Message>, message: Message) -> bool {
    let sending = tokio::time::timeout(SILENCE_MAX, sink.send(message));
    matches!(sending.await, Ok(Ok(())))
}

fn to_message(outbound: Outbound) -> Message {
    match outbound {
        Outbound::Reliable(bytes) | Outbound::Unreliable(bytes) => Message::Binary(bytes),
        Outbound::Text(text) => Message::Text(text.into()),
        Outbound::Close(reason) => close_frame(close_code::NORMAL, &reason),
    }
}

fn size(message: &Message) -> u64 {
    match message {
        Message::Binary(bytes) => bytes.len() as u64,
        Message::Text(text) => text.len() as u64,
        _ => 0,
    }
}

/// What to tell a client whose message was not even a message.
fn broken_message(error: &axum::Error) -> (u16, String) {
    let cause = error.to_string();
    if cause.contains("too long") || cause.contains("limit") {
        let reason = format!("a message may have at most {CLIENT_MESSAGE_BYTES_MAX} bytes");
        (close_code::SIZE, reason)
    } else {
        (close_code::INVALID, format!("unreadable message: {cause}"))
    }
}

async fn receive(reader: &mut LinkReader, message: Message) -> Result<(), LinkError> {
    match message {
        Message::Binary(bytes) => reader.packet(&bytes).await,
        Message::Text(text) => reader.text(&text).await,
        Message::Ping(_) | Message::Pong(_) | Message::Close(_) => Ok(()),
    }
}

/// A close frame; its reason may have 123 bytes.
fn close_frame(code: u16, reason: &str) -> Message {
    let mut cut = reason.len().min(123);
    while !reason.is_char_boundary(cut) {
        cut -= 1;
    }
    Message::Close(Some(CloseFrame {
        code,
        reason: reason[..cut].into(),
    }))
}
