//! A join waits, never fails: through a cold start, a full world, a
//! world that closes, a package that stumbles, a machine without a free process.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use frolic_platform::Settings;
use frolic_platform::api::{JoinProgress, JoinResponse, JoinStage, LoginResponse};
use frolic_protocol::fleet::WorldBoot;
use frolic_protocol::keep::{KeepBatch, PlayerState, SavedPlayer};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::support::gameserver::Plan;
use crate::support::{ADMIN_TOKEN, TestPlatform, error_of, game_files};

/// Asks for a place with `Prefer: prefer`.
async fn ask(platform: &TestPlatform, who: &LoginResponse, prefer: &str, body: Value) -> Response {
    let request = platform.request(Method::POST, "/join");
    let request = request.header("prefer", prefer).json(&body);
    request
        .bearer_auth(&who.session_token)
        .send()
        .await
        .unwrap()
}

/// Begins a join that has to wait.
async fn begin(platform: &TestPlatform, who: &LoginResponse, body: Value) -> JoinProgress {
    let answer = ask(platform, who, "respond-async", body).await;
    assert_eq!(answer.headers()["preference-applied"], "respond-async");
    let place = answer.headers()["location"].to_str().unwrap().to_owned();
    let progress = waiting(answer).await;
    assert_eq!(place, format!("/join/{}", progress.join_id));
    progress
}

