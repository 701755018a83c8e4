//! The receiving side of one connection: bytes become messages, and their arrival
//! tells whether the server is still there.

use frolic_protocol::ServerMessage;
use frolic_protocol::fragment::{Assembler, Fragment};
use frolic_protocol::packet::{self, PacketError, SERVER_MESSAGE_BYTES_MAX, StreamReader};

use crate::liveness::Silence;
use crate::stats::Meter;

const PING_INTERVAL_MS: f64 = 1000.0;
/// Ping interval until the first answer: a ping may be lost, and the round trip is
/// needed from the start.
const FIRST_PINGS_INTERVAL_MS: f64 = 200.0;

#[derive(Default)]
pub(crate) struct Connection {
    stream: StreamReader,
    assembler: Assembler,
    pub received: Meter,
    pub silence: Silence,
    pub rtt_ms: Option<f64>,
    next_ping_ms: f64,
    pub last_snapshot_ms: Option<f64>,
}

impl Connection {
    /// Reads a whole packet.
    pub fn packet(&mut self, packet: &[u8]) -> Result<Vec<ServerMessage>, PacketError> {
        self.silence.received();
        self.received.add(packet.len());
        packet::read(packet, SERVER_MESSAGE_BYTES_MAX)
    }

    /// Reads the next bytes of the reliable stream.
    pub fn stream(&mut self, bytes: &[u8]) -> Result<Vec<ServerMessage>, PacketError> {
        self.silence.received();
        self.received.add(bytes.len());
        self.stream.push(bytes, SERVER_MESSAGE_BYTES_MAX)
    }

    /// Adds a fragment, and reads its packet when that is complete.
    pub fn fragment(&mut self, fragment: Fragment) -> Result<Vec<ServerMessage>, PacketError> {
        match self.assembler.push(fragment) {
            Some(packet) => packet::read(&packet, SERVER_MESSAGE_BYTES_MAX),
            None => Ok(Vec::new()),
        }
    }

    /// Records the arrival of the newest snapshot; true when that ends a stall.
    pub fn snapshot(&mut self, now_ms: f64) -> bool {
        self.last_snapshot_ms = Some(now_ms);
        self.silence.received_snapshot()
    }

    /// The answer to the ping of that time.
    pub fn pong(&mut self, sent_ms: f64, now_ms: f64) {
        let sample = (now_ms - sent_ms).max(0.0);
        let known = *self.rtt_ms.get_or_insert(sample);
        self.rtt_ms = Some(known + (sample - known) * 0.2);
    }

    /// Whether to send a ping now.
    pub fn is_ping_due(&mut self, now_ms: f64) -> bool {
        if now_ms < self.next_ping_ms {
            return false;
        }
        let known = self.rtt_ms.map(|_| PING_INTERVAL_MS);
        self.next_ping_ms = now_ms + known.unwrap_or(FIRST_PINGS_INTERVAL_MS);
        true
    }
}
