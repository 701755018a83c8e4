//! Malformed and malicious requests: bad JSON, huge and slow bodies, floods, forged servers, odd
//! paths. Each gets an error in the platform's format.

use std::time::Duration;

use crate::support::creator::{Creator, version};
use crate::support::{ADMIN_TOKEN, TestPlatform, error_of};
use frolic_platform::api::{CleanupReport, Health, SessionList};
use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn malformed_json_is_refused_with_a_reason() {
    let platform = TestPlatform::start().await;
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let nested = format!("{{\"username\":{deep}}}");
    for (body, code) in [
        ("{", "invalid_json"),
        ("{\"username\":\"a\"} x", "invalid_json"),
        ("\u{0}", "invalid_json"),
        ("{\"username\":\"\\ud800\"}", "invalid_json"),
        ("{\"username\":5}", "invalid_field"),
        ("{\"username\":[\"Ada\"]}", "invalid_field"),
        ("[\"Ada\"]", "invalid_field"),
        ("\"Ada\"", "invalid_field"),
        (nested.as_str(), "invalid_field"),
    ] {
        let request = platform
            .request(Method::POST, "/login")
            .body(body.to_owned());
        let error = error_of(request.send().await.unwrap()).await;
        assert_eq!(
            error,
            (400, code.to_owned()),
            "{}",
            &body[..body.len().min(60)]
        );
    }
    let request = platform
        .request(Method::POST, "/login")
        .body(vec![0xff, 0xfe, 0x00]);
    assert_eq!(error_of(request.send().await.unwrap()).await.0, 400);
    // The server still works.
    platform.login("Ada").await;
}

#[tokio::test]
async fn huge_bodies_are_refused() {
    let platform = TestPlatform::start().await;
    let body = format!("{{\"username\":\"{}\"}}", "a".repeat(100_000));
    let response = platform
        .request(Method::POST, "/login")
        .body(body)
        .send()
        .await
        .unwrap();
    assert_eq!(
        error_of(response).await,
        (413, "payload_too_large".to_owned())
    );
}

#[tokio::test]
async fn slow_headers_and_slow_bodies_time_out() {
    let platform = TestPlatform::start_with(|settings| {
        settings.limits.header_timeout = Duration::from_millis(200);
        settings.limits.request_timeout = Duration::from_millis(300);
    })
    .await;
    // Both clients stop sending and wait, so the server must close the connection.
    for (sent, expected) in [
        ("GET /health HTTP/1.1\r\nHost: x\r\n", ""),
        (
            "POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{",
            "HTTP/1.1 408",
        ),
    ] {
        let mut stream = TcpStream::connect(("127.0.0.1", platform.port))
            .await
            .unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        let ended = tokio::time::timeout(Duration::from_secs(5), read).await;
        assert!(ended.is_ok(), "{sent:?} was left open");
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with(expected), "{answer}");
    }
}

