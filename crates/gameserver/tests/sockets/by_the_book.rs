//! A client that was written from the description of the JSON protocol alone.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::server::TestServer;
use crate::stranger::Stranger;

#[tokio::test]
async fn a_command_without_version_and_number_is_done_and_not_answered() {
    let server = TestServer::start().await;
    let mut ada = Stranger::join(&server, "Ada").await;
    let handshake = ada.seq();
    let mut answered = Vec::new();
    loop {
        let message = ada.next().await.expect("the connection is open");
        match message["kind"].as_str() {
            Some("snapshot") if message["mode"] == "delta" => break,
            Some("snapshot") => {
                let tick = &message["tick"];
                let ack = json!({"kind":"command","feature":"session","action":"ack","payload":{"tick":tick}});
                ada.send_text(ack.to_string()).await;
            }
            Some("ack" | "error") if message["seq"] != handshake => answered.push(message),
            _ => {}
        }
    }
    assert!(answered.is_empty(), "{answered:?}");
    let say = |payload: serde_json::Value| {
        json!({"kind":"command","feature":"chat","action":"say","payload":payload}).to_string()
    };
    ada.send_text(say(json!({"text":"hello"}))).await;
    assert_eq!(ada.next_chat().await["text"], "hello");
    ada.send_text(say(json!({"text":5}))).await;
    let error = ada.next_of("error").await;
    assert_eq!(
        (&error["seq"], &error["code"]),
        (&json!(null), &json!("bad_payload"))
    );
    server.stop().await;
}

#[tokio::test]
async fn a_binary_frame_is_read_as_json_and_costs_no_connection() {
    let server = TestServer::start().await;
    let mut ada = Stranger::join(&server, "Ada").await;
    let ping = json!({"v":2,"kind":"command","seq":70,"feature":"session","action":"ping","payload":{"t":5}});
    ada.send_binary(ping.to_string().into_bytes()).await;
    assert_eq!(ada.next_of("pong").await["t"], 5.0);
    for bytes in [vec![0xff, 0xfe, 0x00], b"{ not json".to_vec(), Vec::new()] {
        ada.send_binary(bytes).await;
        assert_eq!(ada.next_of("error").await["code"], "bad_json");
    }
    ada.next_of("snapshot").await;
    server.stop().await;
}

/// Broadcasts an unreliable event in every tick.
const RESTLESS: (&str, &str) = (
    "scripts/ServerScriptService/Restless.luau",
    r#"while true do
    World.Gravity = if World.Gravity == 19 then 20 else 19
    task.wait()
end
"#,
);

#[tokio::test]
async fn the_welcome_is_first_and_a_full_snapshot_right_behind_it() {
    let server = TestServer::start_with(&[RESTLESS]).await;
    for name in ["Ada", "Ben"] {
        let ticket = server.ticket("world_test", name, 60);
        let mut stranger = Stranger::connect(&server).await;
        let handshake = json!({ "ticket": ticket, "resumeToken": null });
        stranger.command("session", "handshake", handshake).await;
        // Sent before any input was received: it is still answered in order.
        stranger.command("session", "ping", json!({"t": 1})).await;
        stranger
            .command("scripts", "request", json!({"paths": ["@manifest"]}))
            .await;
        let mut kinds = Vec::new();
        while kinds.last().is_none_or(|last| last != "pong") {
            let message = stranger.next().await.expect("the connection is open");
            kinds.push(message["kind"].as_str().expect("a kind").to_owned());
            if kinds.len() == 2 {
                assert_eq!(message["mode"], "full");
            }
        }
        assert_eq!(kinds[..3], ["welcome", "snapshot", "ack"], "{kinds:?}");
    }
    server.stop().await;
}

const PATIENCE: Duration = Duration::from_secs(120);

/// Queries the persisted receive count until it reaches this number: the server
/// reads again after a flood, and persists the count every second.
async fn until_received(stranger: &mut Stranger, wanted: u64) {
    let began = Instant::now();
    let mut stored = 0;
    while stored != wanted {
        assert!(began.elapsed() < PATIENCE, "{stored} and not {wanted}");
        stranger.command("session", "ping", json!({})).await;
        let asked = stranger.seq();
        loop {
            let message = stranger.next().await.expect("the connection is open");
            if message["kind"] == "pong" {
                stored = message["received"].as_u64().expect("a count");
                assert!(stored <= wanted, "{stored} of {wanted}");
                break;
            }
            if message["kind"] == "error" && message["seq"] == asked {
                break;
            }
        }
    }
}

