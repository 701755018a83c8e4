//! Events that may be lost, beside those that may not.

use std::time::Duration;

use serde_json::json;

use crate::player::Player;
use crate::relay::{Quality, Relay};
use crate::server::TestServer;
use crate::stranger::Stranger;

const EVENTS: u32 = 300;

/// Sends the same numbers reliably and unreliably, on request.
const SENDER: (&str, &str) = (
    "scripts/ServerScriptService/Teller.luau",
    r#"Network.OnClientEvent("Tell", function(player)
    for number = 1, 300 do
        Network.FireClientUnreliable(player, "Maybe", number)
        Network.FireClient(player, "Sure", number)
        task.wait()
    end
end)
"#,
);

#[tokio::test]
async fn unreliable_events_are_lost_with_their_packets_and_the_others_are_not() {
    let server = TestServer::start_with(&[SENDER]).await;
    let (up, down) = (Quality::GOOD, Quality::BAD);
    let relay = Relay::start(server.webtransport.port, up, down, 5).await;
    let mut ada = Player::new("Ada");
    ada.connect_at(&server, relay.port).await;
    while ada.welcomes.is_empty() {
        ada.play(Duration::from_millis(20)).await;
    }
    ada.fire("Tell", 1);
    while ada.received("Sure").len() < EVENTS as usize {
        ada.play(Duration::from_millis(20)).await;
        assert!(ada.played() < Duration::from_secs(60), "they never came");
    }
    assert!(ada.received("Sure").iter().copied().eq(1..=EVENTS));
    let mut maybe = ada.received("Maybe").to_vec();
    let came = maybe.len();
    maybe.sort_unstable();
    maybe.dedup();
    assert_eq!(came, maybe.len(), "none comes twice");
    // One in twenty is lost; the last ones may be on their way.
    assert!((240..300).contains(&came), "{came} of {EVENTS} came");
    server.stop().await;
}

#[tokio::test]
async fn an_unreliable_event_has_no_number_in_json() {
    receive_in_json(SENDER).await;
}

/// A message queued for the end of this tick does not suppress the unreliable
/// one.
#[tokio::test]
async fn an_unreliable_event_comes_behind_a_reliable_one_of_its_tick_in_json() {
    let (path, text) = SENDER;
    let mut lines: Vec<&str> = text.lines().collect();
    lines.swap(2, 3);
    let swapped = lines.join("\n");
    assert!(swapped.find("Sure") < swapped.find("Maybe"), "{swapped}");
    receive_in_json((path, &swapped)).await;
}

async fn receive_in_json(sender: (&str, &str)) {
    let server = TestServer::start_with(&[sender]).await;
    let mut ada = Stranger::join(&server, "Ada").await;
    let payload = json!({ "name": "Tell", "args": [] });
    ada.command("network", "event", payload).await;
    let (mut sure, mut maybe, mut newest) = (0, 0, None);
    while sure < 3 || maybe < 3 {
        let event = ada.next_of("event").await;
        match event["name"].as_str() {
            Some("Sure") => {
                sure += 1;
                assert_eq!(event["args"], json!([sure]));
                // The game has events of its own.
                let number = event["n"].as_u64();
                assert!(number > newest, "{event} after {newest:?}");
                newest = number;
            }
            Some("Maybe") => {
                // One may be left out, when this machine is slow to read.
                maybe += 1;
                assert!(event["args"][0].as_u64() >= Some(maybe), "{event}");
                assert_eq!(event.get("n"), None);
            }
            _ => {}
        }
    }
    server.stop().await;
}