#[tokio::test]
async fn logins_are_rate_limited_per_address() {
    let platform = TestPlatform::start_with(|settings| {
        settings.limits.rate_burst = 3;
        settings.limits.rate_per_s = 0.01;
    })
    .await;
    let login_from = |address: &'static str| {
        let request = platform
            .request(Method::POST, "/login")
            .header("x-forwarded-for", address);
        async move { request.send().await.unwrap() }
    };
    for _ in 0..3 {
        assert_eq!(login_from("203.0.113.5").await.status(), StatusCode::OK);
    }
    let response = login_from("203.0.113.5").await;
    assert!(response.headers().contains_key("retry-after"));
    assert_eq!(error_of(response).await, (429, "rate_limited".to_owned()));
    assert_eq!(login_from("203.0.113.6").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn requests_for_a_world_require_its_token() {
    let platform = TestPlatform::start().await;
    let a = platform.join(json!({})).await;
    let b = platform.join(json!({})).await;
    let token_of_b = platform.stage.launches.borrow()[1].world_token.clone();
    let refused = (401, "not_your_world".to_owned());
    for (world, token) in [
        (&a.world_id, token_of_b.as_str()),
        (&a.world_id, a.session_token.as_str()),
        (&a.world_id, ADMIN_TOKEN),
        (&a.world_id, &"0".repeat(64)),
        (&"world_none".to_owned(), token_of_b.as_str()),
    ] {
        for (method, path) in [
            (Method::GET, ""),
            (Method::GET, "/package"),
            (Method::POST, "/ready"),
            (Method::POST, "/heartbeat"),
            (Method::POST, "/stopped"),
        ] {
            let path = format!("/internal/worlds/{world}{path}");
            let request = platform.request(method, &path).bearer_auth(token);
            let response = request.body("{}").send().await.unwrap();
            assert_eq!(error_of(response).await, refused, "{path}");
        }
    }
    // The right token with an invalid body changes nothing.
    let path = format!("/internal/worlds/{}/heartbeat", b.world_id);
    let request = platform
        .request(Method::POST, &path)
        .bearer_auth(&token_of_b);
    let response = request.body("{\"players\":-1}").send().await.unwrap();
    assert_eq!(error_of(response).await, (400, "invalid_field".to_owned()));
    // A second "ready" must not redirect players to another port.
    let path = format!("/internal/worlds/{}/ready", b.world_id);
    let request = platform
        .request(Method::POST, &path)
        .bearer_auth(&token_of_b);
    let ready = json!({ "pid": 1, "websocket_port": 9, "webtransport": null });
    let response = request.json(&ready).send().await.unwrap();
    assert_eq!(error_of(response).await, (409, "not_expected".to_owned()));
}

#[tokio::test]
async fn administration_needs_the_admin_token() {
    let platform = TestPlatform::start().await;
    let guest = platform.login("Ada").await;
    let admin_paths = [
        (Method::GET, "/admin/servers"),
        (Method::DELETE, "/admin/servers/x"),
        (Method::GET, "/admin/sessions"),
        (Method::POST, "/admin/cleanup"),
    ];
    for (method, path) in admin_paths.clone() {
        let request = platform.request(method.clone(), path);
        assert_eq!(
            error_of(request.send().await.unwrap()).await.0,
            401,
            "{path}"
        );
        let request = platform
            .request(method, path)
            .bearer_auth(&guest.session_token);
        assert_eq!(
            error_of(request.send().await.unwrap()).await.0,
            403,
            "{path}"
        );
    }
    let sessions: SessionList = platform.admin(Method::GET, "/admin/sessions").await;
    assert_eq!(
        (sessions.total, sessions.sessions[0].username.as_str()),
        (1, "Ada")
    );

    // Five hours later the cleanup deletes the session and the guest, and their world once it has
    // stopped.
    platform.try_join(&guest.session_token, json!({})).await;
    let fleet = platform.platform.fleet();
    let server = fleet.all().remove(0);
    platform.clock.advance_ms(5 * 60 * 60 * 1000);
    let report: CleanupReport = platform.admin(Method::POST, "/admin/cleanup").await;
    assert_eq!((report.sessions, report.guests, report.worlds), (1, 1, 0));
    fleet.stop(&server.spec.world_id);
    server.ended().await;
    let report: CleanupReport = platform.admin(Method::POST, "/admin/cleanup").await;
    assert_eq!((report.sessions, report.guests, report.worlds), (0, 0, 1));
    assert_eq!(platform.login("Ada").await.username, "Ada");

    let closed = TestPlatform::start_with(|settings| settings.admin_token = None).await;
    for (method, path) in admin_paths {
        let request = closed.request(method, path).bearer_auth("");
        assert_eq!(
            error_of(request.send().await.unwrap()).await,
            (403, "forbidden".to_owned())
        );
    }
}

#[tokio::test]
async fn health_and_metrics_are_served() {
    let platform = TestPlatform::start().await;
    platform.join(json!({})).await;
    for path in ["/health", "/healthz", "/api/health", "/readyz"] {
        let health: Health = platform.get_json(path).await;
        assert_eq!(
            (health.status.as_str(), health.servers),
            ("ok", 1),
            "{path}"
        );
    }
    let response = platform.get("/metrics").await;
    assert!(
        response.headers()["content-type"]
            .to_str()
            .unwrap()
            .starts_with("text/plain")
    );
    let text = response.text().await.unwrap();
    for line in [
        "frolic_servers{phase=\"ready\"} 1",
        "frolic_sessions 1",
        "frolic_join_seconds_count 1",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn the_site_is_served_with_security_headers() {
    let platform = TestPlatform::start().await;
    for path in [
        "/",
        "/games/sample",
        "/play/sample/",
        "/create/anything/versions",
        "/admin",
    ] {
        let response = platform.get(path).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let headers = response.headers();
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.contains("script-src 'self' 'wasm-unsafe-eval';"),
            "{policy}"
        );
        assert!(
            policy.contains("connect-src 'self' ws: wss: https:;"),
            "{policy}"
        );
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["cache-control"], "no-cache");
        assert!(response.text().await.unwrap().contains("the site"));
    }
    let request = platform.request(Method::GET, "/assets/app-1a2b3c4d.js");
    let response = request
        .header("accept-encoding", "br, gzip;q=0.8")
        .send()
        .await
        .unwrap();
    assert_eq!(response.headers()["content-encoding"], "br");
    assert_eq!(response.bytes().await.unwrap(), "brotli");
    let request = platform.request(Method::GET, "/assets/app-1a2b3c4d.js");
    let response = request.header("accept-encoding", "br;q=0, gzip;q=0.8");
    let response = response.send().await.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    assert!(
        response.headers()["cache-control"]
            .to_str()
            .unwrap()
            .contains("immutable")
    );
    assert!(response.bytes().await.unwrap().len() < 500);
    let response = platform.get("/assets/app-1a2b3c4d.js").await;
    assert!(!response.headers().contains_key("content-encoding"));
    assert_eq!(response.bytes().await.unwrap().len(), 3_200);

    for (method, path, status) in [
        (Method::GET, "/assets/gone.js", 404),
        (Method::GET, "/api/none", 404),
        (Method::GET, "/internal/none", 404),
        (Method::GET, "/login", 405),
        (Method::POST, "/", 405),
        (Method::DELETE, "/api/games", 405),
    ] {
        let response = platform.request(method, path).send().await.unwrap();
        assert_eq!(error_of(response).await.0, status, "{path}");
    }
}

#[tokio::test]
async fn unknown_pages_return_404_and_show_the_site() {
    let platform = TestPlatform::start().await;
    let creator = Creator::new(&platform, "ada").await;
    creator.upload("", version("secret", "1.0.0", 4)).await;
    let edit = json!({ "edition": creator.edition("secret").await, "visibility": "private" });
    let hidden = creator.send(Method::PATCH, "/api/games/secret", edit).await;
    assert_eq!(hidden.status(), StatusCode::OK);
    for path in [
        "/nonsense",
        "/games",
        "/games/no-such-game",
        "/games/sample/more",
        "/games/secret",
        "/play/no-such-game",
        "/create/sample/nonsense",
        "/i/ABCDEF",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//evil",
    ] {
        // Also for a browser that has cached the page.
        let index = platform.get("/").await.headers()["etag"].clone();
        let request = platform.request(Method::GET, path);
        let response = request.header("if-none-match", index).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        assert!(response.text().await.unwrap().contains("the site"));
    }
    let index = platform.get("/").await.headers()["etag"].clone();
    let request = platform.request(Method::GET, "/games/sample");
    let response = request.header("if-none-match", index).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_MODIFIED);
}
