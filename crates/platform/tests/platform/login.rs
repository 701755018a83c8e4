//! Guests, names and sessions.

use std::collections::HashSet;

use crate::support::{TestPlatform, error_of};
use reqwest::{Method, StatusCode};
use serde_json::json;

const HOUR_MS: i64 = 60 * 60 * 1000;

#[tokio::test]
async fn a_guest_gets_a_name_a_token_and_an_id() {
    let platform = TestPlatform::start().await;
    let ada = platform.login("  Ada <b>  ").await;
    assert_eq!(ada.username, "Ada b");
    assert!(ada.client_id.starts_with("user_"));
    assert!(ada.session_token.len() >= 32);

    // Names of the platform's staff are reserved.
    assert!(!platform.login("Moderator").await.username.contains("Mod"));

    // Without a name, one is generated.
    for body in ["", "{}", r#"{"username":null}"#, r#"{"username":"🦀"}"#] {
        let request = platform.request(Method::POST, "/login").body(body);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{body}");
        let guest: frolic_platform::api::LoginResponse = response.json().await.unwrap();
        assert!(guest.username.len() >= 6, "{}", guest.username);
    }
}

#[tokio::test]
async fn names_are_unique_under_concurrency() {
    let platform = TestPlatform::start().await;
    let logins = (0..40).map(|i| platform.login(if i % 2 == 0 { "Ada" } else { "ADA" }));
    let guests = futures_util::future::join_all(logins).await;
    let names: HashSet<_> = guests.iter().map(|g| g.username.to_lowercase()).collect();
    assert_eq!(names.len(), 40);
    let ids: HashSet<_> = guests.iter().map(|g| &g.client_id).collect();
    assert_eq!(ids.len(), 40);
    assert!(names.contains("ada") && names.contains("ada2"), "{names:?}");
    // The name of the sample creator is taken.
    assert_eq!(platform.login("frolic").await.username, "frolic2");
}

#[tokio::test]
async fn a_session_expires_after_four_hours() {
    let platform = TestPlatform::start().await;
    let guest = platform.login("Ada").await;
    platform.clock.advance_ms(4 * HOUR_MS - 1);
    let response = platform.try_join(&guest.session_token, json!({})).await;
    assert_eq!(response.status(), StatusCode::OK);
    platform.clock.advance_ms(1);
    let response = platform.try_join(&guest.session_token, json!({})).await;
    assert_eq!(
        error_of(response).await,
        (401, "session_expired".to_owned())
    );
}

#[tokio::test]
async fn missing_and_forged_tokens_are_refused() {
    let platform = TestPlatform::start().await;
    let guest = platform.login("Ada").await;
    let response = platform
        .request(Method::POST, "/join")
        .send()
        .await
        .unwrap();
    assert_eq!(response.headers()["www-authenticate"], "Bearer");
    assert_eq!(error_of(response).await, (401, "missing_token".to_owned()));

    let mut almost = guest.session_token.clone();
    almost.pop();
    let hash = frolic_platform::ids::sha256_hex(guest.session_token.as_bytes());
    let long = "a".repeat(5_000);
    let headers = [
        format!("Bearer {almost}"),
        // The stored hash is not a valid token.
        format!("Bearer {hash}"),
        "Bearer ' OR 1=1 --".to_owned(),
        "Bearer ".to_owned(),
        "Bearer".to_owned(),
        format!("Basic {}", guest.session_token),
        format!("Bearer {long}"),
    ];
    for header in headers {
        let request = platform
            .request(Method::POST, "/join")
            .header("authorization", &header);
        let error = error_of(request.send().await.unwrap()).await;
        assert_eq!(error, (401, "invalid_token".to_owned()), "{header}");
    }
}

#[tokio::test]
async fn only_hashes_of_tokens_are_stored() {
    let platform = TestPlatform::start().await;
    let token = platform.login("Ada").await.session_token;
    let data_dir = platform.data_dir.clone();
    platform.stop().await;
    for entry in std::fs::read_dir(&data_dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes
                .windows(token.len())
                .any(|window| window == token.as_bytes());
            assert!(!found, "the token is in {}", path.display());
        }
    }
    // The stored hash still accepts the token after a restart.
    let platform = TestPlatform::start_in(data_dir, |_| {}).await;
    platform
        .publish_sample(&crate::support::game_files("sample", 8))
        .await;
    let response = platform
        .try_join(&token, json!({ "game_id": "sample" }))
        .await;
    assert_eq!(response.status(), StatusCode::OK);
}
