//! API keys: for programs, named, revocable, and limited to the rights of a creator.

use frolic_platform::api::{ApiKeyList, CreatedKey, UserList};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{TestPlatform, error_of, game_files};

async fn create(platform: &TestPlatform, token: &str, name: &str) -> CreatedKey {
    let body = json!({ "name": name });
    let response = platform
        .call(Method::POST, "/api/me/keys", token, body)
        .await;
    assert_eq!(response.status(), StatusCode::CREATED);
    response.json().await.unwrap()
}

async fn list(platform: &TestPlatform, token: &str) -> ApiKeyList {
    let response = platform
        .call(Method::GET, "/api/me/keys", token, Value::Null)
        .await;
    response.json().await.unwrap()
}

#[tokio::test]
async fn a_key_publishes_until_it_is_revoked() {
    let platform = TestPlatform::start().await;
    let ada = platform.register("Ada").await;
    let bob = platform.register("Bob").await;
    let created = create(&platform, &ada.session_token, "  laptop <b>\u{202e}\n ").await;
    assert_eq!(created.key.name, "laptop <b>");
    assert!(created.api_key.ends_with(&created.key.hint));
    assert!(
        list(&platform, &ada.session_token).await.keys[0]
            .last_used_at
            .is_none()
    );

    // It remains valid after sessions expire, and shows when it was last used.
    platform.clock.advance_ms(30 * 24 * 3_600_000);
    let archive = frolic_package::pack(&game_files("adas-game", 4)).unwrap();
    let publish = || {
        let request = platform.request(Method::POST, "/api/games");
        request
            .bearer_auth(&created.api_key)
            .body(archive.clone())
            .send()
    };
    assert_eq!(publish().await.unwrap().status(), StatusCode::CREATED);
    let me = platform.me(&created.api_key).await;
    assert_eq!(
        (me.client_id, me.means.as_str()),
        (ada.client_id.clone(), "api_key")
    );
    assert_eq!(me.expires_at, None);
    let response = platform
        .try_password("Ada", super::accounts::PASSWORD)
        .await;
    let ada: frolic_platform::api::LoginResponse = response.json().await.unwrap();
    let used = list(&platform, &ada.session_token).await.keys.remove(0);
    assert_eq!(used.last_used_at.as_deref(), Some("2025-12-15T00:00:00Z"));

    // Only its owner can revoke it.
    let bob = platform
        .try_password(&bob.username, super::accounts::PASSWORD)
        .await;
    let bob: frolic_platform::api::LoginResponse = bob.json().await.unwrap();
    let path = format!("/api/me/keys/{}", created.key.key_id);
    let response = platform
        .call(Method::DELETE, &path, &bob.session_token, Value::Null)
        .await;
    assert_eq!(error_of(response).await, (404, "key_not_found".to_owned()));
    let response = platform
        .call(Method::DELETE, &path, &ada.session_token, Value::Null)
        .await;
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    let error = error_of(publish().await.unwrap()).await;
    assert_eq!(error, (401, "invalid_token".to_owned()));
}

#[tokio::test]
async fn a_key_cannot_change_the_account_or_administer_the_platform() {
    let platform = TestPlatform::start().await;
    let ada = platform.register("Ada").await;
    let path = format!("/admin/users/{}/role", ada.client_id);
    let token = crate::support::ADMIN_TOKEN;
    let response = platform
        .call(Method::POST, &path, token, json!({ "role": "admin" }))
        .await;
    assert_eq!(response.status(), StatusCode::OK);
    let key = create(&platform, &ada.session_token, "ci").await.api_key;
    let password =
        json!({ "current_password": super::accounts::PASSWORD, "new_password": "something else" });
    let delete = json!({ "username": "Ada", "password": super::accounts::PASSWORD });
    for (method, path, body) in [
        (Method::POST, "/api/me/keys", json!({ "name": "more" })),
        (Method::PATCH, "/api/me", json!({ "username": "Eve" })),
        (Method::PUT, "/api/me/password", password),
        (Method::POST, "/api/me/delete", delete),
        (Method::DELETE, "/api/me/sessions", Value::Null),
        (Method::GET, "/admin/users", Value::Null),
        (Method::POST, "/admin/cleanup", Value::Null),
    ] {
        let response = platform.call(method, path, &key, body).await;
        assert_eq!(
            error_of(response).await,
            (403, "forbidden".to_owned()),
            "{path}"
        );
    }
    let response = platform
        .call(Method::POST, "/logout", &key, Value::Null)
        .await;
    assert_eq!(error_of(response).await, (400, "no_session".to_owned()));
    // Her own session has admin rights.
    let response = platform
        .call(Method::GET, "/admin/users", &ada.session_token, Value::Null)
        .await;
    let users: UserList = response.json().await.unwrap();
    let admin = users.users.iter().find(|user| user.username == "Ada");
    assert_eq!(admin.unwrap().role, "admin");
}

#[tokio::test]
async fn keys_require_an_account_and_are_limited() {
    let platform = TestPlatform::start().await;
    let guest = platform.login("Guest").await;
    let body = json!({ "name": "x" });
    let response = platform
        .call(Method::POST, "/api/me/keys", &guest.session_token, body)
        .await;
    assert_eq!(error_of(response).await, (403, "forbidden".to_owned()));
    let ada = platform.register("Ada").await;
    for name in ["", " \n ", &"x".repeat(41)] {
        let body = json!({ "name": name });
        let response = platform
            .call(Method::POST, "/api/me/keys", &ada.session_token, body)
            .await;
        assert_eq!(
            error_of(response).await,
            (400, "invalid_name".to_owned()),
            "{name}"
        );
    }
    let tries = (0..25).map(|_| {
        let body = json!({ "name": "at once" });
        platform.call(Method::POST, "/api/me/keys", &ada.session_token, body)
    });
    let made = futures_util::future::join_all(tries).await;
    let made = made
        .iter()
        .filter(|answer| answer.status() == StatusCode::CREATED);
    assert_eq!(made.count(), 20);
    assert_eq!(list(&platform, &ada.session_token).await.total, 20);
    for wrong in ["frolic_key_", "frolic_key_0000", "frolic_key_' OR 1=1 --"] {
        let response = platform
            .call(Method::GET, "/api/me", wrong, Value::Null)
            .await;
        assert_eq!(error_of(response).await, (401, "invalid_token".to_owned()));
    }
}
