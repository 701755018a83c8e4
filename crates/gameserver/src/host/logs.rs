//! Forwards output and costs of scripts to the process log and to the creator.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use frolic_protocol::ServerMessage;
use frolic_protocol::client_log::ClientLog;
use frolic_protocol::console::{ConsoleLevel, ConsoleLine};
use frolic_script::{LogLevel, log};

use frolic_world::PlayerNumber;

use super::Host;
use crate::client_logs::Speaker;
use crate::console;

/// Reports of client scripts per second.
const CLIENT_REPORTS_HZ: u32 = 4;

impl Host {
    /// Forwards the script output of this tick, and once a second the costs.
    pub(super) fn write_logs(&mut self, now: Instant) {
        if self.world.tick().is_multiple_of(self.world.tick_hz()) {
            self.settings
                .console
                .measured(self.world.script_costs(), now);
        }
        for line in self.world.take_logs() {
            // Every line names the code it came from.
            let origin = line.origin.clone().unwrap_or_default();
            let hash = origin.hash.as_deref();
            let entry = console::line_of(line.clone(), self.world.tick(), &origin.revision, hash);
            self.settings.console.say(entry);
            let place = line
                .line
                .map_or(line.script.clone(), |n| format!("{}:{n}", line.script));
            let message = &line.message;
            match line.level {
                LogLevel::Info => tracing::info!(target: "script", "{place}: {message} ({origin})"),
                LogLevel::Warn => tracing::warn!(target: "script", "{place}: {message} ({origin})"),
                LogLevel::Error => {
                    self.metrics.script_errors.fetch_add(1, Relaxed);
                    let source = line.source_line.unwrap_or_default();
                    let below = indented(&source, &line.traceback);
                    tracing::error!(target: "script", "{place}: {message} ({origin}){below}");
                }
            }
        }
    }

    /// Accepts output of a player's client scripts.
    pub(super) fn take_client_log(&mut self, number: PlayerNumber, log: ClientLog) {
        let Some(player_session) = self.player_sessions.get(number) else {
            return;
        };
        let speaker = Speaker {
            number,
            player_id: &player_session.identity.player_id,
        };
        let now_s = self.started.elapsed().as_secs_f64();
        let entries = self.client_scripts.entries();
        let known = |path: &str| entries.iter().any(|entry| entry.path == path);
        let prints = self.settings.console.client_prints();
        self.client_logs
            .take(speaker, log, &prints, self.world.revision(), known, now_s);
    }

    /// Forwards output of client scripts a few times a second, and notifies clients
    /// when the request for their prints has changed.
    pub(super) fn write_client_logs(&mut self) {
        let every = (self.world.tick_hz() / CLIENT_REPORTS_HZ).max(1);
        if !self.world.tick().is_multiple_of(every) {
            return;
        }
        self.send_logs_wanted();
        let now_s = self.started.elapsed().as_secs_f64();
        let world = &self.world;
        let origin =
            |path: &str, line: u32| (world.source_line(path, line), world.script_hash(path));
        let (lines, dropped) = self.client_logs.report(world.tick(), now_s, origin);
        for line in lines {
            print_client_line(&line);
            self.settings.console.say(line);
        }
        if dropped > 0 {
            tracing::warn!(target: "script", "{dropped} lines of client scripts were dropped: there were too many");
        }
    }

    fn send_logs_wanted(&mut self) {
        let now = self.settings.console.client_prints();
        if *now == *self.client_prints {
            return;
        }
        let before = std::mem::replace(&mut self.client_prints, now.clone());
        for session in self.sessions.iter_mut() {
            let Some(player) = &session.player else {
                continue;
            };
            let Some(player_session) = self.player_sessions.get(player.number) else {
                continue;
            };
            let id = &player_session.identity.player_id;
            let prints = now.wants(id);
            if prints != before.wants(id) {
                session.send(&ServerMessage::LogsWanted { prints });
            }
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
