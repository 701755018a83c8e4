//! Clients that do not read: they lose updates, other clients do not.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use crate::connection::Transport;
use crate::player::Player;
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

    // Ada reads all the while; every third tick is hers. One that has no time
    // left gives its update to the next, but none is left out.
    let others = tokio::spawn(async move {
        let mut next = async || {
            let tick = ada.next_of("snapshot").await["tick"].as_u64();
            tick.expect("a tick")
        };
        let first = next().await;
        for number in 1..=150 {
            let tick = next().await;
            assert!(tick - first <= number * 3 + 1, "an update was left out");
        }
    });
    server.until_metric("frolic_slow_readers").await;
    assert!(server.metric("frolic_queued_bytes").await > 0.0);
    server
        .until_metric("frolic_kicks_total{cause=\"slow_reader\"}")
        .await;
    assert!(server.metric("frolic_snapshots_skipped_total").await > 20.0);

    let mut announced = String::new();
    let reason = loop {
        match eve.next().await {
            Ok(message) if message["code"] == "kick" => announced = message["message"].to_string(),
            Ok(_) => {}
            Err(reason) => break reason,
        }
    };
    assert!(
        announced.contains("too slowly"),
        "announced {announced:?} and {reason:?}"
    );
    assert!(reason.contains("too slowly"), "closed with {reason:?}");
    others.await.expect("others are unaffected");
    server.stop().await;
}

/// Floods each client that asks with long texts, until it has disconnected.
const FIREHOSE: (&str, &str) = (
    "scripts/ServerScriptService/Firehose.luau",
    r#"local text = string.rep("all work and no play ", 700)
Network.OnClientEvent("Pour", function(player)
    for _ = 1, 1500 do
        Network.FireClient(player, "Text", text)
        Network.FireClient(player, "Text", text)
        task.wait()
    end
end)
"#,
);

#[tokio::test]
async fn a_websocket_that_is_not_read_is_slowed_then_let_go_and_others_miss_nothing() {
    stop_reading(Transport::WebSocket).await;
}

#[tokio::test]
async fn webtransport_that_is_not_read_is_slowed_then_let_go_and_others_miss_nothing() {
    stop_reading(Transport::WebTransport).await;
}

async fn stop_reading(transport: Transport) {
    let server = TestServer::start_with(&[FIREHOSE]).await;
    let mut ada = Player::new("Ada");
    ada.connect(&server, transport).await;
    let mut eve = Player::new("Eve");
    eve.connect(&server, transport).await;
    while eve.welcomes.is_empty() {
        eve.play(Duration::from_millis(20)).await;
    }
    eve.fire("Pour", 1);
    eve.flush().await;

    // Ada reads all the while, and a hundred updates more when Eve is gone.
    let (done, mut stop) = tokio::sync::oneshot::channel::<()>();
    let others = tokio::spawn(async move {
        let mut ticks = BTreeSet::new();
        while stop.try_recv().is_err() {
            ada.play(Duration::from_millis(5)).await;
            ticks.insert(ada.newest_tick());
        }
        let meanwhile = ticks.len();
        while ticks.len() < meanwhile + 100 {
            ada.play(Duration::from_millis(5)).await;
            ticks.insert(ada.newest_tick());
        }
        meanwhile
    });
    server.until_metric("frolic_slow_readers").await;
    server
        .until_metric("frolic_kicks_total{cause=\"slow_reader\"}")
        .await;
    let skipped = server.metric("frolic_snapshots_skipped_total").await;
    assert!(skipped > 20.0, "slowed first: {skipped} updates left out");
    let reason = loop {
        match eve.read().await {
            Ok(()) => {}
            Err(reason) => break reason,
        }
    };
    assert!(reason.contains("too slowly"), "closed with {reason:?}");

    let _ = done.send(());
    let meanwhile = others.await.expect("others are unaffected");
    assert!(
        meanwhile > 20,
        "{meanwhile} updates for Ada while Eve was slow"
    );
    let kicked = "frolic_kicks_total{cause=\"slow_reader\"}";
    assert_eq!(server.metric(kicked).await, 1.0, "Eve alone");
    server.stop().await;
}
