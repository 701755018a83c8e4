//! What a world leaves to its next process, and when it must end itself.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use frolic_protocol::message::Resumption;

use crate::line::Transport;
use crate::player::Player;
use crate::server::{Shelf, TestServer};
use crate::stranger::Stranger;

/// Builds what it is told to, and says how much there is.
const BUILDER: (&str, &str) = (
    "scripts/ServerScriptService/Builder.luau",
    r#"Network.OnClientEvent("Build", function(player, number)
    local spawn = World.Find("Spawn") or player.Character
    World.Build("Coin", spawn.Position, nil, `number {number}`)
    Network.FireClient(player, "Built", #World.Structures())
end)
"#,
);
const SCENE: (&str, &str) = (
    "scene.json",
    r#"{"format":1,"prefabs":{"Coin":{"components":{"Shape":{"type":"sphere","radius":0.3}}}},
        "entities":[{"id":1,"name":"Spawn","components":{"Transform":{"position":[0,1,0]},"SpawnPoint":{}}}]}"#,
);
const PATIENCE: Duration = Duration::from_secs(60);

fn shelf() -> Arc<Shelf> {
    Arc::new(Shelf {
        persistent: true,
        ..Shelf::default()
    })
}

async fn heard(player: &mut Player, count: usize) -> Vec<u32> {
    while player.heard("Built").len() < count {
        assert!(player.played() < PATIENCE);
        player.play(Duration::from_millis(20)).await;
    }
    player.heard("Built").to_vec()
}

#[tokio::test]
async fn net_9_what_a_restarted_server_had_kept_is_not_done_twice() {
    let shelf = shelf();
    let before = TestServer::start_on(&[SCENE, BUILDER], shelf.clone()).await;
    let mut ada = Player::new("Ada");
    ada.connect(&before, Transport::WebSocket).await;
    for number in 1..=5 {
        ada.fire("Build", number);
    }
    assert_eq!(heard(&mut ada, 5).await.len(), 5);
    before.stop().await;
    ada.cut();
    // Said to nobody: the next one hears it.
    ada.fire("Build", 6);

    let after = TestServer::start_on(&[SCENE, BUILDER], shelf.clone()).await;
    ada.connect(&after, Transport::WebSocket).await;
    assert_eq!(heard(&mut ada, 6).await[5], 6, "none of the five again");
    assert_eq!(ada.welcomes, [Resumption::New, Resumption::Restarted]);
    let ops = shelf.saved.lock().expect("whole").world.ops.len();
    assert_eq!(ops, 6);
    after.stop().await;
}

#[tokio::test]
async fn a_world_that_runs_elsewhere_ends_itself_and_tells_nobody_it_is_done() {
    let shelf = shelf();
    let server = TestServer::start_on(&[SCENE, BUILDER], shelf.clone()).await;
    let mut ada = Player::new("Ada");
    ada.connect(&server, Transport::WebSocket).await;
    ada.fire("Build", 1);
    heard(&mut ada, 1).await;
    shelf.replaced.store(true, Relaxed);
    ada.fire("Build", 2);
    ada.flush().await;
    let ended = tokio::time::timeout(PATIENCE, server.ended()).await;
    assert!(ended.is_ok(), "it goes on");
    assert_eq!(ada.heard("Built").len(), 1);
    assert_eq!(shelf.saved.lock().expect("whole").world.ops.len(), 1);
}

/// A process knows which tickets it took, and not which the one before it did.
#[tokio::test]
async fn net_4_a_ticket_of_an_earlier_process_opens_nothing() {
    let shelf = shelf();
    let before = TestServer::start_on(&[SCENE], shelf.clone()).await;
    let used = before.ticket("world_test", "Ada", 60);
    let fresh = before.ticket("world_test", "Ben", 60);
    let mut ada = Stranger::join_with(&before, &used).await.expect("a ticket");
    ada.next_of("snapshot").await;
    before.stop().await;

    let after = TestServer::start_on(&[SCENE], shelf).await;
    for ticket in [used, fresh] {
        let refused = Stranger::join_with(&after, &ticket).await;
        assert_eq!(refused.err().as_deref(), Some("ticket_expired"));
    }
    // Who joins again gets in.
    let ticket = after.ticket("world_test", "Ben", 60);
    assert!(Stranger::join_with(&after, &ticket).await.is_ok());
    after.stop().await;
}
