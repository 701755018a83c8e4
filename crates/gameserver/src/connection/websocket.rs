//! One WebSocket, driven by the world's thread: read when it has data, written once
//! at the end of a tick, never blocked on.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use frolic_protocol::packet::CLIENT_MESSAGE_BYTES_MAX;
use frolic_protocol::websocket::{FrameError, FrameReader, Incoming};
use mio::net::TcpStream;

use super::outbuffer::{Opcode, OutBuffer};
use super::raw::RawSocket;
use super::{CloseCode, ConnectionPermit, WAITING_BYTES_MAX};
use crate::decoder::{ClientInput, Encoding, MessageDecoder, ReceiveError};
use crate::metrics::{Jitter, KickCause, Metrics};
use crate::pace::{Backlog, Uptake};

/// How often a client is pinged, to check that it is alive and to measure the round
/// trip.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// A client that has been silent for this long, pongs included, is considered
/// disconnected.
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// How long a client has to read its last message.
const FAREWELL: Duration = Duration::from_secs(2);
/// Bytes read from one socket in one tick; the rest waits for the next. Far above
/// what a client needs; bounds the work that one client can cause.
pub const READ_BYTES_PER_TICK: usize = 32 * 1024;

/// What is left after reading.
#[derive(Debug, PartialEq, Eq)]
pub enum Reading {
    /// Nothing until the kernel reports more.
    Drained,
    /// More waits: read again in the next tick.
    More,
    /// The client has disconnected.
    Gone,
    /// The client must be disconnected, with this reason.
    Broken(CloseCode, KickCause, String),
}

/// A WebSocket in the world's thread.
pub struct WebSocketConnection {
    stream: RawSocket,
    out: OutBuffer,
    /// Bytes that were left at the last flush. What was queued since then says
    /// nothing about the client: it is sent at the end of the tick.
    left_bytes: usize,
    frames: FrameReader,
    intake: MessageDecoder,
    /// Bytes that were read together with the upgrade request.
    read_ahead: Vec<u8>,
    received_at: Instant,
    pinged_at: Instant,
    /// No answer to the last ping yet.
    awaits_pong: bool,
    /// The last round trip, until it is taken.
    round_trip: Option<Duration>,
    jitter: Jitter,
    /// Whether the client reads what it is sent.
    uptake: Uptake,
    /// A message had to be dropped: the client reads far too slowly.
    overfull: bool,
    /// The client has closed its sending side: read until the end of the stream.
    read_closed: bool,
    closing: bool,
    lost: bool,
}

/// Why reading a socket ended early.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("{0}")]
    Link(#[from] ReceiveError),
}

impl WebSocketConnection {
    /// A socket after the upgrade; `read_ahead` are bytes that were read together
    /// with the request.
    pub fn new(stream: TcpStream, encoding: Encoding, read_ahead: &[u8], now: Instant) -> Self {
        Self {
            stream: RawSocket::new(stream),
            out: OutBuffer::default(),
            left_bytes: 0,
            frames: FrameReader::new(CLIENT_MESSAGE_BYTES_MAX),
            intake: MessageDecoder::new(encoding),
            read_ahead: read_ahead.to_vec(),
            received_at: now,
            pinged_at: now,
            awaits_pong: false,
            round_trip: None,
            jitter: Jitter::default(),
            uptake: Uptake::default(),
            overfull: false,
            read_closed: false,
            closing: false,
            lost: false,
        }
    }

    /// Reads what is available, up to this tick's quota, and adds decoded inputs to
    /// `inputs`. `closed`: the client has closed its sending side. `now_s` is the
    /// same moment as `now`; `memory` is the buffer to read into, and its length is
    /// the quota.
    pub fn receive(
        &mut self,
        closed: bool,
        (now, now_s): (Instant, f64),
        memory: &mut [u8],
        inputs: &mut Vec<ClientInput>,
        metrics: &Metrics,
    ) -> Reading {
        self.read_closed |= closed;
        if self.is_over() {
            return Reading::Drained;
        }
        let mut ahead = std::mem::take(&mut self.read_ahead);
        if let Err(error) = self.take_in(&mut ahead, (now, now_s), inputs, metrics) {
            return broken(&error);
        }
        loop {
            let count = match self.stream.read(memory) {
                Ok(count) if count > 0 => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Reading::Drained,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(_) | Err(_) => {
                    self.lost = true;
                    return Reading::Gone;
                }
            };
            self.received_at = now;
            metrics.bytes_in.add(count as u64);
            let read = &mut memory[..count];
            if let Err(error) = self.take_in(read, (now, now_s), inputs, metrics) {
                return broken(&error);
            }
            if self.closing {
                return Reading::Gone;
            }
            if count == memory.len() {
                return Reading::More;
            }
            // Less than the buffer's capacity: the kernel has no more, and will
            // wake us when it does. Saves a call.
            if !self.read_closed {
                return Reading::Drained;
            }
        }
    }

