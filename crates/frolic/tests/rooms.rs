//! Strangers before the doors of a world: who comes through the
//! platform's port shares nothing with others who do, the address of the
//! platform included.
// Covers: crates/gameserver, crates/platform, crates/protocol

use crate::support::{Platform, game, next_of_kind};
use serde_json::json;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// More than a game server's limit for clients of unknown address.
const STRANGERS: u8 = 10;
/// As many as one address may have.
const EACH: usize = 32;

/// Opens a room from a foreign address: the server trusts the address that a
/// proxy on this machine reports.
async fn open(platform: &Platform, path: &str, from: &str) -> Result<Socket, Error> {
    let address = platform.url.replacen("http", "ws", 1);
    let mut request = format!("{address}{path}").into_client_request()?;
    let headers = request.headers_mut();
    headers.insert("x-forwarded-for", from.parse().expect("a header"));
    let protocol = frolic_protocol::json::SUBPROTOCOL;
    headers.insert("sec-websocket-protocol", protocol.parse().expect("one"));
    let (socket, _) = tokio_tungstenite::connect_async(request).await?;
    Ok(socket)
}

#[tokio::test]
async fn silent_connections_block_no_player_from_a_room() {
    let platform = Platform::start("rooms-strangers");
    let creator = platform.login("Creator").await;
    platform.publish(&creator, &game("meeting", 300, "")).await;
    let joined = platform
        .join_as(&creator, &json!({ "game_id": "meeting" }))
        .await;
    let room = format!(
        "/api/rooms/{}/ws",
        joined["room_code"].as_str().expect("a code")
    );

    let platform = &platform;
    let crowds = (0..STRANGERS).map(|number| {
        let room = room.clone();
        async move {
            let from = format!("192.0.2.{number}");
            let mut silent = Vec::new();
            while silent.len() < EACH {
                match open(platform, &room, &from).await {
                    Ok(socket) => silent.push(socket),
                    Err(error) => panic!("{} of {from}, then {error}", silent.len()),
                }
            }
            silent
        }
    });
    let silent = futures_util::future::join_all(crowds).await;

    let ticket = joined["ticket"].as_str().expect("a ticket");
    let path = format!("{room}?ticket={ticket}");
    let mut ada = open(platform, &path, "198.51.100.1")
        .await
        .expect("the door is free");
    let welcome = next_of_kind(&mut ada, "welcome").await;
    assert_eq!(welcome["worldId"], joined["world_id"]);
    drop(silent);
}
