//! One WebSocket, driven by the world's thread: read when it has something,
//! written once at the end of a tick, never waited for.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use frolic_protocol::packet::CLIENT_MESSAGE_BYTES_MAX;
use mio::net::TcpStream;
use tungstenite::protocol::{Role, WebSocket, WebSocketConfig};
use tungstenite::{Error, Message};

use super::Slot;
use super::outbuffer::{Opcode, OutBuffer};
use crate::line::{CloseCode, WAITING_BYTES_MAX};
use crate::link::{Heard, Intake, LinkError};
use crate::metrics::{KickCause, Metrics};

/// How often a client is asked whether it is still there, and how long its
/// answer takes.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// A client that has been silent for this long, pongs included, is gone.
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// How long a client has to take its last message in.
const FAREWELL: Duration = Duration::from_secs(2);
/// Bytes taken from one socket in one tick; the rest waits for the next. Far
/// above what a client needs, and a bound on the work that one can cause.
const READ_BYTES_PER_TICK: usize = 32 * 1024;
/// Read at once. The library's default of 128 KiB is zeroed on every read and
/// held per client.
const READ_BUFFER_BYTES: usize = 512;

/// What is left after reading.
#[derive(Debug, PartialEq, Eq)]
pub enum Reading {
    /// Nothing until the kernel says so.
    Drained,
    /// More waits: read again in the next tick.
    More,
    /// The client is gone.
    Gone,
    /// The client is to be told why it is thrown out.
    Broken(CloseCode, KickCause, String),
}

/// A WebSocket in the world's thread.
pub struct SocketLine {
    websocket: WebSocket<Carrier>,
    intake: Intake,
    heard_at: Instant,
    pinged_at: Instant,
    /// No answer to the last ping yet.
    awaits_pong: bool,
    /// How long the last answer took, until it was asked for.
    round_trip: Option<Duration>,
    /// Since when the client has taken nothing although something waits.
    stuck_since: Option<Instant>,
    /// Something had to be left out: the client reads far too slowly.
    overfull: bool,
    closing: bool,
    lost: bool,
}

