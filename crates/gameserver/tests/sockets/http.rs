//! TCP connections that ask for nothing.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::TestServer;

const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until the server has closed a connection, and returns what it said.
async fn until_closed(mut socket: TcpStream) -> String {
    let mut said = Vec::new();
    let closed = tokio::time::timeout(PATIENCE, socket.read_to_end(&mut said)).await;
    // A reset is an end as well.
    let _ = closed.expect("the connection was not closed");
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test]
async fn connections_that_do_not_ask_are_closed() {
    let server = TestServer::start().await;
    let begin = async |bytes: &str| {
        let mut socket = TcpStream::connect(server.address).await.expect("connects");
        socket.write_all(bytes.as_bytes()).await.expect("is open");
        socket
    };
    let silent = begin("").await;
    let half = begin("GET /health HTTP/1.1\r\nHost: world\r\nX-Slow: ").await;
    let asked = begin("GET /health HTTP/1.1\r\nHost: world\r\n\r\n").await;
    let (silent, half, asked) = tokio::join!(
        until_closed(silent),
        until_closed(half),
        until_closed(asked)
    );
    assert!(!silent.contains("200 OK"), "{silent}");
    assert!(!half.contains("200 OK"), "{half}");
    assert!(asked.contains("200 OK"), "{asked}");
    server.stop().await;
}

#[tokio::test]
async fn where_there_is_no_place_tcp_is_closed_at_once_and_players_stay() {
    let manifest = include_str!("../../../../games/obby/game.toml");
    let small = manifest.replace("max_players = 50", "max_players = 1");
    let server = TestServer::start_with(&[("game.toml", &small)]).await;
    let mut ada = crate::stranger::Stranger::join(&server, "Ada").await;
    let mut silent = Vec::new();
    let refused = loop {
        let mut socket = TcpStream::connect(server.address).await.expect("connects");
        let wait = Duration::from_millis(100);
        // An end, or silence.
        if let Ok(read) = tokio::time::timeout(wait, socket.read_u8()).await {
            break read.is_err();
        }
        silent.push(socket);
        assert!(silent.len() < 100, "there is no limit");
    };
    assert!(refused && silent.len() > 50, "{}", silent.len());
    ada.next_of("snapshot").await;
    drop(silent);
    let again = async {
        loop {
            let url = format!("http://{}/health", server.address);
            if reqwest::get(url).await.is_ok() {
                break;
            }
        }
    };
    let again = tokio::time::timeout(PATIENCE, again).await;
    again.expect("the places are free again");
    server.stop().await;
}
