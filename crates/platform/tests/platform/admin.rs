//! Administration: with a role or ADMIN_TOKEN, pagination, and which roles can be assigned by whom.

use frolic_platform::api::{LoginResponse, NewPassword, SessionList, UserInfo, UserList};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::support::{ADMIN_TOKEN, TestPlatform, error_of};

async fn give(platform: &TestPlatform, token: &str, user_id: &str, body: Value) -> Response {
    let path = format!("/admin/users/{user_id}/role");
    platform.call(Method::POST, &path, token, body).await
}

#[tokio::test]
async fn the_token_appoints_the_first_admin_who_assigns_roles() {
    let platform = TestPlatform::start().await;
    let ada = platform.register("Ada").await;
    let bob = platform.register("Bob").await;
    let guest = platform.login("Guest").await;
    let admin = json!({ "role": "admin" });
    for token in [&ada.session_token, &guest.session_token] {
        let response = give(&platform, token, &ada.client_id, admin.clone()).await;
        assert_eq!(error_of(response).await, (403, "forbidden".to_owned()));
    }
    let response = give(&platform, ADMIN_TOKEN, &ada.client_id, admin.clone()).await;
    let user: UserInfo = response.json().await.unwrap();
    assert_eq!(
        (user.username.as_str(), user.role.as_str()),
        ("Ada", "admin")
    );
    // Her open session has the new role at once.
    assert_eq!(platform.me(&ada.session_token).await.role, "admin");
    let moderator = json!({ "role": "moderator" });
    let response = give(
        &platform,
        &ada.session_token,
        &bob.client_id,
        moderator.clone(),
    )
    .await;
    assert_eq!(response.status(), StatusCode::OK);
    // A moderator cannot assign roles.
    let response = give(&platform, &bob.session_token, &bob.client_id, admin.clone()).await;
    assert_eq!(error_of(response).await, (403, "forbidden".to_owned()));

    for (id, body, error) in [
        (
            guest.client_id.as_str(),
            moderator.clone(),
            (404, "user_not_found"),
        ),
        ("user_frolic", moderator.clone(), (404, "user_not_found")),
        ("user_none", moderator, (404, "user_not_found")),
        (
            &bob.client_id,
            json!({ "role": "emperor" }),
            (400, "invalid_field"),
        ),
        (
            &bob.client_id,
            json!({ "role": "creator", "was": "player" }),
            (409, "role_changed"),
        ),
    ] {
        let response = give(&platform, &ada.session_token, id, body).await;
        let (status, code) = error_of(response).await;
        assert_eq!((status, code.as_str()), error, "{id}");
    }
    let body = json!({ "role": "creator", "was": "moderator" });
    let response = give(&platform, &ada.session_token, &bob.client_id, body).await;
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn the_last_admin_cannot_be_removed() {
    let data_dir = std::env::temp_dir().join(frolic_platform::ids::new_id("frolic-test"));
    let platform = TestPlatform::start_in(data_dir.clone(), |_| {}).await;
    let ada = platform.register("Ada").await;
    let bob = platform.register("Bob").await;
    for id in [&ada.client_id, &bob.client_id] {
        give(&platform, ADMIN_TOKEN, id, json!({ "role": "admin" })).await;
    }
    platform.stop().await;
    // Without ADMIN_TOKEN, two admins demote each other at the same moment.
    let platform = TestPlatform::start_in(data_dir.clone(), |s| s.admin_token = None).await;
    let player = json!({ "role": "player" });
    let (a, b) = tokio::join!(
        give(
            &platform,
            &ada.session_token,
            &bob.client_id,
            player.clone()
        ),
        give(
            &platform,
            &bob.session_token,
            &ada.client_id,
            player.clone()
        ),
    );
    let done = [&a, &b]
        .iter()
        .filter(|r| r.status() == StatusCode::OK)
        .count();
    assert_eq!(done, 1, "{} {}", a.status(), b.status());
    let left = if a.status() == StatusCode::OK {
        &ada
    } else {
        &bob
    };
    let response = give(&platform, &left.session_token, &left.client_id, player).await;
    assert_eq!(error_of(response).await, (409, "last_admin".to_owned()));
    let body = json!({ "username": left.username, "password": super::accounts::PASSWORD });
    let response = platform
        .call(Method::POST, "/api/me/delete", &left.session_token, body)
        .await;
    assert_eq!(error_of(response).await, (409, "last_admin".to_owned()));
    assert_eq!(platform.me(&left.session_token).await.role, "admin");
    platform.stop().await;
    let _ = std::fs::remove_dir_all(data_dir);
}

#[tokio::test]
async fn lists_are_paginated_and_searchable() {
    let platform = TestPlatform::start().await;
    for name in ["Ada", "Ada 100", "Bob_x", "Bobax"] {
        platform.clock.advance_ms(1_000);
        platform.register(name).await;
    }
    platform.clock.advance_ms(1_000);
    platform.login("Guest Ada").await;
    let users = async |query: &str| -> UserList {
        platform
            .admin(Method::GET, &format!("/admin/users{query}"))
            .await
    };
    let names = |list: &UserList| -> Vec<String> {
        list.users
            .iter()
            .map(|user| user.username.clone())
            .collect()
    };
    let all = users("").await;
    assert_eq!(names(&all), ["Bobax", "Bob_x", "Ada 100", "Ada", "Frolic"]);
    assert_eq!((all.total, all.page, all.per_page), (5, 1, 20));
    assert_eq!(names(&users("?q=ada").await), ["Ada 100", "Ada"]);
    assert_eq!(names(&users("?q=ada&guests=true").await).len(), 3);
    assert_eq!(
        names(&users("?q=bob_").await),
        ["Bob_x"],
        "wildcards are literal"
    );
    assert_eq!(
        names(&users("?q=%25").await).len(),
        0,
        "wildcards are literal"
    );
    assert_eq!(names(&users("?role=admin").await).len(), 0);
    let second = users("?page=2&per_page=2").await;
    assert_eq!(
        (names(&second).join(","), second.total),
        ("Ada 100,Ada".to_owned(), 5)
    );
    assert_eq!(
        names(&users(&format!("?q={}", all.users[0].client_id)).await),
        ["Bobax"]
    );
    for wrong in [
        "?page=x",
        "?page=-1",
        "?page=99999999",
        "?per_page=4000000000",
        "?role=emperor",
        "?guests=perhaps",
    ] {
        let request = platform.request(Method::GET, &format!("/admin/users{wrong}"));
        let response = request.bearer_auth(ADMIN_TOKEN).send().await.unwrap();
        assert_eq!(
            error_of(response).await,
            (400, "invalid_query".to_owned()),
            "{wrong}"
        );
    }

    let sessions: SessionList = platform
        .admin(Method::GET, "/admin/sessions?per_page=2")
        .await;
    assert_eq!((sessions.sessions.len(), sessions.total), (2, 5));
    assert_eq!(sessions.sessions[0].kind, "guest");
    let path = format!("/admin/sessions/{}", sessions.sessions[0].session_id);
    let response = platform
        .call(Method::DELETE, &path, ADMIN_TOKEN, Value::Null)
        .await;
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    let response = platform
        .call(Method::DELETE, &path, ADMIN_TOKEN, Value::Null)
        .await;
    assert_eq!(
        error_of(response).await,
        (404, "session_not_found".to_owned())
    );
}

#[tokio::test]
async fn an_operator_resets_a_forgotten_password() {
    let platform = TestPlatform::start().await;
    let ada = platform.register("Ada").await;
    let path = format!("/admin/users/{}/password", ada.client_id);
    let response = platform
        .call(Method::POST, &path, &ada.session_token, Value::Null)
        .await;
    assert_eq!(error_of(response).await, (403, "forbidden".to_owned()));
    let response = platform
        .call(Method::POST, &path, ADMIN_TOKEN, Value::Null)
        .await;
    let new: NewPassword = response.json().await.unwrap();
    let response = platform
        .call(Method::GET, "/api/me", &ada.session_token, Value::Null)
        .await;
    assert_eq!(error_of(response).await, (401, "invalid_token".to_owned()));
    let response = platform
        .try_password("Ada", super::accounts::PASSWORD)
        .await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    let response = platform.try_password("Ada", &new.password).await;
    let back: LoginResponse = response.json().await.unwrap();
    assert_eq!(back.client_id, ada.client_id);
    let response = platform
        .call(
            Method::POST,
            "/admin/users/user_frolic/password",
            ADMIN_TOKEN,
            Value::Null,
        )
        .await;
    assert_eq!(error_of(response).await, (404, "user_not_found".to_owned()));
}

#[tokio::test]
async fn all_account_routes_are_in_the_openapi_document() {
    let platform = TestPlatform::start().await;
    let document: Value = platform.get_json("/api/openapi.json").await;
    for (path, method) in [
        ("/login", "post"),
        ("/logout", "post"),
        ("/api/register", "post"),
        ("/api/login", "post"),
        ("/api/login/identity", "post"),
        ("/api/me", "get"),
        ("/api/me", "patch"),
        ("/api/me/password", "put"),
        ("/api/me/delete", "post"),
        ("/api/me/sessions", "get"),
        ("/api/me/sessions/{session_id}", "delete"),
        ("/api/me/keys", "post"),
        ("/api/me/keys/{key_id}", "delete"),
        ("/admin/servers", "get"),
        ("/admin/servers/{id}", "delete"),
        ("/admin/sessions", "get"),
        ("/admin/users", "get"),
        ("/admin/users/{user_id}/role", "post"),
        ("/admin/cleanup", "post"),
    ] {
        let described = &document["paths"][path][method]["responses"];
        assert!(described.is_object(), "{method} {path} is missing");
    }
}
