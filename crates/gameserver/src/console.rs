//! Script output and costs for the creator's console: the world's thread queues
//! them here, a task sends them to the control plane once a second.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use frolic_fleet_api::console::{
    ClientPrints, ConsoleLine, ConsoleReport, REPORT_LINES_MAX, REPORT_SCRIPTS_MAX, ScriptFigures,
};
use frolic_metrics::Text;
use frolic_protocol::client_log::ConsoleLevel;
use frolic_script::{LogLevel, ScriptCost, ScriptLog};

use crate::control_plane::ControlPlane;

const EVERY: Duration = Duration::from_secs(1);
/// Lines that may be queued while the control plane does not answer.
const LINES_MAX: usize = 1000;

/// What was not yet sent to the creator's console.
#[derive(Default)]
pub struct Console {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    lines: VecDeque<ConsoleLine>,
    dropped: u32,
    /// Shared with readers that render them: the world's thread takes the same
    /// lock, and must not wait for that.
    scripts: Arc<[ScriptFigures]>,
    /// Whether `scripts` has changed since the last report.
    scripts_changed: bool,
    measured_at: Option<Instant>,
    /// Which players' client scripts report their prints.
    client_prints: Arc<ClientPrints>,
}

impl Console {
    /// Starts with the platform's setting for client prints.
    pub fn new(client_prints: ClientPrints) -> Self {
        Self {
            inner: Mutex::new(Inner {
                client_prints: Arc::new(client_prints),
                ..Inner::default()
            }),
        }
    }

    /// Queues a line; the oldest is dropped when the queue is full.
    pub fn say(&self, line: ConsoleLine) {
        let mut inner = self.inner();
        inner.lines.push_back(line);
        inner.trim();
    }

    /// Which players' client scripts report their prints.
    pub fn client_prints(&self) -> Arc<ClientPrints> {
        self.inner().client_prints.clone()
    }

    /// Sets whether the client scripts of all players report their prints, as the
    /// platform requested.
    pub fn set_prints_wanted(&self, of_all: bool) {
        let mut inner = self.inner();
        if inner.client_prints.everybody != of_all {
            let creator_id = inner.client_prints.creator_id.clone();
            inner.client_prints = Arc::new(ClientPrints {
                everybody: of_all,
                creator_id,
            });
        }
    }

    /// Records the costs of scripts since the world started.
    pub fn measured(&self, costs: Vec<ScriptCost>, now: Instant) {
        let mut inner = self.inner();
        let before: BTreeMap<String, u64> = inner
            .scripts
            .iter()
            .map(|script| (script.path.clone(), script.cpu_us))
            .collect();
        let since = inner.measured_at.replace(now);
        let seconds = since.map_or(0.0, |since| now.duration_since(since).as_secs_f32());
        let scripts = costs.into_iter().take(REPORT_SCRIPTS_MAX).map(|cost| {
            // A script that is new here has caused all of its cost since then.
            let known = before.get(&cost.path).copied().unwrap_or(0);
            let spent_us = cost.cpu_us.saturating_sub(known) as f32;
            ScriptFigures {
                cpu_ms_per_s: if seconds > 0.0 {
                    spent_us / 1000.0 / seconds
                } else {
                    0.0
                },
                hash: cost.hash,
                cpu_us: cost.cpu_us,
                memory_bytes: cost.memory_bytes as u64,
                instances: cost.instances,
                errors: cost.errors,
                stops: cost.stops,
                disabled: cost.disabled,
                path: cost.path,
            }
        });
        let scripts: Arc<[ScriptFigures]> = scripts.collect();
        inner.scripts_changed |= inner.scripts != scripts;
        inner.scripts = scripts;
    }

    /// The next report, if there is anything to report.
    fn take(&self) -> Option<ConsoleReport> {
        let mut inner = self.inner();
        if inner.lines.is_empty() && !inner.scripts_changed {
            return None;
        }
        let count = inner.lines.len().min(REPORT_LINES_MAX);
        let scripts = if std::mem::take(&mut inner.scripts_changed) {
            inner.scripts.to_vec()
        } else {
            Vec::new()
        };
        Some(ConsoleReport {
            lines: inner.lines.drain(..count).collect(),
            dropped: std::mem::take(&mut inner.dropped),
            scripts,
        })
    }

    /// Sending failed: the report is queued again.
    fn give_back(&self, report: ConsoleReport) {
        let mut inner = self.inner();
        for line in report.lines.into_iter().rev() {
            inner.lines.push_front(line);
        }
        inner.dropped = inner.dropped.saturating_add(report.dropped);
        inner.scripts_changed |= !report.scripts.is_empty();
        inner.trim();
    }

