//! The game store: listings, game pages, files, uploads.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::support::{TestPlatform, database, error_of, game_files, picture};
use frolic_platform::api::{GameDetail, GameFiles, GameList, PublishResponse, WorldList};
use frolic_platform::ids;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

async fn names(platform: &TestPlatform, query: &str) -> Vec<String> {
    let list: GameList = platform.get_json(&format!("/api/games?{query}")).await;
    list.games.into_iter().map(|game| game.id).collect()
}

#[tokio::test]
async fn listings_are_sorted_searched_and_paginated() {
    let platform = TestPlatform::start().await;
    for id in ["alpha", "beta"] {
        platform.clock.advance_ms(1_000);
        platform.publish_sample(&game_files(id, 8)).await;
    }
    assert_eq!(
        names(&platform, "sort=new").await,
        ["beta", "alpha", "sample"]
    );
    platform.join(json!({ "game_id": "alpha" })).await;
    assert_eq!(names(&platform, "sort=popular").await[0], "alpha");
    assert_eq!(names(&platform, "q=BETA").await, ["beta"]);
    // With a typo, with a prefix, and with both.
    for query in ["q=alhpa", "q=alp", "q=game+alpah"] {
        assert_eq!(names(&platform, query).await, ["alpha"], "{query}");
    }
    // Wildcards of the database are ordinary characters.
    for query in ["q=%25", "q=_lpha", "q=x' OR '1'='1", "sort=featured"] {
        assert!(names(&platform, query).await.is_empty(), "{query}");
    }
    let list: GameList = platform.get_json("/api/games?page=2").await;
    assert_eq!((list.games.len(), list.total, list.page), (0, 3, 2));
    for query in ["sort=best", "page=-1", "page=x"] {
        let response = platform.get(&format!("/api/games?{query}")).await;
        assert_eq!(
            error_of(response).await,
            (400, "invalid_query".to_owned()),
            "{query}"
        );
    }
}

#[tokio::test]
async fn players_now_follow_the_heartbeats() {
    let platform = TestPlatform::start().await;
    let joined = platform.join(json!({ "game_id": "sample" })).await;
    for players in [3, 0] {
        platform.stage.players.store(players, Ordering::SeqCst);
        platform.stage.wait_for_heartbeats().await;
        let game: GameDetail = platform.get_json("/api/games/sample").await;
        assert_eq!(game.summary.players_now, players);
        assert_eq!(game.servers[0].players, players);
        let worlds: WorldList = platform.get_json("/worlds").await;
        assert_eq!(worlds.worlds[0].world_id, joined.world_id);
        assert_eq!(worlds.worlds[0].player_count, players);
    }
}

#[tokio::test]
async fn the_store_shows_the_capabilities_of_scripts() {
    let platform = TestPlatform::start().await;
    let mut files = game_files("keeper", 9);
    let manifest = files.get_mut("game.toml").unwrap();
    manifest.extend_from_slice(b"\n[capabilities]\nstore = true\nhttp = true\n");
    platform.publish_sample(&files).await;
    let game: GameDetail = platform.get_json("/api/games/keeper").await;
    assert_eq!(game.summary.capabilities, ["store", "http"]);
}

#[tokio::test]
async fn a_game_page_has_its_versions_and_picture() {
    let platform = TestPlatform::start().await;
    platform.clock.advance_ms(1_000);
    let newest = platform.publish_sample(&game_files("sample", 9)).await;
    // Publishing the same package again creates no version.
    platform.publish_sample(&game_files("sample", 9)).await;
    let game: GameDetail = platform.get_json("/api/games/sample").await;
    assert_eq!(game.summary.creator, "Frolic");
    assert_eq!(game.summary.description, "For <b>tests</b>");
    assert_eq!(game.summary.capabilities, Vec::<String>::new());
    assert_eq!(game.versions.len(), 2);
    assert_eq!(game.versions[0].revision, newest);
    assert_eq!(game.versions[0].published_at, "2025-11-15T00:00:01Z");

    let response = platform.get(&game.summary.thumbnail_url.unwrap()).await;
    assert_eq!(response.headers()["content-type"], "image/png");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    let etag = response.headers()["etag"].clone();
    assert_eq!(response.bytes().await.unwrap(), picture());
    let request = platform.request(Method::GET, "/api/games/sample/thumbnail");
    let response = request.header("if-none-match", etag).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_MODIFIED);
}

