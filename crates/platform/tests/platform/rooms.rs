//! `/api/rooms/{code}/ws` (NET-10, NET-12): one port reaches every world.

use crate::support::{TestPlatform, error_of};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

type Socket = WebSocketStream<tokio::net::TcpStream>;

async fn open(
    platform: &TestPlatform,
    path: &str,
    protocols: Option<&str>,
) -> Result<(Socket, Option<String>), Error> {
    let mut request = format!("ws://127.0.0.1:{}{path}", platform.port).into_client_request()?;
    if let Some(protocols) = protocols {
        let headers = request.headers_mut();
        headers.insert("sec-websocket-protocol", protocols.parse().unwrap());
    }
    let stream = tokio::net::TcpStream::connect(("127.0.0.1", platform.port)).await?;
    let (socket, response) = client_async(request, stream).await?;
    let chosen = response.headers().get("sec-websocket-protocol");
    let chosen = chosen.map(|protocol| protocol.to_str().unwrap().to_owned());
    Ok((socket, chosen))
}

#[tokio::test]
async fn net_10_a_room_code_reaches_the_world_with_protocol_and_query() {
    let platform = TestPlatform::start().await;
    let joined = platform.join(json!({})).await;
    let path = format!(
        "/api/rooms/{}/ws?ticket=a.b-c_d&x=1",
        joined.room_code.to_lowercase()
    );
    let (mut socket, protocol) = open(&platform, &path, Some("frolic.v2.json"))
        .await
        .unwrap();
    assert_eq!(protocol.as_deref(), Some("frolic.v2.json"));
    let greeting = socket.next().await.unwrap().unwrap();
    assert_eq!(
        greeting.into_text().unwrap().as_str(),
        "/ws?ticket=a.b-c_d&x=1"
    );

    let big = vec![7_u8; 1_000_000];
    for message in [
        Message::text("{\"v\":2}"),
        Message::binary(big),
        Message::binary(Vec::new()),
    ] {
        socket.send(message.clone()).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), message);
    }
    socket.close(None).await.unwrap();
    while let Some(Ok(_)) = socket.next().await {}

    let (mut socket, protocol) = open(&platform, &path, None).await.unwrap();
    assert_eq!(protocol, None);
    assert!(socket.next().await.unwrap().unwrap().is_text());
}

#[tokio::test]
async fn net_10_the_socket_ends_with_its_server() {
    let platform = TestPlatform::start().await;
    let joined = platform.join(json!({})).await;
    let path = format!("/api/rooms/{}/ws", joined.room_code);
    let (mut socket, _) = open(&platform, &path, None).await.unwrap();
    assert!(socket.next().await.unwrap().unwrap().is_text());
    // A message too large for anybody ends the connection, and only that one.
    let sent = socket.send(Message::binary(vec![0; 9 * 1024 * 1024])).await;
    let ended = async { while let Some(Ok(_)) = socket.next().await {} };
    tokio::time::timeout(std::time::Duration::from_secs(5), ended)
        .await
        .unwrap();
    drop(sent);
    let (mut socket, _) = open(&platform, &path, None).await.unwrap();
    assert!(socket.next().await.unwrap().unwrap().is_text());
}

#[tokio::test]
async fn net_10_rooms_that_cannot_be_reached_say_why() {
    let platform =
        TestPlatform::start_with(|settings| settings.limits.proxied_sockets_max = 1).await;
    let joined = platform.join(json!({})).await;
    let path = format!("/api/rooms/{}/ws", joined.room_code);
    let not_a_socket = platform.get(&path).await;
    assert_eq!(
        error_of(not_a_socket).await,
        (400, "websocket_expected".to_owned())
    );

    let (socket, _) = open(&platform, &path, None).await.unwrap();
    let status = |result: Result<(Socket, Option<String>), Error>| match result {
        Err(Error::Http(response)) => response.status().as_u16(),
        other => panic!("{:?}", other.map(|_| ())),
    };
    assert_eq!(status(open(&platform, &path, None).await), 503);
    drop(socket);
    for path in [
        "/api/rooms/ABCDEF/ws",
        "/api/rooms/x/ws",
        "/api/rooms/%2e%2e/ws",
    ] {
        let mut code = 503;
        // The place is free again once the closed socket has been noticed.
        while code == 503 {
            code = status(open(&platform, path, None).await);
        }
        assert_eq!(code, 404, "{path}");
    }
    platform.platform.fleet().stop(&joined.world_id);
    assert_eq!(status(open(&platform, &path, None).await), 409);
}

#[tokio::test]
async fn net_10_joins_through_a_proxy_are_sent_to_the_room() {
    let platform = TestPlatform::start().await;
    let guest = platform.login("Ada").await;
    let request = platform
        .request(reqwest::Method::POST, "/join")
        .bearer_auth(&guest.session_token)
        .header("host", "play.example.org")
        .header("x-forwarded-proto", "https");
    let joined: frolic_platform::api::JoinResponse =
        request.send().await.unwrap().json().await.unwrap();
    let expected = format!("wss://play.example.org/api/rooms/{}/ws", joined.room_code);
    assert_eq!(joined.server_address, expected);
}
