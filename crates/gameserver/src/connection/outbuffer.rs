//! WebSocket frames that wait for the kernel.

use std::io::{self, Write};

/// WebSocket opcodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// A text message.
    Text = 1,
    /// A binary message.
    Binary = 2,
    /// Closes the connection.
    Close = 8,
    /// Asks whether the other side is alive.
    Ping = 9,
    /// The answer to a ping.
    Pong = 10,
}

/// Written bytes at the front that are worth moving the rest for.
const COMPACT_BYTES: usize = 64 * 1024;
/// Capacity that an empty buffer may retain.
const CAPACITY_BYTES_MAX: usize = 64 * 1024;

/// Whole frames in a row, of which the first `written` bytes are sent. The first
/// byte is always the start of a frame.
#[derive(Debug, Default)]
pub struct OutBuffer {
    bytes: Vec<u8>,
    written: usize,
}

impl OutBuffer {
    /// Bytes that are not sent.
    pub fn waiting(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Swaps its memory, if it is empty.
    pub fn exchange_buffer(&mut self, other: &mut Vec<u8>) {
        if self.bytes.is_empty() {
            std::mem::swap(&mut self.bytes, other);
        }
    }

    /// Adds a message as one frame.
    pub fn push(&mut self, opcode: Opcode, payload: &[u8]) {
        self.bytes.reserve(payload.len() + 10);
        self.bytes.push(0x80 | opcode as u8);
        match payload.len() {
            length @ 0..126 => self.bytes.push(length as u8),
            length @ 126..0x1_0000 => {
                self.bytes.push(126);
                self.bytes.extend_from_slice(&(length as u16).to_be_bytes());
            }
            length => {
                self.bytes.push(127);
                self.bytes.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        self.bytes.extend_from_slice(payload);
    }

    /// Writes what the stream accepts now; returns how many bytes.
    ///
    /// # Errors
    /// When the other side has disconnected.
    pub fn write_to(&mut self, stream: &mut impl Write) -> io::Result<usize> {
        if self.waiting() == 0 {
            return Ok(0);
        }
        let taken = loop {
            match stream.write(&self.bytes[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => break taken,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break 0,
                Err(error) => return Err(error),
            }
        };
        self.written += taken;
        if self.waiting() == 0 {
            self.bytes.clear();
            self.bytes.shrink_to(CAPACITY_BYTES_MAX);
            self.written = 0;
        } else if self.written > COMPACT_BYTES {
            let (start, _) = self.current_frame();
            self.bytes.drain(..start);
            self.written -= start;
        }
        Ok(taken)
    }

    /// Drops every frame of which nothing is sent.
    pub fn abandon(&mut self) {
        let (start, end) = self.current_frame();
        let keep = if start == self.written { start } else { end };
        self.bytes.truncate(keep);
    }

    /// Start and end of the frame that is being written.
    fn current_frame(&self) -> (usize, usize) {
        let mut start = 0;
        while start < self.bytes.len() {
            let end = start + frame_length(&self.bytes[start..]);
            if end > self.written {
                return (start, end.min(self.bytes.len()));
            }
            start = end;
        }
        (self.bytes.len(), self.bytes.len())
    }
}

/// Length of our own, unmasked frame that starts here.
fn frame_length(bytes: &[u8]) -> usize {
    let long = |count: usize| {
        let digits = bytes.iter().skip(2).take(count);
        digits.fold(0usize, |length, byte| length << 8 | usize::from(*byte))
    };
    match bytes.get(1) {
        Some(126) => 4 + long(2),
        Some(127) => 10 + long(8),
        Some(length) => 2 + usize::from(*length),
        None => bytes.len().max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a few bytes at a time, then nothing.
    struct Slow {
        taken: Vec<u8>,
        room: usize,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room);
            if count == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.room -= count;
            self.taken.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn frames(bytes: &[u8]) -> Vec<(u8, usize)> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let length = frame_length(&bytes[at..]);
            found.push((bytes[at] & 0x0f, length));
            at += length;
        }
        assert_eq!(at, bytes.len(), "frames are whole");
        found
    }

    #[test]
    fn frames_of_every_size_leave_whole_through_a_narrow_opening() {
        let sizes = [0, 1, 125, 126, 65_535, 65_536, 200_000];
        let mut out = OutBuffer::default();
        for size in sizes {
            out.push(Opcode::Binary, &vec![7; size]);
        }
        let total = out.waiting();
        let mut slow = Slow {
            taken: Vec::new(),
            room: 0,
        };
        while out.waiting() > 0 {
            slow.room = 777;
            out.write_to(&mut slow).unwrap();
        }
        assert_eq!(slow.taken.len(), total);
        let headers = [2, 2, 2, 4, 4, 10, 10];
        let expected: Vec<_> = sizes
            .iter()
            .zip(headers)
            .map(|(size, h)| (2, size + h))
            .collect();
        assert_eq!(frames(&slow.taken), expected);
    }

    #[test]
    fn the_close_frame_follows_the_frame_that_was_begun() {
        for begun in [0, 1, 500, 1004, 1500, 150_000] {
            let mut out = OutBuffer::default();
            for _ in 0..200 {
                out.push(Opcode::Binary, &[7; 1000]);
            }
            let mut slow = Slow {
                taken: Vec::new(),
                room: begun,
            };
            out.write_to(&mut slow).unwrap();
            out.abandon();
            out.push(Opcode::Close, b"bye");
            slow.room = usize::MAX;
            out.write_to(&mut slow).unwrap();
            let left = frames(&slow.taken);
            assert_eq!(left.len(), begun.div_ceil(1004) + 1, "{begun} bytes begun");
            assert_eq!(left.last(), Some(&(8, 5)));
        }
    }
}
