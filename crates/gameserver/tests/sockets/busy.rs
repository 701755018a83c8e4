//! A world that has no time left for its updates: they come later, and to
//! everybody.

use futures_util::future::join_all;

use crate::server::TestServer;
use crate::stranger::Stranger;

/// Takes a little longer with every tick until it is cut: scripts have no clock,
/// and on any machine some ticks in a row are over before the first update can
/// be made. Not before everybody is in.
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
    // Nobody waits for the others to be served again and again.
    let (first, last) = (newest.iter().min(), newest.iter().max());
    let apart = last.zip(first).map(|(last, first)| last - first);
    assert!(apart.is_some_and(|apart| apart < 60), "{newest:?}");
    server.stop().await;
}

async fn next_tick(player: &mut Stranger) -> u64 {
    let tick = player.next_of("snapshot").await["tick"].as_u64();
    tick.expect("a tick")
}
