//! The metrics of a world at `/metrics`.

use std::time::Duration;

use serde_json::json;

use crate::connection::Transport;
use crate::player::Player;
use crate::server::TestServer;
use crate::stranger::Stranger;

/// Every figure of the debug overlay.
const OVERLAY: [(&str, &[&str]); 15] = [
    (
        "connection state",
        &[
            "frolic_connections",
            "frolic_players",
            "frolic_resumed_total",
            "frolic_kicks_total{cause=\"left\"}",
        ],
    ),
    (
        "transport",
        &["frolic_webtransport_connections", "frolic_connections"],
    ),
    (
        "server tick",
        &[
            "frolic_ticks_total",
            "frolic_tick_seconds_count",
            "frolic_tick_stage_seconds_total{stage=\"writes\"}",
        ],
    ),
    (
        "RTT",
        &[
            "frolic_rtt_seconds_bucket{le=\"0.1\"}",
            "frolic_rtt_seconds_sum",
        ],
    ),
    (
        "jitter",
        &[
            "frolic_jitter_seconds_bucket{le=\"0.1\"}",
            "frolic_jitter_seconds_sum",
            "frolic_client_jitter_seconds_sum",
        ],
    ),
    (
        "loss",
        &[
            "frolic_snapshot_packets_total",
            "frolic_snapshot_packets_lost_total",
        ],
    ),
    ("input sequence", &["frolic_client_input_sequence"]),
    (
        "pending inputs",
        &[
            "frolic_client_pending_inputs_sum",
            "frolic_waiting_inputs",
            "frolic_repeated_inputs_total",
        ],
    ),
    ("corrections", &["frolic_client_corrections_total"]),
    ("bytes/s in", &["frolic_received_bytes_total"]),
    ("bytes/s out", &["frolic_sent_bytes_total"]),
    ("snapshot age", &["frolic_client_snapshot_age_seconds_sum"]),
    ("entities", &["frolic_entities"]),
    ("script memory", &["frolic_script_bytes"]),
    ("script time", &["frolic_script_seconds_total"]),
];

/// Metrics with a value as soon as a player has joined; one that is no longer
/// measured stays 0.
const MOVING: [&str; 13] = [
    "frolic_ticks_total",
    "frolic_players",
    "frolic_received_bytes_total",
    "frolic_sent_bytes_total",
    "frolic_tick_seconds_sum",
    "frolic_rtt_seconds_sum",
    "frolic_jitter_seconds_sum",
    "frolic_client_jitter_seconds_sum",
    "frolic_client_input_sequence",
    "frolic_client_pending_inputs_sum",
    "frolic_waiting_inputs",
    "frolic_script_bytes",
    "frolic_script_seconds_total",
];

#[tokio::test]
async fn what_the_overlay_shows_is_at_metrics() {
    let server = TestServer::start().await;
    let mut ada = Player::new("Ada");
    ada.connect(&server, Transport::WebTransport).await;
    let mut ben = Stranger::join(&server, "Ben").await;
    ben.next_of("snapshot").await;
    while ada.newest_tick() < 120 {
        ada.play(Duration::from_millis(20)).await;
    }
    for (figure, names) in OVERLAY {
        for name in names {
            let value = server.metric(name).await;
            assert!(value >= 0.0, "{figure}: {name} is {value}");
        }
    }
    for name in MOVING {
        // Some describe one moment, or an event that occurs once per second.
        while server.metric(name).await <= 0.0 {
            ada.play(Duration::from_millis(20)).await;
            assert!(ada.played() < Duration::from_secs(60), "{name} stays 0");
        }
    }
    assert_eq!(server.metric("frolic_webtransport_connections").await, 1.0);
    assert!(server.metric("frolic_rtt_seconds_count").await > 0.0);
    assert!(server.metric("frolic_snapshots_total").await > 20.0);
    assert!(server.metric("frolic_snapshot_packets_total").await > 20.0);
    // A machine that is busy loses some even to itself.
    let packets = server.metric("frolic_snapshot_packets_total").await;
    let lost = server.metric("frolic_snapshot_packets_lost_total").await;
    assert!(lost < packets / 2.0, "{lost} of {packets}");
    // Characters, coins and all that is solid.
    let entities = server.metric("frolic_entities").await;
    assert!((10.0..10_000.0).contains(&entities), "{entities}");
    // Her client's report. The clients of the tests stand still and predict
    // correctly.
    server.until_metric("frolic_client_input_sequence").await;
    server
        .until_metric("frolic_client_snapshot_age_seconds_count")
        .await;
    let young = "frolic_client_snapshot_age_seconds_bucket{le=\"5\"}";
    assert!(server.metric(young).await > 0.0);
    // A liar is believed as far as it makes no difference.
    let before = server.metric("frolic_client_corrections_total").await;
    let lies = json!({ "corrections": 4_000_000_000u32, "snapshotAgeMs": 1e30, "jitterMs": -5 });
    ben.command("session", "report", lies).await;
    ben.command("session", "ping", json!({ "t": 1 })).await;
    ben.next_of("pong").await;
    let corrections = server.metric("frolic_client_corrections_total").await;
    assert_eq!(corrections, before + 240.0);
    // One input and no more: it goes on for a while.
    let inputs = json!({ "inputs": [{ "seq": 1, "up": true }] });
    ben.command("movement", "input_batch", inputs).await;
    server.until_metric("frolic_repeated_inputs_total").await;
    server.stop().await;
}
