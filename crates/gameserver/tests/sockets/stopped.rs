//! A server that is killed is gone: its world does not go on behind the tests.

use std::time::Duration;

use crate::connection::Transport;
use crate::player::Player;
use crate::server::TestServer;

#[tokio::test]
async fn a_world_ends_with_its_server() {
    let server = TestServer::start().await;
    let mut ada = Player::new("Ada");
    ada.connect(&server, Transport::WebSocket).await;
    while ada.newest_tick() == 0 {
        ada.play(Duration::from_millis(20)).await;
    }
    server.stop().await;
    let end = async { while ada.read().await.is_ok() {} };
    let ended = tokio::time::timeout(Duration::from_secs(10), end).await;
    ended.expect("the world's thread lets go of its sockets");
}
