//! The client itself: messages in, messages out, one step at a time.

mod queries;
mod scripting;
mod sending;
mod terrain;
#[cfg(test)]
mod tests;
mod world;

pub use queries::{KnownEntity, Queries, RayQuery};

use std::collections::{BTreeSet, VecDeque};

use frolic_protocol::fragment::{Assembler, Fragment};
use frolic_protocol::message::BINARY_VERSION;
use frolic_protocol::packet::{self, PacketError, SERVER_MESSAGE_BYTES_MAX, StreamReader};
use frolic_protocol::{ClientMessage, Inputs, PacketAck, ServerMessage, Shown, Welcome};
use frolic_sim::{CharacterInput, CharacterState, Meshes, Vec3};

use crate::event::ClientEvent;
use crate::liveness::{Liveness, Silence};
use crate::outbox::Outbox;
use crate::pacing::Pacing;
use crate::playback::{Drawn, DrawnKind, OwnFrame, Playback};
use crate::players::{Arrivals, Players};
use crate::prediction::Prediction;
use crate::reliable::ReliableChannel;
use crate::replication::Replication;
use crate::scene::ClientScene;
use crate::scripts::Scripts;
use crate::shots::{DrawnShot, Now, Shots};
use crate::stats::{Meter, Stats};

const PING_INTERVAL_MS: f64 = 1000.0;
/// No world ticks more often; larger values are clamped.
const TICK_HZ_MAX: u32 = 240;
/// Ping interval until the first answer: a ping may be lost, and the round trip is
/// needed from the start.
const FIRST_PINGS_INTERVAL_MS: f64 = 200.0;
/// With this many unhandled events nothing more is received.
const EVENTS_MAX: usize = 4096;
/// With this many, transient events are dropped.
const EVENTS_IN_PASSING_MAX: usize = 1024;

/// The connection cannot be used any further.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server sent an invalid packet.
    #[error("the server sent something unreadable: {0}")]
    Packet(#[from] PacketError),
    /// The host does not take its events. This packet was not applied; reliable
    /// messages in it are sent again on the next connection.
    #[error("{EVENTS_MAX} events wait to be taken")]
    Backlog,
}

/// A client of one world.
#[derive(Default)]
pub struct Client {
    joined: Option<Joined>,
    scene: ClientScene,
    scene_ready: bool,
    /// Meshes that arrived and wait for the scene.
    meshes: Meshes,
    scripts: Scripts,
    players: Players,
    input: CharacterInput,
    stream: StreamReader,
    channel: ReliableChannel,
    assembler: Assembler,
    reliable: Outbox,
    datagrams: VecDeque<Vec<u8>>,
    events: VecDeque<ClientEvent>,
    /// Entities removed since the host last asked; some may be back.
    removed: BTreeSet<u32>,
    drawn: Vec<Drawn>,
    shots: Shots,
    /// The own character is dead: it neither walks nor fires.
    dead: bool,
    traffic: Traffic,
    /// Of all messages about scripts, both ways.
    script_bytes: u64,
    /// Of the newest snapshot.
    script_version: u32,
    /// The server had too much to send, and skipped some scripts.
    scripts_stalled: bool,
    rtt_ms: Option<f64>,
    next_ping_ms: f64,
    last_snapshot_ms: Option<f64>,
    silence: Silence,
}

/// The bytes that were transferred.
#[derive(Default)]
struct Traffic {
    received: Meter,
    sent: Meter,
}

/// State that exists from the welcome on.
struct Joined {
    welcome: Welcome,
    pacing: Pacing,
    playback: Playback,
    prediction: Prediction,
    replication: Replication,
    /// The last acknowledgement that was sent while there were no inputs to carry
    /// it.
    acknowledged: Option<PacketAck>,
    /// When the welcome arrived.
    welcomed_ms: f64,
    /// The latest world time that was returned.
    world_time_s: f64,
}

impl Client {
    /// A client that has not sent anything yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Queues the handshake. After [`Client::take_over`] it names the session to
    /// resume; the given token is for callers that have only that.
    pub fn handshake(
        &mut self,
        ticket: Option<String>,
        resume_token: Option<String>,
        name: Option<String>,
    ) {
        let known = self.channel.token().cloned();
        let received = known.is_some().then(|| self.channel.received());
        self.send(&ClientMessage::Handshake {
            version: BINARY_VERSION,
            ticket,
            resume_token: known.or(resume_token),
            name,
            received,
        });
    }