#[tokio::test]
async fn pictures_are_served_in_the_requested_size() {
    let platform = TestPlatform::start().await;
    let pixels = image::RgbImage::from_fn(960, 540, |x, y| {
        let noise = x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(40_503);
        image::Rgb([(x / 4) as u8, (y / 4) as u8, (noise >> 24) as u8])
    });
    let mut png = std::io::Cursor::new(Vec::new());
    pixels.write_to(&mut png, image::ImageFormat::Png).unwrap();
    let png = png.into_inner();
    let mut files = game_files("painted", 8);
    files.insert("assets/thumbnail.png".to_owned(), png.clone());
    platform.publish_sample(&files).await;
    let game: GameDetail = platform.get_json("/api/games/painted").await;
    let url = game.summary.thumbnail_url.unwrap();
    let listed: GameFiles = platform.get_json("/api/games/painted/files").await;
    let file = &listed.files[0].url;

    for (path, width) in [
        (format!("{url}&w=272"), 320),
        (format!("{url}&w=640"), 640),
        (format!("{url}&w=4000000000"), 960),
        (format!("{file}?w=300"), 320),
    ] {
        let response = platform.get(&path).await;
        assert_eq!(response.headers()["content-type"], "image/webp", "{path}");
        let cache = response.headers()["cache-control"].to_str().unwrap();
        assert!(cache.contains("immutable"), "{path}: {cache}");
        let etag = response.headers()["etag"].clone();
        let small = response.bytes().await.unwrap();
        assert!(small.len() < png.len(), "{path}: {}", small.len());
        assert_eq!(image::load_from_memory(&small).unwrap().width(), width);
        let again = platform.request(Method::GET, &path);
        let again = again.header("if-none-match", etag).send().await.unwrap();
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    }
    let whole = platform.get(&url).await;
    assert_eq!(whole.headers()["content-type"], "image/png");
    assert_eq!(whole.bytes().await.unwrap(), png);
    // The URL names another picture, so it may not be cached for ever.
    let other = platform
        .get("/api/games/painted/thumbnail?v=00000000")
        .await;
    assert_eq!(other.headers()["cache-control"], "public, max-age=300");
    // A picture that cannot be decoded is served unchanged: the sample's picture is truncated.
    let cut = platform.get("/api/games/sample/thumbnail?w=320").await;
    assert_eq!(cut.headers()["content-type"], "image/png");
    assert_eq!(cut.bytes().await.unwrap(), picture());
    let wrong = platform.get("/api/games/painted/thumbnail?w=-1").await;
    assert_eq!(wrong.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_cdn_serves_only_assets() {
    let platform = TestPlatform::start().await;
    let files: GameFiles = platform.get_json("/api/games/sample/files").await;
    assert_eq!(files.files.len(), 1);
    assert_eq!(files.files[0].path, "assets/thumbnail.png");
    let response = platform.get(&files.files[0].url).await;
    assert!(
        response.headers()["cache-control"]
            .to_str()
            .unwrap()
            .contains("immutable")
    );
    assert_eq!(
        response.headers()["content-security-policy"],
        "default-src 'none'; sandbox"
    );
    assert_eq!(response.bytes().await.unwrap(), picture());

    // The package is a blob too, but its hash must not give access to its sources.
    let package = format!("/cdn/{}", files.revision);
    let upper = files.files[0].url.to_uppercase().replace("/CDN/", "/cdn/");
    let nothing = format!("/cdn/{}", ids::sha256_hex(b"nothing"));
    for path in [
        package.as_str(),
        upper.as_str(),
        nothing.as_str(),
        "/cdn/..%2f..%2fsecret_key",
        "/cdn/%2e%2e%2ffrolic.db",
        "/cdn/..%5c..%5cfrolic.db",
        "/cdn/",
        "/cdn/a/b",
        "/cdn/%00",
        "/cdn/%ff%fe",
    ] {
        let response = platform.get(path).await;
        let status = response.status().as_u16();
        assert!(matches!(status, 400 | 404), "{path}: {status}");
        let body = response.text().await.unwrap();
        assert!(body.starts_with("{\"error\":"), "{path}: {body}");
    }
}

#[tokio::test]
async fn uploads_are_validated_and_have_an_owner() {
    let platform = TestPlatform::start().await;
    let ada = platform.login("Ada").await;
    let eve = platform.login("Eve").await;
    let upload = |token: String, archive: Vec<u8>| {
        let request = platform
            .request(Method::POST, "/api/games")
            .bearer_auth(token)
            .body(archive);
        async move { request.send().await.unwrap() }
    };
    let archive = frolic_package::pack(&game_files("adas-game", 4)).unwrap();
    let response = upload(ada.session_token.clone(), archive.clone()).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    let published: PublishResponse = response.json().await.unwrap();
    assert_eq!(published.revision, ids::sha256_hex(&archive));
    let game: GameDetail = platform.get_json("/api/games/adas-game").await;
    assert_eq!(game.summary.creator, "Ada");
    let again = upload(ada.session_token.clone(), archive).await;
    assert_eq!(again.status(), StatusCode::OK);

    // Ids of games of other users, including the sample's.
    for id in ["adas-game", "sample"] {
        let archive = frolic_package::pack(&game_files(id, 5)).unwrap();
        let response = upload(eve.session_token.clone(), archive).await;
        assert_eq!(
            error_of(response).await,
            (403, "forbidden".to_owned()),
            "{id}"
        );
    }
    // Not a package: all problems are reported.
    for bytes in [
        Vec::new(),
        b"PK\x03\x04 not a zip".to_vec(),
        vec![0; 100_000],
    ] {
        let response = upload(ada.session_token.clone(), bytes).await;
        assert_eq!(response.status(), StatusCode::UNPROCESSABLE_ENTITY);
        let body: Value = response.json().await.unwrap();
        assert_eq!(body["error"]["code"], "invalid_package");
        assert!(!body["error"]["details"].is_null(), "{body}");
    }
    let response = platform
        .request(Method::POST, "/api/games")
        .body("x")
        .send()
        .await
        .unwrap();
    assert_eq!(error_of(response).await, (401, "missing_token".to_owned()));
}

#[tokio::test]
async fn private_games_are_visible_only_to_their_creator() {
    let platform = TestPlatform::start().await;
    let ada = platform.login("Ada").await;
    let mut files = game_files("hidden", 4);
    let manifest = String::from_utf8(files["game.toml"].clone()).unwrap();
    let manifest = manifest.replace("max_players", "visibility = \"private\"\nmax_players");
    files.insert("game.toml".to_owned(), manifest.into_bytes());
    let archive = frolic_package::pack(&files).unwrap();
    let request = platform
        .request(Method::POST, "/api/games")
        .bearer_auth(&ada.session_token);
    assert_eq!(
        request.body(archive).send().await.unwrap().status(),
        StatusCode::CREATED
    );

    assert_eq!(names(&platform, "").await, ["sample"]);
    for path in [
        "/api/games/hidden",
        "/api/games/hidden/thumbnail",
        "/api/games/hidden/files",
    ] {
        assert_eq!(error_of(platform.get(path).await).await.0, 404, "{path}");
    }
    let eve = platform.login("Eve").await;
    let body = json!({ "game_id": "hidden" });
    let response = platform.try_join(&eve.session_token, body.clone()).await;
    assert_eq!(error_of(response).await, (404, "game_not_found".to_owned()));
    let response = platform.try_join(&ada.session_token, body).await;
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn external_changes_of_the_database_appear_in_listings() {
    let platform = TestPlatform::start().await;
    // More games than one query reads.
    for number in 0..60 {
        let files = game_files(&format!("game-{number}"), 8);
        platform.publish_sample(&files).await;
    }
    let list: GameList = platform.get_json("/api/games").await;
    assert_eq!(list.total, 61);
    for statement in [
        "UPDATE games SET visibility = 'private' WHERE game_id = 'game-7'",
        "UPDATE games SET name = 'Renamed' WHERE game_id = 'game-59'",
    ] {
        database::run(&platform.database_url, statement).unwrap();
    }
    let began = Instant::now();
    loop {
        platform.clock.advance_ms(10_000);
        let list: GameList = platform.get_json("/api/games?per_page=100").await;
        let renamed = list.games.iter().find(|game| game.id == "game-59").unwrap();
        let is_gone = list.games.iter().all(|game| game.id != "game-7");
        if is_gone && renamed.name == "Renamed" {
            assert_eq!(list.total, 60);
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{}", list.total);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // A game that becomes public again is listed again.
    let statement = "UPDATE games SET visibility = 'public' WHERE game_id = 'game-7'";
    database::run(&platform.database_url, statement).unwrap();
    while !names(&platform, "per_page=100")
        .await
        .contains(&"game-7".to_owned())
    {
        assert!(
            began.elapsed() < Duration::from_secs(120),
            "the game is not listed"
        );
        platform.clock.advance_ms(10_000);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
