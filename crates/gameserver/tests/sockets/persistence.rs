//! State that a world persists for its next process, and when a process must
//! end.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use frolic_fleet_api::persist::Saved;
use frolic_fleet_api::store::StoreBatch;
use frolic_protocol::message::Resumption;
use serde_json::json;

use crate::connection::Transport;
use crate::player::Player;
use crate::server::{AskedStore, Shelf, TestServer};
use crate::stranger::Stranger;

/// Builds on request, and reports how many structures there are.
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

async fn received_numbers(player: &mut Player, count: usize) -> Vec<u32> {
    while player.received("Built").len() < count {
        assert!(player.played() < PATIENCE);
        player.play(Duration::from_millis(20)).await;
    }
    player.received("Built").to_vec()
}

#[tokio::test]
async fn operations_persisted_before_a_restart_are_not_repeated() {
    let shelf = shelf();
    let before = TestServer::start_on(&[SCENE, BUILDER], shelf.clone()).await;
    let mut ada = Player::new("Ada");
    ada.connect(&before, Transport::WebSocket).await;
    for number in 1..=5 {
        ada.fire("Build", number);
    }
    assert_eq!(received_numbers(&mut ada, 5).await.len(), 5);
    before.stop().await;
    ada.cut();
    // Sent after the last checkpoint: the next process receives it.
    ada.fire("Build", 6);

    let after = TestServer::start_on(&[SCENE, BUILDER], shelf.clone()).await;
    ada.connect(&after, Transport::WebSocket).await;
    assert_eq!(
        received_numbers(&mut ada, 6).await[5],
        6,
        "none of the five again"
    );
    assert_eq!(ada.welcomes, [Resumption::New, Resumption::Restarted]);
    let ops = shelf.saved.lock().expect("whole").world.ops.len();
    assert_eq!(ops, 6);
    after.stop().await;
}

/// A player who joined in the last moment is not persisted. On rejoining they
/// send their looks again, and the messages that were not persisted.
#[tokio::test]
async fn messages_sent_right_before_a_kill_reach_the_next_process() {
    let shelf = shelf();
    let before = TestServer::start_on(&[SCENE, BUILDER], shelf.clone()).await;
    shelf.busy.store(true, Relaxed);
    let mut ada = Player::new("Ada");
    ada.connect(&before, Transport::WebSocket).await;
    while ada.welcomes.is_empty() {
        ada.play(Duration::from_millis(20)).await;
    }
    ada.fire("Build", 1);
    ada.flush().await;
    shelf.more_persist_tries(3).await;
    before.stop().await;
    ada.cut();

    let after = TestServer::start_on(&[SCENE, BUILDER], shelf.clone()).await;
    shelf.busy.store(false, Relaxed);
    ada.connect(&after, Transport::WebSocket).await;
    assert_eq!(received_numbers(&mut ada, 1).await, [1]);
    assert_eq!(ada.welcomes, [Resumption::New, Resumption::Restarted]);
    after.stop().await;
}

#[tokio::test]
async fn a_world_that_runs_elsewhere_ends_without_reporting_success() {
    let shelf = shelf();
    let server = TestServer::start_on(&[SCENE, BUILDER], shelf.clone()).await;
    let mut ada = Player::new("Ada");
    ada.connect(&server, Transport::WebSocket).await;
    ada.fire("Build", 1);
    received_numbers(&mut ada, 1).await;
    shelf.replaced.store(true, Relaxed);
    ada.fire("Build", 2);
    ada.flush().await;
    let ended = tokio::time::timeout(PATIENCE, server.ended()).await;
    assert!(ended.is_ok(), "it goes on");
    assert_eq!(ada.received("Built").len(), 1);
    assert_eq!(shelf.saved.lock().expect("whole").world.ops.len(), 1);
}

/// A client forgets what a pong confirms, so that must outlive the process.
#[tokio::test]
async fn a_pong_confirms_what_is_stored() {
    let shelf = shelf();
    let server = TestServer::start_on(&[SCENE], shelf.clone()).await;
    let mut ada = Stranger::join(&server, "Ada").await;
    ada.next_of("snapshot").await;
    shelf.until(|saved| !saved.players.is_empty()).await;
    shelf.busy.store(true, Relaxed);
    ada.command("chat", "say", json!({ "text": "one" })).await;
    assert_eq!(ada.next_chat().await["text"], "one");
    ada.command("session", "ping", json!({ "t": 1 })).await;
    assert_eq!(ada.next_of("pong").await["received"], 0);
    shelf.busy.store(false, Relaxed);
    shelf.until(|saved| saved.players[0].received == 1).await;
    let began = std::time::Instant::now();
    let confirmed = loop {
        ada.command("session", "ping", json!({ "t": 2 })).await;
        let received = ada.next_of("pong").await["received"].as_u64();
        if received > Some(0) {
            break received;
        }
        assert!(began.elapsed() < PATIENCE);
    };
    assert_eq!(confirmed, Some(1));
    server.stop().await;
}