    /// The newest token that resumes this session; none before the welcome.
    pub fn resume_token(&self) -> Option<&str> {
        self.channel.token().map(String::as_str)
    }

    /// Resumes the session of a client whose connection is lost: its received and
    /// unsent messages, and its resume token. Call it before the handshake.
    pub fn take_over(&mut self, old: &mut Client) {
        self.channel = std::mem::take(&mut old.channel);
        self.channel.hang_up();
        self.scripts.take_over(&mut old.scripts);
        // Counted as received, so they are not sent again.
        self.events.extend(old.events.drain(..).filter(is_counted));
    }

    /// Drops the connection and retains the session, for the next handshake.
    pub fn reconnect(&mut self) {
        let mut fresh = Self::default();
        fresh.take_over(self);
        fresh.input = self.input;
        *self = fresh;
    }

    /// Receives a whole packet: a datagram or a WebSocket message.
    ///
    /// # Errors
    /// When it cannot be decoded or the event queue is full; the connection should
    /// be closed, unless it was a datagram.
    pub fn receive(&mut self, packet: &[u8], now_ms: f64) -> Result<(), ClientError> {
        self.check_room()?;
        self.silence.received();
        self.traffic.received.add(packet.len());
        for message in packet::read(packet, SERVER_MESSAGE_BYTES_MAX)? {
            self.handle(message, now_ms);
        }
        Ok(())
    }

    /// Receives the next bytes of the reliable stream.
    ///
    /// # Errors
    /// When they cannot be decoded or the event queue is full; the connection
    /// should be closed.
    pub fn receive_stream(&mut self, bytes: &[u8], now_ms: f64) -> Result<(), ClientError> {
        self.check_room()?;
        self.silence.received();
        self.traffic.received.add(bytes.len());
        for message in self.stream.push(bytes, SERVER_MESSAGE_BYTES_MAX)? {
            self.handle(message, now_ms);
        }
        Ok(())
    }

    /// Between packets, not within them: a host that takes its events after each
    /// packet never gets here, however many events one has.
    fn check_room(&self) -> Result<(), ClientError> {
        match self.events.len() < EVENTS_MAX {
            true => Ok(()),
            false => Err(ClientError::Backlog),
        }
    }

