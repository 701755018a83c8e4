//! A link: one connection as the world's thread sees it, whatever carries it.

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

use crate::flood::{Budget, FloodGuard, Verdict};
use crate::line::{Carried, CloseCode, Outbound};
use crate::metrics::{KickCause, Metrics};
use crate::persistence::Stored;
use crate::transport::Slot;

/// Names a connection: its place among those that there are, and which of all
/// that had this place one after the other it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionId {
    place: u32,
    round: u32,
}

impl ConnectionId {
    /// The connection that is at this place in this round.
    pub fn new(place: u32, round: u32) -> Self {
        Self { place, round }
    }

    /// Its place: as small as there are few connections.
    pub fn place(self) -> usize {
        self.place as usize
    }
}

/// Messages that may wait for the world's thread, of all clients together.
pub const INBOX_MESSAGES: usize = 16 * 1024;

/// How a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Packets of binary messages.
    Binary,
    /// One JSON text per message.
    Json,
}

/// What a new connection is carried by.
pub enum Carrier {
    /// A WebSocket whose upgrade was answered, and the bytes behind it that
    /// have been read already. The world's thread drives it.
    Socket {
        /// The socket.
        stream: std::net::TcpStream,
        /// What came with the upgrade request.
        read_ahead: Bytes,
    },
    /// A task of its own.
    Channel {
        /// The queue to it.
        outbox: mpsc::Sender<Outbound>,
        /// Makes it close the connection at once, with a reason.
        end: oneshot::Sender<String>,
        /// What it got rid of.
        carried: Arc<Carried>,
    },
}

/// What the world's thread hears of connections.
pub enum Inbound {
    /// Somebody connected.
    Open {
        /// How it speaks.
        encoding: Encoding,
        /// Ticket from the address, if there was one.
        ticket: Option<String>,
        /// What carries it.
        carriage: Carrier,
        /// Its place among the connections.
        slot: Slot,
    },
    /// A connection with a task of its own has something to tell.
    ClientInput {
        /// Which connection.
        link: ConnectionId,
        /// What it says.
        heard: ClientInput,
    },
    /// A connection with a task of its own ended.
    Closed {
        /// Which connection.
        link: ConnectionId,
    },
    /// Bring the world to these scripts.
    Reload {
        /// The package they are of, and all of them.
        request: ReloadRequest,
        /// What came of it.
        answer: oneshot::Sender<ReloadReply>,
    },
    /// Somebody outside wants something of the world.
    Outside {
        /// What.
        request: OutsideRequest,
        /// What came of it.
        answer: oneshot::Sender<OutsideReply>,
    },
    /// The platform has signed a list of scripts.
    Signed {
        /// Hash of the list.
        hash: String,
        /// Its signature.
        signature: String,
    },
    /// The store answered what scripts asked.
    Store(Vec<StoreAnswer>),
    /// What lasts is stored.
    Kept(Stored),
    /// The platform says whom a player has blocked.
    Blocks {
        /// Whose list it is, by lasting id.
        player_id: String,
        /// Lasting ids.
        blocked: BTreeSet<String>,
    },
    /// Somebody may not be here any more.
    Expel {
        /// Lasting id.
        player_id: String,
        /// What to tell them.
        reason: String,
    },
    /// Take nobody in any more, and stop when the last one has left.
    Drain,
    /// Tell everybody and stop.
    Stop {
        /// What to tell.
        reason: String,
    },
}

/// What came of something that a client sent.
#[derive(Debug)]
pub enum ClientInput {
    /// A message that was understood.
    Message {
        /// Number of the JSON command, to confirm it.
        seq: Option<u32>,
        /// What it says.
        message: ClientMessage,
        /// What the answer to a JSON command repeats.
        echo: Option<Box<serde_json::Value>>,
    },
    /// A JSON command that was not: it is answered, not punished.
    Refused(json::CommandError),
    /// A message of a flood was dropped: the first, or one with a number.
    Flooding {
        /// Number of the JSON command.
        seq: Option<u32>,
    },
    /// A message that counts was dropped.
    Dropped,
    /// Of a connection with a task of its own: it is to be thrown out, and told
    /// why. It says nothing behind it.
    Broken(LinkError),
}

/// Why a connection is to be closed.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Bytes that are not ours.
    #[error("{0}")]
    Packet(#[from] PacketError),
    /// Too much.
    #[error("too many messages; slow down")]
    Flood,
}

