//! Packets: one or more binary messages in a row, each with a length prefix.
//!
//! A WebSocket message and a datagram are one packet each; a stream is one long
//! packet that arrives in any split, read by [`StreamReader`].

use serde::Serialize;
use serde::de::DeserializeOwned;

#[cfg(doc)]
use crate::message::ServerMessage;

/// Longest message a client may send.
pub const CLIENT_MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Longest message a server may send: a scene of the largest package.
pub const SERVER_MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Longest chat message of a player or a script.
pub const CHAT_BYTES_MAX: usize = 300;
/// Longest packet that fits a datagram on every path.
pub const DATAGRAM_BYTES_MAX: usize = 1200;

/// Why a packet was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// A length or a message ends too early.
    #[error("the packet ends in the middle of a message")]
    Truncated,
    /// Longer than the receiver accepts.
    #[error("a message of {bytes} bytes is longer than {max}")]
    TooLong {
        /// The announced length.
        bytes: usize,
        /// The maximum.
        max: usize,
    },
    /// Not a message of this protocol.
    #[error("the message cannot be read; is the client of the same version?")]
    Malformed,
}

/// Appends one message to a packet.
pub fn write<M: Serialize>(packet: &mut Vec<u8>, message: &M) {
    let body = postcard::to_stdvec(message).expect("our messages always serialise");
    write_length(packet, body.len());
    packet.extend_from_slice(&body);
}

/// Appends a snapshot without copying it into a message first; the same bytes
/// as [`write`] of a [`ServerMessage::Snapshot`].
pub fn write_snapshot(packet: &mut Vec<u8>, snapshot: &[u8]) {
    let mut head = [0u8; 6];
    let head_bytes = write_varint(&mut head, snapshot.len());
    write_length(packet, 1 + head_bytes + snapshot.len());
    packet.push(SNAPSHOT_TAG);
    packet.extend_from_slice(&head[..head_bytes]);
    packet.extend_from_slice(snapshot);
}

/// Which variant [`ServerMessage::Snapshot`] is, as postcard writes it.
const SNAPSHOT_TAG: u8 = 3;

fn write_varint(bytes: &mut [u8; 6], mut number: usize) -> usize {
    let mut at = 0;
    while number >= 0x80 {
        bytes[at] = number as u8 | 0x80;
        number >>= 7;
        at += 1;
    }
    bytes[at] = number as u8;
    at + 1
}

fn write_length(packet: &mut Vec<u8>, length: usize) {
    let mut head = [0u8; 6];
    let bytes = write_varint(&mut head, length);
    packet.extend_from_slice(&head[..bytes]);
}

/// A packet of a single message.
pub fn single<M: Serialize>(message: &M) -> Vec<u8> {
    let mut packet = Vec::new();
    write(&mut packet, message);
    packet
}

/// Reads all messages of a whole packet.
///
/// # Errors
/// The first error in it; nothing of it is used then.
pub fn read<M: DeserializeOwned>(packet: &[u8], max: usize) -> Result<Vec<M>, PacketError> {
    messages(packet, max).collect()
}

/// The messages of a whole packet, one after the other. Nothing follows the
/// first error.
pub fn messages<M: DeserializeOwned>(
    packet: &[u8],
    max: usize,
) -> impl Iterator<Item = Result<M, PacketError>> {
    let mut rest = packet;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let first = split_first(std::mem::take(&mut rest), max);
        Some(first.and_then(|split| {
            let (body, after) = split.ok_or(PacketError::Truncated)?;
            let message = parse(body)?;
            rest = after;
            Ok(message)
        }))
    })
}

/// A message's bytes, and what follows it.
type Split<'a> = (&'a [u8], &'a [u8]);

/// The first message and the rest, or none if it is incomplete.
fn split_first(bytes: &[u8], max: usize) -> Result<Option<Split<'_>>, PacketError> {
    let mut length = 0usize;
    for (index, &byte) in bytes.iter().enumerate() {
        if index > 3 {
            return Err(PacketError::Malformed);
        }
        length |= usize::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            if length > max {
                return Err(PacketError::TooLong { bytes: length, max });
            }
            return Ok(bytes[index + 1..].split_at_checked(length));
        }
    }
    Ok(None)
}

fn parse<M: DeserializeOwned>(body: &[u8]) -> Result<M, PacketError> {
    match postcard::take_from_bytes(body) {
        Ok((message, [])) => Ok(message),
        _ => Err(PacketError::Malformed),
    }
}

/// Splits a byte stream into messages.
#[derive(Default)]
pub struct StreamReader {
    buffer: Vec<u8>,
    /// The first error: the start of the next message is unknown then.
    broken: Option<PacketError>,
}

