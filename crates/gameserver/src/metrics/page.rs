//! Writes the Prometheus text format.

use std::fmt::Write;

use super::Quantiles;

/// A page that is being written.
#[derive(Default)]
pub struct Page(String);

impl Page {
    /// One figure that goes up and down.
    pub fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.heading(name, help, "gauge");
        self.line(name, "", value);
    }

    /// One figure that only goes up.
    pub fn counter(&mut self, name: &str, help: &str, value: f64) {
        self.heading(name, help, "counter");
        self.line(name, "", value);
    }

    /// The header of the samples that follow.
    pub fn heading(&mut self, name: &str, help: &str, kind: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            self.0,
            "# HELP frolic_{name} {help}\n# TYPE frolic_{name} {kind}"
        );
    }

    /// One value, with its labels.
    pub fn line(&mut self, name: &str, labels: &str, value: f64) {
        let _ = if labels.is_empty() {
            writeln!(self.0, "frolic_{name} {value}")
        } else {
            writeln!(self.0, "frolic_{name}{{{labels}}} {value}")
        };
    }

    /// Median and 99th percentile, behind other labels.
    pub fn quantiles(&mut self, name: &str, labels: &str, of: Quantiles) {
        for (quantile, value) in [("0.5", of.p50), ("0.99", of.p99)] {
            let _ = writeln!(
                self.0,
                "frolic_{name}{{{labels}quantile=\"{quantile}\"}} {value}"
            );
        }
    }

    /// The text.
    pub fn finish(self) -> String {
        self.0
    }
}
