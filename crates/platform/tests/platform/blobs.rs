//! Packages and assets in a bucket of an S3 server instead of a folder. The server is an
//! independent program (moto).

use frolic_platform::BlobLocation;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::programs::S3Server;
use crate::support::{TestPlatform, error_of, game_files, picture};

async fn platform_on(server: &S3Server) -> TestPlatform {
    let url = format!("s3://{}/eu/games", S3Server::BUCKET);
    let place = BlobLocation::parse(&url, server.settings()).unwrap();
    TestPlatform::start_with(|settings| settings.blobs = Some(place)).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs moto, which `cargo xtask test` installs"]
async fn packages_and_assets_live_in_a_bucket() {
    let server = S3Server::start().await;
    let platform = platform_on(&server).await;
    // The sample consists of two objects: its package and its thumbnail.
    assert_eq!(server.objects().await, 2);
    assert!(
        !platform.data_dir.join("blobs").exists(),
        "blobs must not be on disk"
    );
    let files: Value = platform.get_json("/api/games/sample/files").await;
    let url = files["files"][0]["url"].as_str().unwrap().to_owned();
    let response = platform.get(&url).await;
    let etag = response.headers()["etag"].clone();
    assert_eq!(response.bytes().await.unwrap(), picture());
    let again = platform
        .request(Method::GET, &url)
        .header("if-none-match", etag);
    let again = again.send().await.unwrap();
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);

    // The process of a world gets its package. Publishing the same package again creates no second
    // object.
    platform.join(json!({ "game_id": "sample" })).await;
    platform.publish_sample(&game_files("sample", 8)).await;
    assert_eq!(server.objects().await, 2);
    let unknown = format!("/cdn/{}", "0".repeat(64));
    let error = error_of(platform.get(&unknown).await).await;
    assert_eq!(error, (404, "file_not_found".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs moto, which `cargo xtask test` installs"]
async fn an_unavailable_bucket_is_reported_and_recovers() {
    let server = S3Server::start().await;
    let port = server.port();
    let platform = platform_on(&server).await;
    let files: Value = platform.get_json("/api/games/sample/files").await;
    let url = files["files"][0]["url"].as_str().unwrap().to_owned();
    drop(server);
    let response = platform.get(&url).await;
    assert!(response.headers().contains_key("retry-after"));
    let error = error_of(response).await;
    assert_eq!(error, (503, "files_unavailable".to_owned()));
    // Requests that need no blobs still work.
    let games: Value = platform.get_json("/api/games").await;
    assert_eq!(games["games"][0]["id"], "sample");

    // Publishing works as soon as the server does: no partial state prevents it.
    let server = S3Server::start_on(port).await;
    platform.publish_sample(&game_files("second", 4)).await;
    assert_eq!(server.objects().await, 2);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs moto, which `cargo xtask test` installs"]
async fn a_damaged_object_is_never_served() {
    let server = S3Server::start().await;
    let platform = platform_on(&server).await;
    let files: Value = platform.get_json("/api/games/sample/files").await;
    let url = files["files"][0]["url"].as_str().unwrap().to_owned();
    let sha256 = url.rsplit('/').next().unwrap();
    let object = format!(
        "{}/{}/eu/games/{}/{sha256}",
        server.url(),
        S3Server::BUCKET,
        &sha256[..2]
    );
    let damaged = reqwest::Client::new()
        .put(object)
        .header("authorization", S3Server::AUTHORIZATION)
        .body("something else");
    let damaged = damaged.send().await.unwrap();
    let (status, body) = (damaged.status(), damaged.text().await.unwrap());
    assert!(status.is_success(), "{status} {body}");
    let error = error_of(platform.get(&url).await).await;
    assert_eq!(error, (500, "internal".to_owned()));
}
