//! Accounts: registration, login and logout, changes, deletion; guests who become accounts; and
//! attacks on all of these.

use bytes::Bytes;
use frolic_platform::api::{Account, LoginResponse, OwnSessionList, PublishResponse};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::support::{TestPlatform, error_of, game_files};

pub const PASSWORD: &str = "correct horse battery";

impl TestPlatform {
    /// Any request with a bearer token and a JSON body.
    pub async fn call(&self, method: Method, path: &str, token: &str, body: Value) -> Response {
        let mut request = self.request(method, path).bearer_auth(token);
        if !body.is_null() {
            request = request.json(&body);
        }
        request.send().await.unwrap()
    }

    pub async fn try_register(&self, guest: Option<&str>, name: &str, password: &str) -> Response {
        let mut request = self.request(Method::POST, "/api/register");
        if let Some(token) = guest {
            request = request.bearer_auth(token);
        }
        let body = json!({ "username": name, "password": password });
        request.json(&body).send().await.unwrap()
    }

    pub async fn register(&self, name: &str) -> LoginResponse {
        let response = self.try_register(None, name, PASSWORD).await;
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert_eq!(status, StatusCode::CREATED, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    pub async fn try_password(&self, name: &str, password: &str) -> Response {
        let body = json!({ "username": name, "password": password });
        let request = self.request(Method::POST, "/api/login");
        request.json(&body).send().await.unwrap()
    }

    pub async fn me(&self, token: &str) -> Account {
        let response = self.call(Method::GET, "/api/me", token, Value::Null).await;
        assert_eq!(response.status(), StatusCode::OK);
        response.json().await.unwrap()
    }
}

async fn logged_in(response: Response) -> LoginResponse {
    assert_eq!(response.status(), StatusCode::OK);
    response.json().await.unwrap()
}

#[tokio::test]
async fn an_account_is_registered_and_opened_with_its_password() {
    let platform = TestPlatform::start().await;
    let ada = platform.register("Ada Lovelace").await;
    assert_eq!(
        (ada.kind.as_str(), ada.role.as_str()),
        ("account", "creator")
    );
    let me = platform.me(&ada.session_token).await;
    assert_eq!(
        (me.username.as_str(), me.has_password),
        ("Ada Lovelace", true)
    );
    assert_eq!(me.expires_at.as_deref(), Some("2025-11-15T04:00:00Z"));

    // The case of the name does not matter; that of the password does.
    let again = logged_in(platform.try_password("ada LOVELACE ", PASSWORD).await).await;
    assert_eq!(again.client_id, ada.client_id);
    assert_ne!(again.session_token, ada.session_token);
    for (name, password) in [
        ("Ada Lovelace", "correct horse batterx"),
        ("Ada Lovelace", "Correct horse battery"),
        ("Ada Lovelace", ""),
        ("Unknown", PASSWORD),
        ("", PASSWORD),
        ("Frolic", PASSWORD),
        ("Ada Lovelace", &"x".repeat(10_000)),
    ] {
        let error = error_of(platform.try_password(name, password).await).await;
        assert_eq!(error, (401, "wrong_credentials".to_owned()), "{name}");
    }
}

#[tokio::test]
async fn invalid_names_and_passwords_are_refused_with_a_reason() {
    let platform = TestPlatform::start().await;
    platform.register("Ada").await;
    for (name, password, status, code) in [
        ("Ad", PASSWORD, 400, "invalid_username"),
        ("<b>Ada</b>", PASSWORD, 400, "invalid_username"),
        ("\u{202e}Ada", PASSWORD, 400, "invalid_username"),
        ("Ada  Two", PASSWORD, 400, "invalid_username"),
        (
            "a name that is much too long",
            PASSWORD,
            400,
            "invalid_username",
        ),
        ("", PASSWORD, 400, "invalid_username"),
        ("ADA", PASSWORD, 409, "name_taken"),
        ("Moderator", PASSWORD, 409, "name_taken"),
        ("frolic", PASSWORD, 409, "name_taken"),
        ("Bob", "short", 400, "invalid_password"),
        ("Bob", "password123", 400, "invalid_password"),
        ("Bob Bobson", "bob bobson", 400, "invalid_password"),
    ] {
        let error = error_of(platform.try_register(None, name, password).await).await;
        assert_eq!(error, (status, code.to_owned()), "{name} {password}");
    }
    for body in [
        "",
        "[]",
        "{\"username\":\"Bob\"}",
        "{\"username\":1,\"password\":2}",
    ] {
        let request = platform.request(Method::POST, "/api/register").body(body);
        assert_eq!(
            error_of(request.send().await.unwrap()).await.0,
            400,
            "{body}"
        );
    }
}

#[tokio::test]
async fn concurrent_registrations_of_one_name_create_one_account() {
    let platform = TestPlatform::start().await;
    let guests = [platform.login("A").await, platform.login("B").await];
    let tries = (0..6).map(|i| {
        let guest = guests.get(i).map(|guest| guest.session_token.as_str());
        platform.try_register(guest, "Ada", PASSWORD)
    });
    let statuses: Vec<u16> = futures_util::future::join_all(tries)
        .await
        .iter()
        .map(|response| response.status().as_u16())
        .collect();
    let created = statuses.iter().filter(|status| **status == 201).count();
    assert_eq!(created, 1, "{statuses:?}");
    assert!(
        statuses.iter().all(|status| [201, 409].contains(status)),
        "{statuses:?}"
    );
}

#[tokio::test]
async fn a_guest_becomes_an_account_and_keeps_their_games() {
    let platform = TestPlatform::start().await;
    let guest = platform.login("Zoe").await;
    let archive = frolic_package::pack(&game_files("zoes-game", 4)).unwrap();
    let upload = |token: String| {
        let request = platform.request(Method::POST, "/api/games");
        request.bearer_auth(token).body(archive.clone()).send()
    };
    let response = upload(guest.session_token.clone()).await.unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);

    let token = Some(guest.session_token.as_str());
    let response = platform
        .try_register(token, "Zoe the Builder", PASSWORD)
        .await;
    assert_eq!(response.status(), StatusCode::CREATED);
    let zoe: LoginResponse = response.json().await.unwrap();
    assert_eq!(zoe.client_id, guest.client_id);
    assert_eq!(
        (zoe.kind.as_str(), zoe.role.as_str()),
        ("account", "creator")
    );

    // The game still belongs to her; the guest's token is invalid.
    let response = upload(zoe.session_token.clone()).await.unwrap();
    let published: PublishResponse = response.json().await.unwrap();
    assert!(!published.new_revision);
    let listed: Value = platform.get_json("/api/games/zoes-game").await;
    assert_eq!(listed["creator"], "Zoe the Builder");
    let error = error_of(upload(guest.session_token.clone()).await.unwrap()).await;
    assert_eq!(error, (401, "invalid_token".to_owned()));
    let response = platform
        .try_register(Some(&zoe.session_token), "Second", PASSWORD)
        .await;
    assert_eq!(
        error_of(response).await,
        (409, "already_registered".to_owned())
    );
    // She can log in again days later, after the cleanup of guests.
    platform.clock.advance_ms(9 * 24 * 3_600_000);
    let _: Value = platform.admin(Method::POST, "/admin/cleanup").await;
    let back = logged_in(platform.try_password("Zoe the Builder", PASSWORD).await).await;
    assert_eq!(back.client_id, guest.client_id);
}

#[tokio::test]
async fn logout_ends_only_one_session() {
    let platform = TestPlatform::start().await;
    let first = platform.register("Ada").await;
    let second = logged_in(platform.try_password("Ada", PASSWORD).await).await;
    let logout = || platform.call(Method::POST, "/logout", &first.session_token, Value::Null);
    assert_eq!(logout().await.status(), StatusCode::NO_CONTENT);
    assert_eq!(
        error_of(logout().await).await,
        (401, "invalid_token".to_owned())
    );
    assert_eq!(
        platform.me(&second.session_token).await.client_id,
        first.client_id
    );
}

#[tokio::test]
async fn only_the_owner_lists_and_ends_sessions() {
    let platform = TestPlatform::start().await;
    let ada = platform.register("Ada").await;
    let bob = platform.register("Bob").await;
    let request = platform.request(Method::POST, "/api/login");
    let request = request.header(
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64) Firefox/130.0",
    );
    let body = json!({ "username": "Ada", "password": PASSWORD });
    let other = logged_in(request.json(&body).send().await.unwrap()).await;
    let list = || async {
        let response = platform.call(
            Method::GET,
            "/api/me/sessions",
            &ada.session_token,
            Value::Null,
        );
        response.await.json::<OwnSessionList>().await.unwrap()
    };
    let sessions = list().await;
    assert_eq!(sessions.total, 2);
    let theirs = sessions
        .sessions
        .iter()
        .find(|session| !session.current)
        .unwrap();
    assert_eq!(theirs.device, "Firefox on Linux");
    let path = format!("/api/me/sessions/{}", theirs.session_id);
    let response = platform
        .call(Method::DELETE, &path, &bob.session_token, Value::Null)
        .await;
    assert_eq!(
        error_of(response).await,
        (404, "session_not_found".to_owned())
    );
    // An id is not a token.
    let response = platform.try_join(&theirs.session_id, json!({})).await;
    assert_eq!(error_of(response).await.0, 401);
    let response = platform
        .call(Method::DELETE, &path, &ada.session_token, Value::Null)
        .await;
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    let response = platform.try_join(&other.session_token, json!({})).await;
    assert_eq!(error_of(response).await.0, 401);
    assert_eq!(list().await.total, 1);
}

