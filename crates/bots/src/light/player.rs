//! One light player: bytes of a socket in, bytes for it out. It speaks the
//! whole protocol but predicts nothing and stores no entities. It does not chat
//! either: the messages of 2,000 players to 2,000 are 33,000 a second, which no
//! other system of the comparison carries. Bots on the client core chat.

use std::collections::VecDeque;

use anyhow::{Result, bail};
use frolic_client::Pacing;
use frolic_protocol::message::BINARY_VERSION;
use frolic_protocol::snapshot;
use frolic_protocol::{ClientMessage, NumberedInput, ServerMessage, packet};
use frolic_sim::Vec3;
use frolic_sim::random::Random;

use super::frame::{self, Frame, FrameReader};
use super::upgrade::Upgrade;
use super::wire::{Eye, Seen};
use crate::behaviour::Behaviour;
use crate::door::Entry;
use crate::outcome::{Kind, Outcome};

/// Each message repeats this many of the newest inputs, as the client core does.
const REPEATED_INPUTS: usize = 6;
const PING_INTERVAL_MS: f64 = 1000.0;
/// A player who has not joined by then fails.
const JOIN_PATIENCE_MS: f64 = 30_000.0;

/// A player without a world of its own.
pub struct Player {
    began_ms: f64,
    stage: Stage,
    frames: FrameReader,
    behaviour: Behaviour,
    masks: Random,
    pacing: Pacing,
    step_s: f64,
    /// The newest inputs, oldest first.
    inputs: VecDeque<NumberedInput>,
    next_seq: u32,
    feet: Option<Vec3>,
    snapshot: Option<Arrived>,
    /// Messages that the server counts.
    received: u32,
    next_ping_ms: f64,
    measured_from_ms: Option<f64>,
    update_ms: f64,
    outcome: Outcome,
    /// Bytes for the socket.
    pub out: Vec<u8>,
}

enum Stage {
    /// HTTP has not become WebSocket yet; then the handshake goes out.
    Upgrading(Box<(Upgrade, ClientMessage)>),
    /// Waits for the welcome.
    Knocking,
    /// Is in.
    Inside,
}

/// The newest snapshot.
struct Arrived {
    tick: u32,
    at_ms: f64,
}

impl Player {
    /// A player that wants to go in; `began_ms` is when it asked for the way.
    ///
    /// # Errors
    /// When the address is not one of a WebSocket.
    pub fn new(number: u32, entry: Entry, roam_m: Option<f32>, began_ms: f64) -> Result<Self> {
        let (out, upgrade) = Upgrade::request(&entry.address)?;
        let handshake = ClientMessage::Handshake {
            version: BINARY_VERSION,
            ticket: entry.ticket,
            resume_token: None,
            name: Some(format!("Bot {}", number + 1)),
            received: None,
        };
        let seed = u64::from(number) + 1;
        Ok(Self {
            began_ms,
            stage: Stage::Upgrading(Box::new((upgrade, handshake))),
            frames: FrameReader::default(),
            behaviour: Behaviour::new(seed, roam_m),
            masks: Random::new(!seed),
            pacing: Pacing::new(60),
            step_s: 1.0 / 60.0,
            inputs: VecDeque::with_capacity(REPEATED_INPUTS + 1),
            next_seq: 1,
            feet: None,
            snapshot: None,
            received: 0,
            next_ping_ms: 0.0,
            measured_from_ms: None,
            update_ms: 50.0,
            outcome: Outcome::new(Kind::Light),
            out,
        })
    }

    /// Whether it has seen the world.
    pub fn is_in(&self) -> bool {
        self.snapshot.is_some()
    }

    /// Takes in what its socket gave.
    ///
    /// # Errors
    /// When it cannot go on: what came makes no sense, or it was thrown out.
    pub fn receive(&mut self, eye: &Eye, bytes: &[u8], now_ms: f64) -> Result<()> {
        if let Stage::Upgrading(upgrading) = &mut self.stage {
            let Some(rest) = upgrading.0.answer(bytes)? else {
                return Ok(());
            };
            let handshake = packet::single(&upgrading.1);
            self.stage = Stage::Knocking;
            self.send(&handshake);
            return self.receive_frames(eye, &rest, now_ms);
        }
        self.receive_frames(eye, bytes, now_ms)
    }

    fn receive_frames(&mut self, eye: &Eye, bytes: &[u8], now_ms: f64) -> Result<()> {
        self.outcome.bytes_in += bytes.len() as u64;
        // Taken out for the time: handling a frame needs the rest of us.
        let mut frames = std::mem::take(&mut self.frames);
        let read = frames.feed(bytes, |frame| match frame {
            Frame::Binary(packet) => {
                let all = matches!(self.stage, Stage::Knocking);
                eye.look(packet, all, |message| self.handle(message, now_ms))
            }
            Frame::Ping(bytes) => {
                frame::write_pong(&mut self.out, bytes, self.masks.next_u32());
                Ok(())
            }
            Frame::Close(reason) => {
                let reason = String::from_utf8_lossy(reason.get(2..).unwrap_or_default());
                bail!("closed by the server: {reason}")
            }
            Frame::Other => Ok(()),
        });
        self.frames = frames;
        read
    }

