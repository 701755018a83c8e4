//! A crowd of bots: lets them in, lets them play, and reports what they measured.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::mpsc as std_mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::mpsc;

use crate::bot;
use crate::cache::ScriptCache;
use crate::door::Door;
use crate::light::{self, Arrival, LightSettings, Order};
use crate::outcome::Outcome;
use crate::report::SwarmReport;

/// Bots on the client core among light ones: enough to measure what clients
/// see, but fewer in a large crowd. Each decodes everything it sees, and eight
/// of them among 400 cost a third of what the 392 light ones do.
const CORES_AMONG_LIGHT: RangeInclusive<u32> = 2..=8;
/// Upper bound of the entities they know, summed.
const KNOWN_BY_CORES: u32 = 4000;
/// From the last join until measuring begins: joining disturbs.
const SETTLE: Duration = Duration::from_secs(1);
/// The part of the time in which late ones come; the last of them needs some.
const LATE_PART: f64 = 0.8;

/// A crowd of bots.
pub struct Swarm {
    /// Where they go in.
    pub door: Door,
    /// How many.
    pub players: u32,
    /// Whether all but a few are light.
    pub light: bool,
    /// Light ones who come while the others are measured.
    pub late: u32,
    /// How long they stay once all are in.
    pub time: Duration,
    /// How often each sends its inputs.
    pub input_hz: u32,
    /// They stay within this distance of where they started, in metres.
    pub roam_m: Option<f32>,
    /// Their script cache; without one they do not request scripts.
    pub cache: Option<ScriptCache>,
    /// New bots per second.
    pub joins_per_s: u32,
    /// Called once all are in and measuring begins.
    pub on_settled: Option<Box<dyn FnOnce() + Send>>,
}

impl Swarm {
    /// Lets them in, lets them play, and reports what they saw.
    pub async fn run(self) -> Result<SwarmReport> {
        let total = (self.players + self.late).max(1);
        let (results, mut collected) = mpsc::channel(total as usize);
        let (phase, phases) = tokio::sync::watch::channel(bot::Phase::Joining);
        let (joined, joins) = mpsc::channel(total as usize);
        let (orders, inbox) = std_mpsc::channel();
        let settings = LightSettings {
            input_hz: self.input_hz,
            roam_m: self.roam_m,
        };
        let lights = light::start(settings, inbox)?;
        let hall = Hall {
            door: Arc::new(self.door.clone().choose_game().await?),
            orders,
            results,
        };
        let pause = Duration::from_secs(1) / self.joins_per_s.max(1);
        let began = Instant::now();
        for number in 0..self.players {
            if self.light && !is_core(number, self.players) {
                hall.admit_light(number, Some(joined.clone()));
            } else {
                let settings = bot::BotSettings {
                    number,
                    input_hz: self.input_hz,
                    roam_m: self.roam_m,
                    cache: self.cache.clone(),
                };
                let door = hall.door.clone();
                let bot = bot::run(settings, door, joined.clone(), phases.clone());
                let results = hall.results.clone();
                tokio::spawn(async move {
                    let _ = results.send(bot.await).await;
                });
            }
            tokio::time::sleep_until((began + pause * (number + 1)).into()).await;
        }
        drop(joined);
        let inside = count_joins(self.players, joins).await;
        if inside > 0 {
            tokio::time::sleep(SETTLE).await;
            if let Some(settled) = self.on_settled {
                settled();
            }
            let _ = phase.send(bot::Phase::Measuring);
            hall.order(Order::Measure);
            let end = Instant::now() + self.time;
            hall.admit_late(self.players, self.late, self.time).await;
            tokio::time::sleep_until(end.into()).await;
        }
        let _ = phase.send(bot::Phase::Leaving);
        hall.order(Order::Leave);
        drop(hall);
        let mut outcomes = Vec::new();
        while let Some(outcome) = collected.recv().await {
            outcomes.push(outcome);
        }
        let lights = tokio::task::spawn_blocking(move || lights.join()).await?;
        let lights = lights.map_err(|_| anyhow!("the light bots' thread died"))?;
        outcomes.extend(lights.outcomes);
        let report = SwarmReport::new(self.players, outcomes, &lights.turns_late_ms);
        if inside == 0 {
            bail!("{}", report.first_error.unwrap_or("no bot came in".into()));
        }
        Ok(report)
    }
}

