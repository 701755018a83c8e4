//! The lifecycle of game servers: failures at the start, crashes, missing heartbeats, idleness,
//! draining and shutdown.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support::gameserver::Plan;
use crate::support::{ADMIN_TOKEN, TestPlatform, error_of, game_files};
use frolic_platform::Settings;
use frolic_platform::api::{ServerList, WorldInfo};
use reqwest::{Method, StatusCode};
use serde_json::json;

fn quick(settings: &mut Settings) {
    settings.fleet.backoff_first = Duration::from_millis(10);
    settings.fleet.backoff_max = Duration::from_millis(40);
    settings.fleet.stop_grace = Duration::from_millis(200);
}

#[tokio::test]
async fn a_server_that_cannot_start_fails_its_join_with_a_reason() {
    let platform = TestPlatform::start_with(|settings| {
        settings.fleet.backoff_first = Duration::from_secs(60);
    })
    .await;
    platform.stage.plan([Plan::FailAtStart]);
    let token = platform.login("Ada").await.session_token;
    let response = platform.try_join(&token, json!({})).await;
    assert_eq!(response.headers()["retry-after"], "2");
    assert_eq!(error_of(response).await, (503, "server_failed".to_owned()));
    // The package failed a moment ago, so no second process is started.
    let response = platform.try_join(&token, json!({})).await;
    assert_eq!(
        error_of(response).await,
        (503, "server_crashing".to_owned())
    );
    assert_eq!(platform.stage.launch_count(), 1);
    // Other games are not affected.
    platform.publish_sample(&game_files("other", 8)).await;
    let response = platform
        .try_join(&token, json!({ "game_id": "other" }))
        .await;
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_server_that_is_never_ready_is_stopped() {
    let platform = TestPlatform::start_with(|settings| {
        settings.fleet.start_timeout = Duration::from_millis(300);
    })
    .await;
    platform.stage.plan([Plan::Hang]);
    let token = platform.login("Ada").await.session_token;
    let response = platform.try_join(&token, json!({})).await;
    assert_eq!(error_of(response).await, (503, "server_failed".to_owned()));
    platform.stage.wait_for_alive(0).await;
}

#[tokio::test]
async fn a_crashed_world_restarts_with_the_same_id() {
    let platform = TestPlatform::start_with(quick).await;
    let before = platform.join(json!({ "game_id": "sample" })).await;
    platform.stage.crash_all();
    platform.stage.wait_for_launches(2).await;
    let after = platform
        .join(json!({ "room_code": before.room_code }))
        .await;
    assert_eq!(after.world_id, before.world_id);
    assert_ne!(after.server_address, before.server_address);
    let list: ServerList = platform.admin(Method::GET, "/admin/servers").await;
    assert_eq!((list.servers.len(), list.servers[0].crashes), (1, 1));

    // The process that crashed cannot act for the world any more.
    let old_token = platform.stage.launches.borrow()[0].world_token.clone();
    let path = format!("/internal/worlds/{}", before.world_id);
    let response = platform
        .request(Method::GET, &path)
        .bearer_auth(old_token)
        .send()
        .await;
    assert_eq!(
        error_of(response.unwrap()).await,
        (401, "not_your_world".to_owned())
    );
}

#[tokio::test]
async fn a_world_that_keeps_crashing_is_given_up() {
    let platform = TestPlatform::start_with(|settings| {
        quick(settings);
        settings.fleet.crashes_max = 3;
        settings.fleet.backoff_first = Duration::from_secs(30);
        settings.fleet.backoff_max = Duration::from_millis(20);
    })
    .await;
    let joined = platform.join(json!({ "game_id": "sample" })).await;
    platform.stage.plan([Plan::FailOnSignal, Plan::FailAtStart]);
    let ada = platform.login("Ada").await;
    platform.stage.crash_all();
    platform.stage.wait_for_launches(2).await;
    let reserved = async || {
        let list: ServerList = platform.admin(Method::GET, "/admin/servers").await;
        list.servers[0].reserved
    };
    let before = reserved().await;
    let joining = platform.try_join(&ada.session_token, json!({ "world_id": joined.world_id }));
    let failing = async {
        while reserved().await == before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        platform.stage.go.send_replace(true);
    };
    let (response, ()) = tokio::join!(joining, failing);
    assert_eq!(error_of(response).await.0, 503);
    assert_eq!(platform.stage.launch_count(), 3);
}

#[tokio::test]
async fn a_server_without_heartbeats_is_replaced() {
    let platform = TestPlatform::start_with(|settings| {
        quick(settings);
        settings.fleet.heartbeat_timeout = Duration::from_millis(300);
    })
    .await;
    platform.stage.plan([Plan::NoHeartbeats]);
    let before = platform.join(json!({ "game_id": "sample" })).await;
    platform.stage.wait_for_launches(2).await;
    let after = platform.join(json!({ "world_id": before.world_id })).await;
    assert_ne!(after.server_address, before.server_address);
    platform.stage.wait_for_alive(1).await;
}

#[tokio::test]
async fn an_empty_world_stops_and_starts_with_the_next_join() {
    let platform = TestPlatform::start_with(|settings| {
        settings.fleet.reservation = Duration::from_millis(50);
    })
    .await;
    let mut files = game_files("brief", 8);
    let manifest = String::from_utf8(files["game.toml"].clone()).unwrap();
    let manifest = manifest.replace("idle_stop_s = 60", "idle_stop_s = 1");
    files.insert("game.toml".to_owned(), manifest.into_bytes());
    platform.publish_sample(&files).await;

    let first = platform.join(json!({ "game_id": "brief" })).await;
    let server = platform.platform.fleet().server(&first.world_id).unwrap();
    server.ended().await;
    platform.stage.wait_for_alive(0).await;
    let world: WorldInfo = platform
        .get_json(&format!("/world/{}", first.world_id))
        .await;
    assert!(!world.running);
    let again = platform.join(json!({ "world_id": first.world_id })).await;
    assert_eq!(again.world_id, first.world_id);
    assert_eq!(platform.stage.launch_count(), 2);
}

#[tokio::test]
async fn admins_stop_and_drain_servers() {
    let platform = TestPlatform::start_with(quick).await;
    let joined = platform.join(json!({ "game_id": "sample" })).await;
    platform.stage.players.store(1, Ordering::SeqCst);
    platform.stage.wait_for_heartbeats().await;
    let delete = |path: String| {
        let request = platform
            .request(Method::DELETE, &path)
            .bearer_auth(ADMIN_TOKEN);
        async move { request.send().await.unwrap() }
    };
    // Draining: connected players stay, new players are refused, and a new world opens for them.
    let response = delete(format!("/admin/servers/{}?drain=true", joined.world_id)).await;
    assert_eq!(response.status(), StatusCode::ACCEPTED);
    let token = platform.login("Ada").await.session_token;
    let response = platform
        .try_join(&token, json!({ "world_id": joined.world_id }))
        .await;
    assert_eq!(error_of(response).await, (409, "world_closing".to_owned()));
    let other = platform.join(json!({ "game_id": "sample" })).await;
    assert_ne!(other.world_id, joined.world_id);
    let draining = platform.platform.fleet().server(&joined.world_id).unwrap();
    platform.stage.players.store(0, Ordering::SeqCst);
    draining.ended().await;
    platform.stage.wait_for_alive(1).await;

    let list: ServerList = platform.admin(Method::GET, "/admin/servers").await;
    assert_eq!(list.servers.len(), 1);
    let response = delete(format!("/admin/servers/{}", list.servers[0].server_id)).await;
    assert_eq!(response.status(), StatusCode::ACCEPTED);
    platform.stage.wait_for_alive(0).await;
    let response = delete("/admin/servers/server_none".to_owned()).await;
    assert_eq!(
        error_of(response).await,
        (404, "server_not_found".to_owned())
    );
}

#[tokio::test]
async fn shutdown_stops_every_server_even_one_that_ignores_it() {
    let platform = TestPlatform::start_with(quick).await;
    platform
        .stage
        .plan([Plan::Run, Plan::IgnoreStop, Plan::Run]);
    for _ in 0..3 {
        platform.join(json!({})).await;
    }
    let stage = platform.stage.clone();
    assert_eq!(*stage.alive.borrow(), 3);
    let data_dir = platform.data_dir.clone();
    platform.stop().await;
    assert_eq!(*stage.alive.borrow(), 0);
    // Servers that react to the stop reported it over /internal, which was still served.
    assert_eq!(stage.stop_reports.lock().unwrap().len(), 2);
    let _ = std::fs::remove_dir_all(data_dir);
}