    /// Writes per-script metrics. They name server scripts, so they are not public.
    pub fn write_metrics(&self, text: &mut Text) {
        let scripts = self.inner().scripts.clone();
        write(&scripts, text);
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn trim(&mut self) {
        while self.lines.len() > LINES_MAX {
            self.lines.pop_front();
            self.dropped = self.dropped.saturating_add(1);
        }
    }
}

fn write(scripts: &[ScriptFigures], text: &mut Text) {
    type Figure = fn(&ScriptFigures) -> f64;
    let figures: [(&str, &str, &str, Figure); 4] = [
        (
            "script_cpu_seconds_total",
            "counter",
            "CPU time of a script.",
            |script| script.cpu_us as f64 / 1e6,
        ),
        (
            "script_memory_bytes",
            "gauge",
            "Memory that a script holds.",
            |script| script.memory_bytes as f64,
        ),
        (
            "script_raised_total",
            "counter",
            "Errors that a script raised.",
            |script| f64::from(script.errors),
        ),
        (
            "script_stops_total",
            "counter",
            "How often a script was stopped.",
            |script| f64::from(script.stops),
        ),
    ];
    for (name, kind, help, figure) in figures {
        text.family(name, kind, help);
        for script in scripts {
            text.sample(name, &[("script", &script.path)], figure(script));
        }
    }
}

/// A script's log entry as a console line.
pub fn line_of(log: ScriptLog, tick: u32, revision: &str, hash: Option<&str>) -> ConsoleLine {
    ConsoleLine {
        level: match log.level {
            LogLevel::Info => ConsoleLevel::Info,
            LogLevel::Warn => ConsoleLevel::Warn,
            LogLevel::Error => ConsoleLevel::Error,
        },
        tick,
        script: log.script,
        line: log.line,
        message: log.message,
        source_line: log.source_line,
        stack: log.traceback,
        revision: revision.to_owned(),
        hash: hash.unwrap_or_default().to_owned(),
        client: None,
    }
}

/// Sends reports to the control plane while the process lives.
pub async fn send_reports(control_plane: ControlPlane, console: Arc<Console>) {
    let mut every = tokio::time::interval(EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        send_report(&control_plane, &console).await;
    }
}

/// Sends what is queued now.
pub async fn send_report(control_plane: &ControlPlane, console: &Console) {
    let Some(report) = console.take() else {
        return;
    };
    if let Err(error) = control_plane.console(&report).await {
        tracing::debug!(%error, "a console report was not delivered");
        let refused = error
            .status()
            .is_some_and(|status| status.is_client_error());
        if !refused {
            console.give_back(report);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(message: String) -> ConsoleLine {
        let log = ScriptLog {
            level: LogLevel::Error,
            script: "Workspace/A.luau".into(),
            line: Some(3),
            message,
            source_line: None,
            traceback: String::new(),
            origin: None,
        };
        line_of(log, 7, "rev", Some("hash"))
    }

    fn cost(cpu_us: u64) -> ScriptCost {
        ScriptCost {
            path: "Workspace/A.luau".into(),
            cpu_us,
            memory_bytes: 2048,
            ..ScriptCost::default()
        }
    }

    #[test]
    fn lines_wait_in_order_and_within_bounds() {
        let console = Console::default();
        assert_eq!(console.take(), None);
        for number in 0..LINES_MAX + 50 {
            console.say(line(number.to_string()));
        }
        let first = console.take().unwrap();
        assert_eq!((first.lines.len(), first.dropped), (REPORT_LINES_MAX, 50));
        assert_eq!(first.lines[0].message, "50");
        // Not delivered: nothing is lost, and the order stays.
        console.give_back(first.clone());
        assert_eq!(console.take(), Some(first));
    }

    #[test]
    fn costs_are_reported_when_they_change() {
        let console = Console::default();
        let start = Instant::now();
        console.measured(vec![cost(1000)], start);
        assert_eq!(console.take().unwrap().scripts[0].cpu_ms_per_s, 0.0);
        console.measured(vec![cost(5000)], start + Duration::from_secs(2));
        let report = console.take().unwrap();
        assert_eq!(report.scripts[0].cpu_ms_per_s, 2.0);
        console.measured(vec![cost(5000)], start + Duration::from_secs(3));
        assert_eq!(console.take().unwrap().scripts[0].cpu_ms_per_s, 0.0);
        console.measured(vec![cost(5000)], start + Duration::from_secs(4));
        assert_eq!(console.take(), None);
        let mut text = Text::default();
        console.write_metrics(&mut text);
        let text = text.finish();
        for line in [
            "frolic_script_cpu_seconds_total{script=\"Workspace/A.luau\"} 0.005",
            "frolic_script_memory_bytes{script=\"Workspace/A.luau\"} 2048",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }
}
