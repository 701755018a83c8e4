//! Malformed HTTP: invalid headers, manipulated paths, wrong content lengths and types, markup in
//! names, tokens of other users. All errors have one format, and the server continues.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{TestPlatform, error_of};

/// Sends raw bytes and returns the response up to the end or a timeout.
async fn raw(platform: &TestPlatform, sent: &[u8]) -> String {
    let address = ("127.0.0.1", platform.port);
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A server that has read enough may close before everything is sent.
    let _ = stream.write_all(sent).await;
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    let _ = tokio::time::timeout(Duration::from_secs(5), reading).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn malformed_headers_are_refused() {
    let platform = TestPlatform::start_with(|settings| {
        settings.limits.header_timeout = Duration::from_millis(500);
        settings.limits.request_timeout = Duration::from_secs(2);
    })
    .await;
    let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(1_000_000));
    let wide = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(1_000_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(10_000));
    let smuggled =
        "POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 40\r\n\r\n{}";
    let chunks = "POST /login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n";
    let endless =
        "POST /login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n{";
    let negative = "POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n";
    let short = "POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{}";
    for sent in [
        "\0\0\0\0\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n",
        "G\u{e9}T / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nBad Header\r\n\r\n",
        "GET / HTTP/1.1\r\nX: a\0b\r\n\r\n",
        &long,
        &wide,
        &many,
        smuggled,
        chunks,
        endless,
        negative,
        short,
    ] {
        let answer = raw(&platform, sent.as_bytes()).await;
        let refused = answer.is_empty() || answer.starts_with("HTTP/1.1 4");
        let start: String = sent.chars().take(60).collect();
        assert!(refused, "{start:?} got {answer:?}");
    }
    // The server still works.
    platform.login("Ada").await;
}

#[tokio::test]
async fn manipulated_paths_and_queries_are_refused() {
    let platform = TestPlatform::start().await;
    for path in [
        "/api/games/%00",
        "/api/games/a%00b",
        "/api/games?q=%00",
        "/api/games/%ff%fe",
        "/api/games/%c0%ae%c0%ae",
        "/api/games/..%2f..%2fetc%2fpasswd",
        "/api/games/%2e%2e/files",
        "/api/games/sample%27%20OR%201=1--",
        "/api/games?sort=best",
        "/api/games?page=-1",
        "/api/games?page=99999999999999999999",
        "/api/games?q=a&q=b",
        "/world/%00",
        "/world/x%27;DROP%20TABLE%20worlds",
        "/cdn/%00",
        "/cdn/..%2f..%2fsecret_key",
        "/cdn/%2e%2e%2fsigning_key",
        "/api/../../etc/passwd",
        "/api//games//",
        "/internal/worlds/..%2f/package",
        "/api/rooms/%00/ws",
    ] {
        // Written manually, because a client library would normalise the path.
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let answer = raw(&platform, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{path}: {answer}");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("application/json"), "{path}: {head}");
        let body: Value = serde_json::from_str(body).unwrap();
        assert!(body["error"]["message"].is_string(), "{path}: {body}");
    }
    let games: Value = platform.get_json("/api/games").await;
    assert_eq!(games["total"], 1, "the tables are intact");
}

#[tokio::test]
async fn wrong_methods_and_types_have_the_common_error_format() {
    let platform = TestPlatform::start().await;
    for (method, path, status, code) in [
        ("BREW", "/api/games", 405, "method_not_allowed"),
        ("TRACE", "/health", 405, "method_not_allowed"),
        ("PUT", "/login", 405, "method_not_allowed"),
        ("DELETE", "/", 405, "method_not_allowed"),
        ("GET", "/api/nothing", 404, "not_found"),
        ("POST", "/internal/nothing", 404, "not_found"),
    ] {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let response = platform.request(method, path).send().await.unwrap();
        assert_eq!(
            error_of(response).await,
            (status, code.to_owned()),
            "{path}"
        );
    }
    for kind in [
        "multipart/form-data; boundary=x",
        "application/xml",
        "image/png",
        "\u{fffd}",
    ] {
        let request = platform.request(Method::POST, "/login").body("{}");
        let response = request.header("content-type", kind).send().await.unwrap();
        let error = error_of(response).await;
        assert_eq!(error, (415, "unsupported_media_type".to_owned()), "{kind}");
    }
    for kind in [
        "application/json; charset=utf-8",
        "application/vnd.x+json",
        "text/plain",
    ] {
        let request = platform.request(Method::POST, "/login").body("{}");
        let response = request.header("content-type", kind).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{kind}");
    }
}

#[tokio::test]
async fn markup_in_names_is_plain_text() {
    let platform = TestPlatform::start().await;
    let mut files = crate::support::game_files("markup", 4);
    let manifest = String::from_utf8(files["game.toml"].clone()).unwrap();
    let manifest = manifest.replace("The markup Game", "<img src=x onerror=alert(1)>");
    files.insert("game.toml".to_owned(), manifest.into_bytes());
    platform.publish_sample(&files).await;
    let response = platform.get("/api/games/markup").await;
    let headers = response.headers().clone();
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    let game: Value = response.json().await.unwrap();
    assert_eq!(game["name"], "<img src=x onerror=alert(1)>");
    // A player's name is sanitised, because other clients may not escape it.
    let name = "<script>alert('x')</script>";
    let login = platform.login(name).await;
    assert!(
        !login.username.contains(['<', '>', '\'', '/']),
        "{}",
        login.username
    );
}

#[tokio::test]
async fn foreign_and_expired_tokens_are_refused() {
    let platform = TestPlatform::start().await;
    let ada = platform.login("Ada").await;
    let token = ada.session_token.as_str();
    let hash = frolic_platform::ids::sha256_hex(token.as_bytes());
    for (header, code) in [
        (String::new(), "missing_token"),
        (format!("Basic {token}"), "invalid_token"),
        (format!("Bearer{token}"), "invalid_token"),
        (format!("Bearer {token}x"), "invalid_token"),
        (format!("Bearer {}", token.to_uppercase()), "invalid_token"),
        // The hash is what a thief of the database would have.
        (format!("Bearer {hash}"), "invalid_token"),
        (format!("Bearer {}", "a".repeat(10_000)), "invalid_token"),
        (
            "Bearer '; DELETE FROM sessions; --".to_owned(),
            "invalid_token",
        ),
        ("Bearer \u{e9}".to_owned(), "invalid_token"),
    ] {
        let request = platform.request(Method::POST, "/join").json(&json!({}));
        let request = if header.is_empty() {
            request
        } else {
            request.header("authorization", header.as_bytes())
        };
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["www-authenticate"], "Bearer");
        let shown: String = header.chars().take(40).collect();
        assert_eq!(error_of(response).await, (401, code.to_owned()), "{shown}");
    }
    // The token itself is valid until it expires.
    let joined = platform.try_join(token, json!({})).await;
    assert_eq!(joined.status(), StatusCode::OK);
    platform.clock.advance_ms(4 * 60 * 60 * 1000 + 1);
    let joined = platform.try_join(token, json!({})).await;
    let error = error_of(joined).await;
    assert_eq!(error, (401, "session_expired".to_owned()));
}
