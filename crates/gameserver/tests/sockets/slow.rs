//! Clients that do not read: they pay for it, nobody else does.

use serde_json::json;

use crate::server::TestServer;
use crate::stranger::Stranger;

/// Asks for every script again and again, which is a lot to send.
async fn ask_for_much(eve: &mut Stranger) {
    let manifest = loop {
        let event = eve.next_of("event").await;
        if event["action"] == "manifest" {
            break event;
        }
    };
    let scripts = manifest["manifest"]["scripts"].as_array().expect("a list");
    let paths: Vec<_> = scripts.iter().map(|script| &script["path"]).collect();
    for _ in 0..100 {
        eve.command("scripts", "request", json!({ "paths": paths }))
            .await;
    }
}

#[tokio::test]
async fn a_client_that_stops_reading_is_slowed_then_let_go_and_others_miss_nothing() {
    let server = TestServer::start().await;
    let mut ada = Stranger::join(&server, "Ada").await;
    let mut eve = Stranger::join_with_small_ears(&server, "Eve").await;
    ask_for_much(&mut eve).await;

    // Ada reads all the while; every third tick is hers, without exception.
    let others = tokio::spawn(async move {
        let mut last = ada.next_of("snapshot").await["tick"].as_u64();
        let mut updates = 0;
        while updates < 150 {
            let tick = ada.next_of("snapshot").await["tick"].as_u64();
            let gap = tick.zip(last).map(|(tick, last)| tick - last);
            assert!(gap.is_some_and(|gap| gap <= 3), "an update was left out");
            last = tick;
            updates += 1;
        }
    });
    server.until_metric("frolic_slow_readers").await;
    assert!(server.metric("frolic_queued_bytes").await > 0.0);
    server
        .until_metric("frolic_kicks_total{cause=\"slow_reader\"}")
        .await;
    assert!(server.metric("frolic_snapshots_skipped_total").await > 20.0);

    let mut told = String::new();
    let reason = loop {
        match eve.next().await {
            Ok(message) if message["code"] == "kick" => told = message["message"].to_string(),
            Ok(_) => {}
            Err(reason) => break reason,
        }
    };
    assert!(told.contains("too slowly"), "told {told:?} and {reason:?}");
    assert!(reason.contains("too slowly"), "closed with {reason:?}");
    others.await.expect("others are unaffected");
    server.stop().await;
}
