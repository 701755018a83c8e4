//! Presence: a lost connection, a reconnect and a leave are each visible at
//! once.

use std::time::Duration;

use frolic_client::ClientEvent;
use serde_json::{Value as Json, json};

use crate::connection::Transport;
use crate::player::Player;
use crate::server::TestServer;
use crate::stranger::Stranger;

/// The next snapshot entries of a player, until one is as wanted. The limit is
/// far below the minute after which the player would be removed anyway.
async fn until(watcher: &mut Stranger, name: &str, wanted: impl Fn(&Json) -> bool) -> Json {
    let search = async {
        loop {
            let snapshot = watcher.next_of("snapshot").await;
            let tick = snapshot["tick"].clone();
            watcher
                .command("session", "ack", json!({ "tick": tick }))
                .await;
            let players = snapshot["features"]["presence"]["players"].as_array();
            let mut players = players.into_iter().flatten();
            if let Some(entry) = players.find(|one| one["name"] == name && wanted(one)) {
                return entry.clone();
            }
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(20), search).await;
    found.unwrap_or_else(|_| panic!("no such entry of {name} arrived"))
}

#[tokio::test]
async fn a_lost_connection_a_return_and_a_leave_show_at_once() {
    let server = TestServer::start().await;
    let mut ada = Stranger::join(&server, "Ada").await;
    let mut ben = Stranger::join(&server, "Ben").await;
    let token = ben.welcome["resumeToken"]
        .as_str()
        .expect("a token")
        .to_owned();
    let here = until(&mut ada, "Ben", |entry| entry["online"] == true).await;
    assert_eq!(here["number"], ben.welcome["playerNumber"]);
    assert_eq!(here.get("left"), None);
    ben.next_of("snapshot").await;
    ben.disconnect().await;

    let away = until(&mut ada, "Ben", |entry| entry["online"] == false).await;
    assert_eq!(away.get("left"), None, "they may come back");
    assert_eq!(away["entityId"], here["entityId"]);
    // A client that joins now sees that they are away.
    let mut cleo = Stranger::join(&server, "Cleo").await;
    let full = cleo.next_of("snapshot").await;
    let players = full["features"]["presence"]["players"].as_array();
    let known = players
        .expect("players")
        .iter()
        .find(|one| one["name"] == "Ben");
    assert_eq!(known.expect("still in the world")["online"], false);

    let mut again = Stranger::resume(&server, &token).await.expect("resumes");
    let back = until(&mut ada, "Ben", |entry| entry["online"] == true).await;
    assert_eq!(back["number"], here["number"]);
    again.next_of("snapshot").await;
    again.command("session", "leave", json!({})).await;
    let gone = until(&mut ada, "Ben", |entry| entry["online"] == false).await;
    assert_eq!(gone["left"], true);
    server.stop().await;
}

/// The next presence of a player that our own client receives: online, left.
async fn next_presence(
    player: &mut Player,
    name: &str,
    before: Option<(bool, bool)>,
) -> (bool, bool) {
    let mut next = None;
    while next.is_none() {
        assert!(
            player.played() < Duration::from_secs(120),
            "after {before:?}"
        );
        player
            .play_with(Duration::from_millis(20), &mut |event| {
                if let ClientEvent::Players {
                    changed: players, ..
                } = event
                {
                    let entry = players.iter().filter(|entry| entry.name == name);
                    let mut entry = entry.map(|entry| (entry.online, entry.left));
                    next = next.or(entry.find(|entry| Some(*entry) != before));
                }
            })
            .await;
    }
    next.unwrap_or_default()
}

#[tokio::test]
async fn our_own_client_receives_the_same() {
    let server = TestServer::start().await;
    let mut ada = Player::new("Ada");
    ada.connect(&server, Transport::WebSocket).await;
    let ben = Stranger::join(&server, "Ben").await;
    let token = ben.welcome["resumeToken"]
        .as_str()
        .expect("a token")
        .to_owned();
    let here = (true, false);
    assert_eq!(next_presence(&mut ada, "Ben", None).await, here);
    ben.disconnect().await;
    let away = next_presence(&mut ada, "Ben", Some(here)).await;
    assert_eq!(away, (false, false));
    let mut ben = Stranger::resume(&server, &token).await.expect("resumes");
    assert_eq!(next_presence(&mut ada, "Ben", Some(away)).await, here);
    ben.command("session", "leave", json!({})).await;
    assert_eq!(
        next_presence(&mut ada, "Ben", Some(here)).await,
        (false, true)
    );
    server.stop().await;
}
