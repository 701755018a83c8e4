//! A client with an answer in every tick still receives snapshots.

use std::time::Duration;

use serde_json::json;

use crate::server::TestServer;
use crate::stranger::Stranger;

/// Updates that are counted: two seconds of them.
const UPDATES: u64 = 40;

#[tokio::test]
async fn a_stranger_that_sends_inputs_in_every_tick_misses_no_update() {
    let server = TestServer::start().await;
    let mut ada = Stranger::join(&server, "Ada").await;
    let mut first = None;
    let (mut updates, mut newest) = (0, 0);
    let mut each_tick = tokio::time::interval(Duration::from_millis(16));
    let mut seq = 0;
    while updates < UPDATES {
        tokio::select! {
            // Each of them is confirmed in the tick that takes it.
            _ = each_tick.tick() => {
                seq += 1;
                let inputs = json!({ "inputs": [{ "seq": seq, "up": true }] });
                ada.command("movement", "input_batch", inputs).await;
            }
            message = ada.next() => {
                let message = message.expect("the connection is open");
                if message["kind"] == "snapshot" {
                    newest = message["tick"].as_u64().expect("a tick");
                    first.get_or_insert(newest);
                    updates += 1;
                }
            }
        }
        assert!(seq < 60 * 60, "{updates} updates came in a minute");
    }
    // Every third tick is hers; the first comes with the welcome, whenever that
    // is, and one that has no time left is made in the next tick.
    let ticks = newest - first.expect("there was one");
    assert!(
        ticks <= UPDATES * 3 + 1,
        "{UPDATES} updates in {ticks} ticks"
    );
    assert_eq!(server.metric("frolic_slow_readers").await, 0.0);
    assert_eq!(server.metric("frolic_snapshots_skipped_total").await, 0.0);
    server.stop().await;
}
