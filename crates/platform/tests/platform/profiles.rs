//! Characters: several per user, one active, sent with the ticket; edits do not overwrite each
//! other; users cannot change characters of others.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use frolic_fleet_api::ticket::TicketClaims;
use frolic_platform::api::{Character, CharacterList, JoinResponse, LoginResponse, PublicProfile};
use frolic_protocol::avatar::{AvatarLooks, Hat, Rgb};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::support::{TestPlatform, error_of};

async fn send(
    platform: &TestPlatform,
    guest: &LoginResponse,
    method: Method,
    path: &str,
    body: Value,
) -> Response {
    let request = platform.request(method, path);
    let request = request.bearer_auth(&guest.session_token).json(&body);
    request.send().await.unwrap()
}

async fn list(platform: &TestPlatform, guest: &LoginResponse) -> CharacterList {
    let request = platform.request(Method::GET, "/api/characters");
    let answer = request.bearer_auth(&guest.session_token).send().await;
    answer.unwrap().json().await.unwrap()
}

async fn ticket_looks(platform: &TestPlatform, guest: &LoginResponse) -> (String, AvatarLooks) {
    let answer = platform.try_join(&guest.session_token, json!({})).await;
    let joined: JoinResponse = answer.json().await.unwrap();
    let (body, _) = joined.ticket.split_once('.').unwrap();
    let body = URL_SAFE_NO_PAD.decode(body).unwrap();
    let claims: TicketClaims = serde_json::from_slice(&body).unwrap();
    let character = claims.character.unwrap();
    (character.id, AvatarLooks::from_json(&character.looks))
}

#[tokio::test]
async fn the_active_character_is_in_the_ticket() {
    let platform = TestPlatform::start().await;
    let ada = platform.login("Ada").await;
    let first = list(&platform, &ada).await;
    assert_eq!(first.characters.len(), 1, "every user has a character");
    assert!(first.characters[0].active);
    assert_eq!(
        ticket_looks(&platform, &ada).await.1,
        AvatarLooks::default()
    );

    let looks = json!({ "shirt": "#112233", "hat": "crown", "face": "wink" });
    let body = json!({ "name": "Queen", "looks": looks });
    let answer = send(&platform, &ada, Method::POST, "/api/characters", body).await;
    assert_eq!(answer.status(), StatusCode::CREATED);
    let queen: Character = answer.json().await.unwrap();
    assert!(!queen.active, "a new character is not selected");

    let path = format!("/api/characters/{}/activate", queen.character_id);
    let answer = send(&platform, &ada, Method::POST, &path, json!({})).await;
    assert!(answer.json::<Character>().await.unwrap().active);
    let (id, seen) = ticket_looks(&platform, &ada).await;
    assert_eq!(id, queen.character_id);
    assert_eq!(
        (seen.hat, seen.shirt),
        (Hat::Crown, Some(Rgb([0x11, 0x22, 0x33])))
    );
    let all = list(&platform, &ada).await.characters;
    let active: Vec<_> = all.iter().filter(|one| one.active).collect();
    assert_eq!(active.len(), 1);

    let profile: PublicProfile = platform
        .get_json(&format!("/api/users/{}", ada.client_id))
        .await;
    assert_eq!(profile.username, "Ada");
    assert_eq!(profile.looks.shirt.as_deref(), Some("#112233"));

    // Deleting the active character selects another one; the last one cannot be deleted.
    let path = format!("/api/characters/{}", queen.character_id);
    let gone = send(&platform, &ada, Method::DELETE, &path, json!({})).await;
    assert_eq!(gone.status(), StatusCode::NO_CONTENT);
    assert_eq!(ticket_looks(&platform, &ada).await.0, "default");
    let last = send(
        &platform,
        &ada,
        Method::DELETE,
        "/api/characters/default",
        json!({}),
    )
    .await;
    assert_eq!(error_of(last).await, (409, "last_character".to_owned()));
}

#[tokio::test]
async fn an_edit_of_an_old_version_is_refused() {
    let platform = TestPlatform::start().await;
    let ada = platform.login("Ada").await;
    list(&platform, &ada).await;
    let path = "/api/characters/default";
    let edit = |name: &str, version: u32| {
        let body = json!({ "name": name, "looks": { "hat": "cap" }, "version": version });
        send(&platform, &ada, Method::PUT, path, body)
    };
    let first: Character = edit("One", 1).await.json().await.unwrap();
    assert_eq!((first.name.as_str(), first.version), ("One", 2));
    let late = edit("Two", 1).await;
    assert_eq!(error_of(late).await, (409, "version_conflict".to_owned()));
    assert_eq!(list(&platform, &ada).await.characters[0].name, "One");
    assert_eq!(edit("Two", 2).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn invalid_characters_and_those_of_others_are_refused() {
    let platform = TestPlatform::start().await;
    let ada = platform.login("Ada").await;
    let eve = platform.login("Eve").await;
    list(&platform, &ada).await;
    for (body, code) in [
        (json!({ "name": "\u{202e}<>" }), "invalid_name"),
        (
            json!({ "name": "A", "looks": { "shirt": "red" } }),
            "invalid_color",
        ),
        (
            json!({ "name": "A", "looks": { "hat": "anvil" } }),
            "invalid_field",
        ),
        (json!({ "name": 5 }), "invalid_field"),
    ] {
        let answer = send(
            &platform,
            &ada,
            Method::POST,
            "/api/characters",
            body.clone(),
        )
        .await;
        assert_eq!(error_of(answer).await, (400, code.to_owned()), "{body}");
    }
    let body = json!({ "name": "Ada's" });
    let made = send(&platform, &ada, Method::POST, "/api/characters", body).await;
    let hers: Character = made.json().await.unwrap();
    assert_eq!(hers.name, "Adas", "markup and quotes are removed");
    let path = format!("/api/characters/{}", hers.character_id);
    for (method, path) in [
        (Method::PUT, path.clone()),
        (Method::DELETE, path.clone()),
        (Method::POST, format!("{path}/activate")),
    ] {
        let body = json!({ "name": "x", "looks": {}, "version": 1 });
        let answer = send(&platform, &eve, method, &path, body).await;
        assert_eq!(error_of(answer).await.0, 404, "{path}");
    }
    for n in 0..20 {
        let body = json!({ "name": format!("Number {n}") });
        let answer = send(&platform, &ada, Method::POST, "/api/characters", body).await;
        let full = n >= 10;
        assert_eq!(answer.status() == StatusCode::CONFLICT, full, "{n}");
    }
    let all = list(&platform, &ada).await;
    assert_eq!(all.characters.len(), all.limit as usize);
    let anonymous = platform.get("/api/characters").await;
    assert_eq!(error_of(anonymous).await, (401, "missing_token".to_owned()));
}