    fn take_in(
        &mut self,
        bytes: &mut [u8],
        (now, now_s): (Instant, f64),
        inputs: &mut Vec<ClientInput>,
        metrics: &Metrics,
    ) -> Result<(), ReadError> {
        let (mut ponged, mut ending) = (false, None);
        let (intake, out) = (&mut self.intake, &mut self.out);
        self.frames.read(bytes, &mut |incoming| {
            match incoming {
                Incoming::Binary(bytes) => intake.binary(bytes, now_s, inputs)?,
                Incoming::Text(text) => intake.text(text, now_s, inputs)?,
                // Control frames and fragments cost work as well.
                Incoming::Ping(bytes) => {
                    if intake.charge(now_s, inputs)? && out.waiting() <= WAITING_BYTES_MAX {
                        out.push(Opcode::Pong, bytes);
                    }
                }
                Incoming::Pong => {
                    ponged = true;
                    intake.charge(now_s, inputs)?;
                }
                Incoming::Piece => {
                    intake.charge(now_s, inputs)?;
                }
                Incoming::Close(code) => ending = Some(code),
            }
            Ok::<(), ReadError>(())
        })?;
        if ponged {
            self.note_pong(now, metrics);
        }
        if let Some(code) = ending {
            // The protocol requires the same code in the answer.
            let code = code.map_or(Vec::new(), |code| code.to_be_bytes().to_vec());
            self.frame(Opcode::Close, &code);
            self.closing = true;
        }
        Ok(())
    }

    /// Unsolicited pongs are ignored.
    fn note_pong(&mut self, now: Instant, metrics: &Metrics) {
        if std::mem::take(&mut self.awaits_pong) {
            let round_trip = now.saturating_duration_since(self.pinged_at);
            self.round_trip = Some(round_trip);
            if let Some(difference) = self.jitter.after(round_trip) {
                metrics.jitter_was(difference);
            }
        }
    }

    /// The last round trip to the client, if there is a new one. Its resolution is
    /// a tick: sockets are read and written once in each.
    pub fn take_round_trip(&mut self) -> Option<Duration> {
        self.round_trip.take()
    }

    /// Queues a binary message.
    pub fn binary(&mut self, payload: &[u8]) {
        self.frame(Opcode::Binary, payload);
    }

    /// Queues a text message.
    pub fn text(&mut self, text: &str) {
        self.frame(Opcode::Text, text.as_bytes());
    }

    /// Queues the close frame; its reason is limited to 123 bytes.
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
        self.overfull |= self.out.waiting() > WAITING_BYTES_MAX;
        if self.overfull && opcode != Opcode::Close {
            // Later messages would depend on the missing one.
            return;
        }
        self.out.push(opcode, payload);
    }

    /// Pings the client now and then, and writes everything queued in one call.
    /// What the kernel does not accept stays queued.
    pub fn flush(&mut self, now: Instant, metrics: &Metrics) {
        if self.lost {
            return;
        }
        if now.duration_since(self.received_at) > SILENCE_MAX {
            self.lost = true;
            return;
        }
        if now.duration_since(self.pinged_at) > PING_INTERVAL {
            self.pinged_at = now;
            self.awaits_pong = true;
            self.frame(Opcode::Ping, b"");
        }
        if self.out.waiting() == 0 {
            self.left_bytes = 0;
            return;
        }
        match self.out.write_to(&mut self.stream) {
            Ok(written) => {
                metrics.bytes_out.add(written as u64);
                self.left_bytes = self.out.waiting();
                let left = match self.left_bytes {
                    0 => Backlog::Empty,
                    bytes => Backlog::Large(bytes),
                };
                self.uptake.note(written > 0, left, now);
            }
            Err(_) => self.lost = true,
        }
    }

    /// Swaps the buffer that frames are gathered in, if it is empty.
    pub fn exchange_buffer(&mut self, other: &mut Vec<u8>) {
        self.out.exchange_buffer(other);
    }

    /// Bytes that the kernel has not accepted.
    pub fn waiting_bytes(&self) -> usize {
        self.out.waiting()
    }

    /// Whether the kernel has not accepted what was sent before.
    pub fn is_behind(&self) -> bool {
        self.left_bytes > 0
    }

    /// Whether the client reads so little that a message was dropped, or that it
    /// must be disconnected.
    pub fn is_stuck(&self, now: Instant) -> bool {
        self.overfull || self.uptake.is_too_slow(now)
    }

    /// Drops frames that were not begun: the client does not read them, and they
    /// would delay the close reason.
    pub fn abandon(&mut self) {
        self.out.abandon();
        self.overfull = false;
    }

    /// Whether nothing more can be sent.
    pub fn is_over(&self) -> bool {
        self.closing || self.lost
    }

    /// What is left to do after a close frame; none when the client has
    /// disconnected.
    pub fn into_farewell(self, permit: ConnectionPermit, now: Instant) -> Option<Farewell> {
        (self.closing && !self.lost).then(|| Farewell {
            stream: self.stream,
            out: self.out,
            until: now + FAREWELL,
            shut: false,
            _slot: permit,
        })
    }
}

