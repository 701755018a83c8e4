//! A game server on real sockets, against clients that behave and clients that do not.

mod answered;
mod bad_connection;
mod busy;
mod by_the_book;
mod closing;
mod connection;
mod details;
mod door;
mod error_codes;
mod figures;
mod http;
mod large;
mod log_lines;
mod permissive;
mod persistence;
mod player;
mod presence;
mod relay;
mod resume;
mod saving;
mod scene;
mod scripts;
mod server;
mod slow;
mod social;
mod stalled;
mod stopped;
mod stranger;
mod terrain;
mod thrown_out;
mod unreliable;

use std::time::Duration;

use frolic_protocol::ClientMessage;
use frolic_protocol::message::BINARY_VERSION;
use frolic_protocol::packet;
use serde_json::json;
use server::TestServer;
use stranger::Stranger;

#[tokio::test]
async fn a_stranger_walks_around_in_json() {
    let server = TestServer::start().await;
    let mut ada = Stranger::join(&server, "Ada").await;
    assert_eq!(ada.welcome["tickHz"], 60);
    assert_eq!(ada.welcome["snapshotHz"], 20);
    let id = ada.welcome["entityId"].as_u64().expect("an entity");
    let full = ada.next_of("snapshot").await;
    assert_eq!(
        (&full["mode"], &full["baseline"]),
        (&json!("full"), &json!(null))
    );
    let start = full_position(&full, id).expect("own character in the first snapshot");

    for seq in 1..=60 {
        let input = json!({ "seq": seq, "up": true, "yaw": 0.0 });
        ada.command("movement", "input_batch", json!({ "inputs": [input] }))
            .await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut last = start;
    let mut acked = 0;
    for _ in 0..200 {
        if acked == 60 {
            break;
        }
        let snapshot = ada.next_of("snapshot").await;
        acked = snapshot["ackSeq"].as_u64().expect("ackSeq");
        assert!(acked <= 60, "nothing is acknowledged that was not sent");
        let tick = snapshot["tick"].clone();
        ada.command("session", "ack", json!({ "tick": tick })).await;
        last = full_position(&snapshot, id).unwrap_or(last);
    }
    assert_eq!(acked, 60, "every input is used in the end");
    assert!(
        last[2] < start[2] - 2.0,
        "walked forward: {start:?} to {last:?}"
    );
    loop {
        let snapshot = ada.next_of("snapshot").await;
        if snapshot["mode"] == "delta" {
            break;
        }
    }
    ada.command("session", "ping", json!({ "t": 12.5 })).await;
    let pong = ada.next_of("pong").await;
    assert_eq!(pong["t"], 12.5);
    server.stop().await;
}

fn full_position(snapshot: &serde_json::Value, id: u64) -> Option<[f64; 3]> {
    let entities = snapshot["features"]["movement"]["entities"].as_array()?;
    let own = entities.iter().find(|entity| entity["id"] == id)?;
    let p = own["p"].as_array()?;
    Some([p[0].as_f64()?, p[1].as_f64()?, p[2].as_f64()?])
}

#[tokio::test]
async fn a_client_that_never_acknowledges_receives_whole_snapshots() {
    let server = TestServer::start().await;
    let mut ada = Stranger::join(&server, "Ada").await;
    let id = ada.welcome["entityId"].as_u64().expect("an entity");
    for _ in 0..5 {
        let snapshot = ada.next_of("snapshot").await;
        assert_eq!(snapshot["mode"], "full");
        assert!(full_position(&snapshot, id).is_some());
    }
    server.stop().await;
}

#[tokio::test]
async fn every_bad_ticket_is_refused_with_its_reason() {
    let server = TestServer::start().await;
    let good = server.ticket("world_test", "Ada", 60);
    let cases = [
        (server.forged_ticket("Eve"), "ticket_forged"),
        (server.ticket("world_test", "Eve", -10), "ticket_expired"),
        (
            server.ticket("world_other", "Eve", 60),
            "ticket_wrong_world",
        ),
        ("rubbish".to_owned(), "ticket_malformed"),
        (String::new(), "ticket_missing"),
    ];
    let ada = Stranger::join_with(&server, &good)
        .await
        .expect("a good ticket");
    for (ticket, code) in cases.into_iter().chain([(good, "ticket_used")]) {
        let refused = Stranger::join_with(&server, &ticket).await;
        assert_eq!(refused.err().as_deref(), Some(code));
    }
    let mut ada = ada;
    ada.next_of("snapshot").await;
    server.stop().await;
}

#[tokio::test]
async fn bad_messages_are_answered_and_the_world_goes_on() {
    let server = TestServer::start().await;
    let mut honest = Stranger::join(&server, "Ada").await;
    let mut odd = Stranger::join(&server, "Eve").await;
    let cases = [
        ("{ not json".to_owned(), "bad_json"),
        (json!({"v":1,"kind":"command","seq":1}).to_string(), "unsupported_version"),
        (json!({"v":2,"kind":"command","seq":2,"feature":"fly","action":"up"}).to_string(), "unknown_command"),
        (json!({"v":2,"kind":"command","seq":3,"feature":"movement","action":"input_batch","payload":{"inputs":"all"}}).to_string(), "bad_payload"),
        (json!({"v":2,"kind":"command","seq":4,"feature":"chat","action":"say","payload":{"text":"  "}}).to_string(), "bad_chat"),
        (json!({"v":2,"kind":"command","seq":5,"feature":"network","action":"event","payload":{"name":"","args":[]}}).to_string(), "bad_name"),
        (json!({"v":2,"kind":"command","seq":5,"feature":"network","action":"event","payload":{"name":"a\nb","args":[]}}).to_string(), "bad_name"),
        (json!({"v":2,"kind":"command","seq":5,"feature":"network","action":"event","payload":{"name":"\u{1b}[31m","args":[]}}).to_string(), "bad_name"),
        (json!({"v":2,"kind":"command","seq":5,"feature":"network","action":"invoke","payload":{"id":1,"name":"\u{202e}yuB","args":[]}}).to_string(), "bad_name"),
        (json!({"v":2,"kind":"command","seq":6,"feature":"scripts","action":"request","payload":{"paths":["ServerScriptService/Main.luau"]}}).to_string(), "no_such_script"),
    ];
    for (text, code) in cases {
        odd.send_text(text).await;
        let error = odd.next_of("error").await;
        assert_eq!(error["code"], code);
        assert!(error["message"].as_str().is_some_and(|m| m.len() > 5));
    }
    odd.next_of("snapshot").await;
    honest.next_of("snapshot").await;
    server.stop().await;
}

#[tokio::test]
async fn bytes_that_are_no_messages_end_that_connection_only() {
    let server = TestServer::start().await;
    let mut honest = Stranger::join(&server, "Ada").await;
    let ping = packet::single(&ClientMessage::Ping {
        t: 1.0,
        received: 0,
    });
    let cut = ping[..ping.len() - 2].to_vec();
    let old = packet::single(&ClientMessage::Handshake {
        version: BINARY_VERSION - 1,
        ticket: None,
        resume_token: None,
        name: None,
        received: None,
    });
    let cases = [
        (cut, "ends in the middle"),
        (vec![0xff; 64], "cannot be read"),
        (vec![0xff, 0xff, 0x7f, 1, 2, 3], "longer than"),
        (old, "speaks version"),
    ];
    for (bytes, reason) in cases {
        let closed = server.send_binary_until_closed(bytes).await;
        assert!(
            closed.contains(reason),
            "{closed:?} should contain: {reason}"
        );
    }
    let oversized = vec![0u8; 1024 * 1024];
    let closed = server.send_binary_until_closed(oversized).await;
    assert!(closed.contains("at most"), "{closed}");
    honest.next_of("snapshot").await;
    server.stop().await;
}

#[tokio::test]
async fn a_flood_is_warned_then_kicked() {
    let server = TestServer::start().await;
    let mut honest = Stranger::join(&server, "Ada").await;
    let mut flooder = Stranger::join(&server, "Eve").await;
    let ping =
        json!({"v":2,"kind":"command","seq":1,"feature":"session","action":"ping","payload":{}});
    let reason = flooder.flood(&ping.to_string(), 20_000).await;
    assert!(reason.contains("too many messages"), "{reason}");
    assert!(flooder.warned, "one warning came first");
    honest.next_of("snapshot").await;
    server.stop().await;
}

#[tokio::test]
async fn who_sends_far_more_inputs_than_ticks_is_warned_then_kicked() {
    let server = TestServer::start().await;
    let mut honest = Stranger::join(&server, "Ada").await;
    let mut eve = Stranger::join(&server, "Eve").await;
    let (mut codes, mut seq) = (Vec::new(), 0);
    // A server that is late itself closes no slow client, so this may take a
    // while.
    let reason = 'kicked: loop {
        let inputs: Vec<_> = (seq + 1..=seq + 120)
            .map(|seq| json!({ "seq": seq }))
            .collect();
        seq += 120;
        eve.command("movement", "input_batch", json!({ "inputs": inputs }))
            .await;
        let batch = eve.seq();
        loop {
            match eve.next().await {
                Ok(message) if message["kind"] == "error" => {
                    codes.push(message["code"].as_str().expect("a code").to_owned());
                    if message["seq"] == batch {
                        break;
                    }
                }
                Ok(message) if message["kind"] == "ack" && message["seq"] == batch => break,
                Ok(_) => {}
                Err(reason) => break 'kicked reason,
            }
        }
        assert!(seq < 120 * 2_000, "never kicked: {codes:?}");
    };
    assert!(reason.contains("too many inputs"), "{reason}");
    assert_eq!(eve.close_code, Some(1008));
    let place = |code: &str| codes.iter().position(|other| other == code);
    let (warning, kick) = (place("flood"), place("kick"));
    assert!(place("inputs_dropped") < warning, "{codes:?}");
    assert!(warning.is_some() && warning < kick, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| *code == "flood").count(), 1);
    honest.next_of("snapshot").await;
    server.stop().await;
}

