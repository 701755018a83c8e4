//! The world's thread: one loop over what clients say and what time it is.

mod handshake;
mod message;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::Bytes;
use frolic_protocol::ServerMessage;
use frolic_protocol::packet;
use frolic_script::LogLevel;
use frolic_world::{PlayerNumber, World};
use tokio::sync::mpsc;

use crate::admission::{Admission, Identity};
use crate::link::{Encoding, Inbound, LinkId};
use crate::metrics::Metrics;
use crate::recording::{self, Recording};
use crate::scripts::ScriptShelf;
use crate::session::Session;

/// A late server catches up by this many ticks; the rest is dropped (SIM-1).
const CATCH_UP_TICKS: u32 = 5;
/// Messages taken in per tick, of all clients together: a bound on the work,
/// far above what honest clients send.
const MESSAGES_PER_TICK: usize = 8 * 1024;
/// A connection without a handshake is closed after this.
const HANDSHAKE_S: u32 = 5;
/// A lost connection can be resumed for this long (NET-9).
const RESUME_S: u32 = 60;

/// What the host is made from.
pub struct HostSettings {
    /// The world's id.
    pub world_id: String,
    /// Its short code.
    pub room_code: String,
    /// SHA-256 of its package.
    pub revision: String,
    /// Snapshots per second.
    pub snapshot_hz: u32,
    /// Most players.
    pub players_max: u32,
    /// Stop after so many seconds without players; none: never.
    pub idle_stop_s: Option<u32>,
    /// SHA-256 and compressed text of the scene.
    pub scene: (String, Vec<u8>),
    /// The door.
    pub admission: Admission,
    /// Where the session is recorded.
    pub recording: Option<Recording>,
}

/// A player whose connection was lost, and may come back.
struct Lingering {
    number: PlayerNumber,
    until_tick: u32,
}

/// A world and everybody connected to it.
pub struct Host {
    world: World,
    settings: HostSettings,
    shelf: ScriptShelf,
    scene_packet: Bytes,
    sessions: BTreeMap<LinkId, Session>,
    identities: HashMap<PlayerNumber, Identity>,
    lingering: HashMap<String, Lingering>,
    inbox: mpsc::Receiver<Inbound>,
    metrics: Arc<Metrics>,
    started: Instant,
    draining: bool,
    empty_since_tick: u32,
}

impl Host {
    /// A world that waits for its first player.
    pub fn new(
        world: World,
        settings: HostSettings,
        inbox: mpsc::Receiver<Inbound>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let scene = ServerMessage::Scene {
            hash: settings.scene.0.clone(),
            zstd: settings.scene.1.clone(),
        };
        Self {
            shelf: ScriptShelf::new(&world, &settings.revision),
            scene_packet: packet::single(&scene).into(),
            world,
            settings,
            sessions: BTreeMap::new(),
            identities: HashMap::new(),
            lingering: HashMap::new(),
            inbox,
            metrics,
            started: Instant::now(),
            draining: false,
            empty_since_tick: 0,
        }
    }

    /// Runs until the world is to stop; returns why.
    pub fn run(mut self) -> String {
        let tick_hz = self.world.tick_hz();
        let step = Duration::from_secs(1) / tick_hz;
        let mut next = Instant::now() + step;
        loop {
            let now = Instant::now();
            if now < next {
                std::thread::sleep(next - now);
            } else if now - next > step * CATCH_UP_TICKS {
                let late = (now - next).as_micros() / step.as_micros().max(1);
                self.metrics.ticks_dropped.fetch_add(late as u64, Relaxed);
                next = now;
            }
            next += step;

            let began = Instant::now();
            if let Some(reason) = self.take_messages() {
                return self.stop(reason);
            }
            let report = self.world.step();
            recording::keep(&mut self.settings.recording, &mut self.world);
            self.metrics
                .script_bytes
                .store(report.scripts.memory_bytes as u64, Relaxed);
            self.metrics
                .script_us
                .store(report.scripts.last_tick_us, Relaxed);
            self.deliver_outbox();
            self.write_logs();
            if self.snapshot_is_due() {
                self.send_snapshots();
            }
            self.tend_sessions();
            self.metrics.tick.store(self.world.tick(), Relaxed);
            self.metrics.tick_took(began.elapsed());
            if let Some(reason) = self.reason_to_stop() {
                return self.stop(reason);
            }
        }
    }

    /// Takes in what waits; a reason means that the world is to stop.
    fn take_messages(&mut self) -> Option<String> {
        for _ in 0..MESSAGES_PER_TICK {
            match self.inbox.try_recv() {
                Ok(Inbound::Open {
                    link,
                    encoding,
                    ticket,
                    outbox,
                }) => {
                    let has_ticket = ticket.is_some();
                    let session = Session::new(encoding, ticket, outbox, self.world.tick());
                    self.sessions.insert(link, session);
                    if has_ticket && encoding == Encoding::Json {
                        // NET-12: a ticket in the address is the handshake.
                        self.handshake(link, None, None, None, None);
                    }
                }
                Ok(Inbound::Message { link, seq, message }) => self.message(link, seq, message),
                Ok(Inbound::Closed { link }) => self.closed(link),
                Ok(Inbound::Drain) => self.draining = true,
                Ok(Inbound::Stop { reason }) => return Some(reason),
                Err(_) => break,
            }
        }
        None
    }