    fn handle(&mut self, message: ServerMessage, now_ms: f64) {
        if message.is_counted() {
            self.channel.note_received();
        }
        self.count_script_bytes(&message);
        match message {
            ServerMessage::Welcome(welcome) => self.welcome(*welcome, now_ms),
            ServerMessage::Scene { hash, zstd } => self.load_scene(&hash, &zstd),
            ServerMessage::Definition { index, components } => self.define(index, &components),
            ServerMessage::Snapshot(bytes) => self.snapshot(&bytes, now_ms),
            ServerMessage::Fragment(fragment) => self.fragment(fragment, now_ms),
            ServerMessage::Presence(players) => {
                for gone in players.iter().filter(|player| player.left) {
                    self.shots.arm(gone.number, None);
                }
                let Arrivals { joined, left } = self.players.apply(players.clone());
                self.emit(ClientEvent::Players {
                    changed: players,
                    joined,
                    left,
                });
            }
            ServerMessage::Pong { t, received, .. } => {
                self.channel.confirmed(received);
                let sample = (now_ms - t).max(0.0);
                let known = *self.rtt_ms.get_or_insert(sample);
                self.rtt_ms = Some(known + (sample - known) * 0.2);
            }
            ServerMessage::Error { code, message } => {
                self.scripts_stalled |= code == "slow_reader";
                self.emit(ClientEvent::Error { code, message });
            }
            ServerMessage::Kick { reason } => self.emit(ClientEvent::Kick { reason }),
            ServerMessage::Event { name, args } => self.emit(ClientEvent::Remote { name, args }),
            ServerMessage::UnreliableEvent { name, args } => {
                self.mention(ClientEvent::Remote { name, args });
            }
            ServerMessage::InvokeResult { id, result } => {
                self.emit(ClientEvent::InvokeResult { id, result });
            }
            ServerMessage::Chat {
                from,
                text,
                player_id,
            } => self.emit(ClientEvent::Chat {
                from,
                text,
                player_id,
            }),
            ServerMessage::ScriptManifest(manifest) => self.announced(manifest),
            ServerMessage::ScriptChunk(chunk) => self.script_chunk(chunk),
            ServerMessage::ExecuteScript { path, run_context } => {
                self.run_script(path, run_context);
            }
            ServerMessage::ResumeToken { token } => self.channel.set_token(token),
            ServerMessage::Saving { delayed } => self.emit(ClientEvent::Saving { delayed }),
            ServerMessage::Figures(figures) => self.mention(ClientEvent::Figures(figures)),
            ServerMessage::LogsWanted { prints } => self.emit(ClientEvent::LogsWanted { prints }),
            ServerMessage::Cast(cast) => self.emit(ClientEvent::Cast(cast)),
            ServerMessage::Weapon(weapon) => {
                let event = self.shots.define(weapon);
                event.into_iter().for_each(|event| self.emit(event));
            }
            ServerMessage::Armed { player, weapon } => {
                let event = self.shots.arm(player, weapon);
                self.emit(event);
            }
            ServerMessage::ProjectileLaunch(launches) => self.shots.launched(launches),
            ServerMessage::ProjectileHit(hits) => {
                let own = self.joined.as_ref().map_or(0, |j| j.welcome.entity_id);
                let events = self.shots.ended(hits, own);
                events.into_iter().for_each(|event| self.mention(event));
            }
            ServerMessage::Vitals(vitals) => {
                self.dead = !vitals.alive;
                self.emit(ClientEvent::Vitals(vitals));
            }
            ServerMessage::Facing { yaw } => self.emit(ClientEvent::Facing { yaw: yaw.radians() }),
            ServerMessage::Npc(event) => self.mention(ClientEvent::Npc(event)),
            ServerMessage::TerraformApplied(applied) => self.terraformed(applied),
            ServerMessage::ChunkData(chunk) => self.chunk(chunk),
            ServerMessage::Mesh { asset, zstd } => self.learn_mesh(asset, &zstd),
            ServerMessage::Character(params) => {
                if let Some(joined) = &mut self.joined {
                    joined.welcome.character = params;
                    joined.prediction.set_params(params);
                }
            }
        }
    }

    fn fragment(&mut self, fragment: Fragment, now_ms: f64) {
        let Some(packet) = self.assembler.push(fragment) else {
            return;
        };
        let Ok(messages) = packet::read(&packet, SERVER_MESSAGE_BYTES_MAX) else {
            return self.trouble("bad_fragments", "parts of different packets".into());
        };
        for message in messages {
            // Nested fragments are ignored.
            if !matches!(message, ServerMessage::Fragment(_)) {
                self.handle(message, now_ms);
            }
        }
    }

    fn welcome(&mut self, mut welcome: Welcome, now_ms: f64) {
        welcome.tick_hz = welcome.tick_hz.clamp(1, TICK_HZ_MAX);
        welcome.snapshot_hz = welcome.snapshot_hz.clamp(1, welcome.tick_hz);
        self.shots = Shots::default();
        self.players = Players::default();
        self.dead = false;
        self.joined = Some(Joined {
            pacing: Pacing::new(welcome.tick_hz),
            playback: Playback::new(welcome.tick_hz, welcome.snapshot_hz),
            prediction: Prediction::new(welcome.character, welcome.tick_hz),
            replication: Replication::new(welcome.tick_hz, welcome.snapshot_hz),
            acknowledged: None,
            welcomed_ms: now_ms,
            world_time_s: 0.0,
            welcome: welcome.clone(),
        });
        let lost = self.channel.welcome(&welcome);
        self.emit(ClientEvent::Welcome(Box::new(welcome)));
        if lost > 0 {
            let text = format!("{lost} messages were lost with the connection");
            self.trouble("messages_lost", text);
        }
        self.talk_on();
    }