async fn waiting(answer: Response) -> JoinProgress {
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

/// What there is to say after `seen`.
async fn news(platform: &TestPlatform, who: &LoginResponse, seen: &JoinProgress) -> Response {
    let path = format!("/join/{}?after={}&wait_s=20", seen.join_id, seen.step);
    let request = platform.request(Method::GET, &path);
    request
        .bearer_auth(&who.session_token)
        .send()
        .await
        .unwrap()
}

/// The end of a join, however often it has something to say before.
async fn outcome(platform: &TestPlatform, who: &LoginResponse, begun: JoinProgress) -> Response {
    let mut seen = begun;
    loop {
        let answer = news(platform, who, &seen).await;
        if answer.status() != StatusCode::ACCEPTED {
            return answer;
        }
        seen = waiting(answer).await;
    }
}

fn quick(settings: &mut Settings) {
    settings.fleet.backoff_first = Duration::from_millis(10);
    settings.fleet.backoff_max = Duration::from_millis(40);
    settings.fleet.stop_grace = Duration::from_millis(200);
}

#[tokio::test]
async fn a_cold_start_is_told_and_waited_for() {
    let platform = TestPlatform::start().await;
    platform.stage.plan([Plan::WhenTold]);
    let ada = platform.login("Ada").await;
    let begun = begin(&platform, &ada, json!({ "game_id": "sample" })).await;
    assert_eq!(begun.stage, JoinStage::Starting);
    assert!(begun.expected_s.is_some_and(|seconds| seconds <= 1.0));
    assert_eq!((begun.position, begun.waiting), (None, None));

    // It is nobody else's to ask after.
    let bob = platform.login("Bob").await;
    let answer = news(&platform, &bob, &begun).await;
    assert_eq!(error_of(answer).await, (404, "join_not_found".to_owned()));
    let (answer, ()) = tokio::join!(news(&platform, &ada, &begun), async {
        platform.stage.go.send_replace(true);
    });
    let joined = placed(answer).await;
    assert_eq!(joined.client_id, ada.client_id);
    // It was told; there is nothing more to ask.
    let answer = news(&platform, &ada, &begun).await;
    assert_eq!(error_of(answer).await, (404, "join_not_found".to_owned()));

    // A world that runs has nothing to wait for: one request is enough.
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
    let third_begun = begin(&platform, &third, body.clone()).await;
    assert_eq!(third_begun.stage, JoinStage::Queued);
    assert_eq!(
        (third_begun.position, third_begun.waiting),
        (Some(1), Some(1))
    );
    let fourth_begun = begin(&platform, &fourth, body.clone()).await;
    assert_eq!(
        (fourth_begun.position, fourth_begun.waiting),
        (Some(2), Some(2))
    );

    // One leaves: the first in line gets the place, and the second is told.
    platform.stage.players.store(1, Ordering::SeqCst);
    let joined = placed(outcome(&platform, &third, third_begun).await).await;
    assert_eq!(joined.world_id, first.world_id);
    let moved = waiting(news(&platform, &fourth, &fourth_begun).await).await;
    assert_eq!((moved.stage, moved.position), (JoinStage::Queued, Some(1)));
    assert!(
        moved.expected_s.is_some(),
        "somebody left, so it can be said"
    );

    // Whoever does not wait does not get past those who do.
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
async fn a_join_that_is_given_up_gives_its_turn_to_the_next() {
    let platform = TestPlatform::start().await;
    platform.publish_sample(&game_files("duel", 1)).await;
    let first = platform.join(json!({ "game_id": "duel" })).await;
    let body = json!({ "room_code": first.room_code });
    let (ada, bob) = (platform.login("Ada").await, platform.login("Bob").await);
    let ada_begun = begin(&platform, &ada, body.clone()).await;
    let bob_begun = begin(&platform, &bob, body.clone()).await;
    assert_eq!(bob_begun.position, Some(2));
    let give_up = |who: &LoginResponse| {
        let path = format!("/join/{}", ada_begun.join_id);
        let request = platform.request(Method::DELETE, &path);
        request.bearer_auth(&who.session_token).send()
    };
    let answer = give_up(&bob).await.unwrap();
    assert_eq!(
        error_of(answer).await,
        (404, "join_not_found".to_owned()),
        "not his"
    );
    assert_eq!(
        give_up(&ada).await.unwrap().status(),
        StatusCode::NO_CONTENT
    );
    let moved = waiting(news(&platform, &bob, &bob_begun).await).await;
    assert_eq!(moved.position, Some(1));
    // Four tabs are enough for anybody.
    for expected in [202, 202, 202, 429] {
        let answer = ask(&platform, &bob, "respond-async", body.clone()).await;
        assert_eq!(answer.status().as_u16(), expected);
    }
}

#[tokio::test]
async fn who_left_before_a_heartbeat_told_of_them_keeps_no_place() {
    let platform = TestPlatform::start().await;
    platform.publish_sample(&game_files("duel", 1)).await;
    let first = platform.join(json!({ "game_id": "duel" })).await;
    let ada = platform.login("Ada").await;
    let begun = begin(&platform, &ada, json!({ "room_code": first.room_code })).await;
    assert_eq!(begun.stage, JoinStage::Queued);
    platform.stage.passed_through.store(1, Ordering::SeqCst);
    let joined = placed(outcome(&platform, &ada, begun).await).await;
    assert_eq!(joined.world_id, first.world_id);
}

#[tokio::test]
async fn a_plain_join_may_prefer_to_wait_too() {
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
async fn a_world_that_closes_is_waited_for_and_started_again() {
    let platform = TestPlatform::start_with(quick).await;
    let first = platform.join(json!({ "game_id": "sample" })).await;
    platform.stage.players.store(1, Ordering::SeqCst);
    platform.stage.wait_for_heartbeats().await;
    let path = format!("/admin/servers/{}?drain=true", first.world_id);
    let request = platform.request(Method::DELETE, &path);
    request.bearer_auth(ADMIN_TOKEN).send().await.unwrap();
    let ada = platform.login("Ada").await;
    let begun = begin(&platform, &ada, json!({ "world_id": first.world_id })).await;
    assert_eq!(begun.stage, JoinStage::Closing);
    platform.stage.players.store(0, Ordering::SeqCst);
    let joined = placed(outcome(&platform, &ada, begun).await).await;
    assert_eq!(joined.world_id, first.world_id);
    assert_eq!(platform.stage.launch_count(), 2);
}

#[tokio::test]
async fn a_start_that_fails_is_tried_again_and_not_for_ever() {
    let platform = TestPlatform::start_with(quick).await;
    platform.stage.plan([Plan::FailAtStart, Plan::FailAtStart]);
    let ada = platform.login("Ada").await;
    let begun = begin(&platform, &ada, json!({ "game_id": "sample" })).await;
    let joined = placed(outcome(&platform, &ada, begun).await).await;
    assert_eq!(platform.stage.launch_count(), 3);
    assert_eq!(joined.game_id, "sample");

    platform.publish_sample(&game_files("broken", 2)).await;
    platform.stage.plan([Plan::FailAtStart; 3]);
    let begun = begin(&platform, &ada, json!({ "game_id": "broken" })).await;
    let answer = outcome(&platform, &ada, begun).await;
    assert_eq!(error_of(answer).await, (503, "server_failed".to_owned()));
    assert_eq!(platform.stage.launch_count(), 6);
}

#[tokio::test]
async fn a_machine_without_a_free_process_makes_room() {
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
    // Somebody is in it: nobody is thrown out.
    let ada = platform.login("Ada").await;
    let other = json!({ "game_id": "other" });
    let answer = platform.try_join(&ada.session_token, other.clone()).await;
    assert_eq!(error_of(answer).await, (503, "fleet_full".to_owned()));
    let begun = begin(&platform, &ada, other).await;
    assert_eq!(begun.stage, JoinStage::MachineFull);
    assert!(platform.platform.fleet().server(&first.world_id).is_some());
    platform.stage.players.store(0, Ordering::SeqCst);
    let joined = placed(outcome(&platform, &ada, begun).await).await;
    assert_eq!(joined.game_id, "other");
    assert!(platform.platform.fleet().server(&first.world_id).is_none());
}

#[tokio::test]
async fn crowds_at_several_games_start_one_server_each() {
    let platform = TestPlatform::start().await;
    let games = ["red", "green", "blue", "gold"];
    for game in games {
        platform.publish_sample(&game_files(game, 100)).await;
    }
    // Half of them wait the plain way, half ask after their joins.
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
                let begun = waiting(answer).await;
                placed(outcome(platform, &guest, begun).await).await
            }
        }
    });
    let joined = futures_util::future::join_all(joins).await;
    let worlds: HashSet<_> = joined.iter().map(|join| &join.world_id).collect();
    assert_eq!((worlds.len(), platform.stage.launch_count()), (4, 4));
    let tickets: HashSet<_> = joined.iter().map(|join| &join.ticket).collect();
    assert_eq!(tickets.len(), 200);
}

