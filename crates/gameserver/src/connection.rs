//! Connections to clients: a WebSocket driven by the world's thread, or a queue to
//! a QUIC connection's task. No method blocks.

mod outbuffer;
mod permits;
mod quic;
mod raw;
pub mod sockets;
pub mod websocket;

use std::time::Instant;

use bytes::Bytes;
use frolic_protocol::packet::SERVER_MESSAGE_BYTES_MAX;
use frolic_world::Delivery;

pub use self::permits::{ConnectionId, ConnectionPermit, ConnectionPermits, neighbourhood};
pub use self::quic::{Carried, OUTBOX_PACKETS, Outbound, QuicConnection};
use self::websocket::WebSocketConnection;
use crate::metrics::Metrics;

/// Limit of unsent bytes for a client that does not read: the largest message, plus
/// some more behind it.
pub const WAITING_BYTES_MAX: usize = SERVER_MESSAGE_BYTES_MAX + 4 * 1024 * 1024;

/// Why a connection is closed, as a WebSocket close code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseCode {
    /// Normal closure.
    Normal = 1000,
    /// A violation of the WebSocket protocol.
    Protocol = 1002,
    /// A text message that is not UTF-8.
    Invalid = 1007,
    /// The client violated a rule.
    Policy = 1008,
    /// A message that is too large.
    Size = 1009,
}

/// Sends messages to one client. No method blocks.
pub enum Connection {
    /// A WebSocket.
    WebSocket(WebSocketConnection),
    /// A connection with its own task.
    Quic(QuicConnection),
}

impl Connection {
    /// The delivery guarantees of this connection.
    pub fn delivery(&self) -> Delivery {
        match self {
            Connection::WebSocket(_) => Delivery::Ordered,
            Connection::Quic(_) => Delivery::Lossy,
        }
    }

    /// Queues a packet that must arrive.
    pub fn reliable(&mut self, packet: &[u8]) {
        match self {
            Connection::WebSocket(connection) => connection.binary(packet),
            Connection::Quic(connection) => {
                connection.push(Outbound::Reliable(Bytes::copy_from_slice(packet)))
            }
        }
    }

    /// Queues a packet of snapshots, which may be lost on a lossy connection.
    pub fn snapshot(&mut self, packet: Vec<u8>) {
        match self {
            Connection::WebSocket(connection) => connection.binary(&packet),
            Connection::Quic(connection) => connection.push(Outbound::Snapshot(packet.into())),
        }
    }

    /// Queues a packet of other messages that may be lost on a lossy connection.
    pub fn loose(&mut self, packet: Vec<u8>) {
        match self {
            Connection::WebSocket(connection) => connection.binary(&packet),
            Connection::Quic(connection) => connection.push(Outbound::Loose(packet.into())),
        }
    }

    /// Queues a text message; only WebSockets carry JSON.
    pub fn text(&mut self, text: &str) {
        match self {
            Connection::WebSocket(connection) => connection.text(text),
            Connection::Quic(_) => {}
        }
    }

    /// Queues the close. Nothing is sent after it.
    pub fn close(&mut self, code: CloseCode, reason: &str) {
        match self {
            Connection::WebSocket(connection) => connection.close(code, reason),
            Connection::Quic(connection) => connection.push(Outbound::Close(reason.to_owned())),
        }
    }

    /// Sends what the client accepts now.
    pub fn flush(&mut self, now: Instant, metrics: &Metrics) {
        match self {
            Connection::WebSocket(connection) => connection.flush(now, metrics),
            Connection::Quic(connection) => connection.flush(now),
        }
    }

    /// Swaps the buffer that frames are gathered in, if it is empty.
    pub fn exchange_buffer(&mut self, other: &mut Vec<u8>) {
        match self {
            Connection::WebSocket(connection) => connection.exchange_buffer(other),
            Connection::Quic(_) => {}
        }
    }

    /// Bytes that the client has not accepted yet.
    pub fn waiting_bytes(&self) -> usize {
        match self {
            Connection::WebSocket(connection) => connection.waiting_bytes(),
            Connection::Quic(connection) => connection.waiting_bytes(),
        }
    }

    /// Whether the client has not accepted what was sent before.
    pub fn is_behind(&self) -> bool {
        match self {
            Connection::WebSocket(connection) => connection.is_behind(),
            Connection::Quic(connection) => connection.is_behind(),
        }
    }

    /// Whether anything is left to send.
    pub fn is_restless(&self) -> bool {
        match self {
            Connection::WebSocket(connection) => connection.waiting_bytes() > 0,
            Connection::Quic(connection) => connection.is_restless(),
        }
    }

    /// Whether the client accepts so little that it must be disconnected.
    pub fn is_stuck(&self, now: Instant) -> bool {
        match self {
            Connection::WebSocket(connection) => connection.is_stuck(now),
            Connection::Quic(connection) => connection.is_stuck(now),
        }
    }

    /// Drops the send queue, so that the close reason can still arrive.
    pub fn abandon(&mut self, reason: &str) {
        match self {
            Connection::WebSocket(connection) => connection.abandon(),
            Connection::Quic(connection) => connection.abandon(reason),
        }
    }

    /// Whether nothing can be sent any more: closed by us or disconnected.
    pub fn is_over(&self) -> bool {
        match self {
            Connection::WebSocket(connection) => connection.is_over(),
            Connection::Quic(connection) => connection.is_over(),
        }
    }
}
