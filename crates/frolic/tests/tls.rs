//! `frolic serve` with a certificate: pages over https, a real world over wss,
//! and errors in the files reported at the start.
// Covers: crates/gameserver, crates/platform, crates/protocol, crates/platform/tests/platform/support/certificate.rs

#[path = "../../platform/tests/platform/support/certificate.rs"]
#[allow(clippy::unwrap_used, reason = "test code of another crate")]
mod certificate;

use crate::support::{Platform, next_of_kind, scratch, serve};
use certificate::TestCertificate;
use serde_json::json;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

#[tokio::test]
async fn a_world_is_reached_by_wss_with_the_operators_certificate() {
    let folder = scratch("tls-serve");
    let certificate = TestCertificate::write_to(&folder);
    let mut command = serve(&folder, "0");
    command
        .env("TLS_CERT", &certificate.cert)
        .env("TLS_KEY", &certificate.key);
    let platform = Platform::start_as(command, folder).with_client(certificate.http());
    assert!(
        platform.url.starts_with("https://127.0.0.1:"),
        "{}",
        platform.url
    );

    let games = platform.request(reqwest::Method::GET, "/api/games");
    let games = platform.json(games).await.to_string();
    assert!(games.contains("\"obby\""), "{games}");
    let token = platform.login("Ada").await;
    let joined = platform
        .join_as(&token, &json!({ "game_id": "obby" }))
        .await;
    let address = joined["server_address"].as_str().expect("an address");
    let origin = platform.url.replacen("https", "wss", 1);
    let room = joined["room_code"].as_str().expect("a code");
    assert_eq!(address, format!("{origin}/api/rooms/{room}/ws"));
    // Directly at the game server, with the certificate it made for itself.
    let webtransport = &joined["transports"]["webtransport"];
    let direct = webtransport["url"].as_str().expect("an address");
    assert!(direct.starts_with("https://127.0.0.1:"), "{webtransport}");

    let ticket = joined["ticket"].as_str().expect("a ticket");
    let mut request = format!("{address}?ticket={ticket}")
        .into_client_request()
        .expect("an address");
    let protocol = frolic_protocol::json::SUBPROTOCOL;
    let protocol = protocol.parse().expect("a header");
    request
        .headers_mut()
        .insert("sec-websocket-protocol", protocol);
    let port = request.uri().port_u16().expect("a port");
    let line = certificate.connect(port).await.expect("it is trusted");
    let opened = tokio_tungstenite::client_async(request, line).await;
    let (mut socket, _) = opened.expect("a WebSocket");
    let welcome = next_of_kind(&mut socket, "welcome").await;
    assert_eq!(welcome["worldId"], joined["world_id"]);
}

#[test]
fn files_that_do_not_fit_are_refused_at_the_start() {
    let folder = scratch("tls-refused");
    let certificate = TestCertificate::write_to(&folder.join("one"));
    let other = TestCertificate::write_to(&folder.join("other"));
    let refused = |flags: &[&str]| {
        let output = serve(&folder, "0").args(flags).output();
        let output = output.expect("cargo built it");
        assert!(!output.status.success(), "{flags:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let cert = certificate.cert.to_string_lossy();
    let key = other.key.to_string_lossy();
    let said = refused(&["--tls-cert", &cert, "--tls-key", &key]);
    assert!(
        said.contains(&*key) && said.contains("does not belong"),
        "{said}"
    );
    let said = refused(&["--tls-cert", &cert]);
    assert!(said.contains("TLS_KEY"), "{said}");
    let said = refused(&["--tls-cert", &cert, "--tls-key", "nowhere.pem"]);
    assert!(said.contains("nowhere.pem"), "{said}");
}