    /// Queues an event that must reach the host: it is never dropped.
    fn emit(&mut self, event: ClientEvent) {
        self.events.push_back(event);
    }

    /// Queues a transient event, which is dropped when the host is behind.
    fn mention(&mut self, event: ClientEvent) {
        if self.events.len() < EVENTS_IN_PASSING_MAX {
            self.emit(event);
        }
    }

    fn trouble(&mut self, code: &str, message: String) {
        if self.events.len() < EVENTS_MAX {
            self.emit(ClientEvent::Error {
                code: code.to_owned(),
                message,
            });
        }
    }

    /// Sets the held input from now on.
    pub fn set_input(&mut self, input: CharacterInput) {
        self.input = input;
    }

    /// Runs the steps that are due and queues inputs and pings.
    pub fn advance(&mut self, now_ms: f64) {
        self.traffic.received.roll(now_ms);
        self.traffic.sent.roll(now_ms);
        self.silence.advance(now_ms);
        let Some(joined) = &mut self.joined else {
            return;
        };
        let steps = joined.pacing.steps_due(now_ms);
        if self.silence.stalled_at_ms().is_some() {
            // These steps would never be shown: the character waits where it is.
            joined.prediction.rest();
        } else if self.scene_ready && joined.replication.newest_own().is_some() {
            let input = match self.dead {
                true => self.input.at_rest(),
                false => self.input,
            };
            for _ in 0..steps {
                joined.prediction.step(&mut self.scene, input);
                let feet = joined.prediction.state().feet;
                let (player, entity) = (joined.welcome.player_number, joined.welcome.entity_id);
                let step = joined.prediction.last_step();
                self.shots.own_step(player, entity, step, &input, feet);
            }
            if steps > 0 {
                let message = ClientMessage::Inputs {
                    ack: joined.replication.ack(),
                    shown: Some(joined.playback.shown()),
                    inputs: joined.prediction.newest_inputs(steps),
                };
                self.send(&message);
            }
        } else {
            self.acknowledge();
        }
        if now_ms >= self.next_ping_ms {
            let known = self.rtt_ms.map(|_| PING_INTERVAL_MS);
            self.next_ping_ms = now_ms + known.unwrap_or(FIRST_PINGS_INTERVAL_MS);
            if std::mem::take(&mut self.scripts_stalled) {
                self.request_missing_scripts();
            }
            self.send(&ClientMessage::Ping {
                t: now_ms,
                received: self.channel.received(),
            });
            self.report(now_ms);
        }
        self.channel.refill(now_ms);
        self.talk_on();
    }

    /// Acknowledges packets while there is no scene to move through yet: otherwise
    /// all of them would be sent again and again, beside a large scene.
    fn acknowledge(&mut self) {
        let Some(joined) = &mut self.joined else {
            return;
        };
        let ack = joined.replication.ack();
        if std::mem::replace(&mut joined.acknowledged, ack) != ack {
            self.send(&ClientMessage::Inputs {
                ack,
                shown: None,
                inputs: Inputs::default(),
            });
        }
    }

    /// The next event for the host.
    pub fn take_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// The welcome, once there was one.
    pub fn welcomed(&self) -> Option<&Welcome> {
        self.joined.as_ref().map(|joined| &joined.welcome)
    }

    /// The own character as predicted.
    pub fn own_state(&self) -> Option<&CharacterState> {
        let joined = self.joined.as_ref()?;
        joined.replication.newest_own()?;
        Some(joined.prediction.state())
    }

