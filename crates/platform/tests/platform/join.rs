//! Joining: one server per world, fullest world first, no more players than the limit, valid
//! tickets.

use std::collections::{HashMap, HashSet};

use crate::support::{SECRET, START_MS, TestPlatform, error_of, game_files};
use frolic_fleet_api::ticket;
use frolic_platform::api::{GameDetail, JoinResponse};
use reqwest::StatusCode;
use serde_json::json;

#[tokio::test]
async fn a_join_starts_the_world_and_returns_a_ticket() {
    let platform = TestPlatform::start().await;
    let guest = platform.login("Ada").await;
    let response = platform
        .try_join(&guest.session_token, json!({ "game_id": "sample" }))
        .await;
    let joined: JoinResponse = response.json().await.unwrap();
    assert_eq!(joined.client_id, guest.client_id);
    assert_eq!(joined.session_token, guest.session_token);
    assert_eq!(joined.game_id, "sample");
    assert!(joined.world_id.starts_with("world_"));
    assert!(
        joined.server_address.starts_with("ws://127.0.0.1:"),
        "{}",
        joined.server_address
    );
    assert_eq!(joined.transports.websocket.url, joined.server_address);

    let key = ticket::world_key(SECRET, &joined.world_id);
    let now_s = u64::try_from(START_MS / 1000).unwrap();
    let claims = ticket::verify(&key, &joined.ticket, &joined.world_id, now_s).unwrap();
    assert_eq!(
        (claims.player_id, claims.name),
        (guest.client_id, "Ada".to_owned())
    );
    // The process received the key of its own world and no other secret.
    assert_eq!(platform.stage.launches.borrow()[0].ticket_key, key);

    let game: GameDetail = platform.get_json("/api/games/sample").await;
    assert_eq!(game.summary.plays, 1);
    assert_eq!(game.servers[0].world_id, joined.world_id);
}

#[tokio::test]
async fn two_hundred_joins_to_one_world_start_one_server() {
    let platform = TestPlatform::start().await;
    platform.publish_sample(&game_files("crowd", 250)).await;
    let first = platform.join(json!({ "game_id": "crowd" })).await;
    // It is still stopping when the joins arrive, so they wait for its end.
    platform.platform.fleet().stop(&first.world_id);

    let body = json!({ "world_id": first.world_id });
    let joins = (0..200).map(|_| platform.join(body.clone()));
    let joined = futures_util::future::join_all(joins).await;
    assert!(joined.iter().all(|join| join.world_id == first.world_id));
    let addresses: HashSet<_> = joined.iter().map(|join| &join.server_address).collect();
    assert_eq!(addresses.len(), 1);
    let tickets: HashSet<_> = joined.iter().map(|join| &join.ticket).collect();
    assert_eq!(tickets.len(), 200);
    assert_eq!(platform.stage.launch_count(), 2);
}

#[tokio::test]
async fn a_crowd_fills_worlds_and_never_overfills_them() {
    let platform = TestPlatform::start().await;
    // A world has 8 slots, so 20 simultaneous joins need exactly three worlds.
    let joins = (0..20).map(|_| platform.join(json!({ "game_id": "sample" })));
    let joined = futures_util::future::join_all(joins).await;
    let mut players: HashMap<&str, u32> = HashMap::new();
    for join in &joined {
        *players.entry(&join.world_id).or_default() += 1;
    }
    let mut counts: Vec<_> = players.into_values().collect();
    counts.sort_unstable();
    assert_eq!(counts, [4, 8, 8]);
    assert_eq!(platform.stage.launch_count(), 3);
}

#[tokio::test]
async fn a_full_world_refuses_joins_until_a_player_leaves() {
    let platform = TestPlatform::start().await;
    platform.publish_sample(&game_files("duel", 2)).await;
    let first = platform.join(json!({ "game_id": "duel" })).await;
    let second = platform
        .join(json!({ "room_code": first.room_code.to_lowercase() }))
        .await;
    assert_eq!(first.world_id, second.world_id);
    let guest = platform.login("Third").await;
    let body = json!({ "world_id": first.world_id });
    let response = platform.try_join(&guest.session_token, body.clone()).await;
    assert_eq!(error_of(response).await, (409, "world_full".to_owned()));
    // A player with a slot may join again without taking another one.
    let again = platform.try_join(&first.session_token, body.clone()).await;
    assert_eq!(again.status(), StatusCode::OK);

    // Both connect: the world is still full. One leaves: a slot is free.
    for (players, status) in [(2, StatusCode::CONFLICT), (1, StatusCode::OK)] {
        platform
            .stage
            .players
            .store(players, std::sync::atomic::Ordering::SeqCst);
        platform.stage.wait_for_heartbeats().await;
        let response = platform.try_join(&guest.session_token, body.clone()).await;
        assert_eq!(response.status(), status, "{players} players");
    }
}

#[tokio::test]
async fn without_an_id_a_new_world_of_the_default_game_opens() {
    let platform = TestPlatform::start().await;
    platform.publish_sample(&game_files("another", 8)).await;
    let (a, b) = (
        platform.join(json!({})).await,
        platform.join(json!({})).await,
    );
    assert_eq!(
        (a.game_id.as_str(), b.game_id.as_str()),
        ("sample", "sample")
    );
    assert_ne!(a.world_id, b.world_id);
    assert_ne!(a.room_code, b.room_code);
}

#[tokio::test]
async fn a_new_version_gets_new_worlds_and_old_worlds_stay() {
    let platform = TestPlatform::start().await;
    let old = platform.join(json!({ "game_id": "sample" })).await;
    platform.publish_sample(&game_files("sample", 9)).await;
    let new = platform.join(json!({ "game_id": "sample" })).await;
    assert_ne!(old.world_id, new.world_id);
    let back = platform.join(json!({ "world_id": old.world_id })).await;
    assert_eq!(back.server_address, old.server_address);
}

#[tokio::test]
async fn unknown_targets_are_reported() {
    let platform = TestPlatform::start().await;
    let token = platform.login("Ada").await.session_token;
    for (body, expected) in [
        (
            json!({ "world_id": "world_none" }),
            (404, "world_not_found"),
        ),
        (json!({ "game_id": "../sample" }), (404, "game_not_found")),
        (json!({ "room_code": "NOPE" }), (404, "room_not_found")),
        (
            json!({ "game_id": "sample", "world_id": "world_x" }),
            (400, "too_many_targets"),
        ),
        (json!({ "game_id": 5 }), (400, "invalid_field")),
        (json!([]), (400, "invalid_field")),
    ] {
        let (status, code) = error_of(platform.try_join(&token, body.clone()).await).await;
        assert_eq!((status, code.as_str()), expected, "{body}");
    }
    assert_eq!(platform.stage.launch_count(), 0);
}
