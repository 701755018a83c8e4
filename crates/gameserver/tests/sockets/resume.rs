//! Lost connections: players reconnect, and no message in either direction is
//! lost, duplicated or reordered.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use frolic_client::ClientEvent;
use frolic_fleet_api::persist::Saved;
use frolic_protocol::message::Resumption;
use frolic_protocol::packet::{self, CLIENT_MESSAGE_BYTES_MAX};
use frolic_protocol::resume::{PersistedLog, PersistedMessage};
use frolic_protocol::{Args, ClientMessage, ServerMessage, Value};
use serde_json::json;

use crate::connection::Transport;
use crate::player::Player;
use crate::server::{Shelf, TestServer};
use crate::stranger::Stranger;

/// Sends back every number it is sent, however many come.
pub const ECHO: (&str, &str) = (
    "scripts/ServerScriptService/Echo.luau",
    r#"Network.Declare("Number", { "number: integer" }, { rate = 1000, burst = 1000 })
Network.OnClientEvent("Number", function(player, number)
    Network.FireClient(player, "Echo", number)
end)
"#,
);
/// The same for a number with a text.
const LETTERS: (&str, &str) = (
    "scripts/ServerScriptService/Letters.luau",
    r#"Network.Declare("Letter", { "number: integer", "text: string" }, { rate = 1000, burst = 1000 })
Network.OnClientEvent("Letter", function(player, number, text)
    Network.FireClient(player, "Echo", number)
end)
"#,
);
const EVENTS: u32 = 1000;
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_websocket_cut_in_the_middle_of_a_thousand_events_loses_and_doubles_none() {
    cut_again_and_again(Transport::WebSocket).await;
}

#[tokio::test]
async fn webtransport_cut_in_the_middle_of_a_thousand_events_loses_and_doubles_none() {
    cut_again_and_again(Transport::WebTransport).await;
}