#[tokio::test]
async fn a_new_password_needs_the_old_one_and_ends_other_sessions() {
    let platform = TestPlatform::start().await;
    let ada = platform.register("Ada").await;
    let other = logged_in(platform.try_password("Ada", PASSWORD).await).await;
    let change = |current: Value, new: &str| {
        let body = json!({ "current_password": current, "new_password": new });
        platform.call(Method::PUT, "/api/me/password", &ada.session_token, body)
    };
    for wrong in [json!("wrong password"), json!(null), json!("")] {
        let error = error_of(change(wrong, "another good one").await).await;
        assert_eq!(error, (403, "wrong_password".to_owned()));
    }
    let error = error_of(change(json!(PASSWORD), "short").await).await;
    assert_eq!(error, (400, "invalid_password".to_owned()));
    let response = change(json!(PASSWORD), "another good one").await;
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    platform.me(&ada.session_token).await;
    let response = platform.try_join(&other.session_token, json!({})).await;
    assert_eq!(error_of(response).await.0, 401);
    assert_eq!(
        platform.try_password("Ada", PASSWORD).await.status(),
        StatusCode::UNAUTHORIZED
    );
    logged_in(platform.try_password("Ada", "another good one").await).await;
    // A guest has no password to change.
    let guest = platform.login("Guest").await;
    let body = json!({ "new_password": "another good one" });
    let response = platform
        .call(Method::PUT, "/api/me/password", &guest.session_token, body)
        .await;
    assert_eq!(error_of(response).await.0, 403);
}

