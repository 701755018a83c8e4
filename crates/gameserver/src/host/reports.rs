//! Reports of a running world: output and costs of scripts to the process log and
//! to the creator, events to subscribers outside of the world.

use std::sync::Arc;
use std::time::Instant;

use frolic_fleet_api::console::{ClientPrints, ConsoleLine};
use frolic_fleet_api::ops::LoggedOp;
use frolic_fleet_api::remote_commands::{NEWS_MAX, OutsideNews};
use frolic_protocol::ServerMessage;
use frolic_protocol::client_log::{ClientLog, ConsoleLevel};
use frolic_script::{LogLevel, log};
use frolic_world::{PlayerNumber, World};
use tokio::sync::mpsc;

use super::scripts::ScriptServer;
use crate::client_logs::{ClientLogs, Speaker};
use crate::console::{self, Console};
use crate::metrics::Metrics;
use crate::player_sessions::PlayerSessions;
use crate::recording::{self, Recording};
use crate::sessions::Sessions;

/// Reports of client scripts per second.
const CLIENT_REPORTS_HZ: u32 = 4;

/// Forwards what a world and its clients report.
pub(super) struct Reports {
    /// Output and costs of scripts, for the creator.
    console: Arc<Console>,
    /// Receives world events for subscribers outside of the world; none without a
    /// platform.
    news: Option<mpsc::Sender<OutsideNews>>,
    /// Output of client scripts since the last report.
    client_logs: ClientLogs,
    /// Which clients report their prints, as last sent to them.
    client_prints: Arc<ClientPrints>,
    /// The recording of the session, while there is one.
    recording: Option<Recording>,
    started: Instant,
}

impl Reports {
    /// Reports to these receivers.
    pub fn new(
        console: Arc<Console>,
        news: Option<mpsc::Sender<OutsideNews>>,
        recording: Option<Recording>,
    ) -> Self {
        Self {
            client_prints: console.client_prints(),
            console,
            news,
            client_logs: ClientLogs::default(),
            recording,
            started: Instant::now(),
        }
    }

    /// Records this tick.
    pub fn record(&mut self, world: &mut World) {
        recording::record(&mut self.recording, world);
    }

    /// The world stops: completes the recording.
    pub fn finish_recording(&mut self, world: &mut World) {
        recording::finish(&mut self.recording, world);
    }

    /// Forwards the script output of this tick, and once a second the costs.
    pub fn script_output(&self, world: &mut World, now: Instant, metrics: &Metrics) {
        if world.tick().is_multiple_of(world.tick_hz()) {
            self.console.measured(world.script_costs(), now);
        }
        for line in world.take_logs() {
            // Every line names the code it came from.
            let origin = line.origin.clone().unwrap_or_default();
            let hash = origin.hash.as_deref();
            let entry = console::line_of(line.clone(), world.tick(), &origin.revision, hash);
            self.console.say(entry);
            let place = line
                .line
                .map_or(line.script.clone(), |n| format!("{}:{n}", line.script));
            let message = &line.message;
            match line.level {
                LogLevel::Info => tracing::info!(target: "script", "{place}: {message} ({origin})"),
                LogLevel::Warn => tracing::warn!(target: "script", "{place}: {message} ({origin})"),
                LogLevel::Error => {
                    metrics.script_errors.add(1);
                    let source = line.source_line.unwrap_or_default();
                    let below = indented(&source, &line.traceback);
                    tracing::error!(target: "script", "{place}: {message} ({origin}){below}");
                }
            }
        }
    }

    /// Accepts output of a player's client scripts.
    pub fn client_output(
        &mut self,
        number: PlayerNumber,
        player_id: &str,
        log: ClientLog,
        scripts: &ScriptServer,
        revision: &str,
    ) {
        let now_s = self.started.elapsed().as_secs_f64();
        let prints = self.console.client_prints();
        let speaker = Speaker { number, player_id };
        let known = |path: &str| scripts.has(path);
        self.client_logs
            .take(speaker, log, &prints, revision, known, now_s);
    }