    /// Everything that moves, ready to draw; the own character last.
    pub fn frame(&mut self, now_ms: f64) -> &[Drawn] {
        self.drawn.clear();
        let Some(joined) = &mut self.joined else {
            return &self.drawn;
        };
        if joined.replication.newest_own().is_none() {
            return &self.drawn;
        }
        let own_id = joined.welcome.entity_id;
        let mut own = *joined.prediction.state();
        let stalled_at_ms = self.silence.stalled_at_ms();
        // While no snapshots arrive, the world is frozen.
        let now_ms = stalled_at_ms.unwrap_or(now_ms);
        let fraction = match stalled_at_ms {
            Some(_) => 1.0,
            None => joined.pacing.fraction(now_ms),
        };
        if stalled_at_ms.is_some() {
            own.velocity = Vec3::ZERO;
        }
        let own_frame = OwnFrame {
            id: own_id,
            tick: joined.prediction.shown_tick(fraction),
            ground: own.ground,
            ground_error: joined.prediction.ground_error(),
            pushed: joined.prediction.pushed(),
        };
        let replication = &mut joined.replication;
        joined
            .playback
            .frame(replication, now_ms, &own_frame, &mut self.drawn);
        for drawn in &mut self.drawn {
            self.scene.draw_at_home(drawn);
        }
        let input = joined.prediction.newest_input();
        self.drawn.push(Drawn {
            id: own_id,
            kind: DrawnKind::Character,
            definition: 0,
            grounded: own.grounded(),
            dead: self.dead,
            own: true,
            position: joined.prediction.shown(fraction),
            rotation: frolic_sim::Rotation::IDENTITY,
            velocity: own.velocity,
            yaw: input.yaw.radians(),
            pitch: input.pitch.radians(),
            mood: Default::default(),
        });
        let now = Now {
            own_tick: own_frame.tick,
            others_tick: joined.playback.shown_tick(),
        };
        let dt = 1.0 / joined.welcome.tick_hz.max(1) as f32;
        let character = (own_id, &joined.welcome.character);
        let solids = &self.scene.collision;
        let events = self.shots.advance(now, dt, character, solids, &self.drawn);
        for event in events {
            self.mention(event);
        }
        &self.drawn
    }

    /// Shots in flight, as of the last [`Client::frame`].
    pub fn shots(&self) -> &[DrawnShot] {
        self.shots.drawn()
    }

    /// The moment at which the last frame showed other entities.
    pub fn shown(&self) -> Option<Shown> {
        Some(self.joined.as_ref()?.playback.shown())
    }

    /// Whether the server is still responding.
    pub fn liveness(&self) -> Liveness {
        self.silence.liveness()
    }

    /// Seconds since the world started, by the server's clock; zero before the
    /// welcome. Never decreases.
    pub fn world_time_s(&mut self, now_ms: f64) -> f64 {
        let Some(joined) = &mut self.joined else {
            return 0.0;
        };
        let time_s = joined.playback.server_time_s(now_ms).unwrap_or_else(|| {
            let welcome = &joined.welcome;
            let then_s = f64::from(welcome.tick) / f64::from(welcome.tick_hz);
            then_s + (now_ms - joined.welcomed_ms) / 1000.0
        });
        joined.world_time_s = joined.world_time_s.max(time_s);
        joined.world_time_s
    }

    /// Statistics for the overlay.
    pub fn stats(&self, now_ms: f64) -> Stats {
        let mut stats = Stats {
            rtt_ms: self.rtt_ms,
            bytes_in_per_s: self.traffic.received.per_s,
            bytes_out_per_s: self.traffic.sent.per_s,
            bytes_in: self.traffic.received.total,
            script_bytes: self.script_bytes,
            script_version: self.script_version,
            snapshot_age_ms: self.last_snapshot_ms.map(|at| now_ms - at),
            ..Stats::default()
        };
        if let Some(joined) = &self.joined {
            let replication = &joined.replication;
            stats.tick = replication.newest_tick().unwrap_or(0);
            stats.entities = replication.entities();
            stats.snapshots = replication.received;
            let lost = replication.expected.saturating_sub(replication.received);
            stats.loss = f64::from(lost) / f64::from(replication.expected.max(1));
            stats.jitter_ms = joined.playback.jitter_ms();
            stats.playback_delay_ms = joined.playback.delay_s() * 1000.0;
            stats.input_seq = joined.prediction.last_seq();
            stats.pending_inputs = joined.prediction.pending_count();
            stats.corrections = joined.prediction.corrections;
            stats.last_correction_m = joined.prediction.last_correction_m;
        }
        stats
    }
}

/// Whether an event comes from a reliable message, which is sent only once.
fn is_counted(event: &ClientEvent) -> bool {
    matches!(
        event,
        ClientEvent::Remote { .. } | ClientEvent::InvokeResult { .. } | ClientEvent::Chat { .. }
    )
}