impl SocketLine {
    /// A socket after the upgrade; `read_ahead` are bytes that were read
    /// together with the request.
    pub fn new(stream: TcpStream, read_ahead: &[u8], now: Instant) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(0)
            .max_message_size(Some(CLIENT_MESSAGE_BYTES_MAX))
            .max_frame_size(Some(CLIENT_MESSAGE_BYTES_MAX));
        let carrier = Carrier {
            stream,
            out: OutBuffer::default(),
            allowance: 0,
            readable: true,
            read_closed: false,
        };
        Self {
            websocket: WebSocket::from_partially_read(
                carrier,
                read_ahead.to_vec(),
                Role::Server,
                Some(config),
            ),
            intake: Intake::default(),
            heard_at: now,
            pinged_at: now,
            awaits_pong: false,
            round_trip: None,
            stuck_since: None,
            overfull: false,
            closing: false,
            lost: false,
        }
    }

    /// The kernel has something to read. `closed`: the client sends no more.
    pub fn wake(&mut self, closed: bool) {
        let carrier = self.websocket.get_mut();
        carrier.readable = true;
        carrier.read_closed |= closed;
    }

    /// Reads what there is, up to this tick's share, and adds what was
    /// understood to `heard`. `now_s` is the same moment as `now`.
    pub fn receive(
        &mut self,
        now: Instant,
        now_s: f64,
        heard: &mut Vec<Heard>,
        metrics: &Metrics,
    ) -> Reading {
        if self.is_over() {
            return Reading::Drained;
        }
        self.websocket.get_mut().allowance = READ_BYTES_PER_TICK;
        let reading = loop {
            let taken = match self.websocket.read() {
                Ok(Message::Binary(bytes)) => self.intake.packet(&bytes, now_s, heard),
                Ok(Message::Text(text)) => self.intake.text(&text, now_s, heard),
                // Control frames cost work as well.
                Ok(Message::Pong(_)) => {
                    self.note_pong(now);
                    self.intake.charge(now_s, heard).map(|_| ())
                }
                Ok(_) => self.intake.charge(now_s, heard).map(|_| ()),
                Err(error) => break self.end_of_reading(error),
            };
            if let Err(error) = taken {
                break broken(&error);
            }
        };
        let read = READ_BYTES_PER_TICK - self.websocket.get_ref().allowance;
        if read > 0 {
            self.heard_at = now;
            metrics.bytes_in.fetch_add(read as u64, Relaxed);
        }
        reading
    }

    /// Answers that nobody asked for say nothing.
    fn note_pong(&mut self, now: Instant) {
        if std::mem::take(&mut self.awaits_pong) {
            self.round_trip = Some(now.saturating_duration_since(self.pinged_at));
        }
    }

    /// How long a message to the client and back took, if that is news. To the
    /// length of a tick: sockets are read and written once in each.
    pub fn take_round_trip(&mut self) -> Option<Duration> {
        self.round_trip.take()
    }

    fn end_of_reading(&mut self, error: Error) -> Reading {
        match error {
            Error::Io(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if self.websocket.get_ref().readable {
                    Reading::More
                } else {
                    Reading::Drained
                }
            }
            Error::Capacity(_) => {
                let reason = format!("a message may have at most {CLIENT_MESSAGE_BYTES_MAX} bytes");
                Reading::Broken(CloseCode::Size, KickCause::Unreadable, reason)
            }
            Error::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake) => {
                self.lost = true;
                Reading::Gone
            }
            Error::ConnectionClosed => {
                // The answer to its close frame is on its way out.
                self.closing = true;
                Reading::Gone
            }
            error @ (Error::Protocol(_) | Error::Utf8(_)) => {
                let reason = format!("unreadable message: {error}");
                Reading::Broken(CloseCode::Invalid, KickCause::Unreadable, reason)
            }
            _ => {
                self.lost = true;
                Reading::Gone
            }
        }
    }

    /// Queues a binary message.
    pub fn binary(&mut self, payload: &[u8]) {
        self.frame(Opcode::Binary, payload);
    }

    /// Queues a text message.
    pub fn text(&mut self, text: &str) {
        self.frame(Opcode::Text, text.as_bytes());
    }

    /// Queues the close frame; its reason may have 123 bytes.
    pub fn close(&mut self, code: CloseCode, reason: &str) {
        let mut cut = reason.len().min(123);
        while !reason.is_char_boundary(cut) {
            cut -= 1;
        }
        let mut payload = (code as u16).to_be_bytes().to_vec();
        payload.extend_from_slice(&reason.as_bytes()[..cut]);
        self.frame(Opcode::Close, &payload);
        self.closing = true;
    }

    fn frame(&mut self, opcode: Opcode, payload: &[u8]) {
        if self.is_over() {
            return;
        }
        let out = &mut self.websocket.get_mut().out;
        self.overfull |= out.waiting() > WAITING_BYTES_MAX;
        if self.overfull && opcode != Opcode::Close {
            // What follows would build on what is missing.
            return;
        }
        out.push(opcode, payload);
    }

    /// Asks now and then whether the client is there, and writes everything
    /// that gathered in one call. What the kernel does not take stays.
    pub fn flush(&mut self, now: Instant, metrics: &Metrics) {
        if self.lost {
            return;
        }
        if now.duration_since(self.heard_at) > SILENCE_MAX {
            self.lost = true;
            return;
        }
        if now.duration_since(self.pinged_at) > PING_INTERVAL {
            self.pinged_at = now;
            self.awaits_pong = true;
            self.frame(Opcode::Ping, b"");
        }
        let carrier = self.websocket.get_mut();
        if carrier.out.waiting() == 0 {
            return;
        }
        match carrier.out.write_to(&mut carrier.stream) {
            Ok(written) => {
                metrics.bytes_out.fetch_add(written as u64, Relaxed);
                if carrier.out.waiting() == 0 {
                    self.stuck_since = None;
                } else if written > 0 || self.stuck_since.is_none() {
                    self.stuck_since = Some(now);
                }
            }
            Err(_) => self.lost = true,
        }
    }

    /// Exchanges the memory that frames are gathered in, if there are none.
    pub fn exchange_buffer(&mut self, other: &mut Vec<u8>) {
        self.websocket.get_mut().out.exchange_buffer(other);
    }

    /// Bytes that the kernel has not taken.
    pub fn waiting_bytes(&self) -> usize {
        self.websocket.get_ref().out.waiting()
    }

    /// How long the client has taken nothing although something waits.
    pub fn stuck_for(&self, now: Instant) -> Duration {
        self.stuck_since
            .map_or(Duration::ZERO, |since| now.duration_since(since))
    }

    /// Whether something had to be left out.
    pub fn is_overfull(&self) -> bool {
        self.overfull
    }

    /// Forgets what was not begun to be written: nobody reads it anyway, and
    /// the last word would stand behind it.
    pub fn abandon(&mut self) {
        self.websocket.get_mut().out.abandon();
        self.overfull = false;
    }

    /// Whether nothing more is to be sent.
    pub fn is_over(&self) -> bool {
        self.closing || self.lost
    }

    /// What is left to do after a close frame; none when the client is gone.
    pub fn into_farewell(self, slot: Slot, now: Instant) -> Option<Farewell> {
        (self.closing && !self.lost).then(|| Farewell {
            websocket: self.websocket,
            until: now + FAREWELL,
            shut: false,
            _slot: slot,
        })
    }
}

