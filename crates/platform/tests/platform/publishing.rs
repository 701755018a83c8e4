//! What creators do with their games (PLAT-8, BEY-11): channels, roll-outs,
//! rollbacks, edits, pictures, uploads in parts.

use std::collections::BTreeMap;

use crate::support::{TestPlatform, error_of, game_files, picture};
use frolic_platform::api::{
    Channel, CreatorGame, CreatorGameList, GameChannels, GameDetail, GameFiles, GameList,
    GameVisibility, JoinResponse, LikeState, LoginResponse, PublishResponse, ScreenshotList,
    UploadState, ValidationReport, VersionList,
};
use frolic_platform::ids;
use reqwest::{Method, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A version of a game whose worlds hold so many players.
fn version(id: &str, number: &str, max_players: u32) -> Vec<u8> {
    let mut files: BTreeMap<String, Vec<u8>> = game_files(id, max_players);
    let manifest = String::from_utf8(files["game.toml"].clone()).unwrap();
    let manifest = manifest.replace("1.0.0", number);
    files.insert("game.toml".to_owned(), manifest.into_bytes());
    frolic_package::pack(&files).unwrap()
}

/// A creator at work.
struct Creator<'a> {
    platform: &'a TestPlatform,
    login: LoginResponse,
}

impl<'a> Creator<'a> {
    async fn new(platform: &'a TestPlatform, name: &str) -> Self {
        let login = platform.login(name).await;
        Self { platform, login }
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.platform.request(method, path);
        request.bearer_auth(&self.login.session_token)
    }

    async fn send(&self, method: Method, path: &str, body: Value) -> Response {
        self.request(method, path).json(&body).send().await.unwrap()
    }