impl StreamReader {
    /// Adds the next bytes and returns the messages that are now complete.
    ///
    /// # Errors
    /// When the stream is invalid; it cannot be used any further, and discards
    /// everything that follows.
    pub fn push<M: DeserializeOwned>(
        &mut self,
        bytes: &[u8],
        max: usize,
    ) -> Result<Vec<M>, PacketError> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        self.buffer.extend_from_slice(bytes);
        let messages = self.complete(max);
        if let Err(error) = messages {
            self.broken = Some(error);
            self.buffer = Vec::new();
        }
        messages
    }

    fn complete<M: DeserializeOwned>(&mut self, max: usize) -> Result<Vec<M>, PacketError> {
        let mut messages = Vec::new();
        let mut rest = &self.buffer[..];
        while let Some((body, after)) = split_first(rest, max)? {
            messages.push(parse(body)?);
            rest = after;
        }
        let used = self.buffer.len() - rest.len();
        self.buffer.drain(..used);
        Ok(messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::NumberedInput;
    use crate::message::{ClientMessage, PacketAck, ServerMessage, Shown};
    use crate::value::Args;
    use crate::value::tests::any_value;
    use frolic_motion::{Buttons, CharacterInput};
    use proptest::prelude::*;

    fn any_message() -> impl Strategy<Value = ClientMessage> {
        prop_oneof![
            (any::<u32>(), -1.0f32..1.0, -4.0f32..4.0).prop_map(|(seq, x, yaw)| {
                ClientMessage::Inputs {
                    ack: Some(PacketAck {
                        newest: seq,
                        earlier: !seq,
                    }),
                    shown: Some(Shown {
                        tick: seq,
                        fraction: 7,
                    }),
                    inputs: std::iter::once(NumberedInput {
                        seq,
                        input: CharacterInput::new(x, -x, yaw, 0.1, Buttons::JUMP),
                    })
                    .collect(),
                }
            }),
            (any::<u32>(), prop::collection::vec(any_value(), 0..4)).prop_map(|(id, values)| {
                ClientMessage::Invoke {
                    id,
                    name: "Buy".into(),
                    args: Args(values),
                }
            }),
            Just(ClientMessage::Leave),
        ]
    }

    proptest! {
        #[test]
        fn packets_round_trip_whole_and_in_pieces(messages in prop::collection::vec(any_message(), 0..6), cut in 1usize..50) {
            let mut packet = Vec::new();
            messages.iter().for_each(|message| write(&mut packet, message));
            prop_assert_eq!(&read::<ClientMessage>(&packet, CLIENT_MESSAGE_BYTES_MAX).unwrap(), &messages);
            let mut reader = StreamReader::default();
            let mut got = Vec::new();
            for piece in packet.chunks(cut) {
                got.extend(reader.push::<ClientMessage>(piece, CLIENT_MESSAGE_BYTES_MAX).unwrap());
            }
            prop_assert_eq!(got, messages);
        }

        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read::<ClientMessage>(&bytes, CLIENT_MESSAGE_BYTES_MAX);
            let _ = read::<ServerMessage>(&bytes, SERVER_MESSAGE_BYTES_MAX);
        }
    }

    #[test]
    fn a_snapshot_is_written_as_any_other_message() {
        for length in [0, 1, 100, 127, 128, 5000, 40_000] {
            let body = vec![7; length];
            let packet = single(&ServerMessage::Snapshot(body.clone()));
            let mut quick = Vec::new();
            write_snapshot(&mut quick, &body);
            assert_eq!(quick, packet, "{length} bytes");
        }
    }

    #[test]
    fn truncated_and_oversized_packets_are_distinguished() {
        let packet = single(&ClientMessage::Ping {
            t: 1.0,
            received: 0,
        });
        assert_eq!(
            read::<ClientMessage>(&packet[..packet.len() - 1], 100),
            Err(PacketError::Truncated)
        );
        assert_eq!(
            read::<ClientMessage>(&[0xff, 0xff, 0x7f], 100),
            Err(PacketError::TooLong {
                bytes: 2_097_151,
                max: 100
            })
        );
        let mut stream = StreamReader::default();
        assert!(stream.push::<ClientMessage>(&[0xff; 8], 100).is_err());
    }

    #[test]
    fn an_invalid_stream_discards_what_follows() {
        let mut stream = StreamReader::default();
        let leave = single(&ClientMessage::Leave);
        assert!(stream.push::<ClientMessage>(&leave, 100).is_ok());
        let wrong = stream.push::<ClientMessage>(&[3, 0xff, 0xff, 0xff], 100);
        assert_eq!(wrong, Err(PacketError::Malformed));
        for _ in 0..100 {
            assert_eq!(stream.push::<ClientMessage>(&leave, 100), wrong);
        }
        assert!(stream.buffer.is_empty());
    }
}