fn broken(error: &ReadError) -> Reading {
    let (code, cause) = match error {
        ReadError::Frame(FrameError::TooLong { .. }) => (CloseCode::Size, KickCause::Unreadable),
        ReadError::Frame(FrameError::NotUtf8) => (CloseCode::Invalid, KickCause::Unreadable),
        ReadError::Frame(FrameError::Protocol(_)) => (CloseCode::Protocol, KickCause::Unreadable),
        ReadError::Link(error) => (CloseCode::Policy, error.cause()),
    };
    Reading::Broken(code, cause, error.to_string())
}

/// A socket that is being closed. Dropping it with unread input would reset the
/// connection, and the client would lose its last message: so write, shut down our
/// side, and read until the client closes its own.
pub struct Farewell {
    stream: RawSocket,
    out: OutBuffer,
    until: Instant,
    shut: bool,
    _slot: ConnectionPermit,
}

impl Farewell {
    /// Continues closing; true when it is done.
    pub fn is_over(&mut self, now: Instant, scratch: &mut [u8], metrics: &Metrics) -> bool {
        let Self { stream, out, .. } = self;
        if now >= self.until {
            return true;
        }
        match out.write_to(stream) {
            Ok(written) => metrics.bytes_out.add(written as u64),
            Err(_) => return true,
        };
        if out.waiting() == 0 && !self.shut {
            self.shut = true;
            if stream.shut().is_err() {
                return true;
            }
        }
        // What arrives now is ignored, and may not even be WebSocket.
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

#[cfg(test)]
mod tests {
    use super::super::Connection;
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream as Blocking};

    /// A ping without a payload, and its answer as a client masks it.
    const PING: [u8; 2] = [0x89, 0x00];
    const PONG: [u8; 6] = [0x8a, 0x80, 1, 2, 3, 4];

    /// A client and its connection, with small buffers between them.
    fn connect(start: Instant) -> (Blocking, WebSocketConnection) {
        const ROOM_BYTES: usize = 16 * 1024;
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let client = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let client = client.expect("a socket");
        client.set_recv_buffer_size(ROOM_BYTES).expect("a buffer");
        client.connect(&address.into()).expect("connects");
        let (stream, _) = listener.accept().expect("a connection");
        stream.set_nonblocking(true).expect("a socket");
        let narrow = socket2::SockRef::from(&stream).set_send_buffer_size(ROOM_BYTES);
        narrow.expect("a buffer");
        let stream = TcpStream::from_std(stream);
        let connection = WebSocketConnection::new(stream, Encoding::Binary, &[], start);
        (client.into(), connection)
    }

    #[test]
    fn a_pong_yields_the_round_trip_once_and_only_if_requested() {
        let start = Instant::now();
        let (mut client, mut connection) = connect(start);
        let (metrics, mut inputs) = (Metrics::default(), Vec::new());
        // Reads until the kernel has delivered the answer.
        let mut receive = |connection: &mut WebSocketConnection, ms: u64| {
            let now = start + Duration::from_millis(ms);
            while connection.received_at != now {
                let reading =
                    connection.receive(false, (now, 0.0), &mut [0; 64], &mut inputs, &metrics);
                assert_eq!(reading, Reading::Drained);
            }
            connection.take_round_trip()
        };

        client.write_all(&PONG).expect("writes");
        assert_eq!(receive(&mut connection, 10), None, "no ping was sent");
        connection.flush(start + Duration::from_millis(5_100), &metrics);
        let mut ping = [0; 2];
        client.read_exact(&mut ping).expect("a ping");
        assert_eq!(ping, PING);
        client.write_all(&PONG).expect("writes");
        let round_trip = Some(Duration::from_millis(80));
        assert_eq!(receive(&mut connection, 5_180), round_trip);
        client.write_all(&PONG).expect("writes");
        assert_eq!(receive(&mut connection, 5_300), None, "known");

        // The next one takes longer: that is the connection's jitter.
        connection.flush(start + Duration::from_millis(10_200), &metrics);
        client.read_exact(&mut ping).expect("a ping");
        client.write_all(&PONG).expect("writes");
        let round_trip = Some(Duration::from_millis(110));
        assert_eq!(receive(&mut connection, 10_310), round_trip);
        let mut text = frolic_metrics::Text::default();
        metrics.write(&mut text);
        let text = text.finish();
        let sum = "frolic_jitter_seconds_sum 0.03";
        assert!(text.lines().any(|line| line == sum), "{text}");
    }

    #[test]
    fn messages_queued_for_the_end_of_a_tick_do_not_count_as_behind() {
        let start = Instant::now();
        let (mut client, connection) = connect(start);
        let (mut connection, metrics) = (Connection::WebSocket(connection), Metrics::default());
        for tick in 0..10 {
            connection.text("an answer of this tick");
            assert!(
                !connection.is_behind() && connection.is_restless(),
                "in tick {tick}"
            );
            connection.flush(start, &metrics);
        }
        assert!(!connection.is_restless(), "all of it is on its way");
        // What the kernel has not accepted at the end of a tick does count.
        connection.reliable(&vec![7; 2 * 1024 * 1024]);
        connection.flush(start, &metrics);
        assert!(connection.is_behind());
        while connection.waiting_bytes() > 0 {
            let read = client.read(&mut [0; 16 * 1024]).expect("reads");
            assert!(read > 0 && connection.is_behind());
            connection.flush(start, &metrics);
        }
        assert!(!connection.is_behind(), "it has caught up");
    }

    #[test]
    fn a_client_that_is_silent_for_twenty_seconds_is_disconnected() {
        let start = Instant::now();
        let (mut client, mut connection) = connect(start);
        let (metrics, mut inputs) = (Metrics::default(), Vec::new());
        let at = |s: f64| start + Duration::from_secs_f64(s);
        connection.flush(at(19.0), &metrics);
        client.write_all(&PONG).expect("writes");
        while connection.received_at != at(19.5) {
            let memory = &mut [0; 64];
            let reading = connection.receive(false, (at(19.5), 0.0), memory, &mut inputs, &metrics);
            assert_eq!(reading, Reading::Drained);
        }
        for s in [21.0, 30.0, 39.5] {
            connection.flush(at(s), &metrics);
            assert!(!connection.is_over(), "after {s} s");
        }
        connection.flush(at(39.6), &metrics);
        assert!(connection.is_over());
    }

    #[test]
    fn a_client_that_reads_a_little_now_and_then_is_disconnected_after_a_while() {
        let start = Instant::now();
        let (mut client, mut connection) = connect(start);
        let (metrics, mut inputs) = (Metrics::default(), Vec::new());
        connection.binary(&vec![7; 2 * 1024 * 1024]);
        let let_go = (0..100).find(|step: &u64| {
            let now = start + Duration::from_secs(4 * step);
            // It answers pings, and reads until the kernel accepts something more.
            client.write_all(&PONG).expect("writes");
            while connection.received_at != now {
                connection.receive(false, (now, 0.0), &mut [0; 64], &mut inputs, &metrics);
            }
            let before = metrics.bytes_out.value();
            loop {
                connection.flush(now, &metrics);
                if metrics.bytes_out.value() > before {
                    break;
                }
                let read = client.read(&mut [0; 16 * 1024]).expect("reads");
                assert!(read > 0, "the connection is closed");
            }
            assert!(
                connection.waiting_bytes() > 0,
                "it reads too fast for this test"
            );
            connection.is_stuck(now)
        });
        // 30 s, and 64 s for the 2 MiB: it was never stuck for eight.
        assert!((Some(20)..=Some(24)).contains(&let_go), "{let_go:?}");
    }
}
