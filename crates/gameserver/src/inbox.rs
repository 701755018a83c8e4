//! The messages to the world's thread. All go through one bounded queue, except
//! the data of WebSockets, which the thread reads itself.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use frolic_fleet_api::process::{ReloadReply, ReloadRequest};
use frolic_fleet_api::remote_commands::{OutsideReply, OutsideRequest};
use frolic_fleet_api::store::StoreAnswer;
use tokio::sync::{mpsc, oneshot};

use crate::connection::{Carried, ConnectionId, ConnectionPermit, Outbound};
use crate::decoder::{ClientInput, Encoding};
use crate::stored::Stored;

/// Capacity of the inbox of the world's thread, for all clients together.
pub const INBOX_MESSAGES: usize = 16 * 1024;

/// The transport of a new connection.
pub enum Carrier {
    /// A WebSocket after the upgrade, and the bytes behind the request that were
    /// read already. The world's thread drives it.
    Socket {
        /// The socket.
        stream: std::net::TcpStream,
        /// Bytes that arrived with the upgrade request.
        read_ahead: Bytes,
    },
    /// A connection with its own task.
    Channel {
        /// The queue to the task.
        outbox: mpsc::Sender<Outbound>,
        /// Makes the task close the connection at once, with a reason.
        end: oneshot::Sender<String>,
        /// What the task has sent.
        carried: Arc<Carried>,
    },
}

/// Messages to the world's thread.
pub enum Inbound {
    /// A client connected.
    Open {
        /// Its encoding.
        encoding: Encoding,
        /// Ticket from the URL, if there was one.
        ticket: Option<String>,
        /// Its transport.
        carrier: Carrier,
        /// Its permit.
        permit: ConnectionPermit,
    },
    /// Input of a connection with its own task.
    ClientInput {
        /// Which connection.
        connection_id: ConnectionId,
        /// The input.
        input: ClientInput,
    },
    /// A connection with its own task ended.
    Closed {
        /// Which connection.
        connection_id: ConnectionId,
    },
    /// Reload the scripts of the world.
    Reload {
        /// The package and all its scripts.
        request: ReloadRequest,
        /// Receives the result.
        answer: oneshot::Sender<ReloadReply>,
    },
    /// A request from outside of the world.
    Outside {
        /// The request.
        request: OutsideRequest,
        /// Receives the result.
        answer: oneshot::Sender<OutsideReply>,
    },
    /// The platform has signed a script manifest.
    Signed {
        /// Hash of the manifest.
        hash: String,
        /// Its signature.
        signature: String,
    },
    /// Answers of the store to requests of scripts.
    Store(Vec<StoreAnswer>),
    /// Operations and players were persisted.
    Persisted(Stored),
    /// The block list of a player.
    Blocks {
        /// Whose list it is, by persistent id.
        player_id: String,
        /// Persistent ids.
        blocked: BTreeSet<String>,
    },
    /// A player was suspended and must be disconnected.
    Expel {
        /// Persistent id.
        player_id: String,
        /// The reason for the player.
        reason: String,
    },
    /// Accept no more players, and stop when the last one has left.
    Drain,
    /// Notify all players and stop.
    Stop {
        /// The reason for players.
        reason: String,
    },
}