#[tokio::test]
async fn every_command_of_a_flood_is_answered_and_counts() {
    const EVENTS: u32 = 1100;
    let server = TestServer::start().await;
    let mut eve = Stranger::join(&server, "Eve").await;
    let first = eve.seq() + 1;
    let events = (first..first + EVENTS).map(|seq| {
        let payload = json!({ "name": "Boo", "args": [] });
        json!({"v":2,"kind":"command","seq":seq,"feature":"network","action":"event","payload":payload})
    });
    eve.send_all(events.map(|event| event.to_string())).await;
    let mut unanswered: BTreeSet<u32> = (first..first + EVENTS).collect();
    let mut floods = 0;
    while !unanswered.is_empty() {
        let message = eve.next().await.expect("the connection is open");
        if matches!(message["kind"].as_str(), Some("ack" | "error")) {
            floods += u32::from(message["code"] == "flood");
            let seq = message["seq"]
                .as_u64()
                .and_then(|seq| u32::try_from(seq).ok());
            let seq = seq.expect("a number");
            assert!(unanswered.remove(&seq) || seq < first, "{seq} twice");
        }
    }
    assert!(floods > 0, "it was a flood");
    eve.skip_to(first + EVENTS);
    until_received(&mut eve, u64::from(EVENTS)).await;
    server.stop().await;
}

#[tokio::test]
async fn what_is_refused_counts_as_received() {
    let server = TestServer::start().await;
    let mut ada = Stranger::join(&server, "Ada").await;
    ada.command("chat", "say", json!({"text": 5})).await;
    ada.command("network", "event", json!({"name": ""})).await;
    ada.command("network", "invoke", json!({})).await;
    ada.command("chat", "say", json!({"text": "hello"})).await;
    ada.command("session", "ack", json!({})).await;
    ada.send_text("{ chat say".into()).await;
    until_received(&mut ada, 4).await;
    server.stop().await;
}

/// Adds what it is called with.
const ADDER: (&str, &str) = (
    "scripts/ServerScriptService/Adder.luau",
    r#"Network.OnClientInvoke("Add", function(player, a, b) return a + b end)
"#,
);

#[tokio::test]
async fn what_a_client_wants_back_comes_back_as_it_was() {
    let server = TestServer::start_with(&[ADDER]).await;
    let mut ada = Stranger::join(&server, "Ada").await;
    for t in [json!(1700000000123u64), json!(0.1), json!("now"), json!(-1)] {
        ada.command("session", "ping", json!({ "t": t })).await;
        assert_eq!(ada.next_of("pong").await["t"], t);
    }
    for id in [
        json!(7),
        json!("call-1"),
        json!(-4),
        json!(1e10),
        json!("call-2"),
    ] {
        let call = json!({ "id": id, "name": "Add", "args": [2, 3] });
        ada.command("network", "invoke", call).await;
        let result = ada.next_of_feature("network.result").await;
        assert_eq!(result["id"], id);
        assert_eq!((&result["ok"], &result["value"]), (&json!(true), &json!(5)));
    }
    server.stop().await;
}

#[tokio::test]
async fn a_connection_ends_with_the_code_of_its_reason() {
    let server = TestServer::start().await;
    let frames = [
        (OpCode::Data(Data::Reserved(3)), vec![7], 1002),
        (OpCode::Data(Data::Continue), vec![7], 1002),
        (OpCode::Data(Data::Text), vec![0xff, 0xfe], 1007),
        (OpCode::Data(Data::Text), vec![b' '; 100_000], 1009),
        (OpCode::Data(Data::Binary), vec![b' '; 100_000], 1009),
    ];
    for (opcode, payload, code) in frames {
        let mut eve = Stranger::join(&server, "Eve").await;
        eve.send_frame(opcode, payload).await;
        while eve.next().await.is_ok() {}
        assert_eq!(eve.close_code, Some(code), "{opcode:?}");
    }
    server.stop().await;
}