fn broken(error: &LinkError) -> Reading {
    let cause = match error {
        LinkError::Packet(_) => KickCause::Unreadable,
        LinkError::Flood => KickCause::Flood,
    };
    Reading::Broken(CloseCode::Policy, cause, error.to_string())
}

/// A socket on its way out. One that is dropped with unread input is reset,
/// and the client would lose what it was told last: so write, end our side,
/// and read until the client ends its own.
pub struct Farewell {
    websocket: WebSocket<Carrier>,
    until: Instant,
    shut: bool,
    _slot: Slot,
}

impl Farewell {
    /// Goes on; true when it is over.
    pub fn is_over(&mut self, now: Instant, scratch: &mut [u8], metrics: &Metrics) -> bool {
        let Carrier { stream, out, .. } = self.websocket.get_mut();
        if now >= self.until {
            return true;
        }
        match out.write_to(stream) {
            Ok(written) => metrics.bytes_out.fetch_add(written as u64, Relaxed),
            Err(_) => return true,
        };
        if out.waiting() == 0 && !self.shut {
            self.shut = true;
            if stream.shutdown(Shutdown::Write).is_err() {
                return true;
            }
        }
        // What comes now is of no interest, and may not even be WebSocket.
        let mut allowance = READ_BYTES_PER_TICK;
        while allowance > 0 {
            match stream.read(scratch) {
                Ok(0) => return true,
                Ok(count) => allowance = allowance.saturating_sub(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
        false
    }
}

/// What the WebSocket library reads from and answers pings and closes to.
struct Carrier {
    stream: TcpStream,
    out: OutBuffer,
    /// Bytes that may still be read in this tick.
    allowance: usize,
    /// Whether the kernel may have something.
    readable: bool,
    /// The client sends no more: read until the end is seen.
    read_closed: bool,
}

impl Read for Carrier {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.allowance);
        if !self.readable || length == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        loop {
            match self.stream.read(&mut buffer[..length]) {
                Ok(count) => {
                    self.allowance -= count;
                    // Less than asked for: the kernel has no more, and will
                    // wake us when it does. Spares asking again.
                    if count < length && !self.read_closed {
                        self.readable = false;
                    }
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.readable &= error.kind() != io::ErrorKind::WouldBlock;
                    return Err(error);
                }
            }
        }
    }
}

impl Write for Carrier {
    /// Takes a whole frame or nothing, so that frames never mix.
    fn write(&mut self, frame: &[u8]) -> io::Result<usize> {
        if self.out.waiting() + frame.len() > WAITING_BYTES_MAX {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.out.push_frame(frame);
        Ok(frame.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream as Blocking};

    /// A ping without a payload, and its answer as a client masks it.
    const PING: [u8; 2] = [0x89, 0x00];
    const PONG: [u8; 6] = [0x8a, 0x80, 1, 2, 3, 4];

    #[test]
    fn a_pong_tells_the_round_trip_once_and_only_if_asked_for() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut client = Blocking::connect(address).expect("connects");
        let (stream, _) = listener.accept().expect("a connection");
        stream.set_nonblocking(true).expect("a socket");
        let start = Instant::now();
        let mut line = SocketLine::new(TcpStream::from_std(stream), &[], start);
        let (metrics, mut heard) = (Metrics::default(), Vec::new());
        // Reads until the kernel has passed the answer on.
        let mut hear = |line: &mut SocketLine, ms: u64| {
            let now = start + Duration::from_millis(ms);
            while line.heard_at != now {
                line.wake(false);
                assert_eq!(
                    line.receive(now, 0.0, &mut heard, &metrics),
                    Reading::Drained
                );
            }
            line.take_round_trip()
        };

        client.write_all(&PONG).expect("writes");
        assert_eq!(hear(&mut line, 10), None, "nobody asked");
        line.flush(start + Duration::from_millis(5_100), &metrics);
        let mut ping = [0; 2];
        client.read_exact(&mut ping).expect("a ping");
        assert_eq!(ping, PING);
        client.write_all(&PONG).expect("writes");
        let round_trip = Some(Duration::from_millis(80));
        assert_eq!(hear(&mut line, 5_180), round_trip);
        client.write_all(&PONG).expect("writes");
        assert_eq!(hear(&mut line, 5_300), None, "known");
    }
}
