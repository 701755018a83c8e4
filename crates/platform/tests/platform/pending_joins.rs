//! Pending joins: they wait for a cold start, for a full or closing world, for a package that fails
//! to start, and for a free process.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use frolic_fleet_api::persist::{PersistBatch, PlayerState, SavedPlayer};
use frolic_fleet_api::process::WorldBoot;
use frolic_platform::Settings;
use frolic_platform::api::{JoinProgress, JoinResponse, JoinStage, LoginResponse};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::support::gameserver::Plan;
use crate::support::{ADMIN_TOKEN, TestPlatform, error_of, game_files};

/// Joins with the header `Prefer: prefer`.
async fn ask(platform: &TestPlatform, who: &LoginResponse, prefer: &str, body: Value) -> Response {
    let request = platform.request(Method::POST, "/join");
    let request = request.header("prefer", prefer).json(&body);
    request
        .bearer_auth(&who.session_token)
        .send()
        .await
        .unwrap()
}

/// Starts a join that has to wait.
async fn begin(platform: &TestPlatform, who: &LoginResponse, body: Value) -> JoinProgress {
    let answer = ask(platform, who, "respond-async", body).await;
    assert_eq!(answer.headers()["preference-applied"], "respond-async");
    let location = answer.headers()["location"].to_str().unwrap().to_owned();
    let progress = pending(answer).await;
    assert_eq!(location, format!("/join/{}", progress.join_id));
    progress
}

async fn pending(answer: Response) -> JoinProgress {
    let status = answer.status();
    let text = answer.text().await.unwrap();
    assert_eq!(status, StatusCode::ACCEPTED, "{text}");
    serde_json::from_str(&text).unwrap()
}

