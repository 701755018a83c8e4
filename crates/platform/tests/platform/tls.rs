//! TLS by configuration: the platform serves https and wss with an operator's certificate, without
//! any configuration of game servers.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use frolic_platform::api::{JoinResponse, LoginResponse};
use frolic_platform::tls::{Certificate, TlsSettings};
use frolic_platform::{Settings, ids};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::Message;

use crate::support::TestPlatform;
use crate::support::certificate::TestCertificate;

fn scratch() -> PathBuf {
    std::env::temp_dir().join(ids::new_id("frolic-tls-test"))
}

fn with_tls(certificate: &TestCertificate) -> impl FnOnce(&mut Settings) + use<> {
    let mut tls = TlsSettings::new(certificate.cert.clone(), certificate.key.clone());
    tls.check_interval = Duration::from_millis(20);
    move |settings| settings.tls = Some(tls)
}

#[tokio::test]
async fn with_a_certificate_players_connect_by_https_and_wss() {
    let folder = scratch();
    let certificate = TestCertificate::write_to(&folder);
    let platform = TestPlatform::start_with(with_tls(&certificate)).await;
    let url = format!("https://localhost:{}", platform.port);
    let http = certificate.http();
    let games = http.get(format!("{url}/api/games")).send().await.unwrap();
    assert!(games.text().await.unwrap().contains("\"sample\""));

    let login = http.post(format!("{url}/login")).json(&json!({}));
    let login: LoginResponse = login.send().await.unwrap().json().await.unwrap();
    // Meanwhile the world's server starts and reports over the same port.
    let join = http
        .post(format!("{url}/join"))
        .bearer_auth(&login.session_token)
        .json(&json!({}));
    let joined: JoinResponse = join.send().await.unwrap().json().await.unwrap();
    let room = format!("/api/rooms/{}/ws", joined.room_code);
    assert_eq!(
        joined.server_address,
        format!("wss://localhost:{}{room}", platform.port)
    );
    let stream = certificate.connect(platform.port).await.unwrap();
    let opened = tokio_tungstenite::client_async(&joined.server_address, stream).await;
    let (mut socket, _) = opened.unwrap();
    socket.next().await.unwrap().unwrap();
    let text = Message::text("over TLS");
    socket.send(text.clone()).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), text);
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn plain_http_is_for_game_servers_and_others_are_redirected() {
    let folder = scratch();
    let certificate = TestCertificate::write_to(&folder);
    let platform = TestPlatform::start_with(with_tls(&certificate)).await;
    let http = certificate.http();
    let plain = format!("http://localhost:{}", platform.port);
    let answer = http.get(format!("{plain}/play/sample?x=1")).send().await;
    let answer = answer.unwrap();
    assert_eq!(answer.status(), 307);
    assert_eq!(
        answer.headers()["location"],
        format!("https://localhost:{}/play/sample?x=1", platform.port)
    );
    let login = http.post(format!("{plain}/login")).json(&json!({}));
    assert_eq!(login.send().await.unwrap().status(), 307);
    let internal = http.get(format!("{plain}/internal/worlds/x")).send().await;
    assert_eq!(internal.unwrap().status(), 401, "a token is required");
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn an_unfinished_handshake_times_out() {
    let folder = scratch();
    let certificate = TestCertificate::write_to(&folder);
    let tls = with_tls(&certificate);
    let platform = TestPlatform::start_with(|settings| {
        tls(settings);
        settings.limits.header_timeout = Duration::from_millis(200);
    })
    .await;
    for beginning in [&b""[..], b"\x16\x03\x01"] {
        let address = ("127.0.0.1", platform.port);
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(beginning).await.unwrap();
        let mut rest = Vec::new();
        let end = stream.read_to_end(&mut rest);
        let end = tokio::time::timeout(Duration::from_secs(60), end).await;
        // A reset counts as closed.
        let _ = end.expect("the connection is closed");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_renewed_certificate_is_loaded_without_a_restart() {
    let folder = scratch();
    let old = TestCertificate::write_to(&folder);
    let platform = TestPlatform::start_with(with_tls(&old)).await;
    old.connect(platform.port).await.unwrap();
    // A damaged key does not replace the certificate in use.
    std::fs::write(&old.key, "half written").unwrap();
    let new = TestCertificate::write_to(&folder);
    let began = Instant::now();
    while new.connect(platform.port).await.is_err() {
        assert!(
            began.elapsed() < Duration::from_secs(120),
            "the certificate was not reloaded"
        );
    }
    assert!(old.connect(platform.port).await.is_err());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn errors_name_the_file_and_the_setting() {
    let folder = scratch();
    let certificate = TestCertificate::write_to(&folder.join("one"));
    let other = TestCertificate::write_to(&folder.join("other"));
    let check = |cert: &PathBuf, key: &PathBuf, words: [&str; 2]| {
        let opened = Certificate::open(TlsSettings::new(cert.clone(), key.clone()));
        let error = opened.err().expect("the files are refused").to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    let missing = folder.join("missing.pem");
    check(&missing, &certificate.key, ["TLS_CERT", "missing.pem"]);
    check(&certificate.cert, &missing, ["TLS_KEY", "missing.pem"]);
    check(
        &certificate.key,
        &certificate.key,
        ["key.pem contains no certificate", "TLS_CERT"],
    );
    check(
        &certificate.cert,
        &certificate.cert,
        ["cert.pem contains no private key", "TLS_KEY"],
    );
    check(
        &certificate.cert,
        &other.key,
        ["other/key.pem", "does not belong"],
    );
    std::fs::remove_dir_all(folder).unwrap();
}
