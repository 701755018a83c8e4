//! A link: one connection as the world's thread sees it, whatever carries it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use bytes::Bytes;
use frolic_protocol::json;
use frolic_protocol::packet::{self, CLIENT_MESSAGE_BYTES_MAX, PacketError, StreamReader};
use frolic_protocol::{ClientMessage, ServerMessage};
use tokio::sync::mpsc;

use crate::flood::{FloodGuard, Verdict};
use crate::metrics::Metrics;

/// Counts connections.
pub type LinkId = u64;

/// Packets that may wait for a client that does not read.
pub const OUTBOX_PACKETS: usize = 64;
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

/// What a transport carries to its client.
#[derive(Debug)]
pub enum Outbound {
    /// Has to arrive, in order.
    Reliable(Bytes),
    /// May be lost.
    Unreliable(Bytes),
    /// A JSON message.
    Text(String),
    /// The end, with the reason for the closing frame.
    Close(String),
}

/// What the world's thread hears of connections.
#[derive(Debug)]
pub enum Inbound {
    /// Somebody connected.
    Open {
        /// Which connection.
        link: LinkId,
        /// How it speaks.
        encoding: Encoding,
        /// Ticket from the address, if there was one.
        ticket: Option<String>,
        /// The way back.
        outbox: mpsc::Sender<Outbound>,
    },
    /// A message that was understood.
    Message {
        /// Which connection.
        link: LinkId,
        /// Number of the JSON command, to confirm it.
        seq: Option<u32>,
        /// What it says.
        message: ClientMessage,
    },
    /// The connection ended.
    Closed {
        /// Which connection.
        link: LinkId,
    },
    /// Take nobody in any more, and stop when the last one has left.
    Drain,
    /// Tell everybody and stop.
    Stop {
        /// What to tell.
        reason: String,
    },
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
    /// The world's thread is gone.
    #[error("the world has stopped")]
    Gone,
}

/// The receiving half of a connection: limits, decodes, passes on.
pub struct LinkReader {
    /// Which connection.
    pub link: LinkId,
    inbox: mpsc::Sender<Inbound>,
    /// Weak: the connection ends when the world's thread lets go of it.
    outbox: mpsc::WeakSender<Outbound>,
    encoding: Encoding,
    flood: FloodGuard,
    started: Instant,
    stream: StreamReader,
    metrics: Arc<Metrics>,
}

impl LinkReader {
    /// Announces a connection to the world's thread.
    pub async fn open(
        link: LinkId,
        encoding: Encoding,
        ticket: Option<String>,
        inbox: mpsc::Sender<Inbound>,
        outbox: mpsc::Sender<Outbound>,
        metrics: Arc<Metrics>,
    ) -> Result<Self, LinkError> {
        let weak = outbox.downgrade();
        let open = Inbound::Open {
            link,
            encoding,
            ticket,
            outbox,
        };
        inbox.send(open).await.map_err(|_| LinkError::Gone)?;
        metrics.connections.fetch_add(1, Relaxed);
        Ok(Self {
            link,
            inbox,
            outbox: weak,
            encoding,
            flood: FloodGuard::new(0.0),
            started: Instant::now(),
            stream: StreamReader::default(),
            metrics,
        })
    }

    /// Takes a whole packet in.
    pub async fn packet(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        self.metrics.bytes_in.fetch_add(bytes.len() as u64, Relaxed);
        let messages = packet::read(bytes, CLIENT_MESSAGE_BYTES_MAX)?;
        self.pass_on(messages).await
    }

    /// Takes the next bytes of a stream in.
    pub async fn stream(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        self.metrics.bytes_in.fetch_add(bytes.len() as u64, Relaxed);
        let messages = self.stream.push(bytes, CLIENT_MESSAGE_BYTES_MAX)?;
        self.pass_on(messages).await
    }

    async fn pass_on(&mut self, messages: Vec<ClientMessage>) -> Result<(), LinkError> {
        for message in messages {
            if self.allowed()? {
                self.deliver(None, message).await?;
            }
        }
        Ok(())
    }

    /// Takes a JSON command in. A wrong one is answered, not punished.
    pub async fn text(&mut self, text: &str) -> Result<(), LinkError> {
        self.metrics.bytes_in.fetch_add(text.len() as u64, Relaxed);
        if !self.allowed()? {
            return Ok(());
        }
        match json::parse(text) {
            Ok(command) => self.deliver(Some(command.seq), command.message).await,
            Err(error) => {
                let text = json::error(error.seq, error.code, &error.message);
                self.answer(Outbound::Text(text));
                Ok(())
            }
        }
    }

    /// Answers something that never reaches the world.
    fn answer(&self, outbound: Outbound) {
        // A client that floods and does not read loses its answers.
        if let Some(outbox) = self.outbox.upgrade() {
            let _ = outbox.try_send(outbound);
        }
    }

    async fn deliver(&self, seq: Option<u32>, message: ClientMessage) -> Result<(), LinkError> {
        let message = Inbound::Message {
            link: self.link,
            seq,
            message,
        };
        self.inbox.send(message).await.map_err(|_| LinkError::Gone)
    }

    fn allowed(&mut self) -> Result<bool, LinkError> {
        match self.flood.charge(self.started.elapsed().as_secs_f64()) {
            Verdict::Pass => Ok(true),
            Verdict::Drop => Ok(false),
            Verdict::Warn => {
                self.answer(self.encode(&ServerMessage::Error {
                    code: "flood".to_owned(),
                    message: "too many messages; some were dropped".to_owned(),
                }));
                Ok(false)
            }
            Verdict::Kick => Err(LinkError::Flood),
        }
    }

    fn encode(&self, message: &ServerMessage) -> Outbound {
        match self.encoding {
            Encoding::Json => Outbound::Text(json::encode(message).unwrap_or_default()),
            Encoding::Binary => Outbound::Reliable(packet::single(message).into()),
        }
    }

    /// The last message to a client that is thrown out.
    pub fn kick(&self, reason: &str) -> Outbound {
        self.encode(&ServerMessage::Kick {
            reason: reason.to_owned(),
        })
    }

    /// Tells the world's thread that this is over.
    pub async fn close(self) {
        self.metrics.connections.fetch_sub(1, Relaxed);
        let _ = self.inbox.send(Inbound::Closed { link: self.link }).await;
    }
}