    fn closed(&mut self, link: LinkId) {
        let Some(session) = self.sessions.remove(&link) else {
            return;
        };
        let Some(player) = session.player else {
            return;
        };
        let until_tick = self.world.tick() + RESUME_S * self.world.tick_hz();
        let lingering = Lingering {
            number: player.number,
            until_tick,
        };
        self.lingering.insert(player.resume_token, lingering);
        self.note_players();
    }

    /// Takes a player out of the world for good.
    fn part(&mut self, number: PlayerNumber) {
        self.identities.remove(&number);
        self.world.leave(number);
        self.note_players();
    }

    fn note_players(&mut self) {
        let players = self
            .sessions
            .values()
            .filter(|s| s.player.is_some())
            .count();
        self.metrics.players.store(players as u32, Relaxed);
        self.empty_since_tick = self.world.tick();
    }

    fn deliver_outbox(&mut self) {
        for outgoing in self.world.take_outbox() {
            for session in self.sessions.values_mut() {
                let Some(player) = &session.player else {
                    continue;
                };
                let wanted = outgoing.to.is_none_or(|to| to == player.number);
                if wanted && (outgoing.reliable || !session.is_slow()) {
                    session.tell(&outgoing.message);
                }
            }
        }
    }

    fn write_logs(&mut self) {
        for line in self.world.take_logs() {
            let place = line
                .line
                .map_or(line.script.clone(), |n| format!("{}:{n}", line.script));
            match line.level {
                LogLevel::Info => tracing::info!(target: "script", "{place}: {}", line.message),
                LogLevel::Warn => tracing::warn!(target: "script", "{place}: {}", line.message),
                LogLevel::Error => {
                    self.metrics.script_errors.fetch_add(1, Relaxed);
                    let source = line.source_line.unwrap_or_default();
                    tracing::error!(target: "script", revision = %self.settings.revision, "{place}: {}\n    {source}\n{}", line.message, line.traceback);
                }
            }
        }
    }

    fn send_snapshots(&mut self) {
        let mut sight = self.world.sight();
        for session in self.sessions.values_mut() {
            if session.is_slow() {
                self.metrics.snapshots_skipped.fetch_add(1, Relaxed);
                continue;
            }
            let Some(player) = &mut session.player else {
                continue;
            };
            match session.encoding {
                Encoding::Binary => {
                    let bytes = player.view.binary_snapshot(&self.world, &mut sight);
                    session.tell_snapshot(bytes);
                }
                Encoding::Json => {
                    let text = player.view.json_snapshot(&self.world, &mut sight);
                    session.tell_text(text);
                }
            }
        }
    }

    /// Sends what gathered, and lets go of whoever is lost or late.
    fn tend_sessions(&mut self) {
        let tick = self.world.tick();
        let patience = HANDSHAKE_S * self.world.tick_hz();
        let mut lost = Vec::new();
        for (link, session) in &mut self.sessions {
            if session.player.is_none() && tick.saturating_sub(session.opened_tick) == patience {
                session.kick("no handshake came; send one within five seconds");
            }
            session.flush();
            if session.is_lost() {
                lost.push(*link);
            }
        }
        for link in lost {
            self.closed(link);
        }
        let over: Vec<String> = self
            .lingering
            .iter()
            .filter(|(_, lingering)| lingering.until_tick <= tick)
            .map(|(token, _)| token.clone())
            .collect();
        for token in over {
            if let Some(lingering) = self.lingering.remove(&token) {
                self.part(lingering.number);
            }
        }
    }

    fn reason_to_stop(&self) -> Option<String> {
        if self
            .sessions
            .values()
            .any(|session| session.player.is_some())
        {
            return None;
        }
        if self.draining {
            return Some("drained".into());
        }
        let empty_ticks = self.world.tick().saturating_sub(self.empty_since_tick);
        let idle_stop_s = self.settings.idle_stop_s?;
        (empty_ticks > idle_stop_s.saturating_mul(self.world.tick_hz()))
            .then(|| format!("nobody was here for {idle_stop_s} s"))
    }

    fn stop(mut self, reason: String) -> String {
        recording::finish(&mut self.settings.recording, &mut self.world);
        for session in self.sessions.values_mut() {
            session.kick(&reason);
            session.flush();
        }
        reason
    }

    /// Snapshots per second; not more than there are ticks.
    fn snapshot_hz(&self) -> u32 {
        self.settings.snapshot_hz.clamp(1, self.world.tick_hz())
    }

    /// Spreads snapshots evenly over the ticks, also where one rate is not a
    /// multiple of the other.
    fn snapshot_is_due(&self) -> bool {
        let (tick, tick_hz) = (
            u64::from(self.world.tick()),
            u64::from(self.world.tick_hz()),
        );
        let sent_by = |tick: u64| tick * u64::from(self.snapshot_hz()) / tick_hz;
        sent_by(tick) != sent_by(tick.saturating_sub(1))
    }

    fn server_time_ms(&self) -> f64 {
        self.started.elapsed().as_secs_f64() * 1000.0
    }
}