async fn placed(answer: Response) -> JoinResponse {
    let status = answer.status();
    let text = answer.text().await.unwrap();
    assert_eq!(status, StatusCode::OK, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Polls for progress after `seen`.
async fn poll(platform: &TestPlatform, who: &LoginResponse, seen: &JoinProgress) -> Response {
    let path = format!("/join/{}?after={}&wait_s=20", seen.join_id, seen.step);
    let request = platform.request(Method::GET, &path);
    request
        .bearer_auth(&who.session_token)
        .send()
        .await
        .unwrap()
}

/// Polls until the join has an outcome.
async fn outcome(
    platform: &TestPlatform,
    who: &LoginResponse,
    pending_join: JoinProgress,
) -> Response {
    let mut seen = pending_join;
    loop {
        let answer = poll(platform, who, &seen).await;
        if answer.status() != StatusCode::ACCEPTED {
            return answer;
        }
        seen = pending(answer).await;
    }
}

fn quick(settings: &mut Settings) {
    settings.fleet.backoff_first = Duration::from_millis(10);
    settings.fleet.backoff_max = Duration::from_millis(40);
    settings.fleet.stop_grace = Duration::from_millis(200);
}

#[tokio::test]
async fn a_join_waits_for_a_cold_start_and_reports_it() {
    let platform = TestPlatform::start().await;
    platform.stage.plan([Plan::OnSignal]);
    let ada = platform.login("Ada").await;
    let join = begin(&platform, &ada, json!({ "game_id": "sample" })).await;
    assert_eq!(join.stage, JoinStage::Starting);
    assert!(join.expected_s.is_some_and(|seconds| seconds <= 1.0));
    assert_eq!((join.position, join.waiting), (None, None));

    // Other users cannot poll the join.
    let bob = platform.login("Bob").await;
    let answer = poll(&platform, &bob, &join).await;
    assert_eq!(error_of(answer).await, (404, "join_not_found".to_owned()));
    let (answer, ()) = tokio::join!(poll(&platform, &ada, &join), async {
        platform.stage.go.send_replace(true);
    });
    let joined = placed(answer).await;
    assert_eq!(joined.client_id, ada.client_id);
    // The outcome was fetched, so the join does not exist any more.
    let answer = poll(&platform, &ada, &join).await;
    assert_eq!(error_of(answer).await, (404, "join_not_found".to_owned()));

    // A join into a running world does not wait: one request is enough.
    let body = json!({ "world_id": joined.world_id });
    let warm = placed(ask(&platform, &bob, "respond-async", body).await).await;
    assert_eq!(warm.world_id, joined.world_id);
    assert_eq!(platform.stage.launch_count(), 1);
}

#[tokio::test]
async fn a_full_world_has_a_queue_in_order() {
    let platform = TestPlatform::start().await;
    platform.publish_sample(&game_files("duel", 2)).await;
    let first = platform.join(json!({ "game_id": "duel" })).await;
    let body = json!({ "room_code": first.room_code });
    platform.join(body.clone()).await;
    platform.stage.players.store(2, Ordering::SeqCst);
    platform.stage.wait_for_heartbeats().await;

    let (third, fourth) = (
        platform.login("Third").await,
        platform.login("Fourth").await,
    );
    let third_join = begin(&platform, &third, body.clone()).await;
    assert_eq!(third_join.stage, JoinStage::Queued);
    assert_eq!(
        (third_join.position, third_join.waiting),
        (Some(1), Some(1))
    );
    let fourth_join = begin(&platform, &fourth, body.clone()).await;
    assert_eq!(
        (fourth_join.position, fourth_join.waiting),
        (Some(2), Some(2))
    );

    // A player leaves: the first in the queue gets the slot, and the second moves up.
    platform.stage.players.store(1, Ordering::SeqCst);
    let joined = placed(outcome(&platform, &third, third_join).await).await;
    assert_eq!(joined.world_id, first.world_id);
    let moved = pending(poll(&platform, &fourth, &fourth_join).await).await;
    assert_eq!((moved.stage, moved.position), (JoinStage::Queued, Some(1)));
    assert!(
        moved.expected_s.is_some(),
        "the expected time is known after a departure"
    );

    // A join that does not wait cannot overtake the queue.
    let late = platform.login("Late").await;
    platform.stage.players.store(2, Ordering::SeqCst);
    platform.stage.wait_for_heartbeats().await;
    let answer = platform.try_join(&late.session_token, body.clone()).await;
    assert_eq!(error_of(answer).await, (409, "world_full".to_owned()));
    platform.stage.players.store(1, Ordering::SeqCst);
    let joined = placed(outcome(&platform, &fourth, moved).await).await;
    assert_eq!(joined.client_id, fourth.client_id);
}

#[tokio::test]
async fn a_cancelled_join_leaves_the_queue() {
    let platform = TestPlatform::start().await;
    platform.publish_sample(&game_files("duel", 1)).await;
    let first = platform.join(json!({ "game_id": "duel" })).await;
    let body = json!({ "room_code": first.room_code });
    let (ada, bob) = (platform.login("Ada").await, platform.login("Bob").await);
    let ada_join = begin(&platform, &ada, body.clone()).await;
    let bob_join = begin(&platform, &bob, body.clone()).await;
    assert_eq!(bob_join.position, Some(2));
    let cancel = |who: &LoginResponse| {
        let path = format!("/join/{}", ada_join.join_id);
        let request = platform.request(Method::DELETE, &path);
        request.bearer_auth(&who.session_token).send()
    };
    let answer = cancel(&bob).await.unwrap();
    assert_eq!(
        error_of(answer).await,
        (404, "join_not_found".to_owned()),
        "the join of another user"
    );
    assert_eq!(cancel(&ada).await.unwrap().status(), StatusCode::NO_CONTENT);
    let moved = pending(poll(&platform, &bob, &bob_join).await).await;
    assert_eq!(moved.position, Some(1));
    // A user can have four pending joins.
    for expected in [202, 202, 202, 429] {
        let answer = ask(&platform, &bob, "respond-async", body.clone()).await;
        assert_eq!(answer.status().as_u16(), expected);
    }
}

#[tokio::test]
async fn a_player_who_left_between_heartbeats_takes_no_slot() {
    let platform = TestPlatform::start().await;
    platform.publish_sample(&game_files("duel", 1)).await;
    let first = platform.join(json!({ "game_id": "duel" })).await;
    let ada = platform.login("Ada").await;
    let join = begin(&platform, &ada, json!({ "room_code": first.room_code })).await;
    assert_eq!(join.stage, JoinStage::Queued);
    platform.stage.passed_through.store(1, Ordering::SeqCst);
    let joined = placed(outcome(&platform, &ada, join).await).await;
    assert_eq!(joined.world_id, first.world_id);
}

#[tokio::test]
async fn a_synchronous_join_can_wait_for_a_slot() {
    let platform = TestPlatform::start().await;
    platform.publish_sample(&game_files("duel", 1)).await;
    let first = platform.join(json!({ "game_id": "duel" })).await;
    platform.stage.players.store(1, Ordering::SeqCst);
    platform.stage.wait_for_heartbeats().await;
    let body = json!({ "world_id": first.world_id });
    let ada = platform.login("Ada").await;
    let answer = ask(&platform, &ada, "wait=0", body.clone()).await;
    assert_eq!(error_of(answer).await, (409, "world_full".to_owned()));
    let (answer, ()) = tokio::join!(ask(&platform, &ada, "wait=20", body), async {
        platform.stage.players.store(0, Ordering::SeqCst);
    });
    assert_eq!(placed(answer).await.world_id, first.world_id);
}

#[tokio::test]
async fn a_join_waits_for_a_closing_world_and_restarts_it() {
    let platform = TestPlatform::start_with(quick).await;
    let first = platform.join(json!({ "game_id": "sample" })).await;
    platform.stage.players.store(1, Ordering::SeqCst);
    platform.stage.wait_for_heartbeats().await;
    let path = format!("/admin/servers/{}?drain=true", first.world_id);
    let request = platform.request(Method::DELETE, &path);
    request.bearer_auth(ADMIN_TOKEN).send().await.unwrap();
    let ada = platform.login("Ada").await;
    let join = begin(&platform, &ada, json!({ "world_id": first.world_id })).await;
    assert_eq!(join.stage, JoinStage::Closing);
    platform.stage.players.store(0, Ordering::SeqCst);
    let joined = placed(outcome(&platform, &ada, join).await).await;
    assert_eq!(joined.world_id, first.world_id);
    assert_eq!(platform.stage.launch_count(), 2);
}

#[tokio::test]
async fn a_failed_start_is_retried_a_limited_number_of_times() {
    let platform = TestPlatform::start_with(quick).await;
    platform.stage.plan([Plan::FailAtStart, Plan::FailAtStart]);
    let ada = platform.login("Ada").await;
    let join = begin(&platform, &ada, json!({ "game_id": "sample" })).await;
    let joined = placed(outcome(&platform, &ada, join).await).await;
    assert_eq!(platform.stage.launch_count(), 3);
    assert_eq!(joined.game_id, "sample");

    platform.publish_sample(&game_files("broken", 2)).await;
    platform.stage.plan([Plan::FailAtStart; 3]);
    let join = begin(&platform, &ada, json!({ "game_id": "broken" })).await;
    let answer = outcome(&platform, &ada, join).await;
    assert_eq!(error_of(answer).await, (503, "server_failed".to_owned()));
    assert_eq!(platform.stage.launch_count(), 6);
}

#[tokio::test]
async fn without_a_free_process_an_empty_world_is_stopped() {
    let platform = TestPlatform::start_with(|settings| {
        quick(settings);
        settings.fleet.servers_max = 1;
        settings.fleet.spare_after = Duration::from_millis(50);
        settings.fleet.reservation = Duration::from_millis(50);
    })
    .await;
    platform.publish_sample(&game_files("other", 2)).await;
    let first = platform.join(json!({ "game_id": "sample" })).await;
    platform.stage.players.store(1, Ordering::SeqCst);
    platform.stage.wait_for_heartbeats().await;
    // A world with players is not stopped.
    let ada = platform.login("Ada").await;
    let other = json!({ "game_id": "other" });
    let answer = platform.try_join(&ada.session_token, other.clone()).await;
    assert_eq!(error_of(answer).await, (503, "fleet_full".to_owned()));
    let join = begin(&platform, &ada, other).await;
    assert_eq!(join.stage, JoinStage::MachineFull);
    assert!(platform.platform.fleet().server(&first.world_id).is_some());
    platform.stage.players.store(0, Ordering::SeqCst);
    let joined = placed(outcome(&platform, &ada, join).await).await;
    assert_eq!(joined.game_id, "other");
    assert!(platform.platform.fleet().server(&first.world_id).is_none());
}

#[tokio::test]
async fn many_joins_to_several_games_start_one_server_each() {
    let platform = TestPlatform::start().await;
    let games = ["red", "green", "blue", "gold"];
    for game in games {
        platform.publish_sample(&game_files(game, 100)).await;
    }
    // Half of the joins wait synchronously, half poll.
    let joins = (0..200).map(|number| {
        let platform = &platform;
        let body = json!({ "game_id": games[number % 4] });
        async move {
            let guest = platform.login("Guest").await;
            if number % 8 < 4 {
                placed(platform.try_join(&guest.session_token, body).await).await
            } else {
                let answer = ask(platform, &guest, "respond-async", body).await;
                if answer.status() == StatusCode::OK {
                    return placed(answer).await;
                }
                let join = pending(answer).await;
                placed(outcome(platform, &guest, join).await).await
            }
        }
    });
    let joined = futures_util::future::join_all(joins).await;
    let worlds: HashSet<_> = joined.iter().map(|join| &join.world_id).collect();
    assert_eq!((worlds.len(), platform.stage.launch_count()), (4, 4));
    let tickets: HashSet<_> = joined.iter().map(|join| &join.ticket).collect();
    assert_eq!(tickets.len(), 200);
}

/// Reports to the platform, as the process of a world does, that a player is in it.
pub async fn is_in(platform: &TestPlatform, world_id: &str, player_id: &str) {
    let launches = platform.stage.launches.borrow().clone();
    let launch = launches.iter().rfind(|launch| launch.world_id == world_id);
    let token = &launch.unwrap().world_token;
    let path = format!("/internal/worlds/{world_id}");
    let request = platform.request(Method::GET, &path).bearer_auth(token);
    let boot: WorldBoot = request.send().await.unwrap().json().await.unwrap();
    let player = SavedPlayer {
        player_id: player_id.to_owned(),
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
        epoch: boot.epoch,
        players: vec![player],
        ..PersistBatch::default()
    };
    let request = platform.request(Method::POST, &format!("{path}/keep"));
    let answer = request.bearer_auth(token).json(&batch).send().await;
    assert_eq!(answer.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_join_prefers_worlds_of_friends() {
    let platform = TestPlatform::start().await;
    let (ada, bob) = (platform.login("Ada").await, platform.login("Bob").await);
    // Bob joins by Ada's invitation.
    let first = platform.try_join(&ada.session_token, json!({})).await;
    let first: JoinResponse = first.json().await.unwrap();
    let request = platform.request(Method::POST, "/api/invites");
    let request = request.json(&json!({ "world_id": first.world_id }));
    let invite = request.bearer_auth(&ada.session_token).send().await;
    let invite: Value = invite.unwrap().json().await.unwrap();
    let body = json!({ "invite": invite["code"] });
    let answer = platform.try_join(&bob.session_token, body).await;
    assert_eq!(answer.status(), StatusCode::OK);

    // Later, Ada is in a world of her own, and others are in a fuller one.
    let quiet: JoinResponse = placed(platform.try_join(&ada.session_token, json!({})).await).await;
    let full = platform.join(json!({})).await;
    for _ in 0..3 {
        platform.join(json!({ "world_id": full.world_id })).await;
    }
    is_in(&platform, &quiet.world_id, &ada.client_id).await;
    let body = json!({ "game_id": "sample" });
    let stranger = platform.join(body.clone()).await;
    assert_eq!(stranger.world_id, full.world_id, "the fullest world");
    let bobs: JoinResponse =
        placed(platform.try_join(&bob.session_token, body.clone()).await).await;
    assert_eq!(bobs.world_id, quiet.world_id, "the world with Ada");

    // A blocked friend is not preferred.
    let path = format!("/api/blocks/{}", ada.client_id);
    let request = platform.request(Method::PUT, &path);
    let answer = request
        .bearer_auth(&bob.session_token)
        .send()
        .await
        .unwrap();
    assert!(answer.status().is_success(), "{}", answer.status());
    let bobs: JoinResponse = placed(platform.try_join(&bob.session_token, body).await).await;
    assert_eq!(bobs.world_id, full.world_id);
}
