//! One connection in the world's thread: who it is, what it has, what waits for it.

use std::collections::BTreeSet;

use bytes::Bytes;
use frolic_protocol::ServerMessage;
use frolic_protocol::json;
use frolic_protocol::packet;
use frolic_world::{ClientView, PlayerNumber};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::link::{Encoding, Outbound};

/// Reliable bytes that may wait for a client that does not read.
const BACKLOG_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A connection, with or without a player yet.
pub struct Session {
    /// How it speaks.
    pub encoding: Encoding,
    /// Ticket from the address.
    pub ticket: Option<String>,
    /// Tick at which it connected.
    pub opened_tick: u32,
    /// Set by a good handshake.
    pub player: Option<SessionPlayer>,
    outbox: mpsc::Sender<Outbound>,
    /// Binary messages of this tick, sent as one packet.
    packet: Vec<u8>,
    /// What did not fit the outbox, in order.
    backlog: Vec<Outbound>,
    backlog_bytes: usize,
    lost: bool,
}

/// What exists once a player is in.
pub struct SessionPlayer {
    /// Their number in the world.
    pub number: PlayerNumber,
    /// Brings them back after a lost connection.
    pub resume_token: String,
    /// What they see and have.
    pub view: ClientView,
    /// Scripts they have verified.
    pub verified: BTreeSet<String>,
    /// How many scripts of the manifest were told to run.
    pub executed: usize,
    /// Inputs that found the queue full, fading.
    pub refused_inputs: usize,
}

impl Session {
    /// A connection that has said nothing.
    pub fn new(
        encoding: Encoding,
        ticket: Option<String>,
        outbox: mpsc::Sender<Outbound>,
        tick: u32,
    ) -> Self {
        Self {
            encoding,
            ticket,
            opened_tick: tick,
            player: None,
            outbox,
            packet: Vec::new(),
            backlog: Vec::new(),
            backlog_bytes: 0,
            lost: false,
        }
    }

    /// Whether the connection is beyond help.
    pub fn is_lost(&self) -> bool {
        self.lost || self.outbox.is_closed()
    }

    /// Whether a snapshot would only make things worse.
    pub fn is_slow(&self) -> bool {
        !self.backlog.is_empty() || self.outbox.capacity() < self.outbox.max_capacity() / 2
    }

    /// Whether so much waits already that large things must not be added.
    pub fn is_clogged(&self) -> bool {
        self.backlog_bytes > BACKLOG_BYTES_MAX / 2
    }

    /// Queues a message; binary ones leave together at the end of the tick.
    pub fn tell(&mut self, message: &ServerMessage) {
        match self.encoding {
            Encoding::Binary => packet::write(&mut self.packet, message),
            Encoding::Json => {
                if let Some(text) = json::encode(message) {
                    self.push(Outbound::Text(text));
                }
            }
        }
    }

    /// Queues a packet that was made before; none of a JSON client's business.
    pub fn tell_packet(&mut self, packet: Bytes) {
        self.flush_packet();
        self.push(Outbound::Reliable(packet));
    }

    /// Queues a JSON text.
    pub fn tell_text(&mut self, text: String) {
        self.push(Outbound::Text(text));
    }

    /// Queues a snapshot.
    pub fn tell_snapshot(&mut self, bytes: Vec<u8>) {
        self.flush_packet();
        let packet = packet::single(&ServerMessage::Snapshot(bytes));
        self.push(Outbound::Unreliable(packet.into()));
    }

    /// Confirms or refuses a JSON command.
    pub fn answer(&mut self, seq: Option<u32>, outcome: Result<(), (&str, String)>) {
        let text = match (seq, outcome) {
            (Some(seq), Ok(())) => json::ack(seq),
            (seq, Err((code, message))) if self.encoding == Encoding::Json => {
                json::error(seq, code, &message)
            }
            (_, Err((code, message))) => {
                self.tell(&ServerMessage::Error {
                    code: code.to_owned(),
                    message,
                });
                return;
            }
            (None, Ok(())) => return,
        };
        self.push(Outbound::Text(text));
    }

    /// Says why, and ends the connection.
    pub fn kick(&mut self, reason: &str) {
        self.tell(&ServerMessage::Kick {
            reason: reason.to_owned(),
        });
        self.flush_packet();
        self.push(Outbound::Close(reason.to_owned()));
    }

    fn flush_packet(&mut self) {
        if !self.packet.is_empty() {
            let packet = std::mem::take(&mut self.packet).into();
            self.push(Outbound::Reliable(packet));
        }
    }

    /// Sends what has gathered. Never waits.
    pub fn flush(&mut self) {
        self.flush_packet();
        if self.backlog.is_empty() {
            return;
        }
        let mut waiting = std::mem::take(&mut self.backlog).into_iter();
        for outbound in waiting.by_ref() {
            if let Err(back) = self.try_send(outbound) {
                self.backlog.push(back);
                break;
            }
        }
        self.backlog.extend(waiting);
        self.backlog_bytes = self.backlog.iter().map(size).sum();
        self.lost |= self.backlog_bytes > BACKLOG_BYTES_MAX;
    }

    fn push(&mut self, outbound: Outbound) {
        let outbound = if self.backlog.is_empty() {
            match self.try_send(outbound) {
                Ok(()) => return,
                Err(back) => back,
            }
        } else {
            outbound
        };
        // What may be lost is lost first.
        if !matches!(outbound, Outbound::Unreliable(_)) && self.backlog_bytes <= BACKLOG_BYTES_MAX {
            self.backlog_bytes += size(&outbound);
            self.backlog.push(outbound);
        }
    }

    fn try_send(&mut self, outbound: Outbound) -> Result<(), Outbound> {
        match self.outbox.try_send(outbound) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(back)) => Err(back),
            Err(TrySendError::Closed(_)) => {
                self.lost = true;
                Ok(())
            }
        }
    }
}

fn size(outbound: &Outbound) -> usize {
    match outbound {
        Outbound::Reliable(bytes) | Outbound::Unreliable(bytes) => bytes.len(),
        Outbound::Text(text) | Outbound::Close(text) => text.len(),
    }
}
