//! The client itself: messages in, messages out, one step at a time.

#[cfg(test)]
pub(crate) mod tests;

use frolic_protocol::message::{BINARY_VERSION, ConnectionReport};
use frolic_protocol::packet::PacketError;
use frolic_protocol::terrain::TerrainOp;
use frolic_protocol::{Args, ClientMessage, ServerMessage, Shown, Welcome};
use frolic_sim::{CharacterInput, CharacterState};

use crate::connection::Connection;
use crate::drawn::Drawn;
use crate::event::ClientEvent;
use crate::joined::Joined;
use crate::liveness::Liveness;
use crate::output::{EVENTS_MAX, Output};
use crate::parts::PartChanges;
use crate::queries::Queries;
use crate::replica::Replica;
use crate::scripting::ClientScripts;
use crate::scripts::Scripts;
use crate::shots::DrawnShot;
use crate::stats::Stats;

/// No world ticks more often; larger values are clamped.
const TICK_HZ_MAX: u32 = 240;

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
    connection: Connection,
    output: Output,
    scripts: Scripts,
    replica: Replica,
    joined: Option<Joined>,
    input: CharacterInput,
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
        let channel = &self.output.channel;
        let known = channel.token().cloned();
        let received = known.is_some().then(|| channel.received());
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
        self.output.channel.token().map(String::as_str)
    }

    /// Resumes the session of a client whose connection is lost: its received and
    /// unsent messages, and its resume token. Call it before the handshake.
    pub fn take_over(&mut self, old: &mut Client) {
        self.output.take_over(&mut old.output);
        self.scripts.take_over(&mut old.scripts);
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
        let messages = self.connection.packet(packet)?;
        self.handle_all(messages, now_ms);
        Ok(())
    }

    /// Receives the next bytes of the reliable stream.
    ///
    /// # Errors
    /// When they cannot be decoded or the event queue is full; the connection
    /// should be closed.
    pub fn receive_stream(&mut self, bytes: &[u8], now_ms: f64) -> Result<(), ClientError> {
        self.check_room()?;
        let messages = self.connection.stream(bytes)?;
        self.handle_all(messages, now_ms);
        Ok(())
    }

    /// Between packets, not within them: a host that takes its events after each
    /// packet never gets here, however many events one has.
    fn check_room(&self) -> Result<(), ClientError> {
        match self.output.has_room() {
            true => Ok(()),
            false => Err(ClientError::Backlog),
        }
    }

    fn handle_all(&mut self, messages: Vec<ServerMessage>, now_ms: f64) {
        for message in messages {
            self.handle(message, now_ms);
        }
    }

    fn handle(&mut self, message: ServerMessage, now_ms: f64) {
        if message.is_counted() {
            self.output.channel.note_received();
        }
        self.scripts().count(&message);
        let output = &mut self.output;
        match message {
            ServerMessage::Welcome(welcome) => self.welcome(*welcome, now_ms),
            ServerMessage::Snapshot(bytes) => self.snapshot(&bytes, now_ms),
            ServerMessage::Fragment(fragment) => match self.connection.fragment(fragment) {
                Ok(mut messages) => {
                    // Nested fragments are ignored.
                    messages.retain(|message| !matches!(message, ServerMessage::Fragment(_)));
                    self.handle_all(messages, now_ms);
                }
                Err(_) => output.trouble("bad_fragments", "parts of different packets".into()),
            },
            ServerMessage::Scene { hash, zstd } => {
                let joined = self.joined.as_ref();
                let tick_hz = joined.map_or(60, |joined| joined.welcome().tick_hz);
                self.replica.load_scene(&hash, &zstd, tick_hz, output);
            }
            ServerMessage::Definition { index, components } => {
                self.replica.define(index, &components, output);
            }
            ServerMessage::Mesh { asset, zstd } => self.replica.learn_mesh(asset, &zstd, output),
            ServerMessage::TerraformApplied(applied) => self.replica.terraformed(applied, output),
            ServerMessage::ChunkData(chunk) => self.replica.chunk(chunk, output),
            about_the_game @ (ServerMessage::Presence(_)
            | ServerMessage::Weapon(_)
            | ServerMessage::Armed { .. }
            | ServerMessage::ProjectileLaunch(_)
            | ServerMessage::ProjectileHit(_)
            | ServerMessage::Vitals(_)
            | ServerMessage::Character(_)) => {
                if let Some(joined) = &mut self.joined {
                    joined.handle(about_the_game, output);
                }
            }
            ServerMessage::ScriptManifest(manifest) => self.scripts().announced(manifest),
            ServerMessage::ScriptChunk(chunk) => self.scripts().chunk(chunk),
            ServerMessage::ExecuteScript { path, run_context } => {
                self.scripts().run(path, run_context);
            }
            ServerMessage::Pong { t, received, .. } => {
                output.channel.confirmed(received);
                self.connection.pong(t, now_ms);
            }
            ServerMessage::ResumeToken { token } => output.channel.set_token(token),
            ServerMessage::Error { code, message } => {
                self.scripts.stalled |= code == "slow_reader";
                output.emit(ClientEvent::Error { code, message });
            }
            ServerMessage::Kick { reason } => output.emit(ClientEvent::Kick { reason }),
            ServerMessage::Event { name, args } => output.emit(ClientEvent::Remote { name, args }),
            ServerMessage::UnreliableEvent { name, args } => {
                output.mention(ClientEvent::Remote { name, args });
            }
            ServerMessage::InvokeResult { id, result } => {
                output.emit(ClientEvent::InvokeResult { id, result });
            }
            ServerMessage::Chat {
                from,
                text,
                player_id,
            } => output.emit(ClientEvent::Chat {
                from,
                text,
                player_id,
            }),
            ServerMessage::Saving { delayed } => output.emit(ClientEvent::Saving { delayed }),
            ServerMessage::Figures(figures) => output.mention(ClientEvent::Figures(figures)),
            ServerMessage::LogsWanted { prints } => output.emit(ClientEvent::LogsWanted { prints }),
            ServerMessage::Cast(cast) => output.emit(ClientEvent::Cast(cast)),
            ServerMessage::Facing { yaw } => {
                output.emit(ClientEvent::Facing { yaw: yaw.radians() });
            }
            ServerMessage::Npc(event) => output.mention(ClientEvent::Npc(event)),
        }
    }

    fn welcome(&mut self, mut welcome: Welcome, now_ms: f64) {
        welcome.tick_hz = welcome.tick_hz.clamp(1, TICK_HZ_MAX);
        welcome.snapshot_hz = welcome.snapshot_hz.clamp(1, welcome.tick_hz);
        self.replica.restart(welcome.tick_hz, welcome.snapshot_hz);
        self.joined = Some(Joined::new(welcome.clone(), now_ms));
        let lost = self.output.channel.welcome(&welcome);
        self.output.emit(ClientEvent::Welcome(Box::new(welcome)));
        if lost > 0 {
            let text = format!("{lost} messages were lost with the connection");
            self.output.trouble("messages_lost", text);
        }
        self.output.flush();
    }

    fn snapshot(&mut self, bytes: &[u8], now_ms: f64) {
        let Some(joined) = &mut self.joined else {
            return;
        };
        let update = match self.replica.apply(bytes) {
            Ok(update) => update,
            Err(cause) => return self.output.trouble("bad_snapshot", cause.to_string()),
        };
        if let Some(own) = update.own {
            let after_stall = self.connection.snapshot(now_ms);
            joined.reconcile(&mut self.replica, (update.tick, &own), now_ms, after_stall);
        }
        joined.drop_drawn(&update.applied.removed);
        self.replica.settle(update.applied, &mut self.output);
    }

    /// Sets the held input from now on.
    pub fn set_input(&mut self, input: CharacterInput) {
        self.input = input;
    }

    /// Runs the steps that are due and queues inputs and pings.
    pub fn advance(&mut self, now_ms: f64) {
        self.connection.received.roll(now_ms);
        self.output.sent.roll(now_ms);
        self.connection.silence.advance(now_ms);
        let Some(joined) = &mut self.joined else {
            return;
        };
        let stalled = self.connection.silence.stalled_at_ms().is_some();
        if let Some(inputs) = joined.advance(&mut self.replica, self.input, now_ms, stalled) {
            self.send(&inputs);
        }
        if self.connection.is_ping_due(now_ms) {
            self.ping(now_ms);
        }
        self.output.channel.refill(now_ms);
        self.output.flush();
    }

    /// Pings the server, and reports the overlay's connection statistics to the
    /// operator of the world.
    fn ping(&mut self, now_ms: f64) {
        if std::mem::take(&mut self.scripts.stalled) {
            self.scripts().request_missing();
        }
        self.send(&ClientMessage::Ping {
            t: now_ms,
            received: self.output.channel.received(),
        });
        let stats = self.stats(now_ms);
        self.send(&ClientMessage::Report(ConnectionReport {
            input_seq: stats.input_seq,
            pending_inputs: stats.pending_inputs as u32,
            corrections: stats.corrections,
            snapshot_age_ms: stats.snapshot_age_ms.unwrap_or_default() as f32,
            jitter_ms: stats.jitter_ms as f32,
        }));
    }

    /// The next event for the host.
    pub fn take_event(&mut self) -> Option<ClientEvent> {
        self.output.take_event()
    }

    /// Queues any message. A reliable one is stored until the server has it, across
    /// connections. One that no server accepts is refused with an error event: it
    /// would close the connection, and again after every reconnect.
    pub fn send(&mut self, message: &ClientMessage) {
        self.output.send(message);
    }

    /// Queues `Network.FireServer`.
    pub fn fire_server(&mut self, name: String, args: Args) {
        self.send(&ClientMessage::Event { name, args });
    }

    /// Queues `Network.FireServerUnreliable`: one datagram, which is dropped here
    /// beyond the server's rate limit. What does not fit a datagram is sent
    /// reliably.
    pub fn fire_server_unreliable(&mut self, name: String, args: Args) {
        self.output.send_unreliable(name, args);
    }

    /// Queues a cast of a spell; `params` is one value.
    pub fn cast_spell(&mut self, spell_id: String, params: Args) {
        self.send(&ClientMessage::CastSpell {
            spell_id,
            revision_id: None,
            params,
        });
    }

    /// Asks the server to change the terrain.
    pub fn terraform(&mut self, op: TerrainOp) {
        self.send(&ClientMessage::Terraform(op));
    }

    /// Bytes for the reliable stream, or one WebSocket message. There may be more:
    /// call it until it returns none.
    pub fn take_reliable(&mut self) -> Option<Vec<u8>> {
        self.output.take_reliable()
    }

    /// One datagram, or one WebSocket message.
    pub fn take_datagram(&mut self) -> Option<Vec<u8>> {
        self.output.take_datagram()
    }

    /// For hosts with only a WebSocket: its next message, with as much of what is
    /// queued, reliable or not, as fits. There may be more: call it until it
    /// returns none.
    pub fn take_packet(&mut self) -> Option<Vec<u8>> {
        self.output.take_packet()
    }

    /// The scripts of the world: what to fetch, and what has arrived.
    pub fn scripts(&mut self) -> ClientScripts<'_> {
        ClientScripts::new(&mut self.scripts, &mut self.output)
    }

    /// The replicated world.
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// What scripts can ask of the replicated world, as of the last frame.
    pub fn queries(&self) -> Queries<'_> {
        Queries::new(&self.replica, self.joined.as_ref())
    }

    /// Entities removed since the last call that are not back, in order of ids.
    pub fn take_removed(&mut self) -> Vec<u32> {
        self.replica.take_removed()
    }

    /// The parts that appeared, changed or disappeared since the last call; at the
    /// first call after the scene arrived, all of them.
    pub fn take_part_changes(&mut self) -> PartChanges {
        self.replica.take_part_changes()
    }

    /// The welcome, once there was one.
    pub fn welcomed(&self) -> Option<&Welcome> {
        self.joined.as_ref().map(Joined::welcome)
    }

    /// The own character as predicted.
    pub fn own_state(&self) -> Option<&CharacterState> {
        self.replica.replication.newest_own()?;
        self.joined.as_ref().map(Joined::own_state)
    }

    /// Everything that moves, ready to draw; the own character last.
    pub fn frame(&mut self, now_ms: f64) -> &[Drawn] {
        let Some(joined) = &mut self.joined else {
            return &[];
        };
        let stalled_at_ms = self.connection.silence.stalled_at_ms();
        for event in joined.draw(&mut self.replica, now_ms, stalled_at_ms) {
            self.output.mention(event);
        }
        joined.drawn()
    }

    /// Shots in flight, as of the last [`Client::frame`].
    pub fn shots(&self) -> &[DrawnShot] {
        self.joined.as_ref().map_or(&[], Joined::shots)
    }

    /// The moment at which the last frame showed other entities.
    pub fn shown(&self) -> Option<Shown> {
        self.joined.as_ref().map(Joined::shown)
    }

    /// Whether the server is still responding.
    pub fn liveness(&self) -> Liveness {
        self.connection.silence.liveness()
    }

    /// Seconds since the world started, by the server's clock; zero before the
    /// welcome. Never decreases.
    pub fn world_time_s(&mut self, now_ms: f64) -> f64 {
        let joined = self.joined.as_mut();
        joined.map_or(0.0, |joined| joined.world_time_s(now_ms))
    }

    /// Statistics for the overlay.
    pub fn stats(&self, now_ms: f64) -> Stats {
        let (connection, replication) = (&self.connection, &self.replica.replication);
        let lost = replication.expected.saturating_sub(replication.received);
        let mut stats = Stats {
            rtt_ms: connection.rtt_ms,
            bytes_in_per_s: connection.received.per_s,
            bytes_out_per_s: self.output.sent.per_s,
            bytes_in: connection.received.total,
            script_bytes: self.scripts.bytes,
            script_version: self.replica.script_version,
            snapshot_age_ms: connection.last_snapshot_ms.map(|at| now_ms - at),
            tick: replication.newest_tick().unwrap_or(0),
            entities: replication.entities(),
            snapshots: replication.received,
            loss: f64::from(lost) / f64::from(replication.expected.max(1)),
            ..Stats::default()
        };
        if let Some(joined) = &self.joined {
            joined.fill_in(&mut stats);
        }
        stats
    }
}