/// A process knows which tickets it took, and not which the one before it did.
#[tokio::test]
async fn a_ticket_of_an_earlier_process_opens_nothing() {
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
    // A player who rejoins is admitted.
    let ticket = after.ticket("world_test", "Ben", 60);
    assert!(Stranger::join_with(&after, &ticket).await.is_ok());
    after.stop().await;
}

const GROUND: (&str, &str) = (
    "scene.json",
    r#"{"format":1,"terrain":{"size":[128,64,128],"generator":{"type":"flat","height":8},"reach":8,"brush":3,"rate":10},
        "entities":[{"id":1,"name":"Spawn","components":{"Transform":{"position":[0.5,8,0.5]},"SpawnPoint":{}}}]}"#,
);

#[tokio::test]
async fn a_change_of_the_ground_is_acknowledged_when_it_is_stored() {
    let shelf = shelf();
    let server = TestServer::start_on(&[GROUND], shelf.clone()).await;
    let mut ada = Stranger::join(&server, "Ada").await;
    ada.next_of("snapshot").await;
    shelf.busy.store(true, Relaxed);
    let dig = json!({ "op": "subtract", "center": [0.5, 7.5, 3.5], "radius": 0.5 });
    ada.command("terrain", "op", dig.clone()).await;
    let asked = ada.seq();
    ada.command("session", "ping", json!({ "t": 1 })).await;
    loop {
        let message = ada.next().await.expect("goes on");
        assert_ne!(message["seq"], asked, "nothing is stored yet");
        if message["kind"] == "pong" {
            break;
        }
    }
    let stored = || shelf.saved.lock().expect("whole").world.ops.len();
    assert_eq!(stored(), 0);
    shelf.busy.store(false, Relaxed);
    while ada.next_of("ack").await["seq"] != asked {}
    assert_eq!(stored(), 1);
    assert_eq!(ada.next_of_feature("terrain").await["action"], "applied");

    // The hole is there already.
    ada.command("terrain", "op", dig).await;
    let refused = ada.next_of("error").await;
    assert_eq!(refused["seq"], ada.seq());
    assert_eq!(refused["code"], "nothing_changed");
    server.stop().await;
}

#[tokio::test]
async fn a_full_world_reserves_places_and_does_not_waste_resume_tokens() {
    let shelf = || {
        Arc::new(Shelf {
            players_max: 1,
            ..Shelf::default()
        })
    };
    let first = shelf();
    let server = TestServer::start_on(&[SCENE], first.clone()).await;
    let mut ada = Stranger::join(&server, "Ada").await;
    ada.next_of("snapshot").await;
    let token = ada.welcome["resumeToken"]
        .as_str()
        .expect("a token")
        .to_owned();
    drop(ada);
    let mut away = first.away.subscribe();
    let heartbeat = away.wait_for(|away| away == &["client_Ada"]);
    let heartbeat = tokio::time::timeout(PATIENCE, heartbeat).await;
    heartbeat
        .expect("the platform receives it")
        .expect("the platform runs");
    let ticket = server.ticket("world_test", "Ben", 60);
    let refused = Stranger::join_with(&server, &ticket).await;
    assert_eq!(refused.err().as_deref(), Some("world_full"));
    let session = first.saved.lock().expect("whole").players[0]
        .session
        .clone();
    let ada = Stranger::resume(&server, &token).await.expect("resumes");
    let token = ada.welcome["resumeToken"]
        .as_str()
        .expect("a token")
        .to_owned();
    // A client that does not count messages starts another session.
    first
        .until(|saved| saved.players[0].session != session)
        .await;
    server.stop().await;

    // In the next process another player took the place.
    let after = TestServer::start_on(&[SCENE], first).await;
    let mut ben = Stranger::join(&after, "Ben").await;
    let refused = Stranger::resume(&after, &token).await;
    assert_eq!(refused.err().as_deref(), Some("world_full"));
    ben.command("session", "leave", json!({})).await;
    while ben.next().await.is_ok() {}
    let ada = Stranger::resume(&after, &token)
        .await
        .expect("the same token");
    assert_eq!(ada.welcome["resumption"], "restarted");
    after.stop().await;
}

/// Makes the requested number of payments into an account, all at once.
const BANK: (&str, &str) = (
    "scripts/ServerScriptService/Bank.luau",
    r#"Network.OnClientEvent("Deposit", function(player, times)
    for number = 1, times do
        task.spawn(Store.Increment, `coins {number}`, 1)
    end
end)
"#,
);

const GAME: (&str, &str) = (
    "game.toml",
    "[game]\nid = \"bank\"\nname = \"Bank\"\nmax_players = 50\n\n[capabilities]\nstore = true\n",
);

async fn event(stranger: &mut Stranger, name: &str, number: u32) {
    let payload = json!({ "name": name, "args": [number] });
    stranger.command("network", "event", payload).await;
    while stranger.next_of("ack").await["seq"] != stranger.seq() {}
}

