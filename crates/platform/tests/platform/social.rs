//! Blocks and invitations.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use frolic_fleet_api::process::PlayerBlocks;
use frolic_fleet_api::ticket::TicketClaims;
use frolic_platform::api::{BlockList, Invite, InviteInfo, JoinResponse, LoginResponse};
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

fn claims_of(joined: &JoinResponse) -> TicketClaims {
    let (body, _) = joined.ticket.split_once('.').unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(body).unwrap()).unwrap()
}

#[tokio::test]
async fn blocks_are_stored_and_worlds_receive_them() {
    let platform = TestPlatform::start().await;
    let ada = platform.login("Ada").await;
    let eve = platform.login("Eve").await;
    let path = format!("/api/blocks/{}", eve.client_id);
    for _ in 0..2 {
        let answer = send(&platform, &ada, Method::PUT, &path, json!({})).await;
        assert_eq!(
            answer.status(),
            StatusCode::NO_CONTENT,
            "blocking twice has no further effect"
        );
    }
    let list = send(&platform, &ada, Method::GET, "/api/blocks", json!({})).await;
    let list: BlockList = list.json().await.unwrap();
    assert_eq!((list.total, list.blocks[0].username.as_str()), (1, "Eve"));

    let own = format!("/api/blocks/{}", ada.client_id);
    let answer = send(&platform, &ada, Method::PUT, &own, json!({})).await;
    assert_eq!(error_of(answer).await.0, 400);
    let unknown = send(
        &platform,
        &ada,
        Method::PUT,
        "/api/blocks/user_none",
        json!({}),
    )
    .await;
    assert_eq!(error_of(unknown).await, (404, "user_not_found".to_owned()));
    let page = send(
        &platform,
        &ada,
        Method::GET,
        "/api/blocks?page=0",
        json!({}),
    )
    .await;
    assert_eq!(error_of(page).await, (400, "invalid_query".to_owned()));

    // Only the process of a world may request blocks.
    platform.join(json!({ "game_id": "sample" })).await;
    let launch = platform.stage.launches.borrow()[0].clone();
    let path_of_world = format!("/internal/worlds/{}/blocks", launch.world_id);
    let ask = |token: String| {
        let request = platform
            .request(Method::POST, &path_of_world)
            .bearer_auth(token);
        request.json(&json!({ "player_id": ada.client_id })).send()
    };
    let blocks: PlayerBlocks = ask(launch.world_token.clone())
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(blocks.player_ids, *std::slice::from_ref(&eve.client_id));
    let stranger = ask(ada.session_token.clone()).await.unwrap();
    assert_eq!(stranger.status(), StatusCode::UNAUTHORIZED);

    let gone = send(&platform, &ada, Method::DELETE, &path, json!({})).await;
    assert_eq!(gone.status(), StatusCode::NO_CONTENT);
    let blocks: PlayerBlocks = ask(launch.world_token).await.unwrap().json().await.unwrap();
    assert!(blocks.player_ids.is_empty());
}

#[tokio::test]
async fn an_invitation_leads_to_the_inviter() {
    let platform = TestPlatform::start().await;
    let ada = platform.login("Ada").await;
    let answer = platform
        .try_join(&ada.session_token, json!({ "game_id": "sample" }))
        .await;
    let joined: JoinResponse = answer.json().await.unwrap();
    let body = json!({ "world_id": joined.world_id });
    let answer = send(&platform, &ada, Method::POST, "/api/invites", body.clone()).await;
    assert_eq!(answer.status(), StatusCode::CREATED);
    let invite: Invite = answer.json().await.unwrap();
    assert_eq!(invite.path, format!("/i/{}", invite.code));
    let again = send(&platform, &ada, Method::POST, "/api/invites", body).await;
    assert_eq!(again.json::<Invite>().await.unwrap().code, invite.code);

    let shown: InviteInfo = platform
        .get_json(&format!("/api/invites/{}", invite.code.to_lowercase()))
        .await;
    assert_eq!(
        (shown.inviter.as_str(), shown.game_id.as_str()),
        ("Ada", "sample")
    );
    assert!(shown.running);

    let friend = platform.join(json!({ "invite": invite.code })).await;
    assert_eq!(friend.world_id, joined.world_id);
    assert_eq!(
        claims_of(&friend).beside.as_deref(),
        Some(ada.client_id.as_str())
    );
    let other = platform.join(json!({ "world_id": joined.world_id })).await;
    assert_eq!(claims_of(&other).beside, None);

    let bob = platform.login("Bob").await;
    for (body, expected) in [
        (json!({ "invite": "NOPE" }), (404, "invite_not_found")),
        (
            json!({ "invite": invite.code, "game_id": "sample" }),
            (400, "too_many_targets"),
        ),
    ] {
        let (status, code) = error_of(platform.try_join(&bob.session_token, body).await).await;
        assert_eq!((status, code.as_str()), expected);
    }
    let unknown = json!({ "world_id": "world_none" });
    let answer = send(&platform, &ada, Method::POST, "/api/invites", unknown).await;
    assert_eq!(error_of(answer).await, (404, "world_not_found".to_owned()));

    // Links do not work for users whom the inviter has blocked, and they expire.
    let path = format!("/api/blocks/{}", bob.client_id);
    send(&platform, &ada, Method::PUT, &path, json!({})).await;
    let body = json!({ "invite": invite.code });
    let answer = platform.try_join(&bob.session_token, body.clone()).await;
    assert_eq!(error_of(answer).await, (404, "invite_not_found".to_owned()));
    platform.clock.advance_ms(24 * 60 * 60 * 1000 + 1);
    let eve = platform.login("Eve").await;
    let answer = platform.try_join(&eve.session_token, body).await;
    assert_eq!(error_of(answer).await, (404, "invite_not_found".to_owned()));
}
