//! Disconnected players find their slot reserved, also in a full world.

use std::sync::atomic::Ordering;
use std::time::Duration;

use frolic_platform::api::{JoinResponse, LoginResponse};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::pending_joins::is_in;
use crate::support::{TestPlatform, error_of, game_files};

async fn join(platform: &TestPlatform, who: &LoginResponse, body: &Value) -> JoinResponse {
    let answer = platform.try_join(&who.session_token, body.clone()).await;
    assert_eq!(answer.status(), StatusCode::OK, "{}", who.username);
    answer.json().await.unwrap()
}

async fn is_refused(platform: &TestPlatform, who: &LoginResponse, body: &Value) {
    let answer = platform.try_join(&who.session_token, body.clone()).await;
    assert_eq!(error_of(answer).await, (409, "world_full".to_owned()));
}

/// A world for one player, with Ada in it.
async fn adas_world(platform: &TestPlatform, ada: &LoginResponse) -> Value {
    platform.publish_sample(&game_files("duel", 1)).await;
    let place = join(platform, ada, &json!({ "game_id": "duel" })).await;
    platform.stage.players.store(1, Ordering::SeqCst);
    platform.stage.wait_for_heartbeats().await;
    json!({ "room_code": place.room_code })
}

#[tokio::test]
async fn a_full_world_reserves_the_slot_of_a_disconnected_player() {
    let platform = TestPlatform::start().await;
    let (ada, bob) = (platform.login("Ada").await, platform.login("Bob").await);
    let room = adas_world(&platform, &ada).await;
    platform.stage.lose(&ada.client_id).await;
    is_refused(&platform, &bob, &room).await;
    join(&platform, &ada, &room).await;
    is_refused(&platform, &bob, &room).await;
    // Her reservation has expired.
    platform.stage.passed_through.store(1, Ordering::SeqCst);
    platform.stage.away.lock().unwrap().clear();
    platform.stage.wait_for_heartbeats().await;
    join(&platform, &bob, &room).await;
}

#[tokio::test]
async fn a_draining_world_readmits_a_disconnected_player() {
    let platform = TestPlatform::start().await;
    let (ada, bob) = (platform.login("Ada").await, platform.login("Bob").await);
    let room = adas_world(&platform, &ada).await;
    platform.stage.lose(&ada.client_id).await;
    let place = join(&platform, &ada, &room).await;
    platform.platform.fleet().drain(&place.world_id);
    platform.stage.wait_for_heartbeats().await;
    assert_eq!(join(&platform, &ada, &room).await.world_id, place.world_id);
    platform.stage.away.lock().unwrap().clear();
    // No player is present or may reconnect: the world stops, and starts again for the next.
    platform.stage.wait_for_alive(0).await;
    join(&platform, &bob, &room).await;
}

#[tokio::test]
async fn reopening_a_closed_tab_leads_to_the_same_world() {
    let platform = TestPlatform::start().await;
    let ada = platform.login("Ada").await;
    let any = json!({ "game_id": "sample" });
    let quiet = platform.join(json!({})).await;
    let fuller = platform.join(json!({})).await;
    let theirs = json!({ "world_id": fuller.world_id });
    platform.join(theirs.clone()).await;
    let stranger = platform.login("Eve").await;
    assert_eq!(
        join(&platform, &stranger, &any).await.world_id,
        fuller.world_id
    );
    let stage = &platform.stage;
    stage.lose_in(&quiet.world_id, &ada.client_id).await;
    assert_eq!(join(&platform, &ada, &any).await.world_id, quiet.world_id);
}

#[tokio::test]
async fn slots_of_players_survive_a_killed_game_server() {
    let platform = TestPlatform::start_with(|settings| {
        settings.fleet.backoff_first = Duration::from_millis(10);
    })
    .await;
    let (ada, bob) = (platform.login("Ada").await, platform.login("Bob").await);
    let room = adas_world(&platform, &ada).await;
    let world_id = platform.stage.launches.borrow()[0].world_id.clone();
    is_in(&platform, &world_id, &ada.client_id).await;
    platform.stage.players.store(0, Ordering::SeqCst);
    platform.stage.crash_all();
    platform.stage.wait_for_launches(2).await;
    platform.stage.wait_for_heartbeats().await;
    is_refused(&platform, &bob, &room).await;
    join(&platform, &ada, &room).await;
}

#[tokio::test]
async fn slots_of_players_survive_a_stopped_game_server() {
    let platform = TestPlatform::start().await;
    let (ada, bob) = (platform.login("Ada").await, platform.login("Bob").await);
    let room = adas_world(&platform, &ada).await;
    let world_id = platform.stage.launches.borrow()[0].world_id.clone();
    is_in(&platform, &world_id, &ada.client_id).await;
    platform.platform.fleet().stop(&world_id);
    platform.stage.wait_for_alive(0).await;
    platform.stage.players.store(0, Ordering::SeqCst);
    // He is the first to join the next process.
    is_refused(&platform, &bob, &room).await;
    join(&platform, &ada, &room).await;
}

#[tokio::test]
async fn a_player_who_resumes_takes_one_slot_and_not_two() {
    let platform = TestPlatform::start_with(|settings| {
        settings.fleet.backoff_first = Duration::from_millis(10);
    })
    .await;
    platform.publish_sample(&game_files("duel", 2)).await;
    let (ada, bob) = (platform.login("Ada").await, platform.login("Bob").await);
    let place = join(&platform, &ada, &json!({ "game_id": "duel" })).await;
    let room = json!({ "room_code": place.room_code });
    platform.stage.players.store(1, Ordering::SeqCst);
    platform.stage.wait_for_heartbeats().await;
    is_in(&platform, &place.world_id, &ada.client_id).await;
    platform.stage.crash_all();
    platform.stage.wait_for_launches(2).await;
    // She resumed directly in the next process, without asking the platform.
    let returned = || platform.stage.returned.lock().unwrap();
    returned().push(ada.client_id.clone());
    platform.stage.wait_for_heartbeats().await;
    join(&platform, &bob, &room).await;
}
