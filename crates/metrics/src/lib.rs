//! Counters, gauges and histograms in the Prometheus text format.
//!
//! Each metric is declared once, with [`metrics!`]: its field, its name, its help
//! text. Writers never wait for readers: all values are atomic.
#![forbid(unsafe_code)]

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of the buckets of every histogram, in the unit of the metric.
const BOUNDS: [f64; 14] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0,
];
/// Parts of a unit that a histogram's sum counts.
const SUM_PARTS: f64 = 1e6;

/// Declares a struct of metrics, and a method `write_metrics` that writes them.
///
/// ```ignore
/// metrics! {
///     /// What happened.
///     pub struct Metrics {
///         pub logins: Counter = "logins_total", "Logins.";
///     } and {
///         others: u32,
///     }
/// }
/// ```
#[macro_export]
macro_rules! metrics {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $Metrics:ident {
            $($field_visibility:vis $field:ident: $Kind:ty = $name:literal, $help:literal;)*
        } and {
            $($(#[$other_attribute:meta])* $other_visibility:vis $other:ident: $Other:ty,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Default)]
        $visibility struct $Metrics {
            $(#[doc = $help] $field_visibility $field: $Kind,)*
            $($(#[$other_attribute])* $other_visibility $other: $Other,)*
        }

        impl $Metrics {
            fn write_metrics(&self, text: &mut $crate::Text) {
                $($crate::Metric::write(&self.$field, $name, $help, text);)*
            }
        }
    };
}

/// Something that is exported under one name.
pub trait Metric {
    /// Writes it, under `name` without the common prefix.
    fn write(&self, name: &str, help: &str, text: &mut Text);
}

/// A number that only rises.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Counts `n` more.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// Follows a count that is kept elsewhere.
    pub fn set(&self, count: u64) {
        self.0.store(count, Relaxed);
    }

    /// The current value.
    pub fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Metric for Counter {
    fn write(&self, name: &str, help: &str, text: &mut Text) {
        text.counter(name, help, self.value());
    }
}

/// The seconds of something, in total.
#[derive(Debug, Default)]
pub struct Seconds(AtomicU64);

impl Seconds {
    /// Counts `time` more.
    pub fn add(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.0.fetch_add(micros, Relaxed);
    }

    /// The current value, in seconds.
    pub fn value(&self) -> f64 {
        self.0.load(Relaxed) as f64 / 1e6
    }
}

impl Metric for Seconds {
    fn write(&self, name: &str, help: &str, text: &mut Text) {
        text.counter(name, help, self.value());
    }
}

/// A number that rises and falls.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// Sets it.
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// Raises it by one.
    pub fn increment(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// Lowers it by one.
    pub fn decrement(&self) {
        self.0.fetch_sub(1, Relaxed);
    }

    /// The current value.
    pub fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Metric for Gauge {
    fn write(&self, name: &str, help: &str, text: &mut Text) {
        text.gauge(name, help, self.value());
    }
}

/// How many observations are how large.
#[derive(Debug, Default)]
pub struct Histogram {
    /// Observations up to each bound and above the one before, and those above all.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    sum: AtomicU64,
}

impl Histogram {
    /// Counts an observation.
    pub fn observe(&self, value: f64) {
        let bucket = BOUNDS.partition_point(|bound| *bound < value);
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.sum
            .fetch_add((value * SUM_PARTS).round() as u64, Relaxed);
    }

    /// Counts a duration, in seconds.
    pub fn observe_duration(&self, time: Duration) {
        self.observe(time.as_secs_f64());
    }
}

impl Metric for Histogram {
    fn write(&self, name: &str, help: &str, text: &mut Text) {
        text.family(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        let mut count = 0;
        for (index, observations) in self.buckets.iter().enumerate() {
            count += observations.load(Relaxed);
            let bound = BOUNDS.get(index);
            let bound = bound.map_or("+Inf".to_owned(), f64::to_string);
            text.sample(&bucket, &[("le", &bound)], count);
        }
        let sum = self.sum.load(Relaxed) as f64 / SUM_PARTS;
        text.sample(&format!("{name}_sum"), &[], sum);
        text.sample(&format!("{name}_count"), &[], count);
    }
}

/// The text that is being written. All names begin with `frolic_`.
#[derive(Debug, Default)]
pub struct Text(String);

impl Text {
    /// A gauge of one value.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }

    /// A counter of one value.
    pub fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "counter", help);
        self.sample(name, &[], value);
    }

    /// The head of the samples that follow.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            self.0,
            "# HELP frolic_{name} {help}\n# TYPE frolic_{name} {kind}"
        );
    }

    /// One value. Labels contain no quotes, backslashes or line ends.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.0, "frolic_{name}");
        for (index, (label, of)) in labels.iter().enumerate() {
            let open = if index == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{open}{label}=\"{of}\"");
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{close} {value}");
    }

    /// The whole text.
    pub fn finish(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    metrics! {
        struct Metrics {
            logins: Counter = "logins_total", "Logins.";
            open: Gauge = "open", "Open connections.";
            joins: Histogram = "join_seconds", "Time to join.";
        } and {
            kicks: [Counter; 2],
        }
    }

    #[test]
    fn every_declared_metric_is_written() {
        let metrics = Metrics::default();
        metrics.logins.add(3);
        metrics.open.increment();
        for ms in [7, 80, 30_000] {
            metrics.joins.observe_duration(Duration::from_millis(ms));
        }
        metrics.kicks[1].add(1);
        let mut text = Text::default();
        metrics.write_metrics(&mut text);
        text.family("kicks_total", "counter", "Kicks.");
        let labels = [("cause", "flood"), ("by", "host")];
        text.sample("kicks_total", &labels, metrics.kicks[1].value());
        let text = text.finish();
        for line in [
            "# HELP frolic_logins_total Logins.",
            "# TYPE frolic_logins_total counter",
            "frolic_logins_total 3",
            "frolic_open 1",
            "# TYPE frolic_join_seconds histogram",
            "frolic_join_seconds_bucket{le=\"0.005\"} 0",
            "frolic_join_seconds_bucket{le=\"0.01\"} 1",
            "frolic_join_seconds_bucket{le=\"20\"} 2",
            "frolic_join_seconds_bucket{le=\"+Inf\"} 3",
            "frolic_join_seconds_sum 30.087",
            "frolic_join_seconds_count 3",
            "frolic_kicks_total{cause=\"flood\",by=\"host\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }
}
