//! Uploads of pictures and packages, in one or several parts, and downloads.

use crate::support::creator::{Creator, version};
use crate::support::{TestPlatform, error_of, picture};
use frolic_platform::api::{
    CreatorGame, GameDetail, PublishResponse, ScreenshotList, UploadState, ValidationReport,
};
use frolic_platform::ids;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// A PNG header with the given width.
fn screenshot(width: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend([0, 0, 2, 0xd0, 8, 2, 0, 0, 0]);
    bytes
}

#[tokio::test]
async fn screenshots_are_validated_and_ordered() {
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
    // The error may arrive while the body is still being sent.
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

    // A custom thumbnail, and back to that of the package.
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
async fn packages_are_downloadable_if_the_creator_allows_it() {
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
async fn an_upload_continues_after_a_restart() {
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
    // A part that is repeated after a lost response returns the offset to continue at.
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
async fn uploads_are_limited_and_expire() {
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
    // Not a package: the report contains the reason, and the upload ends.
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
    let cancelled = ada
        .request(Method::DELETE, &uploads[1])
        .send()
        .await
        .unwrap();
    assert_eq!(cancelled.status(), StatusCode::NO_CONTENT);
    // Unfinished uploads are deleted by the cleanup.
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
async fn a_package_can_be_validated_without_publishing() {
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
    // The id of a game must not shadow this route.
    let response = ada.bytes(Method::POST, "/api/games", version("validate", "1.0.0", 8));
    assert_eq!(
        error_of(response.await).await,
        (409, "reserved_id".to_owned())
    );
    assert!(!report.ok && report.package.is_none());
    assert_eq!(report.report.problems[0].severity, "error");
    assert_eq!(error_of(platform.get("/api/games/race").await).await.0, 404);
}

#[tokio::test]
async fn a_script_that_does_not_compile_is_refused_with_its_line() {
    let platform = TestPlatform::start().await;
    let ada = Creator::new(&platform, "Ada").await;
    let mut files = crate::support::game_files("race", 8);
    let path = "scripts/StarterGui/Hud.luau";
    let broken = b"local a = 1\nlocal = 2\n".to_vec();
    files.insert(path.to_owned(), broken);
    let archive = frolic_package::pack(&files).unwrap();
    let refused = ada.bytes(Method::POST, "/api/games", archive.clone()).await;
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let body: Value = refused.json().await.unwrap();
    let problem = &body["error"]["details"]["problems"][0];
    assert_eq!(problem["file"], path);
    assert_eq!(
        (&problem["line"], &problem["severity"]),
        (&json!(2), &json!("error"))
    );
    assert!(problem["message"].as_str().unwrap().contains("identifier"));
    let checked = ada
        .bytes(Method::POST, "/api/games/validate", archive)
        .await;
    let report: ValidationReport = checked.json().await.unwrap();
    assert!(!report.ok && report.package.is_none());
    let none = platform.get("/api/games/race").await;
    assert_eq!(none.status(), StatusCode::NOT_FOUND);
}
