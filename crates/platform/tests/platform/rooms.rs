//! `/api/rooms/{code}/ws`: the public port reaches every world.

use std::time::Duration;

use crate::support::gameserver::Plan;
use crate::support::{TestPlatform, error_of};
use frolic_platform::Settings;
use frolic_protocol::packet::{CLIENT_MESSAGE_BYTES_MAX, SERVER_MESSAGE_BYTES_MAX};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

type Socket = WebSocketStream<tokio::net::TcpStream>;

async fn open(
    platform: &TestPlatform,
    path: &str,
    protocols: Option<&str>,
) -> Result<(Socket, Option<String>), Error> {
    let protocols = protocols.map(|protocols| ("sec-websocket-protocol", protocols));
    open_with(platform, path, protocols).await
}

/// Connects from another address; a proxy on this machine is trusted to name its clients.
async fn open_from(platform: &TestPlatform, path: &str, address: &str) -> Result<Socket, Error> {
    let opened = open_with(platform, path, Some(("x-forwarded-for", address))).await;
    opened.map(|(socket, _)| socket)
}

async fn open_with(
    platform: &TestPlatform,
    path: &str,
    header: Option<(&'static str, &str)>,
) -> Result<(Socket, Option<String>), Error> {
    let mut request = format!("ws://127.0.0.1:{}{path}", platform.port).into_client_request()?;
    if let Some((name, value)) = header {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    let stream = tokio::net::TcpStream::connect(("127.0.0.1", platform.port)).await?;
    let config = WebSocketConfig::default().max_frame_size(None);
    let (socket, response) = client_async_with_config(request, stream, Some(config)).await?;
    let chosen = response.headers().get("sec-websocket-protocol");
    let chosen = chosen.map(|protocol| protocol.to_str().unwrap().to_owned());
    Ok((socket, chosen))
}

#[tokio::test]
async fn a_room_code_reaches_the_world_with_protocol_and_query() {
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

    let big = vec![7_u8; 64 * 1024];
    for message in [
        Message::text("{\"v\":2}"),
        Message::binary(big),
        Message::binary(Vec::new()),
    ] {
        socket.send(message.clone()).await.unwrap();
        let echo = socket.next().await.unwrap().unwrap();
        assert!(echo == message, "{} bytes came back", echo.len());
    }
    socket.close(None).await.unwrap();
    while let Some(Ok(_)) = socket.next().await {}

    let (mut socket, protocol) = open(&platform, &path, None).await.unwrap();
    assert_eq!(protocol, None);
    assert!(socket.next().await.unwrap().unwrap().is_text());
}

/// Joins, opens the room's socket and reads its greeting.
async fn enter(platform: &TestPlatform) -> Socket {
    let joined = platform.join(json!({})).await;
    let path = format!("/api/rooms/{}/ws", joined.room_code);
    let (mut socket, _) = open(platform, &path, None).await.unwrap();
    assert!(socket.next().await.unwrap().unwrap().is_text());
    socket
}

async fn command(socket: &mut Socket, text: &str) {
    socket.send(Message::text(text)).await.unwrap();
}

/// Reads to the end and returns the close code and reason.
async fn close_of(socket: &mut Socket) -> (u16, String) {
    let end = async {
        let mut frame = None;
        while let Some(Ok(message)) = socket.next().await {
            if let Message::Close(closing) = message {
                frame = closing;
            }
        }
        frame
    };
    let frame = tokio::time::timeout(Duration::from_secs(10), end).await;
    let frame = frame.expect("the connection is closed");
    frame.map_or((0, String::new()), |frame| {
        (frame.code.into(), frame.reason.to_string())
    })
}

/// Waits until a close reason with these words has reached the game server.
async fn server_receives(platform: &TestPlatform, words: &str) {
    let mut close_reasons = platform.stage.close_reasons.subscribe();
    let received = close_reasons.wait_for(|all| all.iter().any(|reason| reason.contains(words)));
    let received = tokio::time::timeout(Duration::from_secs(10), received).await;
    received.expect("the server receives the reason").unwrap();
}

#[tokio::test]
async fn the_longest_messages_pass_and_longer_ones_are_refused_with_a_reason() {
    let platform = TestPlatform::start().await;
    let mut socket = enter(&platform).await;
    let longest = SERVER_MESSAGE_BYTES_MAX + 4;
    command(&mut socket, &format!("big {longest}")).await;
    assert_eq!(socket.next().await.unwrap().unwrap().len(), longest);
    // The socket may be closed before everything is sent.
    let too_long = vec![0; CLIENT_MESSAGE_BYTES_MAX + 1];
    let _ = socket.send(Message::binary(too_long)).await;
    let (code, reason) = close_of(&mut socket).await;
    assert_eq!(code, 1009);
    assert!(reason.contains("65536"), "{reason}");
    server_receives(&platform, "invalid message").await;
    enter(&platform).await;
}

#[tokio::test]
async fn invalid_text_and_frames_are_refused_with_their_close_code() {
    let platform = TestPlatform::start().await;
    for (kind, bytes, expected) in [
        (Data::Text, &b"\xff\xfe"[..], 1007),
        (Data::Reserved(3), b"what?", 1002),
    ] {
        let mut socket = enter(&platform).await;
        let frame = Frame::message(bytes.to_vec(), OpCode::Data(kind), true);
        socket.send(Message::Frame(frame)).await.unwrap();
        let (code, reason) = close_of(&mut socket).await;
        assert_eq!(code, expected, "{reason}");
    }
    enter(&platform).await;
}

#[tokio::test]
async fn close_reasons_are_forwarded_in_both_directions() {
    let platform = TestPlatform::start().await;
    let mut socket = enter(&platform).await;
    command(&mut socket, "close too many inputs").await;
    assert_eq!(
        close_of(&mut socket).await,
        (4001, "too many inputs".to_owned())
    );

    let mut socket = enter(&platform).await;
    let frame = CloseFrame {
        code: 1000.into(),
        reason: "my battery is empty".into(),
    };
    socket.close(Some(frame)).await.unwrap();
    server_receives(&platform, "my battery is empty").await;
    close_of(&mut socket).await;

    let mut socket = enter(&platform).await;
    command(&mut socket, "drop").await;
    let (code, reason) = close_of(&mut socket).await;
    assert_eq!(code, 1001);
    assert!(reason.contains("closed the connection"), "{reason}");
}

#[tokio::test]
async fn a_client_with_input_in_flight_receives_the_close_reason() {
    let platform = TestPlatform::start().await;
    let mut socket = enter(&platform).await;
    command(&mut socket, "close too many inputs").await;
    // The close frame has arrived, so everything sent now comes after it.
    socket.get_ref().peek(&mut [0]).await.unwrap();
    for _ in 0..3000 {
        let message = Message::binary(vec![7; 200]);
        socket.feed(message).await.expect("the relay reads it");
    }
    socket.close(None).await.expect("the relay reads it");
    // Read from the stream directly, because the library does not report how it ended.
    let mut received = Vec::new();
    let ended = socket.into_inner().read_to_end(&mut received).await;
    ended.expect("the stream is closed and not reset");
    assert_eq!(
        received[..4],
        [0x88, 17, 0x0f, 0xa1],
        "a close with code 4001"
    );
    assert_eq!(received[4..], *b"too many inputs");
}

#[tokio::test]
async fn a_client_that_disappears_frees_its_slot() {
    let platform = TestPlatform::start_with(short_timeouts).await;
    // The socket is not read again, so no ping is answered.
    let _socket = enter(&platform).await;
    server_receives(&platform, "stopped responding").await;
}

#[tokio::test]
async fn a_server_that_hangs_is_disconnected() {
    let platform = TestPlatform::start_with(short_timeouts).await;
    let mut socket = enter(&platform).await;
    command(&mut socket, "sleep").await;
    let (code, reason) = close_of(&mut socket).await;
    assert_eq!(code, 1001);
    assert!(reason.contains("does not respond"), "{reason}");
}

#[tokio::test]
async fn a_client_that_does_not_read_buffers_little_and_times_out() {
    let platform = TestPlatform::start_with(short_timeouts).await;
    let mut socket = enter(&platform).await;
    command(&mut socket, "flood").await;
    // The client still sends, but reads nothing.
    let keep_sending = async {
        while socket.send(Message::text("still here")).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(20), keep_sending).await;
    ended.expect("the connection is closed");
    let sent = *platform.stage.sent_unread.borrow();
    assert!(sent < 32 * 1024 * 1024, "{sent} bytes were accepted");
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let platform = TestPlatform::start_with(|settings| {
        // Long enough for the greeting.
        settings.limits.proxied_idle_max = Duration::from_secs(1);
    })
    .await;
    let mut socket = enter(&platform).await;
    let (code, reason) = close_of(&mut socket).await;
    assert_eq!(code, 1001);
    assert!(reason.contains("idle for too long"), "{reason}");
}

/// A short timeout, but long enough for three pings on a machine that stalls for a moment.
fn short_timeouts(settings: &mut Settings) {
    settings.limits.proxied_silence_max = Duration::from_secs(2);
}

#[tokio::test]
async fn unreachable_rooms_return_a_reason() {
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
        // The permit is free again once the closed socket has been noticed.
        while code == 503 {
            code = status(open(&platform, path, None).await);
        }
        assert_eq!(code, 404, "{path}");
    }
    platform.platform.fleet().stop(&joined.world_id);
    assert_eq!(status(open(&platform, &path, None).await), 409);
}

#[tokio::test]
async fn a_crashed_world_reports_that_it_restarts() {
    let platform = TestPlatform::start().await;
    let joined = platform.join(json!({})).await;
    let path = format!("/api/rooms/{}/ws", joined.room_code);
    platform.stage.plan([Plan::Hang]);
    platform.stage.crash_all();
    while platform
        .platform
        .fleet()
        .endpoints(&joined.world_id)
        .is_some()
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let refused = open_from(&platform, &path, "192.0.2.1").await;
    let starting = (503, "world_starting".to_owned(), true);
    assert_eq!(refusal(refused), starting, "during the pause");
    platform.stage.wait_for_launches(2).await;
    let refused = open_from(&platform, &path, "192.0.2.1").await;
    assert_eq!(refusal(refused), starting, "during the start");
}

#[tokio::test]
async fn subprotocols_in_several_headers_reach_the_world() {
    let platform = TestPlatform::start().await;
    let joined = platform.join(json!({})).await;
    // Written manually, because the library sends one header.
    let request = format!(
        "GET /api/rooms/{}/ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: another.v1\r\nSec-WebSocket-Protocol: frolic.v2.json\r\n\r\n",
        joined.room_code
    );
    let address = ("127.0.0.1", platform.port);
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    assert!(head.starts_with("http/1.1 101"), "{head}");
    let chosen = "sec-websocket-protocol: frolic.v2.json\r\n";
    assert!(head.contains(chosen), "{head}");
}

/// Status, error code, and whether there is a Retry-After header.
fn refusal(opened: Result<Socket, Error>) -> (u16, String, bool) {
    let Err(Error::Http(response)) = opened else {
        panic!("the connection was accepted");
    };
    let body = response.body().as_deref().unwrap_or_default();
    let body: serde_json::Value = serde_json::from_slice(body).unwrap();
    (
        response.status().as_u16(),
        body["error"]["code"].as_str().unwrap().to_owned(),
        response.headers().contains_key("retry-after"),
    )
}

#[tokio::test]
async fn connections_without_a_ticket_are_limited_per_address() {
    let platform =
        TestPlatform::start_with(|settings| settings.limits.proxied_newcomers_max = 3).await;
    let joined = platform.join(json!({})).await;
    let path = format!("/api/rooms/{}/ws", joined.room_code);
    let mut silent = Vec::new();
    for _ in 0..3 {
        silent.push(open_from(&platform, &path, "192.0.2.1").await.unwrap());
    }
    let too_many = (429, "too_many_newcomers".to_owned(), true);
    let refused = open_from(&platform, &path, "192.0.2.1").await;
    assert_eq!(refusal(refused), too_many);
    let other = open_from(&platform, &path, "192.0.2.2").await;
    other.expect("other addresses are not affected");

    // A response that is not a welcome does not count as admitted.
    let unadmitted = &mut silent[0];
    unadmitted.next().await.unwrap().unwrap();
    command(unadmitted, r#"{"kind":"error"}"#).await;
    unadmitted.next().await.unwrap().unwrap();
    let refused = open_from(&platform, &path, "192.0.2.1").await;
    assert_eq!(refusal(refused), too_many);
    command(&mut silent[0], r#"{"kind":"welcome"}"#).await;
    silent[0].next().await.unwrap().unwrap();
    let next = open_from(&platform, &path, "192.0.2.1").await;
    next.expect("an admitted connection does not count");
}

#[tokio::test]
async fn connections_are_rate_limited_per_address() {
    let platform = TestPlatform::start_with(|settings| {
        settings.limits.rate_burst = 4;
        settings.limits.rate_per_s = 0.001;
    })
    .await;
    let joined = platform.join(json!({})).await;
    let path = format!("/api/rooms/{}/ws", joined.room_code);
    for _ in 0..4 {
        open_from(&platform, &path, "192.0.2.1").await.unwrap();
    }
    let refused = open_from(&platform, &path, "192.0.2.1").await;
    assert_eq!(refusal(refused), (429, "rate_limited".to_owned(), true));
    open_from(&platform, &path, "192.0.2.2").await.unwrap();
}

#[tokio::test]
async fn joins_through_a_proxy_get_the_address_of_the_room() {
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
