//! The figures of a crowd of bots, in percentiles.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::outcome::{Kind, Outcome};

/// Figures of one run. With light bots, figures that every bot measures are
/// taken from them, because there are more; the others provide what only the
/// client core can measure.
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
    /// Of all together, per bot.
    pub update_hz_mean: f64,
    /// Time between snapshots.
    pub update_interval_ms_p50: f64,
    /// The long ones.
    pub update_interval_ms_p99: f64,
    /// Received per bot and second.
    pub bytes_per_client_s: f64,
    /// Messages sent per bot and second.
    pub messages_out_hz: f64,
    /// Bytes of such a message.
    pub message_out_bytes: f64,
    /// Snapshots of all bots together.
    pub updates: u64,
    /// Measured by all bots together, in seconds.
    pub seconds: f64,
    /// Round trip of the median bot.
    pub rtt_ms_p50: f64,
    /// Corrections of the median bot on the client core.
    pub corrections_p50: f64,
    /// Connections that were lost and taken up again.
    #[serde(default)]
    pub returns: u32,
    /// Entities that the median bot on the client core knew of.
    pub entities_p50: f64,
    /// Of all of those, on average.
    pub entities_mean: f64,
    /// Bots that came in while the others were measured.
    pub late_joins: u32,
    /// How long that took.
    pub late_join_ms_p50: Option<f64>,
    /// The slow ones.
    pub late_join_ms_p99: Option<f64>,
    /// How late light bots were with their inputs through their own fault.
    pub load_late_ms_p99: f64,
}

impl SwarmReport {
    /// Sums up; `turns_late_ms` are the light bots' own delays.
    pub fn new(players: u32, outcomes: Vec<Result<Outcome>>, turns_late_ms: &[f32]) -> Self {
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
        let (late, good): (Vec<_>, Vec<_>) = good.into_iter().partition(|bot| bot.late);
        let light = good.iter().any(|bot| bot.kind == Kind::Light);
        let many: Vec<&Outcome> = good
            .iter()
            .filter(|bot| !light || bot.kind == Kind::Light)
            .collect();
        let of = |f: fn(&Outcome) -> f64| -> Vec<f64> { many.iter().map(|bot| f(bot)).collect() };
        let sum = |f: fn(&Outcome) -> f64| -> f64 { of(f).iter().sum() };
        let known =
            |f: fn(&Outcome) -> Option<f64>| -> Vec<f64> { good.iter().filter_map(f).collect() };
        let rates = of(|bot| bot.gaps_ms.len() as f64 / bot.seconds.max(1e-9));
        let gaps = pooled(many.iter().map(|bot| &bot.gaps_ms[..]));
        let joins: Vec<f64> = good.iter().map(|bot| bot.join_ms).collect();
        let late_joins: Vec<f64> = late.iter().map(|bot| bot.join_ms).collect();
        let late_share = |share| (!late.is_empty()).then(|| quantile(&late_joins, share));
        let seconds = sum(|bot| bot.seconds).max(1e-9);
        let messages_out = sum(|bot| bot.messages_out as f64);
        let entities = known(|bot| bot.entities);
        Self {
            players,
            finished: good.len() as u32,
            first_error,
            join_ms_p50: quantile(&joins, 0.5),
            join_ms_p99: quantile(&joins, 0.99),
            update_hz_p50: quantile(&rates, 0.5),
            update_hz_p01: quantile(&rates, 0.01),
            update_hz_mean: gaps.len() as f64 / seconds,
            update_interval_ms_p50: quantile(&gaps, 0.5),
            update_interval_ms_p99: quantile(&gaps, 0.99),
            bytes_per_client_s: sum(|bot| bot.bytes_in as f64) / seconds,
            messages_out_hz: messages_out / seconds,
            message_out_bytes: sum(|bot| bot.bytes_out as f64) / messages_out.max(1.0),
            updates: gaps.len() as u64,
            seconds,
            rtt_ms_p50: quantile(&known(|bot| bot.rtt_ms), 0.5),
            returns: good.iter().map(|bot| bot.returns).sum(),
            corrections_p50: quantile(&known(|bot| bot.corrections.map(f64::from)), 0.5),
            entities_p50: quantile(&entities, 0.5),
            entities_mean: entities.iter().sum::<f64>() / entities.len().max(1) as f64,
            late_joins: late.len() as u32,
            late_join_ms_p50: late_share(0.5),
            late_join_ms_p99: late_share(0.99),
            load_late_ms_p99: quantile(&pooled([turns_late_ms].into_iter()), 0.99),
        }
    }
}

fn pooled<'a>(lists: impl Iterator<Item = &'a [f32]>) -> Vec<f64> {
    lists.flatten().copied().map(f64::from).collect()
}

/// The value below which a share of them lies; zero of none.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len().saturating_sub(1) as f64 * share).round() as usize;
    sorted.get(at).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    fn bot(kind: Kind, join_ms: f64, gap_ms: f32) -> Outcome {
        Outcome {
            join_ms,
            gaps_ms: vec![gap_ms; 40],
            bytes_in: 2000,
            bytes_out: 600,
            messages_out: 60,
            seconds: 2.0,
            ..Outcome::new(kind)
        }
    }

    #[test]
    fn light_bots_report_the_connection_and_cores_the_world() {
        let core = Outcome {
            entities: Some(90.0),
            corrections: Some(3),
            bytes_in: 9_000_000,
            ..bot(Kind::Core, 10.0, 500.0)
        };
        let late = Outcome {
            late: true,
            ..bot(Kind::Light, 70.0, 900.0)
        };
        let outcomes = vec![
            Ok(core),
            Ok(bot(Kind::Light, 20.0, 50.0)),
            Ok(bot(Kind::Light, 30.0, 60.0)),
            Ok(late),
            Err(anyhow!("kicked")),
        ];
        let report = SwarmReport::new(4, outcomes, &[0.5, 2.0]);
        assert_eq!((report.players, report.finished), (4, 3));
        assert_eq!(report.first_error.as_deref(), Some("kicked"));
        assert_eq!((report.join_ms_p50, report.join_ms_p99), (20.0, 30.0));
        assert_eq!(report.update_interval_ms_p99, 60.0);
        assert_eq!((report.update_hz_p50, report.update_hz_mean), (20.0, 20.0));
        assert_eq!(report.bytes_per_client_s, 1000.0);
        assert_eq!(
            (report.messages_out_hz, report.message_out_bytes),
            (30.0, 10.0)
        );
        assert_eq!((report.entities_p50, report.corrections_p50), (90.0, 3.0));
        assert_eq!(
            (report.late_joins, report.late_join_ms_p99),
            (1, Some(70.0))
        );
        assert_eq!(report.load_late_ms_p99, 2.0);
    }

    #[test]
    fn without_light_bots_the_cores_report_everything_and_no_bots_do_not_panic() {
        let outcomes = vec![Ok(bot(Kind::Core, 10.0, 50.0))];
        let report = SwarmReport::new(1, outcomes, &[]);
        assert_eq!(report.update_interval_ms_p50, 50.0);
        assert_eq!(report.late_join_ms_p50, None);
        let report = SwarmReport::new(1, Vec::new(), &[]);
        assert_eq!((report.finished, report.update_hz_mean), (0, 0.0));
        assert_eq!(report.message_out_bytes, 0.0);
    }

    #[test]
    fn quantiles_of_few() {
        assert_eq!(quantile(&[], 0.5), 0.0);
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.5), 2.0);
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.99), 3.0);
    }
}
