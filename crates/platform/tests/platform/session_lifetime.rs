//! Lifetime of sessions: a guest's session has a fixed expiry; an account's is extended while it is
//! used, and playing counts as use.

use frolic_fleet_api::persist::{PersistBatch, PlayerState, SavedPlayer};
use frolic_platform::api::LoginResponse;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::accounts::PASSWORD;
use crate::persistence::Process;
use crate::support::TestPlatform;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

async fn is_signed_in(test: &TestPlatform, who: &LoginResponse) -> bool {
    let path = "/api/me";
    let answer = test
        .call(Method::GET, path, &who.session_token, Value::Null)
        .await;
    match answer.status() {
        StatusCode::OK => true,
        StatusCode::UNAUTHORIZED => false,
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_stays_signed_in_while_it_is_used() {
    let test = TestPlatform::start().await;
    let (guest, account) = (test.login("Guest").await, test.register("Account").await);
    test.clock.advance_ms(3 * HOUR_MS);
    assert!(is_signed_in(&test, &guest).await);
    assert!(is_signed_in(&test, &account).await);
    test.clock.advance_ms(3 * HOUR_MS);
    assert!(
        !is_signed_in(&test, &guest).await,
        "a guest's session expires after four hours"
    );
    for _ in 0..5 {
        assert!(is_signed_in(&test, &account).await);
        test.clock.advance_ms(3 * HOUR_MS);
    }
    assert!(is_signed_in(&test, &account).await);
    test.clock.advance_ms(4 * HOUR_MS);
    assert!(!is_signed_in(&test, &account).await);

    let body = json!({ "username": "Account", "password": PASSWORD, "remember": true });
    let login = test.request(Method::POST, "/api/login").json(&body);
    let remembered: LoginResponse = login.send().await.unwrap().json().await.unwrap();
    for _ in 0..3 {
        test.clock.advance_ms(29 * DAY_MS);
        let _: Value = test.admin(Method::POST, "/admin/cleanup").await;
        assert!(is_signed_in(&test, &remembered).await);
    }
    test.clock.advance_ms(30 * DAY_MS);
    assert!(!is_signed_in(&test, &remembered).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_player_is_not_signed_out_during_a_game() {
    let test = TestPlatform::start().await;
    let (player, other) = (test.register("Player").await, test.register("Other").await);
    let joined = test.try_join(&player.session_token, json!({})).await;
    assert_eq!(joined.status(), StatusCode::OK);
    let process = Process::newest(&test).await;
    // Six hours in the world without any other request.
    for _ in 0..6 {
        test.clock.advance_ms(HOUR_MS);
        let saved = SavedPlayer {
            player_id: player.client_id.clone(),
            state: PlayerState {
                health: [100.0, 100.0],
                ..PlayerState::default()
            },
            online: true,
            session: "nonce".into(),
            received: 0,
            sent: 0,
            undelivered: Vec::new(),
        };
        let batch = PersistBatch {
            players: vec![saved],
            ..process.batch(vec![])
        };
        process.keep(&batch).await.unwrap();
    }
    let _: Value = test.admin(Method::POST, "/admin/cleanup").await;
    assert!(is_signed_in(&test, &player).await);
    assert!(!is_signed_in(&test, &other).await);
}
