//! Attacks on joining: expired sessions, guessed rooms, endless bodies, and connections that send
//! nothing.

use std::time::Duration;

use frolic_platform::api::JoinProgress;
use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::gameserver::Plan;
use crate::support::{TestPlatform, error_of, game_files};

#[tokio::test]
async fn an_expired_session_cannot_join_or_poll() {
    let platform = TestPlatform::start().await;
    platform.stage.plan([Plan::OnSignal]);
    let ada = platform.login("Ada").await;
    let request = platform.request(Method::POST, "/join");
    let request = request.header("prefer", "respond-async");
    let answer = request.bearer_auth(&ada.session_token).send().await;
    let pending: JoinProgress = answer.unwrap().json().await.unwrap();
    platform.clock.advance_ms(4 * 60 * 60 * 1000);
    let path = format!("/join/{}", pending.join_id);
    for (method, path) in [
        (Method::POST, "/join"),
        (Method::GET, &path),
        (Method::DELETE, &path),
        (Method::POST, "/worlds"),
    ] {
        let request = platform.request(method, path);
        let answer = request.bearer_auth(&ada.session_token).send().await;
        let error = error_of(answer.unwrap()).await;
        assert_eq!(error, (401, "session_expired".to_owned()), "{path}");
    }
    // Invalid tokens.
    for token in ["", "x", &"0".repeat(64), &"a".repeat(10_000)] {
        let request = platform.request(Method::POST, "/join").bearer_auth(token);
        assert_eq!(error_of(request.send().await.unwrap()).await.0, 401);
    }
}

#[tokio::test]
async fn malformed_ids_are_not_found() {
    let platform = TestPlatform::start().await;
    let token = platform.login("Ada").await.session_token;
    for id in [
        "%2e%2e%2fetc",
        "x%00y",
        "' OR 1=1 --",
        "%F0%9F%A6%80",
        "a/b",
        &"9".repeat(4000),
    ] {
        for (method, path) in [
            (Method::GET, format!("/world/{id}")),
            (Method::DELETE, format!("/world/{id}")),
            (Method::GET, format!("/join/{id}")),
            (Method::GET, format!("/world/{id}/saves")),
        ] {
            let request = platform.request(method, &path).bearer_auth(&token);
            let status = request.send().await.unwrap().status();
            assert!(
                [
                    StatusCode::NOT_FOUND,
                    StatusCode::OK,
                    StatusCode::METHOD_NOT_ALLOWED,
                    StatusCode::BAD_REQUEST
                ]
                .contains(&status),
                "{path}: {status}"
            );
            assert!(!status.is_server_error());
        }
    }
    let prefer = platform.request(Method::POST, "/join").bearer_auth(&token);
    let prefer = prefer.header(
        "prefer",
        "wait=99999999999999999999, ;;=,respond-async=\"no",
    );
    let status = prefer.json(&json!({})).send().await.unwrap().status();
    assert!(status.is_success(), "{status}");
}

#[tokio::test]
async fn slow_bodies_time_out() {
    let platform = TestPlatform::start_with(|settings| {
        settings.limits.request_timeout = Duration::from_secs(4);
    })
    .await;
    platform.publish_sample(&game_files("duel", 1)).await;
    let ada = platform.login("Ada").await;
    let joined = platform.join(json!({ "game_id": "duel" })).await;
    let slow = async |path: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", platform.port))
            .await
            .unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: 5000\r\n\r\n{{",
            ada.session_token
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        let ended = tokio::time::timeout(Duration::from_secs(60), read).await;
        assert!(ended.is_ok(), "{path} was left open");
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 4"), "{path}: {answer}");
    };
    let world = format!("/world/{}", joined.world_id);
    tokio::join!(slow("/join"), slow("/worlds"), slow(&world));
}

/// Maximum number of connections that this machine allows one process to open, up to 10,000; each
/// needs a descriptor on both sides.
fn silent_connections() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(40_000);
    let raised = Rlimit {
        current: Some(most),
        maximum: limit.maximum,
    };
    let open = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => most,
        Err(_) => limit.current.unwrap_or(1024),
    };
    // Each connection has two ends, and concurrent tests need descriptors too.
    usize::try_from(open * 2 / 5)
        .unwrap()
        .saturating_sub(400)
        .min(10_000)
}

#[tokio::test]
async fn idle_connections_do_not_block_joins() {
    let platform = TestPlatform::start_with(|settings| {
        settings.limits.header_timeout = Duration::from_secs(10);
    })
    .await;
    let count = silent_connections();
    let mut silent = Vec::with_capacity(count);
    for _ in 0..count {
        silent.push(
            TcpStream::connect(("127.0.0.1", platform.port))
                .await
                .unwrap(),
        );
    }
    // A player can join despite the idle connections.
    platform.join(json!({ "game_id": "sample" })).await;
    // The server closes idle connections by itself.
    let ended = async {
        for mut stream in silent {
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), ended)
        .await
        .unwrap();
    platform.join(json!({ "game_id": "sample" })).await;
}
