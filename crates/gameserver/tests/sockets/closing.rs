//! A world that is asked to stop: its scripts save first, and meanwhile it
//! admits no players.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use frolic_fleet_api::store::StoreAction;
use serde_json::json;

use crate::server::{Shelf, TestServer};
use crate::stranger::Stranger;

const PATIENCE: Duration = Duration::from_secs(60);

const GAME: (&str, &str) = (
    "game.toml",
    "[game]\nid = \"bank\"\nname = \"Bank\"\nmax_players = 50\n\n[capabilities]\nstore = true\n",
);
const SAVING: (&str, &str) = (
    "scripts/ServerScriptService/Save.luau",
    r#"Players.PlayerRemoving:Connect(function(player)
    Store.ForPlayer(player).Set("coins", 7)
    Store.ForPlayer(player).Set("name", player.Name)
end)
World.OnClose(function()
    Store.Set("closed", true)
end)
"#,
);

/// Keys that were written, in order.
fn written(shelf: &Shelf) -> Vec<String> {
    let asked = shelf.asked_store.borrow();
    let requests = asked.iter().flat_map(|asked| &asked.batch.requests);
    let keys = requests.filter_map(|request| match &request.action {
        StoreAction::Set { at, .. } => Some(at.key.clone()),
        _ => None,
    });
    keys.collect()
}

#[tokio::test]
async fn a_stopping_world_saves_all_players_and_admits_none() {
    let shelf = Arc::new(Shelf::default());
    let server = TestServer::start_on(&[GAME, SAVING], shelf.clone()).await;
    let mut ada = Stranger::join(&server, "Ada").await;
    ada.next_of("snapshot").await;
    // Ben has lost his connection and may come back.
    drop(Stranger::join(&server, "Ben").await);
    let mut away = shelf.away.subscribe();
    let heartbeat = away.wait_for(|away| away == &["client_Ben"]);
    let heartbeat = tokio::time::timeout(PATIENCE, heartbeat).await;
    heartbeat.expect("in time").expect("it listens");

    shelf.store_hangs.send_replace(true);
    shelf.stopping.store(server.epoch, Relaxed);
    let error = ada.next_of("error").await;
    assert_eq!(error["code"], "restarting");
    shelf.asked_store(1).await;
    // It waits for the store.
    let refused = Stranger::join_with(&server, &server.ticket("world_test", "Cay", 60)).await;
    assert_eq!(refused.err().as_deref(), Some("restarting"));
    let token = ada.welcome["resumeToken"].as_str().expect("a token");
    let refused = Stranger::resume(&server, token).await;
    assert_eq!(refused.err().as_deref(), Some("restarting"));
    shelf.store_hangs.send_replace(false);
    let ended = tokio::time::timeout(PATIENCE, server.ended()).await;
    ended.expect("it ends");
    let mut keys = written(&shelf);
    keys.sort();
    assert_eq!(keys, ["closed", "coins", "coins", "name", "name"]);

    // Both go on in the next process, where they were.
    let token = token.to_owned();
    let next = TestServer::start_on(&[GAME, SAVING], shelf.clone()).await;
    let ada = Stranger::resume(&next, &token).await.expect("resumes");
    assert_eq!(ada.welcome["resumption"], "restarted");
    next.stop().await;
}

#[tokio::test]
async fn a_handler_that_never_ends_does_not_delay_the_end_of_a_world() {
    let shelf = Arc::new(Shelf {
        close_limit_s: 1,
        ..Shelf::default()
    });
    let endless = (
        "scripts/ServerScriptService/Save.luau",
        "World.OnClose(function() while true do task.wait() end end)\n\
         World.OnClose(function() Store.Set(\"closed\", true) end)\n",
    );
    let server = TestServer::start_on(&[GAME, endless], shelf.clone()).await;
    let mut ada = Stranger::join(&server, "Ada").await;
    ada.next_of("snapshot").await;
    ada.command("chat", "say", json!({ "text": "one" })).await;
    shelf.stopping.store(server.epoch, Relaxed);
    let ended = tokio::time::timeout(PATIENCE, server.ended()).await;
    ended.expect("it ends");
    assert_eq!(written(&shelf), ["closed"]);
}
