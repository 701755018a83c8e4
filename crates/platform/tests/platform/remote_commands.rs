//! Permissions of remote commands: users in the world, its owner and the owner's helpers may change
//! it; the rules of `POST /join` apply.

use frolic_fleet_api::persist::{PersistBatch, PlayerState, SavedPlayer};
use frolic_fleet_api::remote_commands::{CastNews, OutsideNews};
use frolic_platform::api::{JoinResponse, LoginResponse, WorldHelpers, WorldInfo};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::persistence::Process;
use crate::socketio::Client;
use crate::support::creator::{Creator, version};
use crate::support::{ADMIN_TOKEN, TestPlatform, error_of, game_files};

async fn connect(test: &TestPlatform, who: &LoginResponse) -> Client {
    Client::connect(test, Some(json!({ "token": who.session_token }))).await
}

async fn own_world(owner: &Creator<'_>, body: Value) -> WorldInfo {
    owner.ok(Method::POST, "/worlds", body).await
}

/// The error code of each command that changes this world; `None` for one that is allowed.
async fn refusals(client: &mut Client, world_id: Option<&str>) -> [Option<String>; 3] {
    let with = |mut data: Value| {
        if let Some(world_id) = world_id {
            data["world_id"] = json!(world_id);
        }
        data
    };
    let cast = with(json!({ "spell_id": "fire", "params": { "target": [0, 0, 0] } }));
    let cast = client
        .ask("spell.cast_request", cast, "spell.cast_rejected")
        .await;
    let dig = with(json!({ "type": "subtract", "center": [0, 0, 0], "radius": 2 }));
    let dig = client.ask("request_spell", dig, "error").await;
    let clear = client.ask("clear_world", with(json!({})), "error").await;
    [cast, dig, clear].map(|refused| {
        let code = refused["code"].as_str().unwrap().to_owned();
        // The worlds of these tests do not respond: this error means that the command was allowed.
        Some(code).filter(|code| code != "world_silent")
    })
}

fn codes(codes: [&str; 3]) -> [Option<String>; 3] {
    codes.map(|code| Some(code.to_owned()))
}

const ALLOWED: [Option<String>; 3] = [None, None, None];

