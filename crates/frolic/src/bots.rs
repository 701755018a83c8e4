//! Bots: players without a screen, on the real client core.

mod behaviour;
mod bot;
mod door;
mod report;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::mpsc;

pub use behaviour::Behaviour;
pub use door::Door;
pub use report::SwarmReport;

/// A crowd of bots.
pub struct Swarm {
    /// Where they go in.
    pub door: Door,
    /// How many.
    pub players: u32,
    /// How long they stay once all are in.
    pub time: Duration,
    /// How often each sends its inputs.
    pub input_hz: u32,
    /// They stay within this distance of where they started, in metres.
    pub roam_m: Option<f32>,
    /// New bots per second.
    pub joins_per_s: u32,
    /// Called once all are in and measuring begins.
    pub on_settled: Option<Box<dyn FnOnce() + Send>>,
}

impl Swarm {
    /// Lets them in, lets them play, and reports what they saw.
    pub async fn run(self) -> Result<SwarmReport> {
        let (results, mut collected) = mpsc::channel(self.players.max(1) as usize);
        let (stop, stopped) = tokio::sync::watch::channel(bot::Phase::Joining);
        let progress = progress(u64::from(self.players));
        let (joined, mut joins) = mpsc::channel(self.players.max(1) as usize);
        let pause = Duration::from_secs(1) / self.joins_per_s.max(1);
        let began = Instant::now();
        let door = std::sync::Arc::new(self.door.choose_game().await?);
        for number in 0..self.players {
            let settings = bot::BotSettings {
                number,
                input_hz: self.input_hz,
                roam_m: self.roam_m,
            };
            let bot = bot::run(settings, door.clone(), joined.clone(), stopped.clone());
            let results = results.clone();
            tokio::spawn(async move {
                let _ = results.send(bot.await).await;
            });
            tokio::time::sleep_until((began + pause * (number + 1)).into()).await;
        }
        drop(results);
        drop(joined);
        // A bot lets go of its sender once it is in, or has failed.
        let mut inside = 0;
        while joins.recv().await.is_some() {
            inside += 1;
            progress.set_position(inside);
        }
        progress.finish_and_clear();
        if inside == 0 {
            let reason = match collected.recv().await {
                Some(Err(error)) => format!("{error:#}"),
                _ => "no bot came in".into(),
            };
            bail!("{reason}");
        }
        if let Some(settled) = self.on_settled {
            settled();
        }
        let _ = stop.send(bot::Phase::Measuring);
        tokio::time::sleep(self.time).await;
        let _ = stop.send(bot::Phase::Leaving);
        let mut outcomes = Vec::new();
        while let Some(outcome) = collected.recv().await {
            outcomes.push(outcome);
        }
        Ok(SwarmReport::new(self.players, outcomes))
    }
}

fn progress(players: u64) -> ProgressBar {
    let bar = ProgressBar::new(players);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos}/{len} bots in the world") {
        bar.set_style(style);
    }
    bar
}
