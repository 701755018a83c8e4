//! Our client over WebTransport on narrow or lossy connections.

use std::time::Duration;

use crate::player::Player;
use crate::relay::{Quality, Relay};
use crate::server::TestServer;

/// Moving objects near the spawn points: about 40 KiB/s of updates.
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
/// Measurements of a connection, ten seconds each, before the test fails.
const ATTEMPTS: u32 = 6;

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

/// A player who has received a snapshot of the crowd.
async fn join(server: &TestServer, name: &str, up: Quality, down: Quality) -> (Player, Relay) {
    let relay = Relay::start(server.webtransport.port, up, down, 8).await;
    let mut player = Player::new(name);
    player.connect_at(server, relay.port).await;
    while player.newest_tick() == 0 {
        player.play(Duration::from_millis(50)).await;
        assert!(player.played() < Duration::from_secs(60), "no snapshot");
    }
    // Initially every entity is new, and the connection's capacity is unknown.
    player.play(Duration::from_secs(5)).await;
    (player, relay)
}

async fn tick(server: &TestServer) -> u32 {
    server.metric("frolic_ticks_total").await as u32
}

#[tokio::test]
async fn updates_on_a_narrow_connection_are_recent() {
    let server = TestServer::start_with(&[CROWD, SPEECH]).await;
    let narrow = Quality {
        bytes_per_s: Some(8 * 1000),
        queue_bytes: 4 * 1000,
        ..Quality::GOOD
    };
    // A disconnected player would panic here.
    let (mut eve, _relay) = join(&server, "Eve", Quality::GOOD, narrow).await;
    // Reliable messages arrive beside updates that would fill the connection
    // alone.
    eve.fire("Speak", 1);
    let began = eve.played();
    let (mut ages, mut slow) = (Vec::new(), 0.0f64);
    while ages.len() < 60 || eve.received("End").is_empty() {
        // Everything sent so far must arrive soon. If the machine delays this
        // test, the world continues and nothing gets older.
        let made = tick(&server).await;
        eve.play(Duration::from_millis(200)).await;
        ages.push(made.saturating_sub(eve.newest_tick()));
        slow = slow.max(server.metric("frolic_slow_readers").await);
        let waited = eve.played() - began;
        assert!(waited < Duration::from_secs(180), "the text never came");
    }
    assert!(slow >= 1.0, "the congestion was not detected");
    let median = ages.len() / 2;
    ages.sort_unstable();
    // With the 200 ms that were played: 1.5 s, and 4 s.
    assert!(ages[median] <= 90 - 12, "too old: {ages:?}");
    assert!(ages.last() <= Some(&(240 - 12)), "far too old: {ages:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_lossy_connection_with_spare_capacity_delivers_every_update() {
    let server = TestServer::start_with(&[CROWD]).await;
    // Ada's connection is good: she receives every update. Every third tick is
    // an update of several packets; losing one of them keeps the others. With
    // Cubic's own window about half of them arrived.
    let ((mut eve, _bad), (mut ada, _good)) = tokio::join!(
        join(&server, "Eve", Quality::BAD, Quality::BAD),
        join(&server, "Ada", Quality::GOOD, Quality::GOOD),
    );
    // A busy machine lengthens round trips, as a full connection does, and the
    // server sends less. Losses alone must not have this effect, so the test
    // fails only if every measurement does.
    for attempt in 1.. {
        let (bad, good) = tokio::join!(watch(&server, &mut eve), watch(&server, &mut ada));
        let calm = bad.calm && good.calm;
        assert!(good.share > 0.9 || !calm, "updates are missing: {good:?}");
        // A world that is late sends less to all clients.
        let there_is = match calm {
            true => CROWD_BYTES_PER_S,
            false => good.bytes_per_s,
        };
        let due = good.share.min(1.0);
        if bad.share > 0.72 * due && bad.bytes_per_s > 0.75 * there_is {
            break;
        }
        assert!(attempt < ATTEMPTS, "{bad:?} of {good:?}");
    }
    server.stop().await;
}

/// The updates that a client received in ten seconds of the world's time.
#[derive(Debug)]
struct Received {
    /// Of the updates that were due.
    share: f64,
    bytes_per_s: f64,
    /// Whether the world kept up with its clock during all of them.
    calm: bool,
}

async fn watch(server: &TestServer, player: &mut Player) -> Received {
    let (first, bytes) = (tick(server).await, player.bytes_in());
    player.shown.clear();
    let (mut newest, mut calm) = (first, true);
    while newest < first + 600 {
        for _ in 0..20 {
            player.play(Duration::from_millis(5)).await;
        }
        newest = tick(server).await;
        calm &= server.metric("frolic_pressure").await == 0.0;
    }
    let ticks = f64::from(newest - first);
    Received {
        // Each is noted as it comes, however many come at once.
        share: player.shown.len() as f64 * 3.0 / ticks,
        bytes_per_s: (player.bytes_in() - bytes) as f64 * 60.0 / ticks,
        calm,
    }
}
