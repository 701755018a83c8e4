//! A snapshot that is too long for datagrams.

use std::time::Duration;

use frolic_client::ClientEvent;

use crate::connection::Transport;
use crate::player::Player;
use crate::server::TestServer;

/// More than fits the maximum number of fragments of a packet, all in one cell.
const BOXES: usize = 45;
const SIGNS: (&str, &str) = (
    "scripts/ServerScriptService/Signs.luau",
    r##"local spawn = World.Find("Spawn")
for number = 1, 45 do
    local sign = World.Spawn({ Shape = { type = "box", size = { 0.1, 0.1, 0.1 } } }, spawn.Position)
    sign:SetAttribute("Text", string.rep("a long text ", 600))
end
"##,
);
const SCENE: (&str, &str) = (
    "scene.json",
    r#"{"format":1,"entities":[{"id":1,"name":"Spawn","components":{"Transform":{"position":[0,1,0]},"SpawnPoint":{}}}]}"#,
);

#[tokio::test]
async fn a_snapshot_of_any_length_arrives_over_webtransport() {
    let server = TestServer::start_with(&[SCENE, SIGNS]).await;
    let mut ada = Player::new("Ada");
    ada.connect(&server, Transport::WebTransport).await;
    let mut texts = 0;
    while texts < BOXES {
        assert!(ada.played() < Duration::from_secs(120), "{texts} came");
        ada.play_with(Duration::from_millis(20), &mut |event| {
            texts += usize::from(matches!(event, ClientEvent::Details { .. }));
        })
        .await;
    }
    // And is acknowledged: it is not sent again and again.
    let before = server.metric("frolic_sent_bytes_total").await;
    let tick = ada.newest_tick();
    while ada.newest_tick() < tick + 120 {
        ada.play(Duration::from_millis(20)).await;
    }
    let after = server.metric("frolic_sent_bytes_total").await;
    assert!(after - before < 50_000.0, "{}", after - before);
    server.stop().await;
}