impl LinkError {
    /// How the connection ends, and what that counts as.
    pub fn ending(&self) -> (CloseCode, KickCause) {
        match self {
            LinkError::Packet(_) => (CloseCode::Policy, KickCause::Unreadable),
            LinkError::Flood => (CloseCode::Policy, KickCause::Flood),
        }
    }
}

/// The receiving half of a connection: limits and decodes.
pub struct MessageDecoder {
    encoding: Encoding,
    flood: FloodGuard,
    stream: StreamReader,
}

impl MessageDecoder {
    /// Nothing has come yet.
    pub fn new(encoding: Encoding) -> Self {
        Self {
            encoding,
            flood: FloodGuard::new(0.0),
            stream: StreamReader::default(),
        }
    }

    /// Takes a binary frame of a WebSocket in. Some libraries send every text
    /// as one: where JSON is spoken it is read as such.
    ///
    /// # Errors
    /// When the connection is to be closed.
    pub fn binary(
        &mut self,
        bytes: &[u8],
        now_s: f64,
        heard: &mut Vec<ClientInput>,
    ) -> Result<(), LinkError> {
        if self.encoding == Encoding::Binary {
            return self.packet(bytes, now_s, heard);
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => self.text(text, now_s, heard),
            Err(_) => {
                if self.charge(now_s, heard)? {
                    heard.push(ClientInput::Refused(json::CommandError {
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

    /// Takes a whole packet in; `now_s` counts from any moment.
    ///
    /// # Errors
    /// When the connection is to be closed.
    pub fn packet(
        &mut self,
        bytes: &[u8],
        now_s: f64,
        heard: &mut Vec<ClientInput>,
    ) -> Result<(), LinkError> {
        packet::messages(bytes, CLIENT_MESSAGE_BYTES_MAX)
            .try_for_each(|message| self.admit(message?, now_s, heard))
    }

    /// Takes the next bytes of a stream in.
    ///
    /// # Errors
    /// When the connection is to be closed.
    pub fn stream(
        &mut self,
        bytes: &[u8],
        now_s: f64,
        heard: &mut Vec<ClientInput>,
    ) -> Result<(), LinkError> {
        let messages = self.stream.push(bytes, CLIENT_MESSAGE_BYTES_MAX)?;
        messages
            .into_iter()
            .try_for_each(|message| self.admit(message, now_s, heard))
    }

    fn admit(
        &mut self,
        message: ClientMessage,
        now_s: f64,
        heard: &mut Vec<ClientInput>,
    ) -> Result<(), LinkError> {
        let counts = message.is_counted();
        if self.charge_to(Budget::of(counts), now_s, heard)? {
            heard.push(ClientInput::Message {
                seq: None,
                message,
                echo: None,
            });
        } else if counts {
            heard.push(ClientInput::Dropped);
        }
        Ok(())
    }

    /// Takes a JSON command in.
    ///
    /// # Errors
    /// When the connection is to be closed.
    pub fn text(
        &mut self,
        text: &str,
        now_s: f64,
        heard: &mut Vec<ClientInput>,
    ) -> Result<(), LinkError> {
        let parsed = json::parse(text);
        let (seq, counts) = match &parsed {
            Ok(command) => (command.seq, command.message.is_counted()),
            Err(error) => (error.seq, error.counts),
        };
        let verdict = self.flood.charge(Budget::of(counts), now_s);
        match verdict {
            Verdict::Pass => heard.push(match parsed {
                Ok(command) => ClientInput::Message {
                    seq: command.seq,
                    message: command.message,
                    echo: command.echo,
                },
                Err(error) => ClientInput::Refused(error),
            }),
            // Every command gets an answer, also one that nobody reads. There
            // are only so many of these: who goes on is thrown out.
            Verdict::Warn | Verdict::Drop => {
                if counts {
                    heard.push(ClientInput::Dropped);
                }
                if verdict == Verdict::Warn || seq.is_some() {
                    heard.push(ClientInput::Flooding { seq });
                }
            }
            Verdict::Kick => return Err(LinkError::Flood),
        }
        Ok(())
    }

    /// Charges something that does not count; false when it is to be dropped.
    ///
    /// # Errors
    /// When the connection is to be closed.
    pub fn charge(&mut self, now_s: f64, heard: &mut Vec<ClientInput>) -> Result<bool, LinkError> {
        self.charge_to(Budget::Other, now_s, heard)
    }

    fn charge_to(
        &mut self,
        budget: Budget,
        now_s: f64,
        heard: &mut Vec<ClientInput>,
    ) -> Result<bool, LinkError> {
        match self.flood.charge(budget, now_s) {
            Verdict::Pass => Ok(true),
            Verdict::Drop => Ok(false),
            Verdict::Warn => {
                heard.push(ClientInput::Flooding { seq: None });
                Ok(false)
            }
            Verdict::Kick => Err(LinkError::Flood),
        }
    }
}

/// A connection with a task of its own: passes on what its intake gives.
pub struct ConnectionReader {
    link: ConnectionId,
    inbox: mpsc::Sender<Inbound>,
    intake: MessageDecoder,
    started: std::time::Instant,
    heard: Vec<ClientInput>,
    metrics: Arc<Metrics>,
}

/// Why a connection's task reads no more.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadEnd {
    /// The world's thread has stopped.
    #[error("the world has stopped")]
    WorldGone,
    /// The world's thread was told to throw the client out, for this reason.
    #[error("{0}")]
    Broken(String),
}

impl ConnectionReader {
    /// The reader of a connection that was announced with [`Inbound::Open`].
    pub fn new(link: ConnectionId, inbox: mpsc::Sender<Inbound>, metrics: Arc<Metrics>) -> Self {
        Self {
            link,
            inbox,
            intake: MessageDecoder::new(Encoding::Binary),
            started: std::time::Instant::now(),
            heard: Vec::new(),
            metrics,
        }
    }

    /// Takes a datagram in.
    ///
    /// # Errors
    /// When nothing more is to be read.
    pub async fn packet(&mut self, bytes: &[u8]) -> Result<(), ReadEnd> {
        self.metrics.bytes_in.fetch_add(bytes.len() as u64, Relaxed);
        let now_s = self.started.elapsed().as_secs_f64();
        let taken = self.intake.packet(bytes, now_s, &mut self.heard);
        self.pass_on(taken).await
    }

    /// Takes the next bytes of the stream in.
    ///
    /// # Errors
    /// When nothing more is to be read.
    pub async fn stream(&mut self, bytes: &[u8]) -> Result<(), ReadEnd> {
        self.metrics.bytes_in.fetch_add(bytes.len() as u64, Relaxed);
        let now_s = self.started.elapsed().as_secs_f64();
        let taken = self.intake.stream(bytes, now_s, &mut self.heard);
        self.pass_on(taken).await
    }

    async fn pass_on(&mut self, taken: Result<(), LinkError>) -> Result<(), ReadEnd> {
        let reason = taken.as_ref().err().map(ToString::to_string);
        self.heard.extend(taken.err().map(ClientInput::Broken));
        for heard in self.heard.drain(..) {
            let link = self.link;
            let sent = self.inbox.send(Inbound::ClientInput { link, heard }).await;
            sent.map_err(|_| ReadEnd::WorldGone)?;
        }
        reason.map_or(Ok(()), |reason| Err(ReadEnd::Broken(reason)))
    }

    /// Tells the world's thread that this is over.
    pub async fn close(self) {
        let _ = self.inbox.send(Inbound::Closed { link: self.link }).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the world's thread hears of a connection with a task of its own that
    /// brings these datagrams, and how its reading ends.
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
        let mut heard = Vec::new();
        while let Ok(inbound) = world.try_recv() {
            if let Inbound::ClientInput { heard: next, .. } = inbound {
                heard.push(next);
            }
        }
        (heard, end)
    }

    fn ping() -> Vec<u8> {
        packet::single(&ClientMessage::Ping {
            t: 1.0,
            received: 0,
        })
    }

    #[tokio::test]
    async fn the_world_is_told_to_throw_out_whoever_sends_what_is_no_message() {
        let (heard, end) = read([ping(), vec![0xff; 64], ping()]).await;
        let [ClientInput::Message { .. }, ClientInput::Broken(error)] = heard.as_slice() else {
            panic!("{heard:?}");
        };
        assert_eq!(error.ending(), (CloseCode::Policy, KickCause::Unreadable));
        assert_eq!(end, Some(ReadEnd::Broken(error.to_string())));
    }

    #[tokio::test]
    async fn the_world_is_told_to_throw_out_whoever_floods() {
        let (heard, end) = read(std::iter::repeat_with(ping).take(4000)).await;
        let Some(ClientInput::Broken(error)) = heard.last() else {
            panic!("{:?}", heard.last());
        };
        assert_eq!(error.ending(), (CloseCode::Policy, KickCause::Flood));
        assert_eq!(end, Some(ReadEnd::Broken(error.to_string())));
        let is_warning = |heard: &&ClientInput| matches!(heard, ClientInput::Flooding { .. });
        let warnings = heard.iter().filter(is_warning).count();
        assert_eq!(warnings, 1, "one warning came first");
    }
}