#[tokio::test]
async fn a_burst_of_events_is_queued_and_received() {
    const EVENTS: u32 = 450;
    let server = TestServer::start().await;
    let mut eve = Stranger::join(&server, "Eve").await;
    let first = eve.seq() + 1;
    for _ in 0..EVENTS {
        let payload = json!({ "name": "Boo", "args": [{ "$e": 4_000_000 }] });
        eve.command("network", "event", payload).await;
    }
    // Fewer than may come at once: each is taken, in order.
    for seq in first..first + EVENTS {
        loop {
            let message = eve.next().await.expect("the connection is open");
            assert_ne!(message["kind"], "error", "{message}");
            if message["kind"] == "ack" && message["seq"].as_u64() >= Some(first.into()) {
                assert_eq!(message["seq"], seq);
                break;
            }
        }
    }
    eve.next_of("snapshot").await;
    server.stop().await;
}

#[tokio::test]
async fn a_player_who_joins_twice_has_one_character() {
    let server = TestServer::start().await;
    let first = Stranger::join(&server, "Ada").await;
    let mut second = Stranger::join(&server, "Ada").await;
    assert_eq!(first.welcome["entityId"], second.welcome["entityId"]);
    let snapshot = second.next_of("snapshot").await;
    let players = snapshot["features"]["presence"]["players"].as_array();
    assert_eq!(players.map(Vec::len), Some(1));
    server.stop().await;
}

