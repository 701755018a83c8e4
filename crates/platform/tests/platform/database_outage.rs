//! The database goes down during operation and recovers: clear errors in the meantime, worlds
//! continue, no data is lost, and no manual restart is needed.

use std::time::{Duration, Instant};

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::persistence::{Process, built, kept_game};
use crate::support::postgres::PrivatePostgres;
use crate::support::{TestPlatform, database, error_of};

/// Maximum time until everything works again.
const RECOVERY_MAX: Duration = Duration::from_secs(120);

async fn start() -> (PrivatePostgres, TestPlatform) {
    let postgres = tokio::task::spawn_blocking(|| {
        let postgres = PrivatePostgres::start_alone();
        database::create(&postgres, "frolic");
        postgres
    });
    let postgres = postgres.await.unwrap();
    let url = postgres.url("frolic");
    let platform = TestPlatform::start_with(|settings| settings.database_url = Some(url)).await;
    platform.publish_sample(&kept_game("sandbox")).await;
    (postgres, platform)
}

/// Asserts the error for an unavailable database.
async fn is_unavailable(request: &str, response: Response) {
    assert!(response.headers().contains_key("retry-after"), "{request}");
    let error = error_of(response).await;
    assert_eq!(error, (503, "database_unavailable".to_owned()), "{request}");
}

async fn wait_until_ready(platform: &TestPlatform) {
    let began = Instant::now();
    while platform.get("/readyz").await.status() != StatusCode::OK {
        assert!(
            began.elapsed() < RECOVERY_MAX,
            "the platform does not recover"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Postgres: `cargo xtask test` runs it"]
async fn a_database_outage_is_reported_and_no_data_is_lost() {
    let (mut postgres, platform) = start().await;
    let ada = platform.login("Ada").await;
    let joining = json!({ "game_id": "sandbox" });
    let joined = platform.try_join(&ada.session_token, joining.clone()).await;
    assert_eq!(joined.status(), StatusCode::OK);
    let process = Process::newest(&platform).await;
    assert_eq!(process.keep(&process.batch([built(1)])).await.unwrap(), 1);

    for round in 0..2_u64 {
        let next = 2 + round;
        postgres.stop();
        let health = platform.get("/health").await;
        assert_eq!(health.status(), StatusCode::OK, "the process is alive");
        let (listing, login, ready, join) = tokio::join!(
            platform.get("/api/games"),
            platform.request(Method::POST, "/login").send(),
            platform.get("/readyz"),
            platform.try_join(&ada.session_token, joining.clone()),
        );
        is_unavailable("login", login.unwrap()).await;
        is_unavailable("readyz", ready).await;
        is_unavailable("join", join).await;
        // A listing may come from a cache; otherwise it has the same error.
        if listing.status() != StatusCode::OK {
            is_unavailable("listing", listing).await;
        }
        // Batches of a world are refused for now; the world sends them again.
        let (status, _) = process
            .keep(&process.batch([built(next)]))
            .await
            .unwrap_err();
        assert_eq!(status, 503);
        // The process of the world keeps running.
        let mut beats = platform.stage.beats.subscribe();
        let seen = *beats.borrow();
        beats.wait_for(|beats| *beats > seen).await.unwrap();
        assert_eq!(platform.stage.launch_count(), 1);

        let restart = tokio::task::spawn_blocking(move || {
            postgres.start_again();
            postgres
        });
        postgres = restart.await.unwrap();
        wait_until_ready(&platform).await;
        let seq = process.keep(&process.batch([built(next)])).await.unwrap();
        assert_eq!(seq, next);
        // A repeated batch, as after a lost response, is applied once.
        let seq = process.keep(&process.batch([built(next)])).await.unwrap();
        assert_eq!(seq, next);
    }

    let saved = process.saved().await;
    let stored: Vec<u64> = saved.world.ops.iter().map(|op| op.seq).collect();
    assert_eq!(stored, [1, 2, 3]);
    // Sessions and worlds are unchanged.
    let joined = platform.try_join(&ada.session_token, joining).await;
    let joined: Value = joined.json().await.unwrap();
    assert_eq!(joined["world_id"], process.world_id.as_str());
    assert_eq!(platform.stage.launch_count(), 1);
    drop(platform);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Postgres: `cargo xtask test` runs it"]
async fn writes_in_flight_during_a_crash_are_complete_or_refused() {
    let (mut postgres, platform) = start().await;
    let ada = platform.login("Ada").await;
    let joining = json!({ "game_id": "sandbox" });
    platform.try_join(&ada.session_token, joining).await;
    let process = Process::newest(&platform).await;
    // A world stores one batch after the other while the database crashes. Acknowledged batches
    // must be stored afterwards.
    let (progress, mut confirmations) = tokio::sync::watch::channel(0);
    let writing = async {
        let mut confirmed = 0;
        loop {
            let next = confirmed + 1;
            match process.keep(&process.batch([built(next)])).await {
                Ok(seq) => {
                    confirmed = seq;
                    progress.send_replace(seq);
                }
                Err((status, _)) => {
                    assert_eq!(status, 503);
                    return confirmed;
                }
            }
        }
    };
    let killing = async {
        let written = confirmations.wait_for(|confirmed| *confirmed > 3).await;
        written.expect("it writes");
        let killed = tokio::task::spawn_blocking(move || {
            postgres.stop();
            postgres
        });
        killed.await.unwrap()
    };
    let (confirmed, mut postgres) = tokio::join!(writing, killing);
    let restart = tokio::task::spawn_blocking(move || {
        postgres.start_again();
        postgres
    });
    let postgres = restart.await.unwrap();
    wait_until_ready(&platform).await;
    let stored = process.saved().await.world.ops.len() as u64;
    // The refused batch may be stored, if only its response was lost.
    assert!(
        stored == confirmed || stored == confirmed + 1,
        "{confirmed} confirmed, {stored} stored"
    );
    let seq = process.keep(&process.batch([built(confirmed + 1)])).await;
    assert_eq!(seq.unwrap(), confirmed + 1);
    drop((platform, postgres));
}