#[tokio::test]
async fn names_change_and_stay_unique() {
    let platform = TestPlatform::start().await;
    let ada = platform.register("Ada").await;
    platform.register("Bob").await;
    let rename = |name: &str| {
        let body = json!({ "username": name });
        platform.call(Method::PATCH, "/api/me", &ada.session_token, body)
    };
    assert_eq!(
        error_of(rename("bob").await).await,
        (409, "name_taken".to_owned())
    );
    assert_eq!(
        error_of(rename("<i>").await).await,
        (400, "invalid_username".to_owned())
    );
    let renamed: Account = rename("ADA").await.json().await.unwrap();
    assert_eq!(renamed.username, "ADA");
    let renamed: Account = rename("Countess").await.json().await.unwrap();
    assert_eq!(renamed.client_id, ada.client_id);
    logged_in(platform.try_password("Countess", PASSWORD).await).await;
    platform.register("Ada").await;
}

#[tokio::test]
async fn a_deleted_account_cannot_log_in_and_its_games_leave_the_store() {
    let platform = TestPlatform::start().await;
    let ada = platform.register("Ada").await;
    let archive = frolic_package::pack(&game_files("adas-game", 4)).unwrap();
    let request = platform
        .request(Method::POST, "/api/games")
        .bearer_auth(&ada.session_token);
    let response = request.body(Bytes::from(archive)).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
    platform
        .try_join(&ada.session_token, json!({ "game_id": "adas-game" }))
        .await;
    let delete = |name: &str, password: Value| {
        let body = json!({ "username": name, "password": password });
        platform.call(Method::POST, "/api/me/delete", &ada.session_token, body)
    };
    let error = error_of(delete("Bob", json!(PASSWORD)).await).await;
    assert_eq!(error, (400, "name_differs".to_owned()));
    for wrong in [json!("wrong password"), json!(null)] {
        let error = error_of(delete("Ada", wrong).await).await;
        assert_eq!(error, (403, "wrong_password".to_owned()));
    }
    assert_eq!(
        delete("Ada", json!(PASSWORD)).await.status(),
        StatusCode::NO_CONTENT
    );
    let response = platform
        .call(Method::GET, "/api/me", &ada.session_token, Value::Null)
        .await;
    assert_eq!(error_of(response).await, (401, "invalid_token".to_owned()));
    assert_eq!(
        platform.try_password("Ada", PASSWORD).await.status(),
        StatusCode::UNAUTHORIZED
    );
    let response = platform.get("/api/games/adas-game").await;
    assert_eq!(error_of(response).await, (404, "game_not_found".to_owned()));
    // The name is free, and its next owner gets none of her data.
    let new = platform.register("Ada").await;
    assert_ne!(new.client_id, ada.client_id);
    // Guests can be deleted too, with their name as the only confirmation.
    let guest = platform.login("Gus").await;
    let body = json!({ "username": "Gus" });
    let response = platform
        .call(Method::POST, "/api/me/delete", &guest.session_token, body)
        .await;
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn password_attempts_are_limited_per_account_and_per_address() {
    let platform = TestPlatform::start_with(|settings| {
        settings.limits.password_tries_burst = 4;
        settings.limits.password_tries_per_s = 0.001;
    })
    .await;
    platform.register("Ada").await;
    platform.register("Bob").await;
    let guess = |name: String, address: String, password: &'static str| {
        let body = json!({ "username": name, "password": password });
        let request = platform.request(Method::POST, "/api/login");
        let request = request.header("x-forwarded-for", address);
        async move { request.json(&body).send().await.unwrap() }
    };
    // Simultaneous attempts from different addresses count for the same account.
    let guesses = (0..8).map(|i| guess("Ada".into(), format!("203.0.113.{i}"), "wrong password"));
    let answers = futures_util::future::join_all(guesses).await;
    let slowed = answers
        .iter()
        .filter(|a| a.status() == StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(slowed.count(), 4);
    let response = guess("ada".into(), "203.0.113.99".into(), PASSWORD).await;
    assert!(response.headers().contains_key("retry-after"));
    assert_eq!(error_of(response).await, (429, "rate_limited".to_owned()));
    // Other accounts are not locked out, and a correct password resets the count.
    for _ in 0..3 {
        for password in ["wrong password", "wrong password", PASSWORD] {
            guess("Bob".into(), "203.0.113.100".into(), password).await;
        }
    }
    logged_in(guess("Bob".into(), "203.0.113.101".into(), PASSWORD).await).await;
    // One address cannot try many names.
    let mut slowed = 0;
    for i in 0..20 {
        let answer = guess(
            format!("Name {i}"),
            "203.0.113.200".into(),
            "wrong password",
        )
        .await;
        slowed += u32::from(answer.status() == StatusCode::TOO_MANY_REQUESTS);
    }
    assert_eq!(slowed, 4);
}

#[tokio::test]
async fn neither_passwords_nor_keys_are_in_the_data_folder() {
    let platform = TestPlatform::start().await;
    let ada = platform.register("Ada").await;
    let body = json!({ "name": "laptop" });
    let response = platform
        .call(Method::POST, "/api/me/keys", &ada.session_token, body)
        .await;
    let created: Value = response.json().await.unwrap();
    let api_key = created["api_key"].as_str().unwrap().to_owned();
    let data_dir = platform.data_dir.clone();
    platform.stop().await;
    for entry in std::fs::read_dir(&data_dir).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_file() {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        for secret in [PASSWORD, &api_key, &ada.session_token] {
            let found = bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes());
            assert!(!found, "{secret} is in {}", path.display());
        }
    }
    // All of them are valid after a restart.
    let platform = TestPlatform::start_in(data_dir.clone(), |_| {}).await;
    assert_eq!(platform.me(&api_key).await.client_id, ada.client_id);
    logged_in(platform.try_password("Ada", PASSWORD).await).await;
    platform.stop().await;
    let _ = std::fs::remove_dir_all(data_dir);
}

#[tokio::test]
async fn offensive_names_are_refused() {
    let platform = TestPlatform::start().await;
    for name in ["Shithead7", "f.u.c.k", "B1tch", "555-123-4567"] {
        let refused = platform.try_register(None, name, PASSWORD).await;
        let error = error_of(refused).await;
        assert_eq!(error, (400, "name_refused".to_owned()), "{name}");
        // A guest gets a generated name instead.
        assert_ne!(platform.login(name).await.username, name);
    }
    let ada = platform.register("Scunthorpe").await;
    let token = &ada.session_token;
    for (method, path, body) in [
        (Method::PATCH, "/api/me", json!({ "username": "Fuckface" })),
        (Method::POST, "/worlds", json!({ "name": "shit hole" })),
    ] {
        let refused = platform.call(method, path, token, body).await;
        let error = error_of(refused).await;
        assert_eq!(error, (400, "name_refused".to_owned()), "{path}");
    }
    let open = TestPlatform::start_with(|settings| settings.text_filter = false).await;
    open.register("Shithead7").await;
}
