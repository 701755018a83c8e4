//! A local draft of a game: its creator, the sign-in link, and the update of its worlds.

use bytes::Bytes;
use frolic_platform::api::{ConsolePage, LoginResponse};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{TestPlatform, error_of, game_files};

const MINUTE_MS: i64 = 60_000;

async fn draft(platform: &TestPlatform, version: &str) -> String {
    let mut files = game_files("mine", 8);
    let manifest = String::from_utf8(files["game.toml"].clone()).unwrap();
    let manifest = manifest.replace("1.0.0", version);
    files.insert("game.toml".to_owned(), manifest.into_bytes());
    let archive = Bytes::from(frolic_package::pack(&files).unwrap());
    let creator = platform.platform.local_creator().await.unwrap();
    let published = platform
        .platform
        .publish_draft(archive, "mine", &creator)
        .await;
    published.unwrap().revision
}

async fn sign_in(platform: &TestPlatform, key: &str) -> reqwest::Response {
    let request = platform.request(Method::POST, "/api/login/link");
    request.json(&json!({ "key": key })).send().await.unwrap()
}

#[tokio::test]
async fn the_sign_in_link_of_a_draft_works_once() {
    let platform = TestPlatform::start().await;
    draft(&platform, "1.0.0").await;
    let creator = platform.platform.local_creator().await.unwrap();
    let key = platform.platform.sign_in_key(&creator, MINUTE_MS);
    let answer = sign_in(&platform, &key).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let session: LoginResponse = answer.json().await.unwrap();
    assert_eq!(
        (session.client_id, session.kind.as_str()),
        (creator.clone(), "account")
    );
    let token = &session.session_token;
    let console = "/api/games/mine/console";
    let page = platform
        .call(Method::GET, console, token, Value::Null)
        .await;
    assert_eq!(page.status(), StatusCode::OK);
    let page: ConsolePage = page.json().await.unwrap();
    assert_eq!(page.game_id, "mine");

    // Used, expired and guessed links are refused.
    let late = platform.platform.sign_in_key(&creator, MINUTE_MS);
    platform.clock.advance_ms(MINUTE_MS);
    for key in [key.as_str(), late.as_str(), "0", ""] {
        let refused = error_of(sign_in(&platform, key).await).await;
        assert_eq!(refused, (401, "link_used".to_owned()), "{key}");
    }
    // Other players have no rights of the creator.
    let guest = platform.login("Creator").await.session_token;
    let refused = platform
        .call(Method::GET, console, &guest, Value::Null)
        .await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_guest_with_the_creators_name_is_not_the_creator() {
    let platform = TestPlatform::start().await;
    let guest = platform.login("Creator").await;
    assert_eq!(guest.username, "Creator");
    let creator = platform.platform.local_creator().await.unwrap();
    assert_ne!(guest.client_id, creator);
    assert_eq!(platform.platform.local_creator().await.unwrap(), creator);
}

#[tokio::test]
async fn a_world_that_is_joined_again_starts_with_the_newest_draft() {
    let platform = TestPlatform::start().await;
    let first = draft(&platform, "1.0.0").await;
    let joined = platform.join(json!({ "game_id": "mine" })).await;
    let fleet = platform.platform.fleet();
    let server = fleet.server(&joined.world_id).unwrap();
    assert_eq!(server.revision(), first);

    let second = draft(&platform, "1.1.0").await;
    platform
        .platform
        .move_worlds("mine", &second)
        .await
        .unwrap();
    assert!(fleet.stop(&joined.world_id));
    server.ended().await;
    // A reconnecting page joins by the room code.
    let again = platform
        .join(json!({ "room_code": joined.room_code }))
        .await;
    assert_eq!(again.world_id, joined.world_id);
    let server = fleet.server(&joined.world_id).unwrap();
    assert_eq!(server.revision(), second);
}
