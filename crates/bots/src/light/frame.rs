//! WebSocket frames as a client writes and reads them, over borrowed buffers:
//! a message costs a light client no allocation and one copy at most.

use anyhow::{Result, bail, ensure};
use frolic_protocol::packet::SERVER_MESSAGE_BYTES_MAX;

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;
const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;

/// A frame of a server.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'bytes> {
    /// A whole binary message.
    Binary(&'bytes [u8]),
    /// Wants a pong with the same bytes.
    Ping(&'bytes [u8]),
    /// The end, with its reason.
    Close(&'bytes [u8]),
    /// A text or a pong: nothing a light client asked for.
    Other,
}

/// Appends a binary message, masked as the RFC asks of clients.
pub fn write_binary(out: &mut Vec<u8>, payload: &[u8], mask: u32) {
    write(out, BINARY, payload, mask);
}

/// Appends the answer to a ping.
pub fn write_pong(out: &mut Vec<u8>, payload: &[u8], mask: u32) {
    write(out, PONG, payload, mask);
}

/// Appends a goodbye without a reason.
pub fn write_close(out: &mut Vec<u8>, mask: u32) {
    write(out, CLOSE, &[], mask);
}

fn write(out: &mut Vec<u8>, opcode: u8, payload: &[u8], mask: u32) {
    out.push(FINAL | opcode);
    match payload.len() {
        short @ 0..=125 => out.push(MASKED | short as u8),
        middle @ 126..=0xffff => {
            out.push(MASKED | 126);
            out.extend_from_slice(&(middle as u16).to_be_bytes());
        }
        long => {
            out.push(MASKED | 127);
            out.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    let key = mask.to_be_bytes();
    out.extend_from_slice(&key);
    let start = out.len();
    out.extend_from_slice(payload);
    for (index, byte) in out[start..].iter_mut().enumerate() {
        *byte ^= key[index % 4];
    }
}

/// Cuts what a socket gave into frames.
#[derive(Default)]
pub struct FrameReader {
    /// The start of a frame whose end has not come yet.
    waiting: Vec<u8>,
    /// The parts so far of a message in several frames.
    parts: Vec<u8>,
}

impl FrameReader {
    /// Takes the next bytes and hands over each frame that is now whole.
    ///
    /// # Errors
    /// When the bytes are no frames of a server, or `take` fails.
    pub fn feed(&mut self, bytes: &[u8], mut take: impl FnMut(Frame) -> Result<()>) -> Result<()> {
        if self.waiting.is_empty() {
            let rest = cut_all(bytes, &mut self.parts, &mut take)?;
            self.waiting.extend_from_slice(rest);
            return Ok(());
        }
        self.waiting.extend_from_slice(bytes);
        let rest = cut_all(&self.waiting, &mut self.parts, &mut take)?.len();
        let used = self.waiting.len() - rest;
        self.waiting.drain(..used);
        Ok(())
    }
}

/// Hands over all whole frames and returns what is left.
fn cut_all<'bytes>(
    mut bytes: &'bytes [u8],
    parts: &mut Vec<u8>,
    take: &mut impl FnMut(Frame) -> Result<()>,
) -> Result<&'bytes [u8]> {
    while let Some((head, payload, rest)) = cut_first(bytes)? {
        bytes = rest;
        match head & 0xf {
            PING => take(Frame::Ping(payload))?,
            CLOSE => take(Frame::Close(payload))?,
            TEXT | PONG => take(Frame::Other)?,
            BINARY if head & FINAL != 0 => take(Frame::Binary(payload))?,
            BINARY | CONTINUATION => {
                ensure!(
                    parts.len() + payload.len() <= SERVER_MESSAGE_BYTES_MAX,
                    "the server sent a message of more than {SERVER_MESSAGE_BYTES_MAX} bytes"
                );
                parts.extend_from_slice(payload);
                if head & FINAL != 0 {
                    take(Frame::Binary(parts))?;
                    parts.clear();
                }
            }
            opcode => bail!("the server sent a frame of the unknown kind {opcode}"),
        }
    }
    Ok(bytes)
}

/// First byte, payload and what follows the first frame; none if it is not all there.
type Cut<'bytes> = (u8, &'bytes [u8], &'bytes [u8]);

fn cut_first(bytes: &[u8]) -> Result<Option<Cut<'_>>> {
    let [head, length, rest @ ..] = bytes else {
        return Ok(None);
    };
    ensure!(length & MASKED == 0, "the server masked a frame");
    let (length, rest) = match length {
        126 => match rest.split_first_chunk() {
            Some((length, rest)) => (u64::from(u16::from_be_bytes(*length)), rest),
            None => return Ok(None),
        },
        127 => match rest.split_first_chunk() {
            Some((length, rest)) => (u64::from_be_bytes(*length), rest),
            None => return Ok(None),
        },
        short => (u64::from(*short), rest),
    };
    // A packet may hold several messages: a little more than one may have.
    ensure!(
        length <= 2 * SERVER_MESSAGE_BYTES_MAX as u64,
        "the server announced a frame of {length} bytes"
    );
    Ok(rest
        .split_at_checked(length as usize)
        .map(|(payload, rest)| (*head, payload, rest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Read, Write};
    use tokio_tungstenite::tungstenite::protocol::{Role, WebSocket};
    use tokio_tungstenite::tungstenite::{Bytes, Message};

    /// A wire that only remembers: what is written, or what is to be read.
    struct Wire(Cursor<Vec<u8>>);

    impl Read for Wire {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(buffer)
        }
    }

    impl Write for Wire {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.get_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn payload(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|n| n as u8).collect()
    }

    #[test]
    fn what_we_write_a_server_reads() {
        let mut out = Vec::new();
        for bytes in [0, 125, 126, 65_535, 65_536] {
            write_binary(&mut out, &payload(bytes), 0x1234_5678);
        }
        write_pong(&mut out, b"tick", 7);
        let mut server = WebSocket::from_raw_socket(Wire(Cursor::new(out)), Role::Server, None);
        for bytes in [0, 125, 126, 65_535, 65_536] {
            let message = server.read().unwrap();
            assert_eq!(message, Message::Binary(payload(bytes).into()));
        }
        assert_eq!(
            server.read().unwrap(),
            Message::Pong(Bytes::from_static(b"tick"))
        );
    }

    #[test]
    fn what_a_server_writes_we_read_in_any_split() {
        let mut server =
            WebSocket::from_raw_socket(Wire(Cursor::new(Vec::new())), Role::Server, None);
        let sizes = [0, 125, 126, 70_000];
        for bytes in sizes {
            server.send(Message::Binary(payload(bytes).into())).unwrap();
        }
        server
            .send(Message::Ping(Bytes::from_static(b"hi")))
            .unwrap();
        let stream = server.into_inner().0.into_inner();
        for split in [1, 2, 3, 7, 1000, stream.len()] {
            let mut reader = FrameReader::default();
            let mut seen = Vec::new();
            for piece in stream.chunks(split) {
                let read = reader.feed(piece, |frame| {
                    seen.push(match frame {
                        Frame::Binary(bytes) => bytes.to_vec(),
                        Frame::Ping(bytes) => [b"ping ", bytes].concat(),
                        other => panic!("{other:?}"),
                    });
                    Ok(())
                });
                read.unwrap();
            }
            let mut expected: Vec<Vec<u8>> = sizes.map(payload).to_vec();
            expected.push(b"ping hi".to_vec());
            assert!(seen == expected, "split into {split}");
        }
    }

    #[test]
    fn a_message_in_parts_comes_whole_and_a_ping_may_come_between() {
        let stream = [
            &[BINARY, 2, 1, 2][..],
            &[FINAL | PING, 1, 9],
            &[FINAL | CONTINUATION, 1, 3],
        ]
        .concat();
        let mut seen = Vec::new();
        let read = FrameReader::default().feed(&stream, |frame| {
            seen.push(format!("{frame:?}"));
            Ok(())
        });
        read.unwrap();
        assert_eq!(seen, ["Ping([9])", "Binary([1, 2, 3])"]);
    }

    #[test]
    fn nonsense_is_an_error() {
        for wrong in [
            &[FINAL | BINARY, MASKED | 1, 0, 0, 0, 0, 1][..],
            &[FINAL | 0x5, 0],
            &[FINAL | BINARY, 127, 255, 0, 0, 0, 0, 0, 0, 0],
        ] {
            let read = FrameReader::default().feed(wrong, |_| Ok(()));
            assert!(read.is_err(), "{wrong:?}");
        }
    }
}
