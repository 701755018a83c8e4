//! Our client over WebTransport on lines that are narrow or lose packets.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::player::Player;
use crate::relay::{Quality, Relay};
use crate::server::TestServer;

/// Things that never rest, around where players begin: about 40 KiB a second to
/// tell of.
const CROWD: (&str, &str) = (
    "scripts/ServerScriptService/Crowd.luau",
    r#"local random = Random.new(7)
local function number(to) return (random.NextNumber() * 2 - 1) * to end
local looks = { Shape = { type = "sphere", radius = 0.2 } }
local balls = {}
for i = 1, 250 do
    balls[i] = World.Spawn(looks, Vector3.new(number(20), 20, number(20)))
end
while true do
    for _, ball in balls do
        ball.SetVelocity(Vector3.new(number(2), number(0.5), number(2)))
    end
    task.wait(0.2)
end
"#,
);
const CROWD_BYTES_PER_S: f64 = 40.0 * 1024.0;

/// A long text and its end, on request.
const SPEECH: (&str, &str) = (
    "scripts/ServerScriptService/Speech.luau",
    r#"Network.OnClientEvent("Speak", function(player)
    for _ = 1, 2 do
        Network.FireClient(player, "Text", string.rep("a", 12000))
    end
    Network.FireClient(player, "End", 1)
end)
"#,
);

/// Somebody who has seen something of the crowd.
async fn join(server: &TestServer, up: Quality, down: Quality) -> (Player, Relay) {
    let relay = Relay::start(server.webtransport.port, up, down, 8).await;
    let mut player = Player::new("Eve");
    player.connect_at(server, relay.port).await;
    while player.newest_tick() == 0 {
        player.play(Duration::from_millis(50)).await;
        assert!(player.played() < Duration::from_secs(60), "no snapshot");
    }
    // Everything is new at first, and so is how much fits the line.
    player.play(Duration::from_secs(5)).await;
    (player, relay)
}

async fn tick(server: &TestServer) -> u32 {
    server.metric("frolic_tick").await as u32
}

#[tokio::test]
async fn what_a_narrow_line_brings_is_not_old() {
    let server = TestServer::start_with(&[CROWD, SPEECH]).await;
    let narrow = Quality {
        bytes_per_s: Some(8 * 1000),
        queue_bytes: 4 * 1000,
        ..Quality::GOOD
    };
    // Whoever is thrown out panics there.
    let (mut eve, _relay) = join(&server, Quality::GOOD, narrow).await;
    // What must arrive does so beside updates that would fill the line alone.
    eve.fire("Speak", 1);
    let began = eve.played();
    let (mut ages, mut slow) = (Vec::new(), 0.0f64);
    while ages.len() < 60 || eve.heard("End").is_empty() {
        eve.play(Duration::from_millis(200)).await;
        ages.push(tick(&server).await.saturating_sub(eve.newest_tick()));
        slow = slow.max(server.metric("frolic_slow_readers").await);
        let waited = eve.played() - began;
        assert!(waited < Duration::from_secs(60), "the text never came");
    }
    assert!(slow >= 1.0, "nobody noticed");
    let median = ages.len() / 2;
    ages.sort_unstable();
    assert!(ages[median] <= 90, "more than 1.5 s old: {ages:?}");
    assert!(ages.last() <= Some(&240), "more than 4 s old: {ages:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_line_that_loses_packets_and_is_not_full_brings_every_update() {
    let server = TestServer::start_with(&[CROWD]).await;
    let (mut eve, _relay) = join(&server, Quality::BAD, Quality::BAD).await;
    let (first, bytes) = (tick(&server).await, eve.bytes_in());
    let mut shown = BTreeSet::new();
    for _ in 0..2_000 {
        eve.play(Duration::from_millis(5)).await;
        shown.insert(eve.newest_tick());
    }
    let ticks = f64::from(tick(&server).await - first);
    let bytes_per_s = (eve.bytes_in() - bytes) as f64 * 60.0 / ticks;
    // Every third tick is an update, of several packets; who loses one of them
    // has the others. A busy machine may bring two at once. With Cubic's own
    // window it was about half.
    let share = shown.len() as f64 * 3.0 / ticks;
    assert!(share > 0.72, "{share} of the updates came");
    assert!(
        bytes_per_s > CROWD_BYTES_PER_S * 0.75,
        "{bytes_per_s} bytes/s are too little to tell"
    );
    server.stop().await;
}