#[tokio::test]
async fn repeated_skipped_and_huge_inputs_make_no_player_faster() {
    let server = TestServer::start().await;
    let mut eve = Stranger::join(&server, "Eve").await;
    let id = eve.welcome["entityId"].as_u64().expect("an entity");
    let first = eve.next_of("snapshot").await;
    let start = full_position(&first, id).expect("position");
    let tick = |snapshot: &serde_json::Value| snapshot["tick"].as_f64().expect("a tick");
    let began = tick(&first);
    let mut ended = began;
    for batch in 0..10u64 {
        let inputs: Vec<_> = (0..100)
            .map(|n| json!({ "seq": batch * 50 + n, "up": true, "run": true, "yaw": 1e30 }))
            .collect();
        eve.command("movement", "input_batch", json!({ "inputs": inputs }))
            .await;
    }
    let mut last = start;
    for _ in 0..20 {
        let snapshot = eve.next_of("snapshot").await;
        last = full_position(&snapshot, id).unwrap_or(last);
        ended = tick(&snapshot);
    }
    assert_ne!(last, start, "honest inputs among them are used");
    let tick_hz = eve.welcome["tickHz"].as_f64().expect("a rate");
    let seconds = (ended - began) / tick_hz + 0.2;
    let way = ((last[0] - start[0]).powi(2) + (last[2] - start[2]).powi(2)).sqrt();
    assert!(
        way <= 8.0 * seconds,
        "{way} m in {seconds} s is faster than running"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_lost_player_resumes_where_they_were() {
    let server = TestServer::start().await;
    let mut ada = Stranger::join(&server, "Ada").await;
    let token = ada.welcome["resumeToken"]
        .as_str()
        .expect("a token")
        .to_owned();
    let entity = ada.welcome["entityId"].clone();
    ada.next_of("snapshot").await;
    ada.disconnect().await;
    let mut again = Stranger::resume(&server, &token).await.expect("resumes");
    assert_eq!(again.welcome["entityId"], entity);
    again.command("session", "ping", json!({})).await;
    again.next_of("pong").await;
    let stolen = Stranger::resume(&server, &token).await;
    assert!(stolen.is_err(), "a token works once");
    server.stop().await;
}

#[tokio::test]
async fn connections_that_say_nothing_are_let_go() {
    let server = TestServer::start().await;
    let reason = server.wait_silently().await;
    assert!(reason.contains("no handshake"), "{reason}");
    server.stop().await;
}
