//! The incoming side of connections, whatever their transport: decoding, and
//! the messages to the world's thread.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use frolic_protocol::ClientMessage;
use frolic_protocol::fleet::{ReloadReply, ReloadRequest};
use frolic_protocol::json;
use frolic_protocol::packet::{self, CLIENT_MESSAGE_BYTES_MAX, PacketError, StreamReader};
use frolic_protocol::remote_commands::{OutsideReply, OutsideRequest};
use frolic_protocol::store::StoreAnswer;
use tokio::sync::{mpsc, oneshot};

use crate::connection::{Carried, CloseCode, Outbound};
use crate::flood::{Budget, FloodGuard, Verdict};
use crate::metrics::{KickCause, Metrics};
use crate::persistence::Stored;
use crate::transport::ConnectionPermit;

/// Identifies a connection: its index, and a generation number that
/// distinguishes the connections that have used this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionId {
    place: u32,
    round: u32,
}

impl ConnectionId {
    /// The connection with this index and generation.
    pub fn new(place: u32, round: u32) -> Self {
        Self { place, round }
    }

    /// Its index: small while there are few connections.
    pub fn place(self) -> usize {
        self.place as usize
    }
}

/// Capacity of the inbox of the world's thread, for all clients together.
pub const INBOX_MESSAGES: usize = 16 * 1024;

/// The encoding of a client's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Packets of binary messages.
    Binary,
    /// One JSON text per message.
    Json,
}

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

/// The result of decoding something that a client sent.
#[derive(Debug)]
pub enum ClientInput {
    /// A decoded message.
    Message {
        /// Number of the JSON command, to acknowledge it.
        seq: Option<u32>,
        /// The message.
        message: ClientMessage,
        /// What the answer to a JSON command repeats.
        echo: Option<Box<serde_json::Value>>,
    },
    /// An invalid JSON command: it is answered, not punished.
    Refused(json::CommandError),
    /// A message beyond the rate limit was dropped: the first, or one with a
    /// number.
    Flooding {
        /// Number of the JSON command.
        seq: Option<u32>,
    },
    /// A reliable message was dropped.
    Dropped,
    /// From a connection task: the client must be disconnected, with this reason.
    /// No more input follows.
    Broken(ReceiveError),
}

/// Why a connection must be closed.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// Bytes that are not a valid packet.
    #[error("{0}")]
    Packet(#[from] PacketError),
    /// Too many messages.
    #[error("too many messages; slow down")]
    Flood,
}

impl ReceiveError {
    /// The close code, and the cause for the metrics.
    pub fn ending(&self) -> (CloseCode, KickCause) {
        match self {
            ReceiveError::Packet(_) => (CloseCode::Policy, KickCause::Unreadable),
            ReceiveError::Flood => (CloseCode::Policy, KickCause::Flood),
        }
    }
}

/// The receiving half of a connection: rate-limits and decodes.
pub struct MessageDecoder {
    encoding: Encoding,
    flood: FloodGuard,
    stream: StreamReader,
}

impl MessageDecoder {
    /// A decoder that has received nothing yet.
    pub fn new(encoding: Encoding) -> Self {
        Self {
            encoding,
            flood: FloodGuard::new(0.0),
            stream: StreamReader::default(),
        }
    }

    /// Decodes a binary WebSocket frame. Some libraries send every text as one: on
    /// a JSON connection it is read as JSON.
    ///
    /// # Errors
    /// When the connection must be closed.
    pub fn binary(
        &mut self,
        bytes: &[u8],
        now_s: f64,
        inputs: &mut Vec<ClientInput>,
    ) -> Result<(), ReceiveError> {
        if self.encoding == Encoding::Binary {
            return self.packet(bytes, now_s, inputs);
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => self.text(text, now_s, inputs),
            Err(_) => {
                if self.charge(now_s, inputs)? {
                    inputs.push(ClientInput::Refused(json::CommandError {
                        seq: None,
                        code: "bad_json",
                        message: "the message is not a JSON command: it is not UTF-8".into(),
                        counts: false,
                    }));
                }
                Ok(())
            }
        }
    }

