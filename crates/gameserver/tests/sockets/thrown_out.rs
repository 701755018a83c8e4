//! A client that floods or sends invalid messages is disconnected with a reason
//! and counted, on every transport.

use frolic_client::{Client, ClientEvent};
use frolic_protocol::{ClientMessage, packet};

use crate::connection::{Connection, Transport};
use crate::server::TestServer;

/// Joins and sends these messages; returns the client's events before the end,
/// and the reason of the end.
async fn throw_out(
    server: &TestServer,
    transport: Transport,
    bytes: Vec<u8>,
) -> (Option<String>, String) {
    let mut connection = Connection::open(server, transport).await;
    let mut client = Client::new();
    let ticket = server.ticket("world_test", "Eve", 60);
    client.handshake(Some(ticket), None, None);
    connection
        .send(&mut client)
        .await
        .expect("the connection is open");
    connection.send_bytes(bytes).await;
    let reason = connection.end(&mut client).await;
    let mut announced = None;
    while let Some(event) = client.take_event() {
        if let ClientEvent::Kick { reason } = event {
            announced = Some(reason);
        }
    }
    (announced, reason)
}

async fn clients_are_disconnected_with_a_reason(transport: Transport) {
    let server = TestServer::start().await;
    let ping = packet::single(&ClientMessage::Ping {
        t: 1.0,
        received: 0,
    });
    let cases = [(vec![0xff; 64], "unreadable"), (ping.repeat(4000), "flood")];
    for (bytes, cause) in cases {
        let (announced, reason) = throw_out(&server, transport, bytes).await;
        assert!(!reason.is_empty(), "closed without a reason: {cause}");
        assert_eq!(announced, Some(reason), "{cause}");
        let counter = format!("frolic_kicks_total{{cause=\"{cause}\"}}");
        server.until_metric(&counter).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn a_websocket_client_that_breaks_the_rules_is_disconnected_with_a_reason() {
    clients_are_disconnected_with_a_reason(Transport::WebSocket).await;
}

#[tokio::test]
async fn a_webtransport_client_that_breaks_the_rules_is_disconnected_with_a_reason() {
    clients_are_disconnected_with_a_reason(Transport::WebTransport).await;
}
