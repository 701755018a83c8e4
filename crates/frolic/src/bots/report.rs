//! What a crowd of bots saw, in percentiles.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::bot::Outcome;

/// Figures of one run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SwarmReport {
    /// Bots that were asked for.
    pub players: u32,
    /// Bots that stayed to the end.
    pub finished: u32,
    /// Why the first of the others did not.
    pub first_error: Option<String>,
    /// From the join request to the first snapshot.
    pub join_ms_p50: f64,
    /// The slow ones.
    pub join_ms_p99: f64,
    /// Snapshots per second of the median bot.
    pub update_hz_p50: f64,
    /// Of the worst hundredth.
    pub update_hz_p01: f64,
    /// Time between snapshots.
    pub update_interval_ms_p50: f64,
    /// The long ones.
    pub update_interval_ms_p99: f64,
    /// Received per bot and second.
    pub bytes_per_client_s: f64,
    /// Snapshots of all bots together.
    pub updates: u64,
    /// Measured by all bots together, in seconds.
    pub seconds: f64,
    /// Round trip of the median bot.
    pub rtt_ms_p50: f64,
    /// Corrections of the median bot.
    pub corrections_p50: f64,
    /// Entities that the median bot knew of at the end.
    pub entities_p50: f64,
}

impl SwarmReport {
    pub fn new(players: u32, outcomes: Vec<Result<Outcome>>) -> Self {
        let mut good = Vec::new();
        let mut first_error = None;
        for outcome in outcomes {
            match outcome {
                Ok(outcome) => good.push(outcome),
                Err(error) => {
                    first_error.get_or_insert(format!("{error:#}"));
                }
            }
        }
        let of = |f: fn(&Outcome) -> f64| -> Vec<f64> { good.iter().map(f).collect() };
        let rates = of(|bot| bot.gaps_ms.len() as f64 / bot.seconds.max(1e-9));
        let gaps: Vec<f64> = good
            .iter()
            .flat_map(|bot| bot.gaps_ms.iter().copied().map(f64::from))
            .collect();
        let joins = of(|bot| bot.join_ms);
        let seconds: f64 = of(|bot| bot.seconds).iter().sum();
        Self {
            players,
            finished: good.len() as u32,
            first_error,
            join_ms_p50: quantile(&joins, 0.5),
            join_ms_p99: quantile(&joins, 0.99),
            update_hz_p50: quantile(&rates, 0.5),
            update_hz_p01: quantile(&rates, 0.01),
            update_interval_ms_p50: quantile(&gaps, 0.5),
            update_interval_ms_p99: quantile(&gaps, 0.99),
            bytes_per_client_s: of(|bot| bot.bytes_in as f64).iter().sum::<f64>()
                / seconds.max(1e-9),
            updates: gaps.len() as u64,
            seconds,
            rtt_ms_p50: quantile(&of(|bot| bot.rtt_ms), 0.5),
            corrections_p50: quantile(&of(|bot| f64::from(bot.corrections)), 0.5),
            entities_p50: quantile(&of(|bot| bot.entities as f64), 0.5),
        }
    }
}

/// The value below which a share of them lies; zero of none.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len().saturating_sub(1) as f64 * share).round() as usize;
    sorted.get(at).copied().unwrap_or(0.0)
}