    fn handle(&mut self, message: Seen, now_ms: f64) -> Result<()> {
        let message = match message {
            Seen::Snapshot(bytes) => return self.look_at(bytes, now_ms),
            Seen::Message(message) => *message,
            Seen::Counted => {
                self.received = self.received.wrapping_add(1);
                return Ok(());
            }
            Seen::Other => return Ok(()),
        };
        if message.is_counted() {
            self.received = self.received.wrapping_add(1);
        }
        match message {
            ServerMessage::Welcome(welcome) => {
                self.pacing = Pacing::new(welcome.tick_hz);
                self.step_s = 1.0 / f64::from(welcome.tick_hz.max(1));
                self.update_ms = 1000.0 / f64::from(welcome.snapshot_hz.max(1));
                self.stage = Stage::Inside;
            }
            ServerMessage::Pong { t, .. } => {
                let sample = (now_ms - t).max(0.0);
                let known = *self.outcome.rtt_ms.get_or_insert(sample);
                self.outcome.rtt_ms = Some(known + (sample - known) * 0.2);
            }
            ServerMessage::Kick { reason } => bail!("kicked: {reason}"),
            _ => {}
        }
        Ok(())
    }

    fn look_at(&mut self, bytes: &[u8], now_ms: f64) -> Result<()> {
        let header = snapshot::header(bytes)?;
        match &self.snapshot {
            // Another piece of the same update.
            Some(last) if last.tick == header.tick => return Ok(()),
            Some(last) if self.measured_from_ms.is_some() => {
                self.outcome.gaps_ms.push((now_ms - last.at_ms) as f32);
            }
            Some(_) => {}
            None => self.outcome.join_ms = now_ms - self.began_ms,
        }
        self.snapshot = Some(Arrived {
            tick: header.tick,
            at_ms: now_ms,
        });
        if let Some(own) = header.own {
            self.feet = Some(own.character.feet);
            let used = own.ack_seq.wrapping_add(u32::from(own.late_ticks));
            if used >= self.next_seq {
                // The server ran on without us: count on from there.
                self.next_seq = used.wrapping_add(1);
            }
            self.pacing.observe(own.queued_inputs, own.late_ticks);
        }
        Ok(())
    }

    /// One turn at the keys: appends to `out` what it says in it.
    ///
    /// # Errors
    /// When it has waited too long to get in.
    pub fn turn(&mut self, now_ms: f64) -> Result<()> {
        if !self.is_in() && now_ms - self.began_ms > JOIN_PATIENCE_MS {
            bail!("not in after {} s", JOIN_PATIENCE_MS / 1000.0);
        }
        if !matches!(self.stage, Stage::Inside) {
            return Ok(());
        }
        let mut said = Vec::with_capacity(128);
        let steps = self.pacing.steps_due(now_ms);
        if let Some(feet) = self.feet {
            for _ in 0..steps {
                let seq = self.next_seq;
                self.next_seq = seq.wrapping_add(1);
                // At each step's own time: who turns does it in every tick.
                let at_s = f64::from(seq) * self.step_s;
                let input = self.behaviour.input(at_s, feet);
                self.inputs.push_back(NumberedInput { seq, input });
            }
            let repeated = self.inputs.len().saturating_sub(REPEATED_INPUTS);
            self.inputs.drain(..repeated);
        }
        // Where turns are as frequent as ticks, now and then none is due and
        // two are the next time. The load stays even: the repeats go out alone.
        if !self.inputs.is_empty() {
            let message = ClientMessage::Inputs {
                // Only datagrams need it: a WebSocket delivers everything.
                ack: None,
                shown: None,
                inputs: self.inputs.iter().copied().collect(),
            };
            packet::write(&mut said, &message);
        }
        if now_ms >= self.next_ping_ms {
            self.next_ping_ms = now_ms + PING_INTERVAL_MS;
            packet::write(
                &mut said,
                &ClientMessage::Ping {
                    t: now_ms,
                    received: self.received,
                },
            );
        }
        if !said.is_empty() {
            self.send(&said);
        }
        Ok(())
    }

    fn send(&mut self, packet: &[u8]) {
        let before = self.out.len();
        frame::write_binary(&mut self.out, packet, self.masks.next_u32());
        self.outcome.messages_out += 1;
        self.outcome.bytes_out += (self.out.len() - before) as u64;
    }

    /// From now on it counts what it sees.
    pub fn measure(&mut self, now_ms: f64) {
        self.measured_from_ms = Some(now_ms);
        self.outcome.bytes_in = 0;
        self.outcome.bytes_out = 0;
        self.outcome.messages_out = 0;
    }

    /// Queues a leave message in `out`, and returns the figures.
    ///
    /// # Errors
    /// Fails when the player never joined.
    pub fn leave(mut self, now_ms: f64) -> Result<(Vec<u8>, Outcome)> {
        let Some(last) = &self.snapshot else {
            bail!("the run ended before the bot had joined");
        };
        if let Some(from_ms) = self.measured_from_ms {
            self.outcome.seconds = (now_ms - from_ms) / 1000.0;
            // A client that was left without updates would otherwise show no
            // gap at all. A shorter wait is not a gap yet.
            let open_ms = now_ms - last.at_ms.max(from_ms);
            if open_ms > 2.0 * self.update_ms {
                self.outcome.gaps_ms.push(open_ms as f32);
            }
        }
        let outcome = std::mem::replace(&mut self.outcome, Outcome::new(Kind::Light));
        self.send(&packet::single(&ClientMessage::Leave));
        frame::write_close(&mut self.out, self.masks.next_u32());
        Ok((self.out, outcome))
    }
}

#[cfg(test)]
mod tests;
