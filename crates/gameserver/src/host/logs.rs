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
            // BEY-1: every line says which code it came from.
            let origin = line.origin.clone().unwrap_or_default();
            let hash = origin.hash.as_deref();
            let kept = console::line_of(line.clone(), self.world.tick(), &origin.revision, hash);
            self.settings.console.say(kept);
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
                    tracing::error!(target: "script", "{place}: {message} ({origin})\n    {source}\n{}", line.traceback);
                }
            }
        }
    }
}
