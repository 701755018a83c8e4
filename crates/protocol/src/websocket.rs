//! Reads the WebSocket frames of a client in place.
//!
//! A general library allocates each message and has a buffer per connection. A
//! world reads thousands of small messages in a tick: here the bytes of one read
//! are unmasked and split in the reader's buffer, and a connection stores bytes
//! only while a frame or a fragmented message is incomplete.

/// The longest payload of a frame that is not a message (RFC 6455, 5.5).
const CONTROL_BYTES_MAX: usize = 125;
/// The longest header: two bytes, a length of eight and a mask.
const HEADER_BYTES_MAX: usize = 14;

/// A message of a client.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming<'bytes> {
    /// A binary message.
    Binary(&'bytes [u8]),
    /// A text message.
    Text(&'bytes str),
    /// A fragment of a message, stored until the rest arrives.
    Piece,
    /// A ping, to be answered with the same bytes.
    Ping(&'bytes [u8]),
    /// The answer to a ping.
    Pong,
    /// The close frame, with its code. Nothing after it is read.
    Close(Option<u16>),
}

/// Why frames were refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Longer than the receiver accepts.
    #[error("a message may have at most {max} bytes")]
    TooLong {
        /// The maximum.
        max: usize,
    },
    /// A text that is not UTF-8.
    #[error("unreadable message: a text is not UTF-8")]
    NotUtf8,
    /// A violation of the WebSocket protocol.
    #[error("unreadable message: {0}")]
    Protocol(&'static str),
}

/// Splits what a client sends into messages.
pub struct FrameReader {
    bytes_max: usize,
    /// The beginning of an incomplete frame.
    begun: Vec<u8>,
    /// The fragments so far of a fragmented message.
    message: Option<Pieces>,
    closed: bool,
}

struct Pieces {
    is_text: bool,
    bytes: Vec<u8>,
}

struct Header {
    is_last: bool,
    opcode: u8,
    mask: [u8; 4],
    payload: std::ops::Range<usize>,
}

impl FrameReader {
    /// A connection of which nothing was read yet, with a limit for its messages.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            begun: Vec::new(),
            message: None,
            closed: false,
        }
    }

    /// Adds the next bytes and hands over each message that is now complete. The
    /// bytes are unmasked in place.
    ///
    /// # Errors
    /// When they are not WebSocket, or whatever `take` returns. The connection
    /// cannot be read any further then.
    pub fn read<E: From<FrameError>>(
        &mut self,
        bytes: &mut [u8],
        take: &mut impl FnMut(Incoming) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.begun.is_empty() {
            let used = self.read_frames(bytes, take)?;
            self.begun.extend_from_slice(&bytes[used..]);
            return Ok(());
        }
        let mut begun = std::mem::take(&mut self.begun);
        begun.extend_from_slice(bytes);
        let used = self.read_frames(&mut begun, take)?;
        begun.drain(..used);
        // Allocates only for connections with an incomplete frame.
        if !begun.is_empty() {
            self.begun = begun;
        }
        Ok(())
    }

    /// Reads whole frames; returns how many bytes they had.
    fn read_frames<E: From<FrameError>>(
        &mut self,
        bytes: &mut [u8],
        take: &mut impl FnMut(Incoming) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut used = 0;
        while !self.closed
            && let Some(header) = self.header(&bytes[used..])?
        {
            let rest = &mut bytes[used..];
            let Some(payload) = rest.get_mut(header.payload.clone()) else {
                break;
            };
            unmask(payload, header.mask);
            used += header.payload.end;
            self.frame(&header, payload, take)?;
        }
        if self.closed {
            used = bytes.len();
        }
        Ok(used)
    }

    /// The header at the start, if it is complete.
    fn header(&self, bytes: &[u8]) -> Result<Option<Header>, FrameError> {
        let &[first, second, ref rest @ ..] = bytes else {
            return Ok(None);
        };
        let refuse = |what| Err(FrameError::Protocol(what));
        let (is_last, opcode) = (first & 0x80 != 0, first & 0x0f);
        if first & 0x70 != 0 {
            return refuse("reserved bits are set");
        }
        if second & 0x80 == 0 {
            return refuse("a frame of a client is not masked");
        }
        let is_control = opcode >= 8;
        let short = usize::from(second & 0x7f);
        if is_control && (!is_last || short > CONTROL_BYTES_MAX) {
            return refuse("a control frame is in pieces or too long");
        }
        match (opcode, &self.message) {
            (0, None) => return refuse("nothing is there to be continued"),
            (1 | 2, Some(_)) => return refuse("a message begins within another"),
            (0..=2 | 8..=10, _) => {}
            _ => return refuse("unknown kind of frame"),
        }
        let length_bytes = match short {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let Some((length, rest)) = rest.split_at_checked(length_bytes) else {
            return Ok(None);
        };
        let length = match length_bytes {
            0 => short as u64,
            _ => length
                .iter()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        };
        let before = self.message.as_ref().map_or(0, |pieces| pieces.bytes.len());
        let before = if is_control { 0 } else { before };
        let max = self.bytes_max;
        let length = usize::try_from(length)
            .ok()
            .filter(|length| *length <= max.saturating_sub(before))
            .ok_or(FrameError::TooLong { max })?;
        let Some(mask) = rest.first_chunk::<4>() else {
            return Ok(None);
        };
        let start = 2 + length_bytes + mask.len();
        debug_assert!(start <= HEADER_BYTES_MAX);
        Ok(Some(Header {
            is_last,
            opcode,
            mask: *mask,
            payload: start..start + length,
        }))
    }

    fn frame<E: From<FrameError>>(
        &mut self,
        header: &Header,
        payload: &[u8],
        take: &mut impl FnMut(Incoming) -> Result<(), E>,
    ) -> Result<(), E> {
        match header.opcode {
            8 => {
                self.closed = true;
                take(Incoming::Close(close_code(payload)?))
            }
            9 => take(Incoming::Ping(payload)),
            10 => take(Incoming::Pong),
            opcode @ 1..=2 if header.is_last => take(message(opcode == 1, payload)?),
            opcode => {
                let pieces = self.message.get_or_insert_with(|| Pieces {
                    is_text: opcode == 1,
                    bytes: Vec::new(),
                });
                pieces.bytes.extend_from_slice(payload);
                match self.message.take_if(|_| header.is_last) {
                    Some(whole) => take(message(whole.is_text, &whole.bytes)?),
                    None => take(Incoming::Piece),
                }
            }
        }
    }
}

fn message(is_text: bool, bytes: &[u8]) -> Result<Incoming<'_>, FrameError> {
    if !is_text {
        return Ok(Incoming::Binary(bytes));
    }
    std::str::from_utf8(bytes)
        .map(Incoming::Text)
        .map_err(|_| FrameError::NotUtf8)
}

fn close_code(payload: &[u8]) -> Result<Option<u16>, FrameError> {
    match payload {
        [] => Ok(None),
        [high, low, ..] => Ok(Some(u16::from_be_bytes([*high, *low]))),
        [_] => Err(FrameError::Protocol("half a code to close with")),
    }
}

fn unmask(payload: &mut [u8], mask: [u8; 4]) {
    let (words, rest) = payload.as_chunks_mut::<4>();
    let word = u32::from_ne_bytes(mask);
    for bytes in words {
        *bytes = (u32::from_ne_bytes(*bytes) ^ word).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask) {
        *byte ^= mask;
    }
}

#[cfg(test)]
mod tests;