    /// Decodes a whole packet; `now_s` counts from any moment.
    ///
    /// # Errors
    /// When the connection must be closed.
    pub fn packet(
        &mut self,
        bytes: &[u8],
        now_s: f64,
        inputs: &mut Vec<ClientInput>,
    ) -> Result<(), ReceiveError> {
        packet::messages(bytes, CLIENT_MESSAGE_BYTES_MAX)
            .try_for_each(|message| self.admit(message?, now_s, inputs))
    }

    /// Decodes the next bytes of a stream.
    ///
    /// # Errors
    /// When the connection must be closed.
    pub fn stream(
        &mut self,
        bytes: &[u8],
        now_s: f64,
        inputs: &mut Vec<ClientInput>,
    ) -> Result<(), ReceiveError> {
        let messages = self.stream.push(bytes, CLIENT_MESSAGE_BYTES_MAX)?;
        messages
            .into_iter()
            .try_for_each(|message| self.admit(message, now_s, inputs))
    }

    fn admit(
        &mut self,
        message: ClientMessage,
        now_s: f64,
        inputs: &mut Vec<ClientInput>,
    ) -> Result<(), ReceiveError> {
        let counts = message.is_counted();
        if self.charge_to(Budget::of(counts), now_s, inputs)? {
            inputs.push(ClientInput::Message {
                seq: None,
                message,
                echo: None,
            });
        } else if counts {
            inputs.push(ClientInput::Dropped);
        }
        Ok(())
    }

    /// Decodes a JSON command.
    ///
    /// # Errors
    /// When the connection must be closed.
    pub fn text(
        &mut self,
        text: &str,
        now_s: f64,
        inputs: &mut Vec<ClientInput>,
    ) -> Result<(), ReceiveError> {
        let parsed = json::parse(text);
        let (seq, counts) = match &parsed {
            Ok(command) => (command.seq, command.message.is_counted()),
            Err(error) => (error.seq, error.counts),
        };
        let verdict = self.flood.charge(Budget::of(counts), now_s);
        match verdict {
            Verdict::Pass => inputs.push(match parsed {
                Ok(command) => ClientInput::Message {
                    seq: command.seq,
                    message: command.message,
                    echo: command.echo,
                },
                Err(error) => ClientInput::Refused(error),
            }),
            // Every command gets an answer, also one that is dropped. Their number
            // is bounded: a client that continues is disconnected.
            Verdict::Warn | Verdict::Drop => {
                if counts {
                    inputs.push(ClientInput::Dropped);
                }
                if verdict == Verdict::Warn || seq.is_some() {
                    inputs.push(ClientInput::Flooding { seq });
                }
            }
            Verdict::Kick => return Err(ReceiveError::Flood),
        }
        Ok(())
    }

    /// Charges an unreliable message to the rate limit; false when it must be
    /// dropped.
    ///
    /// # Errors
    /// When the connection must be closed.
    pub fn charge(
        &mut self,
        now_s: f64,
        inputs: &mut Vec<ClientInput>,
    ) -> Result<bool, ReceiveError> {
        self.charge_to(Budget::Other, now_s, inputs)
    }

    fn charge_to(
        &mut self,
        budget: Budget,
        now_s: f64,
        inputs: &mut Vec<ClientInput>,
    ) -> Result<bool, ReceiveError> {
        match self.flood.charge(budget, now_s) {
            Verdict::Pass => Ok(true),
            Verdict::Drop => Ok(false),
            Verdict::Warn => {
                inputs.push(ClientInput::Flooding { seq: None });
                Ok(false)
            }
            Verdict::Kick => Err(ReceiveError::Flood),
        }
    }
}

/// Reads a connection with its own task: forwards what its decoder yields.
pub struct ConnectionReader {
    connection_id: ConnectionId,
    inbox: mpsc::Sender<Inbound>,
    intake: MessageDecoder,
    started: std::time::Instant,
    inputs: Vec<ClientInput>,
    metrics: Arc<Metrics>,
}

/// Why a connection task stops reading.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadEnd {
    /// The world's thread has stopped.
    #[error("the world has stopped")]
    WorldGone,
    /// The world's thread was asked to disconnect the client, for this reason.
    #[error("{0}")]
    Broken(String),
}