/// Says to the platform, as the process of a world does, that a player is in it.
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
        told: Vec::new(),
    };
    let batch = KeepBatch {
        epoch: boot.epoch,
        players: vec![player],
        ..KeepBatch::default()
    };
    let request = platform.request(Method::POST, &format!("{path}/keep"));
    let answer = request.bearer_auth(token).json(&batch).send().await;
    assert_eq!(answer.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_join_leads_to_friends_first() {
    let platform = TestPlatform::start().await;
    let (ada, bob) = (platform.login("Ada").await, platform.login("Bob").await);
    // Bob comes by Ada's invitation.
    let first = platform.try_join(&ada.session_token, json!({})).await;
    let first: JoinResponse = first.json().await.unwrap();
    let request = platform.request(Method::POST, "/api/invites");
    let request = request.json(&json!({ "world_id": first.world_id }));
    let invite = request.bearer_auth(&ada.session_token).send().await;
    let invite: Value = invite.unwrap().json().await.unwrap();
    let body = json!({ "invite": invite["code"] });
    let answer = platform.try_join(&bob.session_token, body).await;
    assert_eq!(answer.status(), StatusCode::OK);

    // Another day: Ada is in a world of her own, others are in a fuller one.
    let quiet: JoinResponse = placed(platform.try_join(&ada.session_token, json!({})).await).await;
    let full = platform.join(json!({})).await;
    for _ in 0..3 {
        platform.join(json!({ "world_id": full.world_id })).await;
    }
    is_in(&platform, &quiet.world_id, &ada.client_id).await;
    let wish = json!({ "game_id": "sample" });
    let stranger = platform.join(wish.clone()).await;
    assert_eq!(stranger.world_id, full.world_id, "the fullest");
    let bobs: JoinResponse =
        placed(platform.try_join(&bob.session_token, wish.clone()).await).await;
    assert_eq!(bobs.world_id, quiet.world_id, "where Ada is");

    // Who wants nothing to do with somebody is not brought to them.
    let path = format!("/api/blocks/{}", ada.client_id);
    let request = platform.request(Method::PUT, &path);
    let answer = request
        .bearer_auth(&bob.session_token)
        .send()
        .await
        .unwrap();
    assert!(answer.status().is_success(), "{}", answer.status());
    let bobs: JoinResponse = placed(platform.try_join(&bob.session_token, wish).await).await;
    assert_eq!(bobs.world_id, full.world_id);
}