    /// Forwards output of client scripts a few times a second, and notifies clients
    /// when the request for their prints has changed.
    pub fn forward_client_output(
        &mut self,
        world: &World,
        sessions: &mut Sessions,
        players: &PlayerSessions,
    ) {
        let every = (world.tick_hz() / CLIENT_REPORTS_HZ).max(1);
        if !world.tick().is_multiple_of(every) {
            return;
        }
        self.send_logs_wanted(sessions, players);
        let now_s = self.started.elapsed().as_secs_f64();
        let origin =
            |path: &str, line: u32| (world.source_line(path, line), world.script_hash(path));
        let (lines, dropped) = self.client_logs.report(world.tick(), now_s, origin);
        for line in lines {
            print_client_line(&line);
            self.console.say(line);
        }
        if dropped > 0 {
            tracing::warn!(target: "script", "{dropped} lines of client scripts were dropped: there were too many");
        }
    }

    /// The notice for a player who has just joined and whose prints are wanted.
    pub fn logs_wanted(&self, player_id: &str) -> Option<ServerMessage> {
        let prints = self.client_prints.wants(player_id);
        prints.then_some(ServerMessage::LogsWanted { prints })
    }

    fn send_logs_wanted(&mut self, sessions: &mut Sessions, players: &PlayerSessions) {
        let now = self.console.client_prints();
        if *now == *self.client_prints {
            return;
        }
        let before = std::mem::replace(&mut self.client_prints, now.clone());
        for (_, player_session) in players.iter() {
            let id = &player_session.identity.player_id;
            let prints = now.wants(id);
            let connection_id = player_session.connection_id();
            if prints != before.wants(id)
                && let Some(session) = connection_id.and_then(|id| sessions.get_mut(id))
            {
                session.send(&ServerMessage::LogsWanted { prints });
            }
        }
    }

    /// Forwards the events of this tick; `ops` are operations that are not
    /// persisted.
    pub fn events(&self, world: &mut World, mut ops: Vec<LoggedOp>) {
        let mut casts = world.take_casts();
        if casts.is_empty() && ops.is_empty() {
            return;
        }
        let Some(news) = &self.news else {
            return;
        };
        casts.truncate(NEWS_MAX);
        ops.truncate(NEWS_MAX);
        let news_of_tick = OutsideNews {
            near_only: world.is_near_only(),
            casts,
            ops,
        };
        if news.try_send(news_of_tick).is_err() {
            // The tick never waits; subscribers can query the state again.
            tracing::debug!("an event for outside subscribers was lost");
        }
    }
}

/// To the process log, which `frolic dev` shows: marked as a client's.
fn print_client_line(line: &ConsoleLine) {
    let client = line.client.clone().unwrap_or_default();
    let place = line
        .line
        .map_or(line.script.clone(), |n| format!("{}:{n}", line.script));
    let times = match client.count {
        1 => String::new(),
        count => format!(", {count} times"),
    };
    let players = match client.players {
        1 => String::new(),
        players => format!(" of {players} players"),
    };
    let origin = format!(
        "in {}{players}{times}, revision {}",
        client.browser,
        log::short(&line.revision)
    );
    let message = &line.message;
    match line.level {
        ConsoleLevel::Info => {
            tracing::info!(target: "script", "client {place}: {message} ({origin})")
        }
        ConsoleLevel::Warn => {
            tracing::warn!(target: "script", "client {place}: {message} ({origin})")
        }
        ConsoleLevel::Error => {
            let source = line.source_line.as_deref().unwrap_or_default();
            let below = indented(source, &line.stack);
            tracing::error!(target: "script", "client {place}: {message} ({origin}){below}");
        }
    }
}

/// The source line and the stack below an error, set off from the next message.
fn indented(source: &str, stack: &str) -> String {
    let lines = source.lines().chain(stack.lines());
    let lines = lines.filter(|line| !line.trim().is_empty());
    lines.map(|line| format!("\n    {line}")).collect()
}