/// Shared handles for joining bots.
struct Hall {
    door: Arc<Door>,
    orders: std_mpsc::Sender<Order>,
    results: mpsc::Sender<Result<Outcome>>,
}

impl Hall {
    /// Joins through the door as all bots do, then hands over to the light
    /// bots' thread.
    fn admit_light(&self, number: u32, joined: Option<mpsc::Sender<u32>>) {
        let (door, orders, results) =
            (self.door.clone(), self.orders.clone(), self.results.clone());
        tokio::spawn(async move {
            match arrival(&door, number, joined).await {
                Ok(arrival) => {
                    let _ = orders.send(Order::Join(Box::new(arrival)));
                }
                Err(error) => {
                    let _ = results.send(Err(error)).await;
                }
            }
        });
    }

    /// Lets late ones in, evenly over most of the time.
    async fn admit_late(&self, first_number: u32, count: u32, time: Duration) {
        let began = Instant::now();
        let pause = time.mul_f64(LATE_PART) / count.max(1);
        for late in 0..count {
            self.admit_light(first_number + late, None);
            tokio::time::sleep_until((began + pause * (late + 1)).into()).await;
        }
    }

    /// The thread ends only on request; if it died, joining it reports why.
    fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }
}

async fn arrival(door: &Door, number: u32, joined: Option<mpsc::Sender<u32>>) -> Result<Arrival> {
    let began = Instant::now();
    let name = format!("Bot {}", number + 1);
    let entry = door.enter(&reqwest::Client::new(), &name).await?;
    let address = Door::resolve(&entry.address).await;
    let address = address.with_context(|| format!("finding {}", entry.address))?;
    Ok(Arrival {
        number,
        entry,
        address,
        began,
        joined,
    })
}

fn cores_among(players: u32) -> u32 {
    let (few, many) = (*CORES_AMONG_LIGHT.start(), *CORES_AMONG_LIGHT.end());
    (KNOWN_BY_CORES / players.max(1))
        .clamp(few, many)
        .min(players)
}

/// Whether a bot among light ones is on the client core. Those are spread over
/// the order of joining, because that is the order of spawn points: they see
/// all parts of the world.
fn is_core(number: u32, players: u32) -> bool {
    let cores = u64::from(cores_among(players));
    let players = u64::from(players);
    let before = |number: u64| (number * cores + players / 2) / players;
    before(u64::from(number)) != before(u64::from(number) + 1)
}

/// A bot lets go of its sender once it is in, or has failed.
async fn count_joins(players: u32, mut joins: mpsc::Receiver<u32>) -> u64 {
    let progress = progress(u64::from(players));
    let mut inside = 0;
    while joins.recv().await.is_some() {
        inside += 1;
        progress.set_position(inside);
    }
    progress.finish_and_clear();
    inside
}

fn progress(players: u64) -> ProgressBar {
    let bar = ProgressBar::new(players);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos}/{len} bots in the world") {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_bots_on_the_core_are_spread_over_the_crowd() {
        for players in [1, 7, 8, 9, 100, 400, 2000] {
            let cores: Vec<u32> = (0..players).filter(|n| is_core(*n, players)).collect();
            assert_eq!(cores.len() as u32, cores_among(players));
            let widest = cores.windows(2).map(|pair| pair[1] - pair[0]).max();
            let even = players / cores.len() as u32;
            assert!(widest.unwrap_or(0) <= even + 1, "{cores:?}");
        }
        let counts = [1, 8, 400, 1000, 2000, 10_000].map(cores_among);
        assert_eq!(counts, [1, 8, 8, 4, 2, 2]);
    }
}
