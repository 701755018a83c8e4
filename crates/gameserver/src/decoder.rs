//! Decodes what clients send, whatever their transport, within a rate limit.

use frolic_protocol::ClientMessage;
use frolic_protocol::json;
use frolic_protocol::packet::{self, CLIENT_MESSAGE_BYTES_MAX, PacketError, StreamReader};

use crate::flood::{Budget, FloodGuard, Verdict};
use crate::metrics::KickCause;

/// The encoding of a client's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Packets of binary messages.
    Binary,
    /// One JSON text per message.
    Json,
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
    /// The cause for the metrics.
    pub fn cause(&self) -> KickCause {
        match self {
            ReceiveError::Packet(_) => KickCause::Unreadable,
            ReceiveError::Flood => KickCause::Flood,
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
            flood: FloodGuard::default(),
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