impl ConnectionReader {
    /// The reader of a connection that was announced with [`Inbound::Open`].
    pub fn new(
        connection_id: ConnectionId,
        inbox: mpsc::Sender<Inbound>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            connection_id,
            inbox,
            intake: MessageDecoder::new(Encoding::Binary),
            started: std::time::Instant::now(),
            inputs: Vec::new(),
            metrics,
        }
    }

    /// Decodes a datagram.
    ///
    /// # Errors
    /// When reading must stop.
    pub async fn packet(&mut self, bytes: &[u8]) -> Result<(), ReadEnd> {
        self.metrics.bytes_in.fetch_add(bytes.len() as u64, Relaxed);
        let now_s = self.started.elapsed().as_secs_f64();
        let taken = self.intake.packet(bytes, now_s, &mut self.inputs);
        self.pass_on(taken).await
    }

    /// Decodes the next bytes of the stream.
    ///
    /// # Errors
    /// When reading must stop.
    pub async fn stream(&mut self, bytes: &[u8]) -> Result<(), ReadEnd> {
        self.metrics.bytes_in.fetch_add(bytes.len() as u64, Relaxed);
        let now_s = self.started.elapsed().as_secs_f64();
        let taken = self.intake.stream(bytes, now_s, &mut self.inputs);
        self.pass_on(taken).await
    }

    async fn pass_on(&mut self, taken: Result<(), ReceiveError>) -> Result<(), ReadEnd> {
        let reason = taken.as_ref().err().map(ToString::to_string);
        self.inputs.extend(taken.err().map(ClientInput::Broken));
        for input in self.inputs.drain(..) {
            let connection_id = self.connection_id;
            let sent = self
                .inbox
                .send(Inbound::ClientInput {
                    connection_id,
                    input,
                })
                .await;
            sent.map_err(|_| ReadEnd::WorldGone)?;
        }
        reason.map_or(Ok(()), |reason| Err(ReadEnd::Broken(reason)))
    }

    /// Notifies the world's thread that the connection has ended.
    pub async fn close(self) {
        let _ = self
            .inbox
            .send(Inbound::Closed {
                connection_id: self.connection_id,
            })
            .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the world's thread receives from a connection task that reads these
    /// datagrams, and how its reading ends.
    async fn read(
        datagrams: impl IntoIterator<Item = Vec<u8>>,
    ) -> (Vec<ClientInput>, Option<ReadEnd>) {
        let (inbox, mut world) = mpsc::channel(4096);
        let metrics = Arc::new(Metrics::default());
        let mut reader = ConnectionReader::new(ConnectionId::new(0, 0), inbox, metrics);
        let mut end = None;
        for datagram in datagrams {
            end = reader.packet(&datagram).await.err();
            if end.is_some() {
                break;
            }
        }
        let mut inputs = Vec::new();
        while let Ok(inbound) = world.try_recv() {
            if let Inbound::ClientInput { input: next, .. } = inbound {
                inputs.push(next);
            }
        }
        (inputs, end)
    }

    fn ping() -> Vec<u8> {
        packet::single(&ClientMessage::Ping {
            t: 1.0,
            received: 0,
        })
    }

    #[tokio::test]
    async fn a_client_that_sends_an_invalid_packet_is_disconnected() {
        let (inputs, end) = read([ping(), vec![0xff; 64], ping()]).await;
        let [ClientInput::Message { .. }, ClientInput::Broken(error)] = inputs.as_slice() else {
            panic!("{inputs:?}");
        };
        assert_eq!(error.ending(), (CloseCode::Policy, KickCause::Unreadable));
        assert_eq!(end, Some(ReadEnd::Broken(error.to_string())));
    }

    #[tokio::test]
    async fn a_client_that_floods_is_disconnected() {
        let (inputs, end) = read(std::iter::repeat_with(ping).take(4000)).await;
        let Some(ClientInput::Broken(error)) = inputs.last() else {
            panic!("{:?}", inputs.last());
        };
        assert_eq!(error.ending(), (CloseCode::Policy, KickCause::Flood));
        assert_eq!(end, Some(ReadEnd::Broken(error.to_string())));
        let is_warning = |input: &&ClientInput| matches!(input, ClientInput::Flooding { .. });
        let warnings = inputs.iter().filter(is_warning).count();
        assert_eq!(warnings, 1, "one warning came first");
    }
}
