//! What an operator can read of a world at `/metrics`.

use std::time::Duration;

use serde_json::json;

use crate::line::Transport;
use crate::player::Player;
use crate::server::TestServer;
use crate::stranger::Stranger;

/// Who knows a figure of the debug overlay.
enum Known {
    /// The server, as these metrics.
    Here(&'static [&'static str]),
    /// Nobody but the client, and why.
    OnlyThere(&'static str),
}
use Known::{Here, OnlyThere};

/// Every figure that NET-11 names.
const OVERLAY: [(&str, Known); 15] = [
    (
        "connection state",
        Here(&[
            "frolic_connections",
            "frolic_players",
            "frolic_resumed_total",
            "frolic_kicks_total{cause=\"left\"}",
        ]),
    ),
    (
        "transport",
        Here(&["frolic_webtransport", "frolic_connections"]),
    ),
    ("server tick", Here(&["frolic_tick"])),
    (
        "RTT",
        Here(&[
            "frolic_rtt_ms{quantile=\"0.5\"}",
            "frolic_rtt_ms{quantile=\"0.99\"}",
        ]),
    ),
    (
        "jitter",
        Here(&[
            "frolic_jitter_ms{quantile=\"0.5\"}",
            "frolic_jitter_ms{quantile=\"0.99\"}",
            "frolic_jitter_ms_mean",
        ]),
    ),
    (
        "loss",
        Here(&[
            "frolic_snapshot_packets_total",
            "frolic_snapshot_packets_lost_total",
        ]),
    ),
    (
        "input sequence",
        OnlyThere("each client counts its own; a sum or a mean of them says nothing"),
    ),
    (
        "pending inputs",
        Here(&["frolic_waiting_inputs", "frolic_repeated_inputs_total"]),
    ),
    (
        "corrections",
        OnlyThere("a client alone knows what it had predicted"),
    ),
    ("bytes/s in", Here(&["frolic_bytes_in_total"])),
    ("bytes/s out", Here(&["frolic_bytes_out_total"])),
    (
        "snapshot age",
        OnlyThere(
            "it counts from the arrival; what we held back is in updates_deferred and snapshots_skipped",
        ),
    ),
    ("entities", Here(&["frolic_entities"])),
    ("script memory", Here(&["frolic_script_bytes"])),
    ("script time", Here(&["frolic_script_us"])),
];

#[tokio::test]
async fn net_11_what_the_overlay_shows_is_at_metrics_as_far_as_a_server_can_know() {
    let server = TestServer::start().await;
    let mut ada = Player::new("Ada");
    ada.connect(&server, Transport::WebTransport).await;
    let mut ben = Stranger::join(&server, "Ben").await;
    ben.next_of("snapshot").await;
    while ada.newest_tick() < 120 {
        ada.play(Duration::from_millis(20)).await;
    }
    for (figure, known) in OVERLAY {
        match known {
            Here(names) => {
                for name in names {
                    let value = server.metric(name).await;
                    assert!(value >= 0.0, "{figure}: {name} is {value}");
                }
            }
            OnlyThere(why) => assert!(!why.is_empty(), "{figure}"),
        }
    }
    assert_eq!(server.metric("frolic_webtransport").await, 1.0);
    assert!(server.metric("frolic_rtt_ms{quantile=\"0.99\"}").await > 0.0);
    assert!(server.metric("frolic_snapshots_total").await > 20.0);
    assert!(server.metric("frolic_snapshot_packets_total").await > 20.0);
    // A machine that is busy loses some even to itself.
    let packets = server.metric("frolic_snapshot_packets_total").await;
    let lost = server.metric("frolic_snapshot_packets_lost_total").await;
    assert!(lost < packets / 2.0, "{lost} of {packets}");
    // Characters, coins and all that is solid.
    let entities = server.metric("frolic_entities").await;
    assert!((10.0..10_000.0).contains(&entities), "{entities}");
    // One input and no more: it goes on for a while.
    let inputs = json!({ "inputs": [{ "seq": 1, "up": true }] });
    ben.command("movement", "input_batch", inputs).await;
    server.until_metric("frolic_repeated_inputs_total").await;
    server.stop().await;
}
