//! `frolic bench join`: how long a click on Play takes, through a real
//! control plane with a data folder of its own.

pub(super) mod platform;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use frolic_client::{Client, ClientEvent};
use frolic_protocol::ClientMessage;
use futures_util::{SinkExt, StreamExt};
use serde::Serialize;
use tokio_tungstenite::tungstenite::Message;

use frolic_bots::{connect, quantile};
use platform::{Platform, Target};

/// Longest wait for one join.
const PATIENCE: Duration = Duration::from_secs(30);

/// Measure the way from the join request into the world
#[derive(Args, Debug)]
pub struct JoinArgs {
    /// Worlds that are started: joins that find no game server running
    #[arg(long, default_value_t = 10)]
    rounds: u32,
    /// Joins into each of them once it runs
    #[arg(long, default_value_t = 4)]
    warm: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// One way in, in milliseconds from the join request.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// Until the control plane answered with address and ticket.
    answer_ms: f64,
    /// Until the game server's welcome.
    welcome_ms: f64,
    /// Until the world was first seen.
    snapshot_ms: f64,
}

/// The results. Milliseconds from the join request.
#[derive(Debug, PartialEq, Serialize)]
struct JoinReport {
    cold_joins: usize,
    cold_answer_ms_p50: f64,
    cold_welcome_ms_p50: f64,
    cold_welcome_ms_p99: f64,
    cold_snapshot_ms_p50: f64,
    cold_snapshot_ms_p99: f64,
    warm_joins: usize,
    warm_answer_ms_p50: f64,
    warm_welcome_ms_p50: f64,
    warm_welcome_ms_p99: f64,
    warm_snapshot_ms_p50: f64,
    warm_snapshot_ms_p99: f64,
}

impl JoinReport {
    fn new(cold: &[Way], warm: &[Way]) -> Self {
        let of = |ways: &[Way], time: fn(&Way) -> f64, share: f64| {
            quantile(&ways.iter().map(time).collect::<Vec<_>>(), share)
        };
        let answer = |ways| of(ways, |way| way.answer_ms, 0.5);
        let welcome = |ways, share| of(ways, |way| way.welcome_ms, share);
        let snapshot = |ways, share| of(ways, |way| way.snapshot_ms, share);
        Self {
            cold_joins: cold.len(),
            cold_answer_ms_p50: answer(cold),
            cold_welcome_ms_p50: welcome(cold, 0.5),
            cold_welcome_ms_p99: welcome(cold, 0.99),
            cold_snapshot_ms_p50: snapshot(cold, 0.5),
            cold_snapshot_ms_p99: snapshot(cold, 0.99),
            warm_joins: warm.len(),
            warm_answer_ms_p50: answer(warm),
            warm_welcome_ms_p50: welcome(warm, 0.5),
            warm_welcome_ms_p99: welcome(warm, 0.99),
            warm_snapshot_ms_p50: snapshot(warm, 0.5),
            warm_snapshot_ms_p99: snapshot(warm, 0.99),
        }
    }

    fn print(&self) {
        println!("milliseconds from the join request    welcome          first snapshot");
        println!(
            "cold ({:3} joins)              {:8.1}, p99 {:6.1}   {:8.1}, p99 {:6.1}",
            self.cold_joins,
            self.cold_welcome_ms_p50,
            self.cold_welcome_ms_p99,
            self.cold_snapshot_ms_p50,
            self.cold_snapshot_ms_p99
        );
        println!(
            "warm ({:3} joins)              {:8.1}, p99 {:6.1}   {:8.1}, p99 {:6.1}",
            self.warm_joins,
            self.warm_welcome_ms_p50,
            self.warm_welcome_ms_p99,
            self.warm_snapshot_ms_p50,
            self.warm_snapshot_ms_p99
        );
    }
}

