//! A world without time for its updates delays them for all clients equally.

use futures_util::future::join_all;

use crate::server::TestServer;
use crate::stranger::Stranger;

/// Takes longer with every tick until it is interrupted: scripts have no clock,
/// and on any machine some consecutive ticks then end before the first update
/// can be made. Starts only when all players have joined.
const BUSY: (&str, &str) = (
    "scripts/ServerScriptService/Busy.luau",
    r#"while Players.Count < 64 do
    task.wait()
end
local work = 10000
while true do
    for _ = 1, work do
    end
    work = math.floor(work * 1.2)
    task.wait()
end
"#,
);
/// More than are served in a tick whose time is over; the script waits for them.
const PLAYERS: usize = 64;

#[tokio::test]
async fn updates_that_do_not_fit_into_a_tick_wait_their_turn() {
    let manifest = include_str!("../../../../games/obby/game.toml");
    let roomy = manifest.replace("max_players = 50", "max_players = 100");
    let server = TestServer::start_with(&[BUSY, ("game.toml", &roomy)]).await;
    let mut players = Vec::new();
    for number in 0..PLAYERS {
        players.push(Stranger::join(&server, &format!("Player {number}")).await);
    }
    let newest_player = players.last_mut().expect("players");
    let everybody_is_in = next_tick(newest_player).await;
    let updates = join_all(players.iter_mut().map(async |player| {
        let mut last = 0;
        let mut updates = 0;
        while updates < 10 {
            let tick = next_tick(player).await;
            assert!(tick > last, "{tick} after {last}");
            updates += u32::from(tick > everybody_is_in);
            last = tick;
        }
        last
    }));
    let newest = updates.await;
    server.until_metric("frolic_updates_deferred_total").await;
    // No client is served twice while others wait.
    let (first, last) = (newest.iter().min(), newest.iter().max());
    let apart = last.zip(first).map(|(last, first)| last - first);
    assert!(apart.is_some_and(|apart| apart < 60), "{newest:?}");
    server.stop().await;
}

async fn next_tick(player: &mut Stranger) -> u64 {
    let tick = player.next_of("snapshot").await["tick"].as_u64();
    tick.expect("a tick")
}
