//! What scripts said and cost: to the log of the process and to the creator.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use frolic_script::LogLevel;

use super::Host;
use crate::console;

impl Host {
    /// Passes on what scripts said in this tick, and once a second what they
    /// cost.
    pub(super) fn write_logs(&mut self, now: Instant) {
        if self.world.tick().is_multiple_of(self.world.tick_hz()) {
            self.settings
                .console
                .measured(self.world.script_costs(), now);
        }
        for line in self.world.take_logs() {
            let mut scripts = self.world.scripts().iter();
            let script = scripts.find(|script| script.path == line.script);
            let hash = script.map(|script| script.sha256_hex.as_str());
            let (tick, revision) = (self.world.tick(), &self.settings.revision);
            let kept = console::line_of(line.clone(), tick, revision, hash);
            self.settings.console.say(kept);
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
}
