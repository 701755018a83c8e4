//! Publishing of games: channels, rollouts, rollbacks, edits, likes.

use crate::support::creator::{Creator, version};
use crate::support::{TestPlatform, error_of, game_files, picture};
use frolic_platform::api::{
    Channel, CreatorGame, CreatorGameList, GameChannels, GameDetail, GameFiles, GameList,
    GameVisibility, LikeState, VersionList,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// The revision that a world runs.
async fn revision_of(platform: &TestPlatform, world_id: &str) -> String {
    let world: Value = platform.get_json(&format!("/world/{world_id}")).await;
    world["revision"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_update_runs_beside_the_old_version_and_can_be_rolled_back() {
    let platform = TestPlatform::start().await;
    let ada = Creator::new(&platform, "Ada").await;
    let first = ada.upload("", version("race", "1.0.0", 8)).await.revision;
    let old = platform.join(json!({ "game_id": "race" })).await;
    let second = ada.upload("", version("race", "1.1.0", 6)).await.revision;
    let new = platform.join(json!({ "game_id": "race" })).await;
    // Both versions run; no player was moved.
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
    // Joining by room code still leads to the old world.
    let friend = platform.join(json!({ "room_code": old.room_code })).await;
    assert_eq!(friend.world_id, old.world_id);
    // The files are those of the version that the world runs.
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
    // The first version cannot be rolled back.
    let again = ada
        .send(Method::POST, path, json!({ "edition": back.edition }))
        .await;
    assert_eq!(
        error_of(again).await,
        (409, "nothing_to_roll_back_to".to_owned())
    );
}

#[tokio::test]
async fn a_rollout_reaches_a_share_of_the_players() {
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
    // One of 24 on either side has a probability of one in a million.
    assert!(old > 1 && new > 1, "{old} {new}");
    assert_eq!(platform.stage.launch_count(), 2);
    // New players do not get the version after its rollout is reverted.
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
async fn dev_is_for_the_creator_and_beta_on_request() {
    let platform = TestPlatform::start().await;
    let ada = Creator::new(&platform, "Ada").await;
    let eve = Creator::new(&platform, "Eve").await;
    // A first version on dev is visible only to its creator.
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

    // Releasing it on stable publishes it.
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
        "a version that was never released is not shown"
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
async fn edits_survive_uploads_and_never_overwrite_newer_edits() {
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
    // Repeating the edit with the old edition is refused.
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
    // A new version updates only the fields that were not edited.
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
    // Of concurrent edits, exactly one succeeds.
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
async fn unpublished_games_are_visible_only_to_their_creator() {
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

    for fan in [&ada, &eve] {
        let _: LikeState = fan.ok(Method::PUT, "/api/games/race/like", json!({})).await;
    }
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
        "the visibility after publishing again"
    );
    let liked: GameList = ada.get("/api/me/likes").await;
    assert_eq!(liked.total, 1);
    let liked: GameList = eve.get("/api/me/likes").await;
    assert_eq!((liked.total, liked.games.len()), (0, 0));
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
    // Its creator has access to everything, including pictures.
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
    // The signed URL expires.
    platform.clock.advance_ms(6 * 3_600_000);
    assert_eq!(
        platform.get(&granted.url).await.status(),
        StatusCode::NOT_FOUND
    );

    let ada = Creator {
        login: platform.login("Cleo").await,
        ..ada
    };
    let games: CreatorGameList = ada.get("/api/creator/games").await;
    assert_eq!(games.total, 0);
}

#[tokio::test]
async fn likes_count_once_and_can_be_removed() {
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
    let liked: GameList = ada.get("/api/me/likes").await;
    assert_eq!((liked.total, liked.games[0].id.as_str()), (1, "sample"));
    assert_eq!(liked.games[0].likes, 2);
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
    let liked: GameList = ada.get("/api/me/likes").await;
    assert_eq!((liked.total, liked.games.len()), (0, 0));
    for (method, path) in [(Method::PUT, path), (Method::GET, "/api/me/likes")] {
        let anonymous = platform.request(method, path).send().await.unwrap();
        assert_eq!(error_of(anonymous).await, (401, "missing_token".to_owned()));
    }
    let refused = ada
        .send(Method::PUT, "/api/games/nothing/like", json!({}))
        .await;
    assert_eq!(error_of(refused).await, (404, "game_not_found".to_owned()));
}