async fn cut_again_and_again(transport: Transport) {
    let server = TestServer::start_with(&[ECHO]).await;
    let mut ada = Player::new("Ada");
    ada.connect(&server, transport).await;
    let mut fired = 0;
    let mut turn = 0u32;
    while ada.received("Echo").len() < EVENTS as usize {
        let came = ada.received("Echo").len();
        assert!(ada.played() < PATIENCE, "{came} came");
        turn += 1;
        for _ in 0..5.min(EVENTS - fired) {
            fired += 1;
            ada.fire("Number", fired);
        }
        if turn.is_multiple_of(47) && fired < EVENTS {
            // The last messages were written, but it is unknown whether they
            // arrived.
            ada.flush().await;
            if turn.is_multiple_of(94) {
                ada.cut();
            } else {
                // The server notices only when the player is back.
                ada.vanish();
            }
            for _ in 0..3.min(EVENTS - fired) {
                fired += 1;
                ada.fire("Number", fired);
            }
            let resumed = server.metric("frolic_resumed_total").await;
            ada.connect(&server, transport).await;
            if turn.is_multiple_of(94) {
                // Cut again before the welcome could be read, and after it was sent:
                // the server may take up two connections in any order.
                while server.metric("frolic_resumed_total").await <= resumed {
                    assert!(ada.played() < PATIENCE, "the server does not resume");
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                ada.cut();
                ada.connect(&server, transport).await;
            }
        }
        ada.play(Duration::from_millis(20)).await;
    }
    ada.play(Duration::from_millis(300)).await;
    assert_eq!(ada.received("Echo"), (1..=EVENTS).collect::<Vec<_>>());
    assert!(!ada.lost);
    let resumed = ada.welcomes.iter().filter(|w| **w == Resumption::Resumed);
    assert!(resumed.count() >= 3, "{:?}", ada.welcomes);
    let first = &ada.players[0];
    assert!(ada.players.iter().all(|player| player == first));
    server.stop().await;
}

/// Messages queued while disconnected exceed the limit of one WebSocket
/// message, and are sent at once.
#[tokio::test]
async fn a_large_burst_after_a_return_arrives_over_a_websocket() {
    a_large_burst_after_a_return(Transport::WebSocket).await;
}

#[tokio::test]
async fn a_large_burst_after_a_return_arrives_over_webtransport() {
    a_large_burst_after_a_return(Transport::WebTransport).await;
}

async fn a_large_burst_after_a_return(transport: Transport) {
    const LETTERS_SENT: u32 = 190;
    let server = TestServer::start_with(&[LETTERS]).await;
    let mut ada = Player::new("Ada");
    ada.connect(&server, transport).await;
    while ada.welcomes.is_empty() {
        ada.play(Duration::from_millis(20)).await;
    }
    ada.cut();
    let letter = |number: u32, bytes: usize| {
        let text = Value::String("x".repeat(bytes));
        Args(vec![Value::Number(f64::from(number)), text])
    };
    for number in 1..=LETTERS_SENT {
        ada.client
            .fire_server("Letter".into(), letter(number, 1000));
    }
    ada.connect(&server, transport).await;
    while ada.received("Echo").len() < LETTERS_SENT as usize {
        assert!(
            ada.played() < PATIENCE,
            "{} came",
            ada.received("Echo").len()
        );
        ada.play(Duration::from_millis(20)).await;
    }
    ada.play(Duration::from_millis(300)).await;
    assert_eq!(ada.received("Echo"), (1..=LETTERS_SENT).collect::<Vec<_>>());
    assert_eq!(ada.welcomes, [Resumption::New, Resumption::Resumed]);
    assert!(!ada.lost);
    server.stop().await;
}

#[tokio::test]
async fn the_longest_message_is_taken_over_a_websocket() {
    the_longest_message_is_taken(Transport::WebSocket).await;
}

#[tokio::test]
async fn the_longest_message_is_taken_over_webtransport() {
    the_longest_message_is_taken(Transport::WebTransport).await;
}

/// The server accepts every call that the client sends; a refused call does not
/// close the connection.
async fn the_longest_message_is_taken(transport: Transport) {
    let server = TestServer::start_with(&[LETTERS, ECHO]).await;
    let mut ada = Player::new("Ada");
    ada.connect(&server, transport).await;
    while ada.welcomes.is_empty() {
        ada.play(Duration::from_millis(20)).await;
    }
    let text = |bytes: usize| Value::String("x".repeat(bytes));
    let event = |last: usize| {
        let mut values = vec![text(16 * 1024); 3];
        values.push(text(last));
        ClientMessage::Event {
            name: "No handler".into(),
            args: Args(values),
        }
    };
    let without = packet::single(&event(16_000)).len() - 16_000;
    let longest = CLIENT_MESSAGE_BYTES_MAX - without;
    ada.client.send(&event(longest + 1));
    ada.client.send(&event(longest));
    ada.fire("Number", 1);
    let mut codes = Vec::new();
    while ada.received("Echo").is_empty() {
        assert!(ada.played() < PATIENCE);
        ada.play_with(Duration::from_millis(20), &mut |event| {
            if let ClientEvent::Error { code, .. } = event {
                codes.push(code.clone());
            }
        })
        .await;
    }
    assert_eq!(codes, ["event_too_large"]);
    assert_eq!(
        ada.welcomes,
        [Resumption::New],
        "the connection stayed open"
    );
    server.stop().await;
}

/// A player who loses one transport resumes over the other: a session is
/// independent of its connection.
#[tokio::test]
async fn a_session_goes_on_over_the_other_transport() {
    let server = TestServer::start_with(&[ECHO]).await;
    let mut ada = Player::new("Ada");
    let transports = [Transport::WebTransport, Transport::WebSocket];
    for number in 1..=6 {
        ada.connect(&server, transports[number as usize % 2]).await;
        ada.fire("Number", number);
        while ada.received("Echo").len() < number as usize {
            assert!(ada.played() < PATIENCE);
            ada.play(Duration::from_millis(20)).await;
        }
        ada.vanish();
    }
    assert_eq!(ada.received("Echo"), [1, 2, 3, 4, 5, 6]);
    assert_eq!(ada.welcomes[0], Resumption::New);
    assert_eq!(ada.welcomes[1..], [Resumption::Resumed; 5]);
    server.stop().await;
}

#[tokio::test]
async fn a_restarted_server_knows_its_players_by_their_tokens() {
    let shelf = Arc::<Shelf>::default();
    let before = TestServer::start_on(&[ECHO], shelf.clone()).await;
    let mut ada = Player::new("Ada");
    ada.connect(&before, Transport::WebSocket).await;
    while ada.welcomes.is_empty() {
        ada.play(Duration::from_millis(20)).await;
    }
    shelf.until(|saved| !saved.players.is_empty()).await;
    before.stop().await;
    ada.cut();
    ada.fire("Number", 1);

    let after = TestServer::start_on(&[ECHO], shelf).await;
    ada.connect(&after, Transport::WebSocket).await;
    while ada.received("Echo").is_empty() {
        assert!(ada.played() < PATIENCE);
        ada.play(Duration::from_millis(20)).await;
    }
    assert_eq!(ada.welcomes, [Resumption::New, Resumption::Restarted]);
    assert_eq!(ada.players[0], ada.players[1]);
    assert_eq!(ada.received("Echo"), [1]);
    after.stop().await;
}

/// One process after the other is stopped while a player speaks, who has not
/// read all of what it says.
#[tokio::test]
async fn what_a_stopped_server_had_for_a_player_comes_from_the_next() {
    const PROCESSES: usize = 4;
    let shelf = Arc::<Shelf>::default();
    let mut ada = Player::new("Ada");
    let mut fired = 0;
    for process in 0..PROCESSES {
        let server = TestServer::start_on(&[ECHO], shelf.clone()).await;
        ada.connect(&server, Transport::WebSocket).await;
        let unread = fired as usize + 20 * process;
        while ada.welcomes.len() == process || ada.received("Echo").len() < unread {
            assert!(ada.played() < PATIENCE);
            fired += 1;
            ada.fire("Number", fired);
            ada.play(Duration::from_millis(20)).await;
        }
        shelf.stopping.store(server.epoch, Relaxed);
        let mut ended = pin!(server.ended());
        loop {
            tokio::select! {
                () = &mut ended => break,
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
            }
            if fired < 300 * (process as u32 + 1) {
                fired += 1;
                ada.fire("Number", fired);
            }
            // The client stops reading just before the end.
            let _ = ada.try_flush().await;
        }
        ada.cut();
    }
    let server = TestServer::start_on(&[ECHO], shelf).await;
    ada.connect(&server, Transport::WebSocket).await;
    while ada.received("Echo").len() < fired as usize {
        let came = ada.received("Echo").len();
        assert!(ada.played() < PATIENCE, "{came} of {fired} came");
        ada.play(Duration::from_millis(20)).await;
    }
    ada.play(Duration::from_millis(300)).await;
    assert_eq!(ada.received("Echo"), (1..=fired).collect::<Vec<_>>());
    assert!(!ada.lost);
    assert_eq!(ada.welcomes[1..], [Resumption::Restarted; PROCESSES]);
    server.stop().await;
}

/// The last persisted state is all that remains of a killed process.
#[tokio::test]
async fn a_killed_server_persisted_the_queue_of_disconnected_players() {
    let shelf = Arc::<Shelf>::default();
    let before = TestServer::start_on(&[], shelf.clone()).await;
    let mut ada = Stranger::join(&before, "Ada").await;
    let mut eve = Stranger::join(&before, "Eve").await;
    let token = eve.welcome["resumeToken"]
        .as_str()
        .expect("a token")
        .to_owned();
    let say = |text: &str| json!({ "text": text });
    ada.command("chat", "say", say("one")).await;
    let received = eve.next_chat().await["n"].as_u64().expect("a number");
    eve.disconnect().await;
    ada.command("chat", "say", say("two")).await;
    for text in ["one", "two"] {
        assert_eq!(ada.next_chat().await["text"], text);
    }
    let left = |saved: &Saved| {
        let mut players = saved.players.iter();
        let eve = players.find(|player| player.player_id == "client_Eve")?;
        PersistedLog::from_bytes(&eve.undelivered, &|_| true)
    };
    let is_second = |persisted: &PersistedMessage| matches!(&persisted.message, ServerMessage::Chat { text, .. } if text == "two");
    shelf
        .until(|saved| left(saved).is_some_and(|log| log.messages.iter().any(is_second)))
        .await;
    let killed = Arc::new(Shelf {
        saved: shelf.saved.lock().expect("whole").clone().into(),
        epoch: 1.into(),
        ..Shelf::default()
    });
    before.stop().await;

    let after = TestServer::start_on(&[], killed).await;
    // The connection breaks before the first welcome is read.
    let deaf = Stranger::resume_from(&after, &token, received).await;
    deaf.disconnect().await;
    let mut eve = Stranger::resume_from(&after, &token, received).await;
    assert_eq!(eve.welcome["resumption"], "restarted");
    assert_eq!(eve.welcome["sent"], received);
    let second = eve.next_chat().await;
    assert_eq!(
        (&second["text"], &second["n"]),
        (&json!("two"), &json!(received + 1))
    );
    eve.command("chat", "say", say("three")).await;
    let third = eve.next_chat().await;
    assert_eq!(third["text"], "three");
    assert!(third["n"].as_u64() > Some(received + 1), "{third}");
    after.stop().await;
}

const SLOW: (&str, &str) = (
    "scripts/ServerScriptService/Slow.luau",
    r#"Network.OnClientInvoke("Slow", function(player) task.wait(1000) return 1 end)
Network.OnClientInvoke("Quick", function(player) return 2 end)
"#,
);

/// Without an answer the caller would wait forever.
#[tokio::test]
async fn a_call_that_no_process_answers_fails_exactly_once() {
    let shelf = Arc::<Shelf>::default();
    let before = TestServer::start_on(&[SLOW], shelf.clone()).await;
    let mut ada = Stranger::join(&before, "Ada").await;
    let token = ada.welcome["resumeToken"]
        .as_str()
        .expect("a token")
        .to_owned();
    let label = "\u{1}".repeat(64);
    for (id, name) in [
        (json!(7), "Slow"),
        (json!(label), "Slow"),
        (json!(8), "Quick"),
    ] {
        let call = json!({ "id": id, "name": name, "args": [] });
        ada.command("network", "invoke", call).await;
    }
    let quick = ada.next_of_feature("network.result").await;
    assert_eq!((&quick["id"], &quick["value"]), (&json!(8), &json!(2)));
    let received = quick["n"].as_u64().expect("a number");
    shelf
        .until(|saved| saved.players.iter().any(|player| player.received == 3))
        .await;
    before.stop().await;

    let after = TestServer::start_on(&[SLOW], shelf).await;
    let mut ada = Stranger::resume_from(&after, &token, received).await;
    for id in [json!(7), json!(label)] {
        let result = ada.next_of_feature("network.result").await;
        assert_eq!(
            (&result["id"], &result["ok"]),
            (&id, &json!(false)),
            "{result}"
        );
        assert!(
            result["error"]
                .as_str()
                .is_some_and(|why| why.contains("restarted")),
            "{result}"
        );
    }
    let call = json!({ "id": 9, "name": "Quick", "args": [] });
    ada.command("network", "invoke", call).await;
    assert_eq!(ada.next_of_feature("network.result").await["id"], 9);
    after.stop().await;
}

#[tokio::test]
async fn a_json_client_receives_messages_from_its_absence_exactly_once() {
    let server = TestServer::start().await;
    let mut ada = Stranger::join(&server, "Ada").await;
    let mut eve = Stranger::join(&server, "Eve").await;
    let token = eve.welcome["resumeToken"]
        .as_str()
        .expect("a token")
        .to_owned();
    let say = |text: &str| json!({ "text": text });
    ada.command("chat", "say", say("one")).await;
    let first = eve.next_chat().await;
    assert_eq!(first["text"], "one");
    let received = first["n"].as_u64().expect("a number");
    eve.disconnect().await;
    ada.command("chat", "say", say("two")).await;
    assert_eq!(ada.next_chat().await["text"], "one");
    assert_eq!(ada.next_chat().await["text"], "two");

    let mut eve = Stranger::resume_from(&server, &token, received).await;
    assert_eq!(eve.welcome["resumption"], "resumed");
    assert_eq!(eve.welcome["sent"], received);
    let second = eve.next_chat().await;
    assert_eq!(
        (&second["text"], &second["n"]),
        (&json!("two"), &json!(received + 1))
    );
    ada.command("chat", "say", say("three")).await;
    assert_eq!(eve.next_chat().await["text"], "three");
    server.stop().await;
}

#[tokio::test]
async fn a_token_works_until_the_welcome_that_brings_the_next_has_arrived() {
    let server = TestServer::start().await;
    let mut ada = Stranger::join(&server, "Ada").await;
    let token_of = |stranger: &Stranger| {
        let token = stranger.welcome["resumeToken"].as_str();
        token.expect("a token").to_owned()
    };
    let (token, entity) = (token_of(&ada), ada.welcome["entityId"].clone());
    ada.command("session", "ping", json!({})).await;
    ada.next_of("pong").await;
    ada.disconnect().await;
    // The connection breaks again and again before the client has read a byte.
    for _ in 0..3 {
        let mut deaf = Stranger::connect(&server).await;
        let handshake = json!({ "resumeToken": token });
        deaf.command("session", "handshake", handshake).await;
        deaf.next_of("welcome").await;
        deaf.disconnect().await;
    }
    let mut ada = Stranger::resume(&server, &token).await.expect("resumes");
    assert_eq!(ada.welcome["entityId"], entity);
    // The newest one works as well, if its welcome was read after all.
    let newest = token_of(&ada);
    ada = Stranger::resume(&server, &newest).await.expect("resumes");
    assert_eq!(ada.welcome["entityId"], entity);
    ada.command("session", "ping", json!({})).await;
    ada.next_of("pong").await;
    for old in [token, newest] {
        let refused = Stranger::resume(&server, &old).await;
        assert_eq!(refused.err().as_deref(), Some("ticket_missing"));
    }
    server.stop().await;
}

/// A ticket is valid once. A used ticket does not prove an identity either.
#[tokio::test]
async fn a_used_ticket_does_not_bring_a_spent_token_back() {
    let server = TestServer::start().await;
    let used = server.ticket("world_test", "Ada", 60);
    let ada = Stranger::join_with(&server, &used).await.expect("comes in");
    let entity = ada.welcome["entityId"].clone();
    let spent = ada.welcome["resumeToken"].as_str().expect("a token");
    let mut ada = Stranger::resume(&server, spent).await.expect("resumes");
    ada.command("session", "ping", json!({})).await;
    ada.next_of("pong").await;
    let refused = Stranger::resume_with(&server, spent, &used).await;
    assert_eq!(refused.err().as_deref(), Some("ticket_used"));
    let fresh = server.ticket("world_test", "Ada", 60);
    let back = Stranger::resume_with(&server, spent, &fresh).await;
    assert_eq!(back.expect("resumes").welcome["entityId"], entity);
    server.stop().await;
}

#[tokio::test]
async fn a_restarted_server_honours_a_token_until_its_welcome_has_arrived() {
    let shelf = Arc::<Shelf>::default();
    let before = TestServer::start_on(&[], shelf.clone()).await;
    let ada = Stranger::join(&before, "Ada").await;
    let token = ada.welcome["resumeToken"]
        .as_str()
        .expect("a token")
        .to_owned();
    shelf.until(|saved| !saved.players.is_empty()).await;
    before.stop().await;
    let after = TestServer::start_on(&[], shelf).await;
    for _ in 0..3 {
        let ada = Stranger::resume_from(&after, &token, 0).await;
        assert_eq!(ada.welcome["resumption"], "restarted");
        ada.disconnect().await;
    }
    after.stop().await;
}

/// A kicked player cannot resume either: a token is no ticket.
#[tokio::test]
async fn who_left_an_earlier_process_does_not_come_back_by_their_token() {
    let shelf = Arc::<Shelf>::default();
    let before = TestServer::start_on(&[], shelf.clone()).await;
    let mut ada = Stranger::join(&before, "Ada").await;
    let token = ada.welcome["resumeToken"]
        .as_str()
        .expect("a token")
        .to_owned();
    shelf.until(|saved| !saved.players.is_empty()).await;
    ada.command("session", "leave", json!({})).await;
    shelf.until(|saved| saved.players.is_empty()).await;
    before.stop().await;
    let after = TestServer::start_on(&[], shelf).await;
    let refused = Stranger::resume(&after, &token).await;
    assert_eq!(refused.err().as_deref(), Some("ticket_missing"));
    after.stop().await;
}

#[tokio::test]
async fn what_came_behind_the_last_acknowledged_snapshot_comes_again() {
    let server = TestServer::start().await;
    let mut ada = Stranger::join(&server, "Ada").await;
    let mut eve = Stranger::join(&server, "Eve").await;
    let token = eve.welcome["resumeToken"]
        .as_str()
        .expect("a token")
        .to_owned();
    let say = |text: &str| json!({ "text": text });
    ada.command("chat", "say", say("one")).await;
    // The game may have something to say as well.
    let mut newest = eve.next_chat().await["n"].clone();
    let tick = loop {
        let message = eve.next().await.expect("the connection is open");
        if message["kind"] == "snapshot" {
            break message["tick"].clone();
        }
        if message["n"].is_u64() {
            newest = message["n"].clone();
        }
    };
    eve.command("session", "ack", json!({ "tick": tick })).await;
    let acknowledged = eve.seq();
    while eve.next_of("ack").await["seq"] != acknowledged {}
    // Written to a connection that is no longer read.
    ada.command("chat", "say", say("two")).await;
    for text in ["one", "two"] {
        assert_eq!(ada.next_chat().await["text"], text);
    }
    let mut eve = Stranger::resume(&server, &token).await.expect("resumes");
    assert_eq!(eve.welcome["resumption"], "resumed");
    assert_eq!(eve.welcome["sent"], newest);
    let two = eve.next_chat().await;
    assert_eq!(two["text"], "two");
    server.stop().await;
}

/// Commands that wait for a later tick are answered where they came from, or
/// not at all: the next connection counts its own.
#[tokio::test]
async fn answers_to_what_waited_do_not_reach_the_next_connection() {
    let server = TestServer::start().await;
    let mut eve = Stranger::join(&server, "Eve").await;
    let token = eve.welcome["resumeToken"]
        .as_str()
        .expect("a token")
        .to_owned();
    // More than several ticks take, all of them in one.
    let events = (1000..1200).map(|seq| {
        let payload = json!({ "name": "Boo", "args": [] });
        json!({"v":2,"kind":"command","seq":seq,"feature":"network","action":"event","payload":payload}).to_string()
    });
    let (mut again, ()) = tokio::join!(Stranger::connect(&server), eve.send_all(events));
    let handshake = json!({ "resumeToken": token });
    again.command("session", "handshake", handshake).await;
    let mut answers = Vec::new();
    for _ in 0..60 {
        let message = again.next().await.expect("the connection is open");
        if matches!(message["kind"].as_str(), Some("ack" | "error")) {
            answers.push(message["seq"].as_u64());
        }
    }
    assert_eq!(answers, [Some(1)]);
    server.stop().await;
}