    async fn ok<T: DeserializeOwned>(&self, method: Method, path: &str, body: Value) -> T {
        let response = self.send(method, path, body).await;
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> T {
        let response = self.request(Method::GET, path).send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    async fn bytes(&self, method: Method, path: &str, body: Vec<u8>) -> Response {
        self.request(method, path).body(body).send().await.unwrap()
    }

    async fn upload(&self, query: &str, archive: Vec<u8>) -> PublishResponse {
        let path = format!("/api/games{query}");
        let response = self.bytes(Method::POST, &path, archive).await;
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert_eq!(status, StatusCode::CREATED, "{text}");
        self.platform.clock.advance_ms(1_000);
        serde_json::from_str(&text).unwrap()
    }

    async fn game(&self, id: &str) -> CreatorGame {
        self.get(&format!("/api/creator/games/{id}")).await
    }

    async fn edition(&self, id: &str) -> u32 {
        self.game(id).await.edition
    }

    async fn set(&self, id: &str, channel: &str, revision: &str, pct: u32) -> GameChannels {
        let body = json!({
            "edition": self.edition(id).await, "revision": revision, "rollout_pct": pct
        });
        let path = format!("/api/games/{id}/channels/{channel}");
        self.ok(Method::PUT, &path, body).await
    }

    async fn join(&self, body: Value) -> JoinResponse {
        let response = self
            .platform
            .try_join(&self.login.session_token, body)
            .await;
        assert_eq!(response.status(), StatusCode::OK);
        response.json().await.unwrap()
    }
}

/// The revision that a world runs.
async fn revision_of(platform: &TestPlatform, world_id: &str) -> String {
    let world: Value = platform.get_json(&format!("/world/{world_id}")).await;
    world["revision"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn bey_11_an_update_comes_beside_the_old_version_and_goes_back_in_one_call() {
    let platform = TestPlatform::start().await;
    let ada = Creator::new(&platform, "Ada").await;
    let first = ada.upload("", version("race", "1.0.0", 8)).await.revision;
    let old = platform.join(json!({ "game_id": "race" })).await;
    let second = ada.upload("", version("race", "1.1.0", 6)).await.revision;
    let new = platform.join(json!({ "game_id": "race" })).await;
    // Both run; nobody was moved.
    assert_ne!(old.world_id, new.world_id);
    assert_eq!(revision_of(&platform, &old.world_id).await, first);
    assert_eq!(revision_of(&platform, &new.world_id).await, second);
    let versions: VersionList = ada.get("/api/creator/games/race/versions").await;
    let shown: Vec<_> = versions
        .versions
        .iter()
        .map(|v| (v.version.as_str(), v.worlds))
        .collect();
    assert_eq!(shown, [("1.1.0", 1), ("1.0.0", 1)]);
    assert_eq!(versions.versions[0].channels, [Channel::Stable]);
    // Whoever is asked by its code comes to the old world still.
    let friend = platform.join(json!({ "room_code": old.room_code })).await;
    assert_eq!(friend.world_id, old.world_id);
    // And the files are those of the version that the world runs.
    let path = format!("/api/games/race/files?world_id={}", old.world_id);
    let files: GameFiles = platform.get_json(&path).await;
    assert_eq!(files.revision, first);

    let edition = ada.edition("race").await;
    let path = "/api/games/race/channels/stable/rollback";
    let back: GameChannels = ada
        .ok(Method::POST, path, json!({ "edition": edition }))
        .await;
    assert_eq!(back.channels[0].revision, first);
    assert_eq!(back.channels[0].rollback_version, None);
    let actions: Vec<_> = back.releases.iter().map(|r| r.action.as_str()).collect();
    assert_eq!(actions, ["rollback", "release", "release"]);
    let game: GameDetail = platform.get_json("/api/games/race").await;
    assert_eq!(
        (game.summary.version.as_str(), game.summary.max_players),
        ("1.0.0", 8)
    );
    let next = platform.join(json!({ "game_id": "race" })).await;
    assert_eq!(next.world_id, old.world_id);
    // There is nothing before the first.
    let again = ada
        .send(Method::POST, path, json!({ "edition": back.edition }))
        .await;
    assert_eq!(
        error_of(again).await,
        (409, "nothing_to_roll_back_to".to_owned())
    );
}

#[tokio::test]
async fn bey_11_a_rollout_reaches_a_share_of_the_players() {
    let platform = TestPlatform::start().await;
    let ada = Creator::new(&platform, "Ada").await;
    let first = ada.upload("", version("race", "1.0.0", 60)).await.revision;
    let second = ada
        .upload("?channel=dev", version("race", "2.0.0", 60))
        .await
        .revision;
    let channels = ada.set("race", "stable", &second, 50).await;
    let stable = &channels.channels[0];
    assert_eq!(
        (stable.revision.as_str(), stable.rollout_pct),
        (first.as_str(), 50)
    );
    assert_eq!(stable.next_version.as_deref(), Some("2.0.0"));
    let (mut old, mut new) = (0, 0);
    for _ in 0..24 {
        let joined = platform.join(json!({ "game_id": "race" })).await;
        match revision_of(&platform, &joined.world_id).await {
            revision if revision == first => old += 1,
            revision if revision == second => new += 1,
            other => panic!("{other}"),
        }
    }
    // One of 24 on either side would be one in a million.
    assert!(old > 1 && new > 1, "{old} {new}");
    assert_eq!(platform.stage.launch_count(), 2);
    // Nobody new gets it once it is taken back.
    let path = "/api/games/race/channels/stable/rollback";
    let body = json!({ "edition": channels.edition });
    let back: GameChannels = ada.ok(Method::POST, path, body).await;
    assert_eq!(
        (
            back.channels[0].next_revision.as_ref(),
            back.channels[0].rollout_pct
        ),
        (None, 100)
    );
    for _ in 0..6 {
        let joined = platform.join(json!({ "game_id": "race" })).await;
        assert_eq!(revision_of(&platform, &joined.world_id).await, first);
    }
}

#[tokio::test]
async fn bey_11_dev_is_for_the_creator_and_beta_for_who_asks() {
    let platform = TestPlatform::start().await;
    let ada = Creator::new(&platform, "Ada").await;
    let eve = Creator::new(&platform, "Eve").await;
    // A first version on dev is nobody else's business.
    let dev = ada
        .upload("?channel=dev", version("race", "0.1.0", 8))
        .await;
    assert_eq!(
        (dev.channel, dev.visibility),
        (Channel::Dev, GameVisibility::Private)
    );
    assert_eq!(error_of(platform.get("/api/games/race").await).await.0, 404);
    let refused = platform
        .try_join(&eve.login.session_token, json!({ "game_id": "race" }))
        .await;
    assert_eq!(error_of(refused).await, (404, "game_not_found".to_owned()));
    let joined = ada
        .join(json!({ "game_id": "race", "channel": "dev" }))
        .await;
    assert_eq!(revision_of_own(&ada, &joined.world_id).await, dev.revision);
    let edition = ada.edition("race").await;
    let early = ada
        .send(
            Method::POST,
            "/api/games/race/publish",
            json!({ "edition": edition }),
        )
        .await;
    assert_eq!(
        error_of(early).await,
        (409, "nothing_to_publish".to_owned())
    );

    // Given to everybody, it is published.
    ada.set("race", "stable", &dev.revision, 100).await;
    let game: GameDetail = platform.get_json("/api/games/race").await;
    assert_eq!(game.visibility, GameVisibility::Public);
    let beta = ada
        .upload("?channel=beta&notes=Faster", version("race", "0.2.0", 8))
        .await;
    let game: GameDetail = platform.get_json("/api/games/race").await;
    assert_eq!(game.summary.version, "0.1.0");
    assert_eq!(game.beta_version.as_deref(), Some("0.2.0"));
    assert_eq!(
        game.versions.len(),
        1,
        "a version that nobody got is not shown"
    );
    let body = json!({ "game_id": "race", "channel": "beta" });
    let joined = eve.join(body).await;
    assert_eq!(
        revision_of(&platform, &joined.world_id).await,
        beta.revision
    );
    let body = json!({ "game_id": "race", "channel": "dev" });
    let refused = platform.try_join(&eve.login.session_token, body).await;
    assert_eq!(error_of(refused).await.0, 403);
    let body = json!({ "game_id": "sample", "channel": "beta" });
    let refused = platform.try_join(&eve.login.session_token, body).await;
    assert_eq!(error_of(refused).await, (404, "channel_empty".to_owned()));
    let body = json!({ "game_id": "race", "channel": "nightly" });
    let refused = platform.try_join(&eve.login.session_token, body).await;
    assert_eq!(error_of(refused).await, (400, "invalid_field".to_owned()));
}

async fn revision_of_own(creator: &Creator<'_>, world_id: &str) -> String {
    let path = format!("/api/games/race/files?world_id={world_id}");
    creator.get::<GameFiles>(&path).await.revision
}

#[tokio::test]
async fn edits_stay_over_uploads_and_never_overwrite_what_was_not_seen() {
    let platform = TestPlatform::start().await;
    let ada = Creator::new(&platform, "Ada").await;
    let eve = Creator::new(&platform, "Eve").await;
    ada.upload("", version("race", "1.0.0", 8)).await;
    let edition = ada.edition("race").await;
    let body = json!({
        "edition": edition, "name": " Sky\u{202e}\nRace <b>", "tags": ["Sky", "race"],
        "visibility": "unlisted", "downloads": true,
    });
    let game: CreatorGame = ada.ok(Method::PATCH, "/api/games/race", body.clone()).await;
    assert_eq!(game.summary.name, "Sky Race <b>");
    assert_eq!(game.edited, ["name", "tags", "visibility"]);
    // The same again was made without seeing the first.
    let late = ada.send(Method::PATCH, "/api/games/race", body).await;
    assert_eq!(error_of(late).await, (409, "edited_meanwhile".to_owned()));
    for body in [
        json!({ "edition": game.edition, "name": "\u{200b} " }),
        json!({ "edition": game.edition, "description": "x".repeat(2_001) }),
        json!({ "edition": game.edition, "tags": ["not a tag"] }),
        json!({ "edition": game.edition, "visibility": "secret" }),
        json!({ "name": "without an edition" }),
        json!({ "edition": -1 }),
    ] {
        let refused = ada
            .send(Method::PATCH, "/api/games/race", body.clone())
            .await;
        assert_eq!(
            error_of(refused).await,
            (400, "invalid_field".to_owned()),
            "{body}"
        );
    }
    let refused = eve
        .send(
            Method::PATCH,
            "/api/games/race",
            json!({ "edition": game.edition }),
        )
        .await;
    assert_eq!(error_of(refused).await, (403, "forbidden".to_owned()));
    // A new version brings what was not changed here, and only that.
    ada.upload("", version("race", "1.1.0", 4)).await;
    let game: GameDetail = platform.get_json("/api/games/race").await;
    assert_eq!(game.summary.name, "Sky Race <b>");
    assert_eq!(game.summary.tags, ["sky", "race"]);
    assert_eq!(
        (game.summary.max_players, game.visibility),
        (4, GameVisibility::Unlisted)
    );
    let list: GameList = platform.get_json("/api/games").await;
    assert!(list.games.iter().all(|game| game.id != "race"));
    // Who edits at the same time: exactly one of many gets through.
    let edition = ada.edition("race").await;
    let tries = (0..8).map(|number| {
        let body = json!({ "edition": edition, "description": format!("by {number}") });
        ada.send(Method::PATCH, "/api/games/race", body)
    });
    let answers = futures_util::future::join_all(tries).await;
    let through = answers
        .iter()
        .filter(|a| a.status() == StatusCode::OK)
        .count();
    assert_eq!(through, 1);
    assert_eq!(ada.edition("race").await, edition + 1);
}

#[tokio::test]
async fn unpublished_games_are_for_their_creator_everywhere() {
    let platform = TestPlatform::start().await;
    let ada = Creator::new(&platform, "Ada").await;
    let eve = Creator::new(&platform, "Eve").await;
    let mut files = game_files("race", 8);
    let own = [picture(), b"only mine".to_vec()].concat();
    files.insert("assets/own.png".to_owned(), own.clone());
    ada.upload("", frolic_package::pack(&files).unwrap()).await;
    let listed: GameFiles = platform.get_json("/api/games/race/files").await;
    let file = listed
        .files
        .iter()
        .find(|file| file.path == "assets/own.png")
        .unwrap();
    assert_eq!(platform.get(&file.url).await.status(), StatusCode::OK);
    let running = ada.join(json!({ "game_id": "race" })).await;

    let edition = ada.edition("race").await;
    let game: CreatorGame = ada
        .ok(
            Method::POST,
            "/api/games/race/unpublish",
            json!({ "edition": edition }),
        )
        .await;
    assert!(!game.published);
    assert_eq!(
        game.visibility,
        GameVisibility::Public,
        "what it will be again"
    );
    for path in [
        "/api/games/race",
        "/api/games/race/files",
        "/api/games/race/thumbnail",
        "/api/games/race/ranking",
        "/api/games/race/download",
        file.url.as_str(),
    ] {
        assert_eq!(error_of(platform.get(path).await).await.0, 404, "{path}");
        if path != file.url {
            let response = eve.request(Method::GET, path).send().await.unwrap();
            assert_eq!(error_of(response).await.0, 404, "{path}");
        }
    }
    for body in [
        json!({ "game_id": "race" }),
        json!({ "world_id": running.world_id }),
        json!({ "room_code": running.room_code }),
    ] {
        let refused = platform
            .try_join(&eve.login.session_token, body.clone())
            .await;
        assert_eq!(error_of(refused).await.0, 404, "{body}");
    }
    for path in ["/api/games/race/like", "/api/games/race/channels/stable"] {
        let body = json!({ "edition": 1, "revision": "x" });
        let refused = eve.send(Method::PUT, path, body).await;
        assert_eq!(error_of(refused).await.0, 404, "{path}");
    }
    // Its creator has all of it, pictures too.
    ada.join(json!({ "world_id": running.world_id })).await;
    let detail: GameDetail = ada.get("/api/games/race").await;
    assert!(detail.mine);
    let thumbnail = detail.summary.thumbnail_url.unwrap();
    assert_eq!(
        platform.get(&thumbnail).await.status(),
        StatusCode::OK,
        "{thumbnail}"
    );
    let listed: GameFiles = ada.get("/api/games/race/files").await;
    let granted = listed
        .files
        .iter()
        .find(|file| file.path == "assets/own.png")
        .unwrap();
    let response = platform.get(&granted.url).await;
    assert!(
        response.headers()["cache-control"]
            .to_str()
            .unwrap()
            .starts_with("private")
    );
    assert_eq!(response.bytes().await.unwrap(), own);
    // A grant ends.
    platform.clock.advance_ms(6 * 3_600_000);
    assert_eq!(
        platform.get(&granted.url).await.status(),
        StatusCode::NOT_FOUND
    );

    let ada = Creator {
        login: platform.login("Someone").await,
        ..ada
    };
    let games: CreatorGameList = ada.get("/api/creator/games").await;
    assert_eq!(games.total, 0);
}

#[tokio::test]
async fn likes_count_once_and_can_be_taken_back() {
    let platform = TestPlatform::start().await;
    let ada = Creator::new(&platform, "Ada").await;
    let path = "/api/games/sample/like";
    for _ in 0..2 {
        let state: LikeState = ada.ok(Method::PUT, path, json!({})).await;
        assert_eq!(
            state,
            LikeState {
                liked: true,
                likes: 1
            }
        );
    }
    let tries = (0..6).map(|_| ada.send(Method::PUT, path, json!({})));
    futures_util::future::join_all(tries).await;
    let eve = Creator::new(&platform, "Eve").await;
    let state: LikeState = eve.ok(Method::PUT, path, json!({})).await;
    assert_eq!(state.likes, 2);
    let detail: GameDetail = ada.get("/api/games/sample").await;
    assert!(detail.liked);
    let list: GameList = platform.get_json("/api/games").await;
    assert_eq!(list.games[0].likes, 2);
    for _ in 0..2 {
        let state: LikeState = ada.ok(Method::DELETE, path, json!({})).await;
        assert_eq!(
            state,
            LikeState {
                liked: false,
                likes: 1
            }
        );
    }
    let nobody = platform.request(Method::PUT, path).send().await.unwrap();
    assert_eq!(error_of(nobody).await, (401, "missing_token".to_owned()));
    let refused = ada
        .send(Method::PUT, "/api/games/nothing/like", json!({}))
        .await;
    assert_eq!(error_of(refused).await, (404, "game_not_found".to_owned()));
}

/// A PNG header with another size than the thumbnail's.
fn screenshot(width: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend([0, 0, 2, 0xd0, 8, 2, 0, 0, 0]);
    bytes
}

#[tokio::test]
async fn screenshots_are_pictures_in_an_order() {
    let platform = TestPlatform::start().await;
    let ada = Creator::new(&platform, "Ada").await;
    let eve = Creator::new(&platform, "Eve").await;
    ada.upload("", version("race", "1.0.0", 8)).await;
    let path = "/api/games/race/screenshots";
    for width in 1..=8 {
        let added = ada.bytes(Method::POST, path, screenshot(width)).await;
        assert_eq!(added.status(), StatusCode::CREATED);
    }
    let full = ada.bytes(Method::POST, path, screenshot(9)).await;
    assert_eq!(
        error_of(full).await,
        (409, "too_many_screenshots".to_owned())
    );
    for bad in [
        b"<svg onload=alert(1)>".to_vec(),
        Vec::new(),
        screenshot(100_000),
    ] {
        let refused = ada.bytes(Method::POST, path, bad).await;
        assert_eq!(error_of(refused).await, (422, "invalid_picture".to_owned()));
    }
    // The refusal may come while the rest is still being sent.
    let huge = ada.request(Method::POST, path);
    if let Ok(huge) = huge.body(vec![0; 5 * 1024 * 1024]).send().await {
        assert_eq!(huge.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
    let refused = eve.bytes(Method::POST, path, screenshot(1)).await;
    assert_eq!(error_of(refused).await, (403, "forbidden".to_owned()));

    let game: GameDetail = platform.get_json("/api/games/race").await;
    let mut ids: Vec<_> = game
        .screenshots
        .iter()
        .map(|shot| shot.id.clone())
        .collect();
    assert_eq!(game.screenshots[2].width, 3);
    let response = platform.get(&game.screenshots[2].url).await;
    assert_eq!(response.headers()["content-type"], "image/png");
    assert_eq!(response.bytes().await.unwrap(), screenshot(3));
    ids.reverse();
    let order = format!("{path}/order");
    let list: ScreenshotList = ada.ok(Method::PUT, &order, json!({ "ids": ids })).await;
    assert_eq!(list.screenshots[0].width, 8);
    let twice = json!({ "ids": vec![ids[0].clone(); 8] });
    let refused = ada.send(Method::PUT, &order, twice).await;
    assert_eq!(error_of(refused).await.0, 409);
    let list: ScreenshotList = ada
        .ok(Method::DELETE, &format!("{path}/{}", ids[0]), json!({}))
        .await;
    assert_eq!((list.screenshots.len(), list.screenshots[0].width), (7, 7));

    // A picture of one's own, and the package's again.
    let response = ada
        .bytes(Method::PUT, "/api/games/race/thumbnail", screenshot(640))
        .await;
    let game: CreatorGame = response.json().await.unwrap();
    assert_eq!(game.edited, ["thumbnail"]);
    let shown = platform.get("/api/games/race/thumbnail").await;
    assert_eq!(shown.bytes().await.unwrap(), screenshot(640));
    ada.upload("", version("race", "1.1.0", 8)).await;
    let shown = platform.get("/api/games/race/thumbnail").await;
    assert_eq!(shown.bytes().await.unwrap(), screenshot(640));
    let game: CreatorGame = ada
        .ok(Method::DELETE, "/api/games/race/thumbnail", json!({}))
        .await;
    assert!(game.edited.is_empty());
    let shown = platform.get("/api/games/race/thumbnail").await;
    assert_eq!(shown.bytes().await.unwrap(), picture());
}

#[tokio::test]
async fn packages_are_downloaded_where_the_creator_allows_it() {
    let platform = TestPlatform::start().await;
    let ada = Creator::new(&platform, "Ada").await;
    let archive = version("race", "1.0.0", 8);
    let old = ada.upload("", archive.clone()).await.revision;
    let path = "/api/games/race/download";
    assert_eq!(
        error_of(platform.get(path).await).await,
        (403, "forbidden".to_owned())
    );
    let own = ada.request(Method::GET, path).send().await.unwrap();
    assert_eq!(own.bytes().await.unwrap(), archive);
    let body = json!({ "edition": ada.edition("race").await, "downloads": true });
    let _: CreatorGame = ada.ok(Method::PATCH, "/api/games/race", body).await;
    let response = platform.get(path).await;
    assert_eq!(
        response.headers()["content-disposition"],
        "attachment; filename=\"race.game\""
    );
    assert_eq!(response.bytes().await.unwrap(), archive);
    ada.upload("", version("race", "1.1.0", 8)).await;
    let path = format!("{path}?revision={old}");
    assert_eq!(error_of(platform.get(&path).await).await.0, 403);
    let own = ada.request(Method::GET, &path).send().await.unwrap();
    assert_eq!(own.bytes().await.unwrap(), archive);
    let path = format!(
        "/api/games/race/download?revision={}",
        ids::sha256_hex(b"x")
    );
    let own = ada.request(Method::GET, &path).send().await.unwrap();
    assert_eq!(error_of(own).await, (404, "version_not_found".to_owned()));
}

#[tokio::test]
async fn plat_8_an_upload_goes_on_after_a_break_and_a_restart() {
    let platform = TestPlatform::start().await;
    let data_dir = platform.data_dir.clone();
    let archive = version("race", "1.0.0", 8);
    let (begin, rest) = archive.split_at(archive.len() / 2);
    let ada = Creator::new(&platform, "Ada").await;
    let eve = Creator::new(&platform, "Eve").await;
    let body = json!({ "size_bytes": archive.len(), "sha256": ids::sha256_hex(&archive) });
    let upload: UploadState = ada.ok(Method::POST, "/api/uploads", body).await;
    let path = format!("/api/uploads/{}", upload.upload_id);
    let part = |offset: usize| format!("{path}/part?offset={offset}");
    let refused = ada.bytes(Method::PUT, &part(5), begin.to_vec()).await;
    assert_eq!(error_of(refused).await, (409, "wrong_offset".to_owned()));
    let response = ada.bytes(Method::PUT, &part(0), begin.to_vec()).await;
    let state: UploadState = response.json().await.unwrap();
    assert_eq!(state.received_bytes as usize, begin.len());
    // The answer was lost and the part comes again: said where to go on.
    let refused = ada.bytes(Method::PUT, &part(0), begin.to_vec()).await;
    let body: Value = refused.json().await.unwrap();
    assert_eq!(body["error"]["details"]["received_bytes"], begin.len());
    let early = ada
        .send(Method::POST, &format!("{path}/finish"), json!({}))
        .await;
    assert_eq!(error_of(early).await, (409, "upload_incomplete".to_owned()));
    let too_much = ada
        .bytes(Method::PUT, &part(begin.len()), archive.clone())
        .await;
    assert_eq!(error_of(too_much).await, (413, "bad_part".to_owned()));
    for (method, path) in [
        (Method::GET, path.clone()),
        (Method::DELETE, path.clone()),
        (Method::POST, format!("{path}/finish")),
    ] {
        let refused = eve.send(method, &path, json!({})).await;
        assert_eq!(
            error_of(refused).await,
            (404, "upload_not_found".to_owned())
        );
    }
    let login = ada.login.clone();
    drop(eve);
    drop(ada);
    platform.stop().await;

    let platform = TestPlatform::start_in(data_dir, |_| {}).await;
    let ada = Creator {
        platform: &platform,
        login,
    };
    let state: UploadState = ada.get(&path).await;
    assert_eq!(state.received_bytes as usize, begin.len());
    let response = ada
        .bytes(Method::PUT, &part(begin.len()), rest.to_vec())
        .await;
    assert_eq!(response.status(), StatusCode::OK);
    let done: PublishResponse = ada
        .ok(Method::POST, &format!("{path}/finish"), json!({}))
        .await;
    assert_eq!(done.revision, ids::sha256_hex(&archive));
    let game: GameDetail = platform.get_json("/api/games/race").await;
    assert_eq!(game.summary.creator, "Ada");
    let gone = ada.request(Method::GET, &path).send().await.unwrap();
    assert_eq!(error_of(gone).await, (404, "upload_not_found".to_owned()));
    let left = std::fs::read_dir(platform.data_dir.join("uploads"))
        .unwrap()
        .count();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn uploads_have_bounds_and_end() {
    let platform = TestPlatform::start().await;
    let ada = Creator::new(&platform, "Ada").await;
    for body in [
        json!({ "size_bytes": 0 }),
        json!({ "size_bytes": -5 }),
        json!({ "size_bytes": 10, "sha256": "../../etc" }),
        json!({ "size_bytes": 10, "channel": "nightly" }),
        json!({ "size_bytes": 10, "notes": "x".repeat(2_001) }),
        json!({}),
    ] {
        let refused = ada.send(Method::POST, "/api/uploads", body.clone()).await;
        assert_eq!(
            error_of(refused).await,
            (400, "invalid_field".to_owned()),
            "{body}"
        );
    }
    let huge = ada
        .send(
            Method::POST,
            "/api/uploads",
            json!({ "size_bytes": 4_000_000_000_u32 }),
        )
        .await;
    assert_eq!(error_of(huge).await, (413, "payload_too_large".to_owned()));
    let mut uploads = Vec::new();
    for _ in 0..4 {
        let upload: UploadState = ada
            .ok(Method::POST, "/api/uploads", json!({ "size_bytes": 4 }))
            .await;
        uploads.push(format!("/api/uploads/{}", upload.upload_id));
    }
    let more = ada
        .send(Method::POST, "/api/uploads", json!({ "size_bytes": 4 }))
        .await;
    assert_eq!(error_of(more).await, (409, "too_many_uploads".to_owned()));
    // Not a package: the report says why, and the upload is over.
    let path = format!("{}/part?offset=0", uploads[0]);
    ada.bytes(Method::PUT, &path, b"nope".to_vec()).await;
    let finish = format!("{}/finish", uploads[0]);
    let refused = ada.send(Method::POST, &finish, json!({})).await;
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let body: Value = refused.json().await.unwrap();
    assert_eq!(
        body["error"]["details"]["problems"][0]["rule"],
        "not-an-archive"
    );
    let gone = ada.send(Method::POST, &finish, json!({})).await;
    assert_eq!(error_of(gone).await.0, 404);
    let given_up = ada
        .request(Method::DELETE, &uploads[1])
        .send()
        .await
        .unwrap();
    assert_eq!(given_up.status(), StatusCode::NO_CONTENT);
    // What nobody finishes is swept.
    let path = format!("{}/part?offset=0", uploads[2]);
    ada.bytes(Method::PUT, &path, b"no".to_vec()).await;
    platform.clock.advance_ms(25 * 3_600_000);
    let _: Value = platform.admin(Method::POST, "/admin/cleanup").await;
    let left = std::fs::read_dir(platform.data_dir.join("uploads"))
        .unwrap()
        .count();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn pkg_7_a_package_can_be_looked_at_without_being_kept() {
    let platform = TestPlatform::start().await;
    let ada = Creator::new(&platform, "Ada").await;
    let path = "/api/games/validate";
    let response = ada
        .bytes(Method::POST, path, version("race", "1.0.0", 8))
        .await;
    let report: ValidationReport = response.json().await.unwrap();
    let package = report.package.unwrap();
    assert!(report.ok);
    assert_eq!((package.game_id.as_str(), package.files), ("race", 3));
    let response = ada.bytes(Method::POST, path, b"nope".to_vec()).await;
    let report: ValidationReport = response.json().await.unwrap();
    // The id of a game must not hide this call.
    let response = ada.bytes(Method::POST, "/api/games", version("validate", "1.0.0", 8));
    assert_eq!(
        error_of(response.await).await,
        (409, "reserved_id".to_owned())
    );
    assert!(!report.ok && report.package.is_none());
    assert_eq!(report.report.problems[0].severity, "error");
    assert_eq!(error_of(platform.get("/api/games/race").await).await.0, 404);
}