/// Starts a platform, joins as often as asked, and ends everything it started.
pub async fn run(args: JoinArgs) -> Result<()> {
    if args.rounds == 0 || args.rounds > 1000 || args.warm > 1000 {
        bail!("--rounds takes 1 to 1000 and --warm up to 1000");
    }
    let mut platform = Platform::start().await?;
    let outcome = measure(&platform, &args).await;
    // Also after a failure: a platform that is killed leaves its worlds behind.
    platform.end().await?;
    let (cold, warm) = outcome?;
    let report = JoinReport::new(&cold, &warm);
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        report.print();
    }
    Ok(())
}

async fn measure(platform: &Platform, args: &JoinArgs) -> Result<(Vec<Way>, Vec<Way>)> {
    let host = platform.log_in("Host").await?;
    let mut guests = Vec::new();
    for number in 0..args.warm {
        let name = format!("Guest {}", number + 1);
        guests.push(platform.log_in(&name).await?);
    }
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        let (world_id, way) = join(platform, &host, Target::NewWorld).await?;
        cold.push(way);
        for guest in &guests {
            warm.push(join(platform, guest, Target::World(&world_id)).await?.1);
        }
        platform.stop_world(&world_id).await?;
    }
    Ok((cold, warm))
}

/// Joins, looks at the world, and leaves; returns which world it was.
async fn join(platform: &Platform, session: &str, target: Target<'_>) -> Result<(String, Way)> {
    let entering = enter(platform, session, target);
    tokio::time::timeout(PATIENCE, entering)
        .await
        .context("a join took too long")?
}

async fn enter(platform: &Platform, session: &str, target: Target<'_>) -> Result<(String, Way)> {
    let (joined, asked) = platform.join(session, target).await?;
    let since_ms = |asked: Instant| asked.elapsed().as_secs_f64() * 1000.0;
    let answer_ms = since_ms(asked);
    let (mut sink, mut source) = connect(&joined.server_address).await?.split();
    let mut client = Client::new();
    client.handshake(Some(joined.ticket), None, None);
    let handshake = client.take_reliable().context("the handshake")?;
    sink.send(Message::Binary(handshake.into())).await?;
    let mut welcome_ms = None;
    while client.stats(since_ms(asked)).snapshots == 0 {
        match source.next().await {
            Some(Ok(Message::Binary(bytes))) => client.receive(&bytes, since_ms(asked))?,
            Some(Ok(Message::Close(frame))) => bail!("closed by the server: {frame:?}"),
            Some(Ok(_)) => {}
            Some(Err(cause)) => bail!("connection lost: {cause}"),
            None => bail!("connection closed"),
        }
        while let Some(event) = client.take_event() {
            match event {
                ClientEvent::Welcome(_) => welcome_ms = Some(since_ms(asked)),
                ClientEvent::Kick { reason } => bail!("kicked: {reason}"),
                _ => {}
            }
        }
    }
    let way = Way {
        answer_ms,
        welcome_ms: welcome_ms.context("a snapshot came before the welcome")?,
        snapshot_ms: since_ms(asked),
    };
    client.send(&ClientMessage::Leave);
    while let Some(goodbye) = client.take_reliable() {
        sink.send(Message::Binary(goodbye.into())).await?;
    }
    let _ = sink.close().await;
    Ok((joined.world_id, way))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cold_and_warm_are_summed_up_apart() {
        let way = |ms: f64| Way {
            answer_ms: ms,
            welcome_ms: ms + 10.0,
            snapshot_ms: ms + 20.0,
        };
        let report = JoinReport::new(&[way(100.0), way(50.0), way(60.0)], &[way(5.0)]);
        assert_eq!(report.cold_joins, 3);
        assert_eq!(report.cold_answer_ms_p50, 60.0);
        assert_eq!(report.cold_welcome_ms_p50, 70.0);
        assert_eq!(report.cold_snapshot_ms_p99, 120.0);
        assert_eq!((report.warm_joins, report.warm_snapshot_ms_p99), (1, 25.0));
        assert_eq!(JoinReport::new(&[], &[]).cold_snapshot_ms_p50, 0.0);
    }
}