/// The persisted receive count of a player.
fn received(shelf: &Shelf, player_id: &str) -> Option<u32> {
    let saved = shelf.saved.lock().expect("whole");
    let mut players = saved.players.iter();
    let found = players.find(|player| player.player_id == player_id)?;
    Some(found.received)
}

/// Another player's persisted operation must not persist her receive count: her
/// write could still be lost.
#[tokio::test]
async fn receive_counts_are_not_persisted_while_their_writes_are_in_flight() {
    let shelf = shelf();
    let server = TestServer::start_on(&[GAME, SCENE, BUILDER, BANK], shelf.clone()).await;
    let mut ada = Stranger::join(&server, "Ada").await;
    let mut ben = Stranger::join(&server, "Ben").await;
    shelf.until(|saved| saved.players.len() == 2).await;
    shelf.store_hangs.send_replace(true);
    event(&mut ada, "Deposit", 1).await;
    let asked = shelf.asked_store(1).await;
    assert_eq!(asked[0].batch.requests.len(), 1);
    for number in 1..=3 {
        event(&mut ben, "Build", number).await;
        // At least one of them began after that.
        shelf.more_persist_tries(2).await;
        assert_eq!(received(&shelf, "client_Ada"), Some(0));
        ada.command("session", "ping", json!({ "t": 1 })).await;
        assert_eq!(ada.next_of("pong").await["received"], 0);
    }
    shelf.store_hangs.send_replace(false);
    let all = |saved: &Saved| {
        let mut counts = saved.players.iter().map(|player| player.received);
        saved.world.ops.len() == 3 && counts.all(|count| count == 1 || count == 3)
    };
    shelf.until(all).await;
    server.stop().await;
}

/// A message with a write may have built something as well.
#[tokio::test]
async fn what_was_built_meanwhile_is_stored_with_the_writes() {
    let shelf = shelf();
    let server = TestServer::start_on(&[GAME, SCENE, BUILDER, BANK], shelf.clone()).await;
    let mut ada = Stranger::join(&server, "Ada").await;
    let mut ben = Stranger::join(&server, "Ben").await;
    shelf.until(|saved| saved.players.len() == 2).await;
    shelf.store_hangs.send_replace(true);
    event(&mut ada, "Deposit", 1).await;
    shelf.asked_store(1).await;
    event(&mut ben, "Build", 1).await;
    event(&mut ada, "Deposit", 1).await;
    shelf.store_hangs.send_replace(false);
    let asked = shelf.asked_store(2).await;
    let is_handled = |batch: &StoreBatch, player_id: &str| {
        let mut counts = batch.handled.iter();
        counts.any(|count| count.player_id == player_id)
    };
    assert!(!is_handled(&asked[0].batch, "client_Ben"));
    assert!(is_handled(&asked[1].batch, "client_Ben"));
    // Stored by itself once the first write was, or together with the second.
    shelf.until(|saved| saved.world.ops.len() == 1).await;
    let counts = || ["client_Ada", "client_Ben"].map(|id| received(&shelf, id));
    while counts() != [Some(2), Some(1)] {
        shelf.more_persist_tries(1).await;
    }
    assert_eq!(ben.next_of_feature("network").await["name"], "Built");
    server.stop().await;
}

/// Two transactions, and the process may end between them.
#[tokio::test]
async fn no_write_is_persisted_without_its_receive_counts() {
    let shelf = shelf();
    let server = TestServer::start_on(&[GAME, SCENE, BANK], shelf.clone()).await;
    let mut ada = Stranger::join(&server, "Ada").await;
    shelf.until(|saved| !saved.players.is_empty()).await;
    event(&mut ada, "Deposit", 65).await;
    let mut asked = shelf.asked_store(1).await;
    let requests = |asked: &[AskedStore]| -> usize {
        asked.iter().map(|asked| asked.batch.requests.len()).sum()
    };
    while requests(&asked) < 65 {
        asked = shelf.asked_store(asked.len() + 1).await;
    }
    for AskedStore { batch, .. } in &asked {
        let counts = batch.handled.iter().map(|count| count.received);
        assert_eq!(counts.collect::<Vec<_>>(), [1], "{}", batch.requests.len());
    }
    server.stop().await;
}

/// The receive count is stored in the player's row, so the row must exist.
#[tokio::test]
async fn what_newcomers_write_waits_until_their_session_is_stored() {
    let shelf = shelf();
    let server = TestServer::start_on(&[GAME, SCENE, BANK], shelf.clone()).await;
    shelf.busy.store(true, Relaxed);
    let mut ada = Stranger::join(&server, "Ada").await;
    event(&mut ada, "Deposit", 1).await;
    shelf.more_persist_tries(3).await;
    shelf.busy.store(false, Relaxed);
    let AskedStore { batch, sessions } = shelf.asked_store(1).await.remove(0);
    let [count] = batch.handled.as_slice() else {
        panic!("{:?}", batch.handled);
    };
    assert_eq!(count.received, 1);
    let session = (count.player_id.clone(), count.session.clone());
    assert!(sessions.contains(&session), "only {sessions:?} were stored");
    server.stop().await;
}
