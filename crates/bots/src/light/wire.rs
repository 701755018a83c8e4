//! Looking into the server's packets without reading them: a light client
//! wants the header of each snapshot and skips nearly everything else.

use anyhow::{Context, Result, ensure};
use frolic_protocol::packet::{self, SERVER_MESSAGE_BYTES_MAX};
use frolic_protocol::{Args, ServerMessage};

/// A message of a packet.
#[derive(Debug, PartialEq)]
pub enum Seen<'bytes> {
    /// A snapshot, as `frolic_protocol::snapshot` reads it.
    Snapshot(&'bytes [u8]),
    /// One of the messages that are worth reading.
    Message(Box<ServerMessage>),
    /// One that the server wants to know of whether it came.
    Counted,
    /// Anything else.
    Other,
}

/// Distinguishes messages by their first bytes.
pub struct Eye {
    snapshot: u8,
    /// Answers to pings and the end of the connection.
    read: [u8; 2],
    counted: [u8; 3],
}

impl Eye {
    /// Learns the beginnings from the protocol itself, so that a message that
    /// is added there does not blind us.
    pub fn new() -> Self {
        let tag = |message: &ServerMessage| packet::single(message)[1];
        let pong = ServerMessage::Pong {
            t: 0.0,
            server_time: 0.0,
            tick: 0,
            received: 0,
        };
        let kick = ServerMessage::Kick {
            reason: String::new(),
        };
        let counted = [
            ServerMessage::Event {
                name: String::new(),
                args: Args::default(),
            },
            ServerMessage::InvokeResult {
                id: 0,
                result: Ok(Args::default()),
            },
            ServerMessage::Chat {
                from: String::new(),
                text: String::new(),
                player_id: String::new(),
            },
        ];
        debug_assert!(counted.iter().all(ServerMessage::is_counted));
        Self {
            snapshot: tag(&ServerMessage::Snapshot(Vec::new())),
            read: [tag(&pong), tag(&kick)],
            counted: counted.each_ref().map(tag),
        }
    }

    /// Hands over each message of a packet; `all` reads those, too, that are
    /// not worth it in the long run.
    ///
    /// # Errors
    /// When the packet is not one of ours, or `take` fails.
    pub fn look(
        &self,
        mut bytes: &[u8],
        all: bool,
        mut take: impl FnMut(Seen) -> Result<()>,
    ) -> Result<()> {
        while !bytes.is_empty() {
            let (length, body) = number(bytes).context("a packet ends within a length")?;
            ensure!(
                length <= SERVER_MESSAGE_BYTES_MAX && length <= body.len(),
                "a packet ends within a message"
            );
            let (body, rest) = body.split_at(length);
            let tag = body.first().copied().context("a message is empty")?;
            if tag == self.snapshot {
                let (length, snapshot) = number(&body[1..]).context("a snapshot has no length")?;
                ensure!(length == snapshot.len(), "a snapshot of the wrong length");
                take(Seen::Snapshot(snapshot))?;
            } else if all || self.read.contains(&tag) {
                let framed = &bytes[..bytes.len() - rest.len()];
                for message in packet::read(framed, SERVER_MESSAGE_BYTES_MAX)? {
                    take(Seen::Message(Box::new(message)))?;
                }
            } else if self.counted.contains(&tag) {
                take(Seen::Counted)?;
            } else {
                take(Seen::Other)?;
            }
            bytes = rest;
        }
        Ok(())
    }
}

/// A number in groups of seven bits, and what follows it.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut number = 0;
    for (index, &byte) in bytes.iter().take(4).enumerate() {
        number |= usize::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Some((number, &bytes[index + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(bytes: &[u8], all: bool) -> Result<Vec<String>> {
        let mut seen = Vec::new();
        Eye::new().look(bytes, all, |message| {
            seen.push(match message {
                Seen::Snapshot(bytes) => format!("snapshot of {}", bytes.len()),
                Seen::Message(message) => format!("{message:?}"),
                Seen::Counted => "counted".to_owned(),
                Seen::Other => "other".to_owned(),
            });
            Ok(())
        })?;
        Ok(seen)
    }

    #[test]
    fn snapshots_and_kicks_are_found_and_the_rest_is_skipped() {
        let mut bytes = Vec::new();
        let chat = ServerMessage::Chat {
            from: "Ada".into(),
            text: "hello".into(),
            player_id: "client_1".into(),
        };
        packet::write(&mut bytes, &chat);
        packet::write(&mut bytes, &ServerMessage::Snapshot(vec![3; 300]));
        let reason = "full".to_owned();
        packet::write(&mut bytes, &ServerMessage::Kick { reason });
        let kick = r#"Kick { reason: "full" }"#;
        assert_eq!(
            seen(&bytes, false).unwrap(),
            ["counted", "snapshot of 300", kick]
        );
        assert_eq!(
            seen(&bytes, true).unwrap(),
            [&format!("{chat:?}"), "snapshot of 300", kick]
        );
    }

    #[test]
    fn cut_packets_are_errors() {
        let whole = packet::single(&ServerMessage::Snapshot(vec![3; 300]));
        for cut in 1..whole.len() {
            assert!(seen(&whole[..cut], false).is_err(), "{cut}");
        }
        assert!(seen(&[0], false).is_err());
    }
}
