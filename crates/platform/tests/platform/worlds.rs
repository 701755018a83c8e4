//! Worlds of users: creation, names, privacy, saves, restoring and deletion, by their owners and
//! admins only.

use std::sync::atomic::Ordering;

use frolic_fleet_api::ops::{LoggedOp, Structure, WorldOp};
use frolic_fleet_api::persist::{PersistBatch, PersistReply, Saved};
use frolic_fleet_api::process::WorldBoot;
use frolic_platform::api::{
    LoginResponse, WorldInfo, WorldList, WorldSave, WorldSaveList, WorldState,
};
use reqwest::{Method, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::{ADMIN_TOKEN, TestPlatform, error_of, game_files};

async fn send(
    platform: &TestPlatform,
    token: &str,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> Response {
    let mut request = platform.request(method, path);
    if !token.is_empty() {
        request = request.bearer_auth(token);
    }
    if let Some(body) = body {
        request = request.json(&body);
    }
    request.send().await.unwrap()
}

async fn read<T: DeserializeOwned>(answer: Response, expected: StatusCode) -> T {
    let status = answer.status();
    let text = answer.text().await.unwrap();
    assert_eq!(status, expected, "{text}");
    serde_json::from_str(&text).unwrap()
}

async fn create(platform: &TestPlatform, who: &LoginResponse, body: Value) -> WorldInfo {
    let token = &who.session_token;
    let answer = send(platform, token, Method::POST, "/worlds", Some(body)).await;
    read(answer, StatusCode::CREATED).await
}

async fn list(platform: &TestPlatform, token: &str, query: &str) -> WorldList {
    let path = format!("/worlds?{query}");
    let answer = send(platform, token, Method::GET, &path, None).await;
    read(answer, StatusCode::OK).await
}

#[tokio::test]
async fn users_create_name_and_list_worlds() {
    let platform = TestPlatform::start().await;
    platform.publish_sample(&game_files("other", 4)).await;
    let ada = platform.login("Ada").await;
    let castle = create(
        &platform,
        &ada,
        json!({ "name": "  Ada's \u{202e}castle <b>", "description": "Two\nlines", "game_id": "other" }),
    )
    .await;
    assert_eq!(castle.name, "Ada's castle <b>");
    assert_eq!(castle.description, "Two\nlines");
    assert_eq!((castle.game_id.as_str(), castle.max_players), ("other", 4));
    assert_eq!(castle.owner_id.as_deref(), Some(ada.client_id.as_str()));
    assert!(!castle.running && !castle.private && castle.version == 1);
    // Without parameters: the default game and a descriptive name.
    let plain = create(&platform, &ada, json!({})).await;
    assert_eq!(plain.game_id, "sample");
    assert_eq!(plain.name, "The sample Game: Ada");

    let all = list(&platform, "", "").await;
    assert_eq!((all.total, all.page, all.worlds.len()), (2, 1, 2));
    let page = list(&platform, "", "per_page=1&page=2").await;
    assert_eq!(
        (page.total, page.page, page.per_page, page.worlds.len()),
        (2, 2, 1, 1)
    );
    let of_game = list(&platform, "", "game_id=other").await;
    assert_eq!(of_game.worlds[0].world_id, castle.world_id);
    assert_eq!(
        list(&platform, &ada.session_token, "mine=true").await.total,
        2
    );
    let bob = platform.login("Bob").await;
    assert_eq!(
        list(&platform, &bob.session_token, "mine=true").await.total,
        0
    );

    // They are not deleted by the cleanup.
    platform.clock.advance_ms(3 * 60 * 60 * 1000);
    let _: Value = platform.admin(Method::POST, "/admin/cleanup").await;
    assert_eq!(list(&platform, "", "").await.total, 2);

    let path = "/worlds".to_owned();
    for (token, body, expected) in [
        ("", json!({}), (401, "missing_token")),
        ("nonsense", json!({}), (401, "invalid_token")),
        (
            &ada.session_token,
            json!({ "game_id": "none" }),
            (404, "game_not_found"),
        ),
        (
            &ada.session_token,
            json!({ "name": 5 }),
            (400, "invalid_field"),
        ),
    ] {
        let answer = send(&platform, token, Method::POST, &path, Some(body)).await;
        let (status, code) = error_of(answer).await;
        assert_eq!((status, code.as_str()), expected);
    }
    let answer = send(&platform, "", Method::GET, "/worlds?mine=true", None).await;
    assert_eq!(error_of(answer).await.0, 401);
    let answer = send(&platform, "", Method::GET, "/worlds?page=-1", None).await;
    assert_eq!(error_of(answer).await, (400, "invalid_query".to_owned()));
}

#[tokio::test]
async fn the_number_of_worlds_per_user_is_limited() {
    let platform = TestPlatform::start().await;
    let ada = platform.login("Ada").await;
    for _ in 0..50 {
        create(&platform, &ada, json!({})).await;
    }
    let token = &ada.session_token;
    let answer = send(&platform, token, Method::POST, "/worlds", Some(json!({}))).await;
    assert_eq!(error_of(answer).await, (409, "too_many_worlds".to_owned()));
    assert_eq!(
        list(&platform, token, "mine=true&per_page=100")
            .await
            .worlds
            .len(),
        50
    );
}

#[tokio::test]
async fn a_private_world_requires_its_room_code() {
    let platform = TestPlatform::start().await;
    let (ada, bob) = (platform.login("Ada").await, platform.login("Bob").await);
    let body = json!({ "name": "Secret", "private": true });
    let secret = create(&platform, &ada, body).await;
    let path = format!("/world/{}", secret.world_id);
    for token in ["", &bob.session_token] {
        assert_eq!(list(&platform, token, "").await.total, 0);
        let answer = send(&platform, token, Method::GET, &path, None).await;
        assert_eq!(error_of(answer).await, (404, "world_not_found".to_owned()));
        // The response must not reveal whether the world exists: anonymous clients get 401, other
        // users get 404.
        let refused = match token {
            "" => (401, "missing_token".to_owned()),
            _ => (404, "world_not_found".to_owned()),
        };
        for method in [Method::DELETE, Method::POST] {
            for place in [path.as_str(), "/world/world_none"] {
                let body = Some(json!({}));
                let answer = send(&platform, token, method.clone(), place, body).await;
                assert_eq!(error_of(answer).await, refused, "{method} {place}");
            }
        }
    }
    let by_id = json!({ "world_id": secret.world_id });
    let answer = platform.try_join(&bob.session_token, by_id.clone()).await;
    assert_eq!(error_of(answer).await, (404, "world_not_found".to_owned()));
    let answer = platform.try_join(&ada.session_token, by_id).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let by_code = json!({ "room_code": secret.room_code });
    let answer = platform.try_join(&bob.session_token, by_code).await;
    assert_eq!(answer.status(), StatusCode::OK);
    // The world is running, and matchmaking does not use it.
    let matched = platform.join(json!({ "game_id": "sample" })).await;
    assert_ne!(matched.world_id, secret.world_id);
    // Public again, also for matchmaking.
    let change = json!({ "version": 1, "private": false });
    let answer = send(
        &platform,
        &ada.session_token,
        Method::PATCH,
        &path,
        Some(change),
    )
    .await;
    let open: WorldInfo = read(answer, StatusCode::OK).await;
    assert_eq!((open.private, open.version), (false, 2));
    assert_eq!(list(&platform, "", "").await.total, 2);
    let server = platform.platform.fleet().server(&secret.world_id).unwrap();
    assert!(!server.is_private());
}

#[tokio::test]
async fn changes_never_overwrite_each_other() {
    let platform = TestPlatform::start().await;
    let (ada, bob) = (platform.login("Ada").await, platform.login("Bob").await);
    let world = create(&platform, &ada, json!({ "name": "Old" })).await;
    let path = format!("/world/{}", world.world_id);
    let change = |token: String, body: Value| {
        let (platform, path) = (&platform, &path);
        async move { send(platform, &token, Method::PATCH, path, Some(body)).await }
    };
    let ada = ada.session_token;
    let body = json!({ "version": 1, "name": "New", "description": "Text" });
    let now: WorldInfo = read(change(ada.clone(), body.clone()).await, StatusCode::OK).await;
    assert_eq!((now.name.as_str(), now.version), ("New", 2));
    // Repeating the request is a conflict, because its version is outdated.
    let answer = change(ada.clone(), body).await;
    let body: Value = read(answer, StatusCode::CONFLICT).await;
    assert_eq!(body["error"]["code"], "changed_meanwhile");
    assert_eq!(body["error"]["details"]["version"], 2);
    for (token, body, expected) in [
        (&ada, json!({ "name": "x" }), (400, "invalid_field")),
        (
            &ada,
            json!({ "version": 2, "name": "\u{200b}" }),
            (400, "invalid_name"),
        ),
        (
            &bob.session_token,
            json!({ "version": 2, "name": "x" }),
            (403, "forbidden"),
        ),
        (
            &String::new(),
            json!({ "version": 2, "name": "x" }),
            (401, "missing_token"),
        ),
    ] {
        let (status, code) = error_of(change(token.clone(), body).await).await;
        assert_eq!((status, code.as_str()), expected);
    }
    // An operator may change the world.
    let answer = change(
        ADMIN_TOKEN.to_owned(),
        json!({ "version": 2, "name": "Nice" }),
    )
    .await;
    let now: WorldInfo = read(answer, StatusCode::OK).await;
    assert_eq!(
        (now.name.as_str(), now.description.as_str()),
        ("Nice", "Text")
    );
}

#[tokio::test]
async fn only_owners_and_admins_delete_worlds() {
    let platform = TestPlatform::start().await;
    let (ada, bob) = (platform.login("Ada").await, platform.login("Bob").await);
    let world = create(&platform, &ada, json!({})).await;
    let body = json!({ "world_id": world.world_id });
    let joined = platform.try_join(&bob.session_token, body.clone()).await;
    assert_eq!(joined.status(), StatusCode::OK);
    platform.stage.players.store(1, Ordering::SeqCst);
    let path = format!("/world/{}", world.world_id);
    for (token, expected) in [("", 401), (bob.session_token.as_str(), 403)] {
        let answer = send(&platform, token, Method::DELETE, &path, None).await;
        assert_eq!(error_of(answer).await.0, expected);
    }
    let token = &ada.session_token;
    let answer = send(&platform, token, Method::DELETE, &path, None).await;
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    // Its process has stopped, and joins do not start it again.
    platform.stage.wait_for_alive(0).await;
    let answer = platform.try_join(&bob.session_token, body).await;
    assert_eq!(error_of(answer).await, (404, "world_not_found".to_owned()));
    let answer = send(&platform, token, Method::DELETE, &path, None).await;
    assert_eq!(error_of(answer).await, (404, "world_not_found".to_owned()));

    // A world created by a join without a target belongs to the user; one created by matchmaking
    // has no owner.
    let own: Value = platform
        .try_join(token, json!({}))
        .await
        .json()
        .await
        .unwrap();
    let matched = platform.join(json!({ "game_id": "sample" })).await;
    assert_eq!(
        own["world_id"],
        json!(matched.world_id),
        "the fullest world with a free slot"
    );
    let path = format!("/world/{}", matched.world_id);
    let answer = send(
        &platform,
        &matched.session_token,
        Method::DELETE,
        &path,
        None,
    )
    .await;
    assert_eq!(error_of(answer).await.0, 403);
    let answer = send(&platform, ADMIN_TOKEN, Method::DELETE, &path, None).await;
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    let matched = platform.join(json!({ "game_id": "sample" })).await;
    let path = format!("/world/{}", matched.world_id);
    let answer = send(
        &platform,
        &matched.session_token,
        Method::DELETE,
        &path,
        None,
    )
    .await;
    assert_eq!(error_of(answer).await.0, 403);
}

/// The process of a world as seen by `/internal`.
struct Process<'a> {
    platform: &'a TestPlatform,
    base: String,
    token: String,
    epoch: u64,
}

impl<'a> Process<'a> {
    /// The process that was launched last.
    async fn newest(platform: &'a TestPlatform) -> Self {
        let launch = platform.stage.launches.borrow().last().cloned().unwrap();
        let mut process = Self {
            platform,
            base: format!("/internal/worlds/{}", launch.world_id),
            token: launch.world_token,
            epoch: 0,
        };
        let boot: WorldBoot = read(process.ask(Method::GET, "", None).await, StatusCode::OK).await;
        process.epoch = boot.epoch;
        process
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Response {
        let path = format!("{}{path}", self.base);
        send(self.platform, &self.token, method, &path, body).await
    }

    async fn build(&self, numbers: std::ops::RangeInclusive<u64>) -> u64 {
        let batch = PersistBatch {
            epoch: self.epoch,
            ops: numbers.map(built).collect(),
            ..PersistBatch::default()
        };
        let batch = serde_json::to_value(batch).unwrap();
        let answer = self.ask(Method::POST, "/keep", Some(batch)).await;
        read::<PersistReply>(answer, StatusCode::OK).await.seq
    }

    async fn saved(&self) -> Saved {
        read(self.ask(Method::GET, "/saved", None).await, StatusCode::OK).await
    }
}

fn built(number: u64) -> LoggedOp {
    LoggedOp {
        seq: number,
        by: Some("client_1".into()),
        op: WorldOp::Build(Structure {
            number,
            prefab: "Wall".into(),
            position: [number as f32, 0.5, -5.0],
            rotation: [0.0, 0.0, 0.0, 1.0],
            owner: None,
        }),
    }
}

/// The structures of a state, without operation numbers.
fn structures(saved: &Saved) -> Vec<u64> {
    let ops = saved.world.ops.iter();
    ops.map(|op| match &op.op {
        WorldOp::Build(structure) => structure.number,
        other => panic!("{other:?}"),
    })
    .collect()
}

#[tokio::test]
async fn a_world_is_saved_and_restored() {
    let platform = TestPlatform::start().await;
    let mut files = game_files("sandbox", 8);
    let manifest = String::from_utf8(files["game.toml"].clone()).unwrap();
    let manifest = manifest.replace("[world]\n", "[world]\npersistent = true\n");
    files.insert("game.toml".to_owned(), manifest.into_bytes());
    platform.publish_sample(&files).await;
    let (ada, bob) = (platform.login("Ada").await, platform.login("Bob").await);
    let world = create(&platform, &ada, json!({ "game_id": "sandbox" })).await;
    let path = format!("/world/{}", world.world_id);
    let enter = || {
        let body = json!({ "world_id": world.world_id });
        let (platform, token) = (&platform, &ada.session_token);
        async move {
            let answer = platform.try_join(token, body).await;
            assert_eq!(answer.status(), StatusCode::OK);
            Process::newest(platform).await
        }
    };
    let post = |body: Value| {
        send(
            &platform,
            &ada.session_token,
            Method::POST,
            &path,
            Some(body),
        )
    };
    let first = enter().await;
    assert_eq!(first.build(1..=3).await, 3);
    let save: WorldSave = read(post(json!({ "label": "Three" })).await, StatusCode::CREATED).await;
    assert_eq!(
        (save.label.as_str(), save.newest_op, save.automatic),
        ("Three", 3, false)
    );
    assert_eq!(first.build(4..=5).await, 5);

    // Restoring: the process stops, the next one starts from the save, the previous state is saved,
    // and operation numbers continue.
    let answer = post(json!({ "restore": save.save_id })).await;
    let before: WorldSave = read(answer, StatusCode::CREATED).await;
    assert_eq!((before.newest_op, before.automatic), (5, true));
    platform.stage.wait_for_alive(0).await;
    let answer = first.ask(Method::GET, "/saved", None).await;
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    let second = enter().await;
    assert!(second.epoch > first.epoch);
    let saved = second.saved().await;
    assert_eq!(structures(&saved), [1, 2, 3]);
    assert_eq!((saved.world.checkpoint.seq, saved.world.newest()), (6, 9));
    assert_eq!(second.build(10..=10).await, 10);

    // Restoring the previous state.
    let answer = post(json!({ "restore": before.save_id })).await;
    assert_eq!(answer.status(), StatusCode::CREATED);
    let third = enter().await;
    assert_eq!(structures(&third.saved().await), [1, 2, 3, 4, 5]);

    // Exporting and importing the whole state.
    let state_path = format!("{path}/state");
    let answer = send(
        &platform,
        &ada.session_token,
        Method::GET,
        &state_path,
        None,
    )
    .await;
    let state: WorldState = read(answer, StatusCode::OK).await;
    assert_eq!(state.ops.len(), 5);
    let mut fewer = state.clone();
    fewer.ops.pop();
    let answer = post(json!({ "state": fewer })).await;
    assert_eq!(answer.status(), StatusCode::CREATED);
    assert_eq!(structures(&enter().await.saved().await), [1, 2, 3, 4]);

    let saves_path = format!("{path}/saves");
    let answer = send(
        &platform,
        &ada.session_token,
        Method::GET,
        &saves_path,
        None,
    )
    .await;
    let saves: WorldSaveList = read(answer, StatusCode::OK).await;
    assert_eq!((saves.total, saves.saves.len()), (4, 4));
    let mut damaged = serde_json::to_value(&state).unwrap();
    damaged["ops"][0]["op_id"] = json!(99);
    for (body, expected) in [
        (json!({ "restore": "save_none" }), (404, "save_not_found")),
        (json!({ "state": damaged }), (400, "invalid_state")),
        (
            json!({ "state": state, "restore": save.save_id }),
            (400, "too_many_targets"),
        ),
        (json!({ "state": [] }), (400, "invalid_field")),
    ] {
        let (status, code) = error_of(post(body).await).await;
        assert_eq!((status, code.as_str()), expected);
    }
    for (method, path) in [
        (Method::POST, path.clone()),
        (Method::GET, state_path.clone()),
        (Method::GET, saves_path.clone()),
        (Method::DELETE, format!("{saves_path}/{}", save.save_id)),
    ] {
        let answer = send(
            &platform,
            &bob.session_token,
            method,
            &path,
            Some(json!({})),
        )
        .await;
        assert_eq!(
            error_of(answer).await,
            (403, "forbidden".to_owned()),
            "{path}"
        );
    }
    let save_path = format!("{saves_path}/{}", save.save_id);
    let delete = || {
        send(
            &platform,
            &ada.session_token,
            Method::DELETE,
            &save_path,
            None,
        )
    };
    assert_eq!(delete().await.status(), StatusCode::NO_CONTENT);
    assert_eq!(
        error_of(delete().await).await,
        (404, "save_not_found".to_owned())
    );
}

#[tokio::test]
async fn the_number_of_saves_is_limited() {
    let platform = TestPlatform::start().await;
    let ada = platform.login("Ada").await;
    let world = create(&platform, &ada, json!({})).await;
    let path = format!("/world/{}", world.world_id);
    let post = |body: Value| {
        send(
            &platform,
            &ada.session_token,
            Method::POST,
            &path,
            Some(body),
        )
    };
    for number in 1..=20 {
        let save: WorldSave = read(post(json!({})).await, StatusCode::CREATED).await;
        assert_eq!(save.label, format!("Save {number}"));
    }
    assert_eq!(
        error_of(post(json!({})).await).await,
        (409, "too_many_saves".to_owned())
    );
    // Restoring is always possible, and only a limited number of automatic saves is stored.
    for _ in 0..5 {
        let answer = post(json!({ "state": WorldState::default() })).await;
        assert_eq!(answer.status(), StatusCode::CREATED);
        platform.clock.advance_ms(1000);
    }
    let saves_path = format!("{path}/saves?per_page=100");
    let answer = send(
        &platform,
        &ada.session_token,
        Method::GET,
        &saves_path,
        None,
    )
    .await;
    let saves: WorldSaveList = read(answer, StatusCode::OK).await;
    assert_eq!(saves.total, 23);
}
