//! The disk of Postgres is temporarily full: Postgres refuses writes or crashes and recovers, and
//! no acknowledged data is lost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use frolic_fleet_api::persist::{PlayerState, SavedPlayer};
use frolic_fleet_api::store::{StoreAction, StoreAnswers, StoreBatch, StoreKey, StoreRequest};
use frolic_protocol::Value;
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::persistence::{Process, built, kept_game};
use crate::support::postgres::PrivatePostgres;
use crate::support::{TestPlatform, database};

/// Maximum wait for any step; Postgres starts slowly on a busy machine.
const STEP_TIMEOUT: Duration = Duration::from_secs(90);

/// Acknowledged writes and failures.
#[derive(Default)]
struct Ledger {
    ops: AtomicU64,
    saves: AtomicU64,
    failures: AtomicU64,
    over: AtomicBool,
}

impl Ledger {
    fn acknowledged(&self) -> (u64, u64) {
        (self.ops.load(Relaxed), self.saves.load(Relaxed))
    }
}

/// Incompressible bytes, so that the log of Postgres grows.
fn noise(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    });
    next.take(48 * 1024).collect()
}

/// Stores one operation after the other, as the process of a world does, and repeats operations
/// that were not acknowledged.
async fn build(process: &Process<'_>, ledger: &Ledger) {
    while !ledger.over.load(Relaxed) {
        let next = ledger.ops.load(Relaxed) + 1;
        let mut batch = process.batch([built(next)]);
        batch.players.push(SavedPlayer {
            player_id: format!("client_{}", next % 50),
            state: PlayerState::default(),
            online: true,
            session: "session".into(),
            received: 0,
            sent: u32::try_from(next).unwrap(),
            undelivered: noise(next),
        });
        match process.keep(&batch).await {
            Ok(seq) => {
                assert_eq!(seq, next, "operations are stored in order");
                ledger.ops.store(seq, Relaxed);
            }
            Err((status, _)) => {
                assert_eq!(status, 503);
                ledger.failures.fetch_add(1, Relaxed);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// The same for data store writes.
async fn save(process: &Process<'_>, ledger: &Ledger) {
    while !ledger.over.load(Relaxed) {
        let next = ledger.saves.load(Relaxed) + 1;
        let by_one = StoreAction::Increment {
            at: counter(),
            by: 1.0,
        };
        if let Some(value) = ask(process, &format!("save {next}"), by_one).await {
            assert_eq!(
                value,
                Value::Number(next as f64),
                "each increment is applied once"
            );
            ledger.saves.store(next, Relaxed);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn counter() -> StoreKey {
    StoreKey {
        player: None,
        key: "saves".into(),
    }
}

/// Result of a data store request; `None` if it must be repeated.
async fn ask(process: &Process<'_>, name: &str, action: StoreAction) -> Option<Value> {
    let batch = StoreBatch {
        batch: name.to_owned(),
        epoch: process.epoch,
        requests: vec![StoreRequest { id: 1, action }],
        ..StoreBatch::default()
    };
    let answer = process.ask(Method::POST, "/store", &batch).await;
    if answer.status() != StatusCode::OK {
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        return None;
    }
    let mut answers: StoreAnswers = answer.json().await.unwrap();
    let result = answers.answers.remove(0).result;
    result.ok().and_then(|args| args.0.into_iter().next())
}

async fn until(step: &str, mut holds: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < STEP_TIMEOUT, "{step}: timed out");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn until_more_is_stored(ledger: &Ledger) {
    let (ops, saves) = ledger.acknowledged();
    until("more is stored", async || {
        let (ops_now, saves_now) = ledger.acknowledged();
        ops_now >= ops + 10 && saves_now >= saves + 3
    })
    .await;
}

/// Fills the disk until the platform reports the fault, and frees it again.
async fn go_through_outages(
    postgres: PrivatePostgres,
    platform: &TestPlatform,
    ledger: &Ledger,
) -> PrivatePostgres {
    let mut postgres = postgres;
    for _ in 0..2 {
        until_more_is_stored(ledger).await;
        let full = tokio::task::block_in_place(|| postgres.disk().fill());
        let failures = ledger.failures.load(Relaxed);
        until("the fault is reported", async || {
            let ready = platform.get("/readyz").await;
            let metrics = platform.get("/metrics").await.text().await.unwrap();
            ready.status() == StatusCode::SERVICE_UNAVAILABLE
                && metrics.contains("\nfrolic_persistence_fault 1\n")
                && ledger.failures.load(Relaxed) >= failures + 3
        })
        .await;
        drop(full);
        // Postgres recovers by itself unless it has no space for that either; then an operator
        // restarts it.
        tokio::task::block_in_place(|| {
            let began = Instant::now();
            while !postgres.is_up() && began.elapsed() < Duration::from_secs(5) {
                std::thread::sleep(Duration::from_millis(100));
            }
            if !postgres.is_up() {
                postgres.stop();
                postgres.start_again();
            }
        });
        until("the platform is ready", async || {
            platform.get("/readyz").await.status() == StatusCode::OK
        })
        .await;
    }
    until_more_is_stored(ledger).await;
    ledger.over.store(true, Relaxed);
    postgres
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Postgres: `cargo xtask test` runs it"]
async fn no_acknowledged_write_is_lost_when_the_disk_of_postgres_is_full() {
    let postgres = tokio::task::spawn_blocking(|| {
        let postgres = PrivatePostgres::start_on_small_disk("96m");
        database::create(&postgres, "frolic");
        postgres
    });
    let postgres = postgres.await.unwrap();
    let url = postgres.url("frolic");
    let platform = TestPlatform::start_with(|settings| settings.database_url = Some(url)).await;
    platform.publish_sample(&kept_game("sandbox")).await;
    platform.join(json!({ "game_id": "sandbox" })).await;
    let process = Process::newest(&platform).await;

    let ledger = Ledger::default();
    let outages = go_through_outages(postgres, &platform, &ledger);
    let (postgres, (), ()) =
        tokio::join!(outages, build(&process, &ledger), save(&process, &ledger));

    let (ops, saves) = ledger.acknowledged();
    println!("{ops} operations and {saves} writes were acknowledged");
    let saved = process.saved().await.world.ops;
    let stored: Vec<u64> = saved.iter().map(|op| op.seq).collect();
    assert_eq!(stored, (1..=ops).collect::<Vec<_>>());
    let value = ask(&process, "count", StoreAction::Get(counter())).await;
    assert_eq!(value, Some(Value::Number(saves as f64)));
    drop((platform, postgres));
}