#[tokio::test(flavor = "multi_thread")]
async fn a_world_is_changed_by_its_players_owner_and_helpers() {
    let test = TestPlatform::start().await;
    let ada = Creator::new(&test, "Ada").await;
    let bob = test.login("Bob").await;
    let world = own_world(&ada, json!({ "name": "Garden" })).await.world_id;
    let mut client = connect(&test, &bob).await;
    let outside = codes(["not_in_world", "not_in_world", "forbidden"]);
    assert_eq!(refusals(&mut client, Some(&world)).await, outside);
    assert_eq!(refusals(&mut client, None).await, codes(["no_world"; 3]));

    // Joining another world gives no permission for this one.
    let other = own_world(&ada, json!({ "name": "Elsewhere" }))
        .await
        .world_id;
    let join = json!({ "world_id": other });
    client.ask("join_world", join, "world.joined").await;
    assert_eq!(refusals(&mut client, Some(&world)).await, outside);
    let join = json!({ "world_id": world });
    client.ask("world.join", join.clone(), "world.joined").await;
    let inside = [None, None, Some("forbidden".to_owned())];
    assert_eq!(refusals(&mut client, None).await, inside);
    client.ask("world.leave", json!({}), "world.left").await;
    assert_eq!(refusals(&mut client, Some(&world)).await, outside);

    // A player in the world has permission while online.
    let joined = test.try_join(&bob.session_token, join).await;
    assert_eq!(joined.status(), StatusCode::OK);
    let process = Process::newest(&test).await;
    let player = |online| SavedPlayer {
        player_id: bob.client_id.clone(),
        state: PlayerState {
            health: [100.0, 100.0],
            ..PlayerState::default()
        },
        online,
        session: "nonce".into(),
        received: 0,
        sent: 0,
        undelivered: Vec::new(),
    };
    let keep = async |online| {
        let batch = PersistBatch {
            players: vec![player(online)],
            ..process.batch(vec![])
        };
        process.keep(&batch).await.unwrap();
    };
    keep(true).await;
    assert_eq!(refusals(&mut client, Some(&world)).await, inside);
    keep(false).await;
    assert_eq!(refusals(&mut client, Some(&world)).await, outside);

    // Helpers and the owner need not be in the world.
    let helper = format!("/world/{world}/helpers/bob");
    let helpers: WorldHelpers = ada.ok(Method::PUT, &helper, json!({})).await;
    assert_eq!(helpers.helpers[0].user_id, bob.client_id);
    assert_eq!(refusals(&mut client, Some(&world)).await, ALLOWED);
    let helpers: WorldHelpers = ada.ok(Method::DELETE, &helper, json!({})).await;
    assert!(helpers.helpers.is_empty());
    assert_eq!(refusals(&mut client, Some(&world)).await, outside);
    let mut owner = connect(&test, &ada.login).await;
    assert_eq!(refusals(&mut owner, Some(&world)).await, ALLOWED);
    let stranger = test
        .request(Method::PUT, &helper)
        .bearer_auth(&bob.session_token);
    let refused = stranger.send().await.unwrap();
    assert_eq!(error_of(refused).await, (403, "forbidden".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn socketio_applies_the_access_rules_of_join() {
    let test = TestPlatform::start().await;
    let ada = Creator::new(&test, "Ada").await;
    let bob = test.login("Bob").await;
    let mut client = connect(&test, &bob).await;
    let world = own_world(&ada, json!({ "private": true })).await;
    let by_id = json!({ "world_id": world.world_id });
    let refused = client.ask("world.join", by_id.clone(), "error").await;
    assert_eq!(refused["code"], "world_not_found");
    // The room code gives access until the owner blocks the user.
    let by_code = json!({ "room_code": world.room_code });
    client
        .ask("world.join", by_code.clone(), "world.joined")
        .await;
    assert_eq!(refusals(&mut client, None).await[0], None);
    let block = format!("/api/blocks/{}", bob.client_id);
    ada.send(Method::PUT, &block, json!({})).await;
    assert_eq!(
        refusals(&mut client, None).await,
        codes(["world_not_found"; 3])
    );
    let refused = client.ask("world.join", by_code.clone(), "error").await;
    assert_eq!(refused["code"], "world_not_found");
    let refused = test.try_join(&bob.session_token, by_code).await;
    assert_eq!(error_of(refused).await, (404, "world_not_found".to_owned()));
    ada.send(Method::DELETE, &block, json!({})).await;

    // A world that becomes private excludes users who addressed it by its id.
    let open = own_world(&ada, json!({ "name": "Open" })).await;
    let here = json!({ "world_id": open.world_id });
    client.ask("world.join", here.clone(), "world.joined").await;
    let close = json!({ "private": true, "version": open.version });
    let path = format!("/world/{}", open.world_id);
    let _: WorldInfo = ada.ok(Method::PATCH, &path, close).await;
    assert_eq!(
        refusals(&mut client, None).await,
        codes(["world_not_found"; 3])
    );

    // A full world is full for followers too.
    ada.upload("", version("duel", "1.0.0", 1)).await;
    let duel: JoinResponse = ada.join(json!({ "game_id": "duel" })).await;
    let full = json!({ "world_id": duel.world_id });
    let refused = client.ask("world.join", full.clone(), "error").await;
    assert_eq!(refused["code"], "world_full");
    let mut player = connect(&test, &ada.login).await;
    player.ask("world.join", full, "world.joined").await;

    // Suspended users cannot join.
    let report = json!({ "target_kind": "user", "target_id": bob.client_id, "rule": "spam" });
    let report: Value = ada.ok(Method::POST, "/api/reports", report).await;
    let decide = format!(
        "/api/moderation/reports/{}/decide",
        report["report_id"].as_str().unwrap()
    );
    let verdict = json!({ "verdict": "suspend", "days": 1, "reason": "Spam" });
    let decided = test
        .request(Method::POST, &decide)
        .bearer_auth(ADMIN_TOKEN)
        .json(&verdict);
    let decided = decided.send().await.unwrap();
    assert!(
        decided.status().is_success(),
        "{}",
        decided.text().await.unwrap()
    );
    let join = json!({ "world_id": own_world(&ada, json!({})).await.world_id });
    let refused = client.ask("world.join", join, "error").await;
    assert_eq!(refused["code"], "suspended");
    // Nor do they change a world that they joined before, or in which they help.
    assert_eq!(refusals(&mut client, None).await, codes(["suspended"; 3]));
    let helped = own_world(&ada, json!({})).await.world_id;
    let helper = format!("/world/{helped}/helpers/bob");
    let _: WorldHelpers = ada.ok(Method::PUT, &helper, json!({})).await;
    assert_eq!(
        refusals(&mut client, Some(&helped)).await,
        codes(["suspended"; 3])
    );
}

/// The players whom a world's process is to disconnect, from its next heartbeat.
async fn expelled(test: &TestPlatform, world_id: &str) -> Vec<String> {
    let launches = test.stage.launches.borrow().clone();
    let launch = launches.iter().find(|one| one.world_id == world_id);
    let launch = launch.expect("a running world");
    let path = format!("/internal/worlds/{world_id}/heartbeat");
    let beat = json!({ "players": 1, "tick": 5, "tick_ms_p99": 1.0, "script_errors": 0 });
    let request = test.request(Method::POST, &path).json(&beat);
    let answer = request.bearer_auth(&launch.world_token).send().await;
    let answer = answer.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let reply: Value = answer.json().await.unwrap();
    // An empty list is omitted.
    let list = reply["expelled"].as_array().into_iter().flatten();
    list.map(|one| one["player_id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_disconnects_the_player_from_the_worlds_of_its_owner() {
    let test = TestPlatform::start().await;
    let ada = Creator::new(&test, "Ada").await;
    let cleo = Creator::new(&test, "Cleo").await;
    let bob = test.login("Bob").await;
    let mut worlds = Vec::new();
    for owner in [&ada, &ada, &cleo] {
        let world = own_world(owner, json!({})).await.world_id;
        let join = json!({ "world_id": world });
        let joined = test.try_join(&bob.session_token, join).await;
        assert_eq!(joined.status(), StatusCode::OK);
        worlds.push(world);
    }
    let helper = format!("/world/{}/helpers/bob", worlds[1]);
    let _: WorldHelpers = ada.ok(Method::PUT, &helper, json!({})).await;
    let block = format!("/api/blocks/{}", bob.client_id);
    ada.send(Method::PUT, &block, json!({})).await;
    assert_eq!(
        expelled(&test, &worlds[0]).await,
        std::slice::from_ref(&bob.client_id)
    );
    assert!(
        expelled(&test, &worlds[1]).await.is_empty(),
        "they help there"
    );
    assert!(expelled(&test, &worlds[2]).await.is_empty(), "it is Cleo's");
    // Later blocks displace this one, and it is sent again once it concerns a further world.
    for number in 0..16 {
        let other = test.login(&format!("Guest{number}")).await;
        let block = format!("/api/blocks/{}", other.client_id);
        ada.send(Method::PUT, &block, json!({})).await;
    }
    assert!(!expelled(&test, &worlds[0]).await.contains(&bob.client_id));
    ada.send(Method::DELETE, &helper, json!({})).await;
    let no_helper = expelled(&test, &worlds[1]).await;
    assert!(no_helper.contains(&bob.client_id));
    ada.send(Method::DELETE, &block, json!({})).await;
    assert!(!expelled(&test, &worlds[0]).await.contains(&bob.client_id));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_owner_edits_no_world_over_rest() {
    let test = TestPlatform::start().await;
    let ada = Creator::new(&test, "Ada").await;
    let bob = test.login("Bob").await;
    let world = own_world(&ada, json!({})).await;
    let report = json!({ "target_kind": "user", "target_id": ada.login.client_id, "rule": "spam" });
    let report = test
        .request(Method::POST, "/api/reports")
        .bearer_auth(&bob.session_token)
        .json(&report);
    let report: Value = report.send().await.unwrap().json().await.unwrap();
    let decide = format!(
        "/api/moderation/reports/{}/decide",
        report["report_id"].as_str().unwrap()
    );
    let verdict = json!({ "verdict": "suspend", "days": 1, "reason": "Spam" });
    let decided = test
        .request(Method::POST, &decide)
        .bearer_auth(ADMIN_TOKEN)
        .json(&verdict);
    assert!(decided.send().await.unwrap().status().is_success());
    let path = format!("/world/{}", world.world_id);
    let helper = format!("{path}/helpers/bob");
    for (method, path, body) in [
        (
            Method::PATCH,
            &path,
            json!({ "name": "Mine", "version": world.version }),
        ),
        (Method::POST, &path, json!({})),
        (Method::PUT, &helper, json!({})),
        (Method::POST, &"/worlds".to_owned(), json!({})),
    ] {
        let request = test.request(method, path).json(&body);
        let refused = request.bearer_auth(&ada.login.session_token).send().await;
        let refused = error_of(refused.unwrap()).await;
        assert_eq!(refused, (403, "suspended".to_owned()), "{path} {body}");
    }
    // What they have they may still take away.
    let request = test.request(Method::DELETE, &path);
    let gone = request.bearer_auth(&ada.login.session_token).send().await;
    assert_eq!(gone.unwrap().status(), StatusCode::NO_CONTENT);
}

#[tokio::test(flavor = "multi_thread")]
async fn castable_worlds_are_own_worlds_that_allow_spells() {
    let test = TestPlatform::start().await;
    let ada = Creator::new(&test, "Ada").await;
    let mut files = game_files("magic", 8);
    let manifest = String::from_utf8(files["game.toml"].clone()).unwrap();
    let manifest = manifest.replace("[world]\n", "[world]\nspells = true\n");
    files.insert("game.toml".to_owned(), manifest.into_bytes());
    ada.upload("", frolic_package::pack(&files).unwrap()).await;
    let magic = own_world(&ada, json!({ "game_id": "magic" })).await;
    own_world(&ada, json!({ "game_id": "sample" })).await;
    let bob = test.login("Bob").await;
    let listed = async |client: &mut Client| -> Vec<Value> {
        let wanted = json!({ "castable": true });
        let listed = client.ask("world.list", wanted, "world.list_result").await;
        let worlds = listed["worlds"].as_array().unwrap().iter();
        worlds.map(|world| world["world_id"].clone()).collect()
    };
    let (mut owner, mut guest) = (connect(&test, &ada.login).await, connect(&test, &bob).await);
    assert_eq!(listed(&mut owner).await, [json!(magic.world_id)]);
    assert!(listed(&mut guest).await.is_empty());
    let everything = guest
        .ask("world.list", json!({}), "world.list_result")
        .await;
    assert_eq!(everything["worlds"].as_array().unwrap().len(), 2);
    let helper = format!("/world/{}/helpers/Bob", magic.world_id);
    let _: WorldHelpers = ada.ok(Method::PUT, &helper, json!({})).await;
    assert_eq!(listed(&mut guest).await, [json!(magic.world_id)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cast_event_has_both_names_and_a_timestamp() {
    let test = TestPlatform::start().await;
    let ada = test.login("Ada").await;
    let mut client = connect(&test, &ada).await;
    let made = client
        .ask("world.create", json!({ "name": "Here" }), "world.created")
        .await;
    assert_eq!(
        (&made["name"], &made["world"]["name"]),
        (&json!("Here"), &json!("Here"))
    );
    let world = json!({ "world_id": made["world_id"] });
    client
        .ask("world.join", world.clone(), "world.joined")
        .await;
    let synced = client.wait("sync_complete").await;
    assert!(synced["message"].is_string(), "{synced}");
    test.try_join(&ada.session_token, world).await;
    let process = Process::newest(&test).await;
    let params = json!({ "target": [1, 2, 3], "power": 4 });
    let news = OutsideNews {
        near_only: false,
        casts: vec![CastNews {
            by: ada.client_id.clone(),
            revision_id: "r".into(),
            cast: json!({ "spellId": "spark", "params": [params], "seed": 7 }),
        }],
        ops: Vec::new(),
    };
    process.ask(Method::POST, "/news", &news).await;
    let event = client.wait("spell.cast_event").await;
    assert_eq!(event["cast_params"], params);
    assert_eq!(event["params"], params);
    assert_eq!(event["timestamp"], "2025-11-15T00:00:00Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn invisible_characters_in_event_names_are_refused() {
    let test = TestPlatform::start().await;
    let mut client = Client::connect(&test, None).await;
    for name in ["\u{202e}tsil.dlrow", "world.list\u{200b}", "a\u{2066}b"] {
        let error = client.ask(name, json!({}), "error").await;
        assert_eq!(error["code"], "bad_event_name", "{name:?}");
        let echoed = error["event"].as_str().unwrap();
        assert!(echoed.chars().all(frolic_scene::is_visible), "{echoed:?}");
    }
    // JSON escapes control characters, and no valid event name needs an escape, so the packet
    // itself is refused and the connection closed.
    for name in ["world\u{7}list", "\u{1b}[31m", "a\nb"] {
        let mut client = Client::connect(&test, None).await;
        client.emit(name, json!({})).await;
        assert!(client.is_closed().await, "{name:?}");
    }
}
