//! A game server's own figures, and its work between two samples of them.

use std::time::Instant;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::process::http_get;

/// A server's figures at one moment.
pub struct Look {
    at: Instant,
    counts: Counts,
    /// All of it.
    pub stats: Value,
}

/// The part that we compare.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Counts {
    players: u32,
    connections: u32,
    bytes_out: u64,
    updates_deferred: u64,
    pressure: u8,
}

impl Look {
    /// Asks at the address of its `/stats`.
    ///
    /// # Errors
    /// When it does not answer, or not as a game server does.
    pub fn at(address: &str) -> Result<Self> {
        let stats: Value = serde_json::from_str(&http_get(address)?)?;
        Ok(Self {
            at: Instant::now(),
            counts: Counts::deserialize(&stats)?,
            stats,
        })
    }

    /// Players in the world.
    pub fn players(&self) -> u32 {
        self.counts.players
    }

    /// The server's pressure level: 0 to 3.
    pub fn pressure(&self) -> u8 {
        self.counts.pressure
    }
}

/// The work of a server during a measurement.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Work {
    /// For how long.
    seconds: f64,
    /// Sent to each connection on average, in all that time.
    bytes_per_client: f64,
    /// Updates that had to wait for the next tick.
    pub updates_deferred: u64,
    /// The worst that was seen.
    pub pressure: u8,
}

impl Work {
    /// Adds what was done between two looks.
    pub fn add(&mut self, before: &Look, after: &Look) {
        let seconds = after.at.saturating_duration_since(before.at).as_secs_f64();
        self.add_counts(&before.counts, &after.counts, seconds);
    }

    fn add_counts(&mut self, before: &Counts, after: &Counts, seconds: f64) {
        let clients = f64::from(before.connections + after.connections) / 2.0;
        let bytes = after.bytes_out.saturating_sub(before.bytes_out) as f64;
        self.seconds += seconds;
        self.bytes_per_client += bytes / clients.max(1.0);
        self.updates_deferred += after
            .updates_deferred
            .saturating_sub(before.updates_deferred);
        self.pressure = self.pressure.max(before.pressure).max(after.pressure);
    }

    /// Sent to each connection per second.
    pub fn bytes_per_client_s(&self) -> f64 {
        self.bytes_per_client / self.seconds.max(1e-9)
    }

    /// Invented: a second with `bytes` to each.
    #[cfg(test)]
    pub fn of_bytes(bytes_per_client_s: f64) -> Self {
        Self {
            seconds: 1.0,
            bytes_per_client: bytes_per_client_s,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_happens_between_looks_counts() {
        let mut counts = Counts {
            connections: 100,
            bytes_out: 7_000,
            updates_deferred: 50,
            ..Counts::default()
        };
        let mut work = Work::default();
        for _ in 0..2 {
            let before = counts;
            counts.bytes_out += 300_000;
            work.add_counts(&before, &counts, 1.5);
            // Until the next look it works, too, and defers what it likes.
            counts.bytes_out += 1_000_000;
            counts.updates_deferred += 9;
        }
        assert_eq!(work.bytes_per_client_s(), 2_000.0);
        assert_eq!((work.updates_deferred, work.pressure), (0, 0));
        let before = counts;
        counts.updates_deferred += 3;
        counts.pressure = 2;
        work.add_counts(&before, &counts, 1.0);
        assert_eq!((work.updates_deferred, work.pressure), (3, 2));
    }

    #[test]
    fn who_comes_meanwhile_counts_half() {
        let [before, after] = [(100, 0), (120, 110_000)].map(|(connections, bytes_out)| Counts {
            connections,
            bytes_out,
            ..Counts::default()
        });
        let mut work = Work::default();
        work.add_counts(&before, &after, 1.0);
        assert_eq!(work.bytes_per_client_s(), 1_000.0);
    }
}
