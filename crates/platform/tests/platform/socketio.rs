//! Socket.IO as bytes on a WebSocket: authentication, replication of events, and invalid input. The
//! real clients are tested in web/e2e/socketio.test.mjs.

use std::time::Duration;

use frolic_fleet_api::ops::LoggedOp;
use frolic_fleet_api::persist::PersistBatch;
use frolic_fleet_api::remote_commands::{CastNews, OutsideNews};
use frolic_platform::api::LoginResponse;
use futures_util::{SinkExt, StreamExt};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::persistence::{Process, built, kept_game};
use crate::support::TestPlatform;
use crate::support::creator::Creator;

/// A minimal Socket.IO client.
pub struct Client {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    id: String,
    /// Events that arrived while another one was awaited.
    pending: Vec<(String, Value)>,
}

impl Client {
    pub async fn connect(test: &TestPlatform, auth: Option<Value>) -> Self {
        let mut client = Self::open(test, auth).await;
        let hello = client.wait("connected").await;
        client.id = hello["client_id"].as_str().unwrap().to_owned();
        client
    }

    pub async fn open(test: &TestPlatform, auth: Option<Value>) -> Self {
        let url = format!(
            "ws://127.0.0.1:{}/socket.io/?EIO=4&transport=websocket",
            test.port
        );
        let (socket, _) = connect_async(url).await.unwrap();
        let mut client = Self {
            socket,
            id: String::new(),
            pending: Vec::new(),
        };
        assert!(client.text().await.starts_with('0'));
        let auth = auth.map(|auth| auth.to_string()).unwrap_or_default();
        client.send_text(format!("40{auth}")).await;
        client
    }

    async fn send_text(&mut self, text: String) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    async fn text(&mut self) -> String {
        loop {
            let next = tokio::time::timeout(Duration::from_secs(20), self.socket.next());
            let message = next.await.expect("a message in time").unwrap().unwrap();
            let text = message.into_text().unwrap().to_string();
            if text == "2" {
                self.send_text("3".to_owned()).await;
                continue;
            }
            return text;
        }
    }

    /// Whether the server closes the connection instead of responding.
    pub async fn is_closed(&mut self) -> bool {
        loop {
            let next = tokio::time::timeout(Duration::from_secs(20), self.socket.next());
            match next.await.expect("a message in time") {
                Some(Ok(Message::Text(text))) if text.starts_with("42") => return false,
                Some(Ok(Message::Close(_)) | Err(_)) | None => return true,
                Some(Ok(_)) => {}
            }
        }
    }

    pub async fn emit(&mut self, event: &str, data: Value) {
        self.send_text(format!("42{}", json!([event, data]))).await;
    }

    pub async fn next(&mut self) -> (String, Value) {
        loop {
            let text = self.text().await;
            if let Some(body) = text.strip_prefix("42") {
                let body: Vec<Value> = serde_json::from_str(body).unwrap();
                let name = body[0].as_str().unwrap().to_owned();
                return (name, body.get(1).cloned().unwrap_or_default());
            }
        }
    }

    pub async fn wait(&mut self, event: &str) -> Value {
        if let Some(at) = self.pending.iter().position(|(name, _)| name == event) {
            return self.pending.remove(at).1;
        }
        loop {
            let (name, data) = self.next().await;
            if name == event {
                return data;
            }
            self.pending.push((name, data));
        }
    }

