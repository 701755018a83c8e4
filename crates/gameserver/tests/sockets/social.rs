//! Social features in a world: visible looks, blocked chat, friends who arrive
//! together, and kicked players.

use std::sync::Arc;

use frolic_fleet_api::process::Expelled;
use frolic_fleet_api::ticket::CharacterProfile;
use serde_json::json;

use crate::server::{Shelf, TestServer};
use crate::stranger::Stranger;

#[tokio::test]
async fn chat_is_filtered_before_it_is_sent() {
    let server = TestServer::start().await;
    let mut ada = Stranger::join(&server, "Ada").await;
    for (said, read) in [
        ("what the fuck", "what the ****"),
        ("call 555-123-4567", "call ************"),
        ("see www.evil.example", "see ****************"),
        ("\u{202e}hello\u{200b}", "hello"),
        ("good game!", "good game!"),
    ] {
        ada.command("chat", "say", json!({ "text": said })).await;
        assert_eq!(ada.next_chat().await["text"], read);
    }
    server.stop().await;
}

#[tokio::test]
async fn looks_of_the_ticket_are_seen_by_others() {
    let server = TestServer::start().await;
    let mut bob = Stranger::join(&server, "Bob").await;
    let ticket = server.ticket_with("Ada", |claims| {
        claims.character = Some(CharacterProfile {
            id: "c".into(),
            looks: r##"{"shirt":"#112233","hat":"crown","face":17}"##.into(),
        });
    });
    let _ada = Stranger::join_with(&server, &ticket)
        .await
        .expect("comes in");
    loop {
        let snapshot = bob.next_of("snapshot").await;
        let tick = snapshot["tick"].clone();
        bob.command("session", "ack", json!({ "tick": tick })).await;
        let players = snapshot["features"]["presence"]["players"]
            .as_array()
            .cloned();
        let ada = players
            .unwrap_or_default()
            .into_iter()
            .find(|one| one["name"] == "Ada");
        if let Some(ada) = ada {
            let looks = &ada["looks"];
            assert_eq!(
                (&looks["shirt"], &looks["hat"], &looks["face"]),
                (&json!("#112233"), &json!("crown"), &json!("smile"))
            );
            break;
        }
    }
    server.stop().await;
}

/// Chat messages that a player receives until a message that all players
/// receive.
async fn received_until(player: &mut Stranger, last: &str) -> Vec<String> {
    let mut received = Vec::new();
    loop {
        let message = player.next_chat().await;
        let text = message["text"].as_str().expect("text").to_owned();
        if text == last {
            return received;
        }
        received.push(text);
    }
}

#[tokio::test]
async fn blocked_players_do_not_receive_each_others_chat() {
    let shelf = Arc::new(Shelf::default());
    // Ada has blocked Eve before she came.
    shelf
        .blocks
        .lock()
        .expect("whole")
        .insert("client_Ada".into(), vec!["client_Eve".into()]);
    let server = TestServer::start_on(&[], shelf.clone()).await;
    let mut eve = Stranger::join(&server, "Eve").await;
    let mut bob = Stranger::join(&server, "Bob").await;
    let mut ada = Stranger::join(&server, "Ada").await;
    shelf
        .asked_blocks
        .acquire_many(3)
        .await
        .expect("asked")
        .forget();
    // The answer is queued before this chat message is.
    let say = |text: &str| json!({ "text": text });
    eve.command("chat", "say", say("from Eve")).await;
    received_until(&mut bob, "from Eve").await;
    ada.command("chat", "say", say("from Ada")).await;
    received_until(&mut bob, "from Ada").await;
    bob.command("chat", "say", say("from Bob")).await;
    assert_eq!(received_until(&mut ada, "from Bob").await, ["from Ada"]);
    assert_eq!(received_until(&mut eve, "from Bob").await, ["from Eve"]);
    received_until(&mut bob, "from Bob").await;

    // She shows her again, and hides Bob while she is here.
    let hide = |id: &str, hidden: bool| json!({ "playerId": id, "hidden": hidden });
    ada.command("chat", "hide", hide("client_Eve", false)).await;
    ada.command("chat", "hide", hide("client_Bob", true)).await;
    ada.command("chat", "hide", hide("client_Ada", true)).await;
    assert_eq!(ada.next_of("error").await["code"], "bad_player");
    bob.command("chat", "say", say("Bob again")).await;
    received_until(&mut eve, "Bob again").await;
    eve.command("chat", "say", say("Eve again")).await;
    assert_eq!(received_until(&mut ada, "Eve again").await, [] as [&str; 0]);
    server.stop().await;
}

#[tokio::test]
async fn an_invited_friend_arrives_beside() {
    let server = TestServer::start().await;
    let mut ada = Stranger::join(&server, "Ada").await;
    let ada_id = ada.welcome["entityId"].as_u64().expect("an entity");
    for seq in 1..=90 {
        let input = json!({ "seq": seq, "up": true, "yaw": 0.0 });
        ada.command("movement", "input_batch", json!({ "inputs": [input] }))
            .await;
    }
    // Until the last input is used.
    loop {
        let snapshot = ada.next_of("snapshot").await;
        let tick = snapshot["tick"].clone();
        ada.command("session", "ack", json!({ "tick": tick })).await;
        if snapshot["ackSeq"] == 90 {
            break;
        }
    }
    let ticket = server.ticket_with("Bob", |claims| claims.beside = Some("client_Ada".into()));
    let mut bob = Stranger::join_with(&server, &ticket)
        .await
        .expect("comes in");
    let bob_id = bob.welcome["entityId"].as_u64().expect("an entity");
    let full = bob.next_of("snapshot").await;
    let [ax, _, az] = crate::full_position(&full, ada_id).expect("Ada is seen");
    let [bx, _, bz] = crate::full_position(&full, bob_id).expect("Bob sees himself");
    let apart = (ax - bx).hypot(az - bz);
    assert!(apart < 2.8, "{apart} m apart");
    server.stop().await;
}

#[tokio::test]
async fn a_suspended_player_is_disconnected_and_cannot_resume() {
    let shelf = Arc::new(Shelf::default());
    let server = TestServer::start_on(&[], shelf.clone()).await;
    let mut eve = Stranger::join(&server, "Eve").await;
    let token = eve.welcome["resumeToken"]
        .as_str()
        .expect("a token")
        .to_owned();
    shelf.expelled.lock().expect("whole").push(Expelled {
        player_id: "client_Eve".into(),
        reason: "You were suspended: Spam.".into(),
    });
    let reason = loop {
        if let Err(reason) = eve.next().await {
            break reason;
        }
    };
    assert_eq!(reason, "You were suspended: Spam.");
    let back = Stranger::resume(&server, &token).await;
    assert!(back.is_err(), "a token of before opens nothing");
    assert!(
        server
            .metric("frolic_kicks_total{cause=\"expelled\"}")
            .await
            >= 1.0
    );
    server.stop().await;
}