    pub async fn ask(&mut self, event: &str, data: Value, answer: &str) -> Value {
        self.emit(event, data).await;
        self.wait(answer).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn worlds_are_rooms_and_spells_are_shared() {
    let test = TestPlatform::start().await;
    let login = test.login("Ada").await;
    let token = json!({ "token": login.session_token });
    let mut ada = Client::connect(&test, Some(token)).await;
    assert_eq!(ada.id, login.client_id);
    let mut bob = Client::connect(&test, None).await;

    let made = ada
        .ask(
            "world.create",
            json!({ "name": "Ada's \u{202e}place" }),
            "world.created",
        )
        .await;
    let world_id = made["world_id"].as_str().unwrap().to_owned();
    assert_eq!(made["world"]["name"], "Ada's place");
    bob.wait("world.list_updated").await;
    let listed = bob
        .ask("world.list", Value::Null, "world.list_result")
        .await;
    assert_eq!(listed["worlds"].as_array().unwrap().len(), 1);
    let joined = ada
        .ask(
            "world.join",
            json!({ "world_id": world_id }),
            "world.joined",
        )
        .await;
    assert_eq!(joined["clients"], 1);
    ada.wait("sync_complete").await;
    let info = bob
        .ask("world.get", json!({ "world_id": world_id }), "world.info")
        .await;
    assert_eq!(info["clients"], 1);
    let pong = ada.ask("ping", json!({}), "pong").await;
    assert_eq!(
        (&pong["clients"], &pong["world_id"]),
        (&json!(1), &json!(world_id))
    );

    // A build sends its progress to the caller, and the result to all clients.
    let draft = ada
        .ask(
            "spell.create_draft",
            json!({ "spell_id": "fire" }),
            "spell.draft_created",
        )
        .await;
    assert_eq!(draft["created"], true);
    let code = "function on_cast(ctx) end";
    let build = json!({ "spell_id": "fire", "code": code });
    let started = ada
        .ask("spell.start_build", build, "spell.build_started")
        .await;
    let mut stages = Vec::new();
    loop {
        let progress = ada.wait("job.progress").await;
        assert_eq!(progress["job_id"], started["job_id"]);
        stages.push(progress["stage"].as_str().unwrap().to_owned());
        if progress["pct"] == 100 {
            break;
        }
    }
    assert_eq!(
        stages,
        [
            "prepare",
            "assemble_package",
            "validate",
            "finalize",
            "done"
        ]
    );
    let ready = bob.wait("spell.revision_ready").await;
    let revision = ready["revision_id"].as_str().unwrap().to_owned();
    assert!(!bob.pending.iter().any(|(name, _)| name == "job.progress"));
    let publish = json!({ "spell_id": "fire", "revision_id": revision, "channel": "beta" });
    ada.emit("spell.publish", publish).await;
    let update = bob.wait("spell.active_update").await;
    assert_eq!(
        (&update["channel"], &update["spell_id"]),
        (&json!("beta"), &json!("fire"))
    );

    let revisions = bob
        .ask(
            "spell.get_revisions",
            json!({ "spell_id": "fire" }),
            "spell.revisions_result",
        )
        .await;
    assert_eq!(revisions["total"], 1);
    let spells = bob.ask("spell.list", json!({}), "spell.list_result").await;
    assert_eq!(spells["spells"][0]["spell_id"], "fire");
    let manifest = bob
        .ask(
            "content.get_manifest",
            json!({ "spell_id": "fire" }),
            "content.manifest",
        )
        .await;
    assert_eq!(manifest["manifest"]["entry"], "spell.luau");
    let files = bob
        .ask(
            "content.list_files",
            json!({ "spell_id": "fire" }),
            "content.files_list",
        )
        .await;
    assert_eq!(files["files"].as_array().unwrap().len(), 2);
    let wanted = json!({ "spell_id": "fire", "path": "spell.luau" });
    let file = bob.ask("content.get_file", wanted, "content.file").await;
    assert_eq!(file["size"], code.len());

    // When the owner restores the world, its followers are notified.
    let path = format!("/world/{world_id}");
    let back = test
        .request(Method::POST, &path)
        .bearer_auth(&login.session_token)
        .json(&json!({ "state": { "checkpoint_op": 0, "sections": [], "ops": [] } }));
    assert_eq!(back.send().await.unwrap().status(), 201);
    let event = ada.wait("world_cleared").await;
    assert_eq!(event, json!({ "world_id": world_id, "set_back": true }));
    ada.wait("sync_complete").await;

    let left = ada.ask("world.leave", json!({}), "world.left").await;
    assert_eq!(left["left_world_id"], json!(world_id));
    let rejected = ada
        .ask(
            "spell.cast_request",
            json!({ "spell_id": "fire" }),
            "spell.cast_rejected",
        )
        .await;
    assert_eq!(
        (&rejected["spell_id"], &rejected["code"]),
        (&json!("fire"), &json!("no_world"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_input_gets_an_error_and_the_connection_stays_open() {
    let test = TestPlatform::start().await;
    let mut bob = Client::connect(&test, None).await;
    for (event, data, code) in [
        ("no.such.event", json!({}), "unknown_event"),
        ("world.join", json!({}), "missing_field"),
        ("world.join", json!({ "world_id": 7 }), "invalid_field"),
        (
            "world.join",
            json!({ "world_id": "world_none" }),
            "world_not_found",
        ),
        ("world.join", json!("text"), "missing_field"),
        (
            "world.create",
            json!({ "game_id": "none" }),
            "game_not_found",
        ),
        ("request_spell", json!({ "type": "add" }), "no_world"),
        ("clear_world", json!(null), "no_world"),
        (
            "spell.create_draft",
            json!({ "spell_id": "../x" }),
            "invalid_spell_id",
        ),
        (
            "spell.start_build",
            json!({ "spell_id": "x" }),
            "nothing_to_build",
        ),
        (
            "spell.publish",
            json!({ "spell_id": "x", "revision_id": "y" }),
            "spell_not_found",
        ),
        (
            "content.get_file",
            json!({ "spell_id": "x", "path": "../../etc" }),
            "spell_not_found",
        ),
        ("job.get", json!({ "job_id": "job_none" }), "job_not_found"),
    ] {
        let error = bob.ask(event, data, "error").await;
        assert_eq!(
            (&error["code"], &error["event"]),
            (&json!(code), &json!(event))
        );
    }
    // Exceeding the rate limit returns an error and does not disconnect.
    for _ in 0..150 {
        bob.emit("ping", json!({})).await;
    }
    loop {
        let (name, data) = bob.next().await;
        if name == "error" {
            assert_eq!(data["code"], "too_fast");
            break;
        }
    }
    // An invalid token is refused when connecting.
    let mut eve = Client::open(&test, Some(json!({ "token": "none" }))).await;
    let refused = eve.text().await;
    assert!(
        refused.starts_with("44") && refused.contains("Sign in again"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_clients_is_limited() {
    let test = TestPlatform::start_with(|settings| {
        settings.limits.socketio_clients_max = 2;
    })
    .await;
    let first = Client::connect(&test, None).await;
    let _second = Client::connect(&test, None).await;
    let mut third = Client::open(&test, None).await;
    assert!(third.text().await.starts_with("44"));
    drop(first);
    // The slot is free again once the server has noticed the disconnect.
    for _ in 0..100 {
        let mut next = Client::open(&test, None).await;
        if next.text().await.starts_with("40") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the slot is not released");
}

/// In a world that replicates only to players nearby, followers receive only their own operations
/// and casts.
#[tokio::test(flavor = "multi_thread")]
async fn followers_of_a_near_only_world_receive_their_own_events() {
    let test = TestPlatform::start().await;
    let creator = Creator::new(&test, "Ada").await;
    let archive = frolic_package::pack(&kept_game("near")).unwrap();
    creator.upload("", archive).await;
    let (ada, bob) = (creator.login, test.login("Bob").await);
    let token = |login: &LoginResponse| Some(json!({ "token": login.session_token }));
    let mut owner = Client::connect(&test, token(&ada)).await;
    let mut ben = Client::connect(&test, token(&bob)).await;
    let made = json!({ "name": "Woods", "game_id": "near" });
    // Creating a world does not extend what a follower receives.
    let made = ben.ask("world.create", made, "world.created").await;
    let world = json!({ "world_id": made["world_id"] });
    test.try_join(&ada.session_token, world.clone()).await;
    let process = Process::newest(&test).await;
    let by = |seq: u64, login: &LoginResponse| LoggedOp {
        by: Some(login.client_id.clone()),
        ..built(seq)
    };
    let keep = async |ops: Vec<LoggedOp>| {
        let batch = PersistBatch {
            near_only: true,
            ..process.batch(ops)
        };
        process.keep(&batch).await.unwrap();
    };
    // Joins and returns the numbers of the operations received.
    let follow = async |client: &mut Client| -> Vec<u64> {
        client.emit("world.join", world.clone()).await;
        loop {
            let (event, data) = client.next().await;
            match event.as_str() {
                "sync_complete" => return Vec::new(),
                "sync_ops" => {
                    let ops = data["ops"].as_array().unwrap().iter();
                    return ops.map(|op| op["op_id"].as_u64().unwrap()).collect();
                }
                _ => {}
            }
        }
    };
    keep(vec![by(1, &ada), by(2, &bob)]).await;
    let mut eve = Client::connect(&test, None).await;
    assert_eq!(
        follow(&mut owner).await,
        [1, 2],
        "the creator receives all operations"
    );
    assert_eq!(follow(&mut ben).await, [2]);
    assert!(follow(&mut eve).await.is_empty());

    let cast = |login: &LoginResponse| CastNews {
        by: login.client_id.clone(),
        revision_id: "r".into(),
        cast: json!({ "spellId": "spark", "target": [1, 2, 3] }),
    };
    let news = OutsideNews {
        near_only: true,
        casts: vec![cast(&ada), cast(&bob)],
        ops: Vec::new(),
    };
    process.ask(Method::POST, "/news", &news).await;
    keep(vec![by(3, &ada), by(4, &bob)]).await;
    let received = async |client: &mut Client| -> Vec<String> {
        client.emit("ping", json!({})).await;
        let mut received = Vec::new();
        loop {
            match client.next().await {
                (event, _) if event == "pong" => return received,
                (event, data) if event == "spell.cast_event" => {
                    received.push(format!("cast by {}", data["caster_id"].as_str().unwrap()));
                }
                (event, data) if event == "apply_op" => received.push(data["op_id"].to_string()),
                _ => {}
            }
        }
    };
    let casts = [&ada, &bob].map(|login| format!("cast by {}", login.client_id));
    let all = [&casts[0], &casts[1], "3", "4"];
    assert_eq!(received(&mut owner).await, all);
    assert_eq!(received(&mut ben).await, [&casts[1], "4"]);
    assert!(received(&mut eve).await.is_empty());
}
