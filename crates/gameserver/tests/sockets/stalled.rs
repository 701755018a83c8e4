//! A connection that stalls without breaking: everything sent meanwhile arrives
//! at once.

use std::time::Duration;

use frolic_client::{Client, ClientEvent};
use frolic_protocol::NumberedInput;
use frolic_protocol::{Args, ClientMessage, Value, packet};
use frolic_sim::CharacterInput;

use crate::connection::{Connection, Transport};
use crate::resume::ECHO;
use crate::server::TestServer;

/// Inputs of ten seconds, and events between them.
const INPUTS: u32 = 600;
const EVENTS: u32 = 200;
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn what_counts_survives_a_stalled_websocket() {
    nothing_that_counts_is_lost(Transport::WebSocket).await;
}

#[tokio::test]
async fn what_counts_survives_stalled_webtransport() {
    nothing_that_counts_is_lost(Transport::WebTransport).await;
}

async fn nothing_that_counts_is_lost(transport: Transport) {
    let server = TestServer::start_with(&[ECHO]).await;
    let mut connection = Connection::open(&server, transport).await;
    let mut client = Client::new();
    let ticket = server.ticket("world_test", "Ada", 60);
    client.handshake(Some(ticket), None, None);
    connection
        .send(&mut client)
        .await
        .expect("the connection is open");
    let is_welcome = |event: &ClientEvent| matches!(event, ClientEvent::Welcome(_));
    until(&mut connection, &mut client, is_welcome).await;

    connection.send_bytes(what_waited()).await;
    let mut received = Vec::new();
    until(&mut connection, &mut client, |event| {
        if let ClientEvent::Remote { name, args } = event
            && name == "Echo"
            && let [Value::Number(number)] = args.0.as_slice()
        {
            received.push(*number as u32);
        }
        received.len() == EVENTS as usize
    })
    .await;
    assert!(received.iter().copied().eq(1..=EVENTS), "{received:?}");
    server.stop().await;
}

/// Three inputs, an event, and so on, as written into a connection that
/// accepted them without delivering.
fn what_waited() -> Vec<u8> {
    let input = |seq| ClientMessage::Inputs {
        ack: None,
        shown: None,
        inputs: FromIterator::from_iter([NumberedInput {
            seq,
            input: CharacterInput::default(),
        }]),
    };
    let event = |number: u32| ClientMessage::Event {
        name: "Number".into(),
        args: Args(vec![Value::Number(f64::from(number))]),
    };
    let mut bytes = Vec::new();
    for seq in 1..=INPUTS {
        packet::write(&mut bytes, &input(seq));
        let each = INPUTS / EVENTS;
        if seq.is_multiple_of(each) {
            packet::write(&mut bytes, &event(seq / each));
        }
    }
    bytes
}

/// Reads until an event is as wanted.
async fn until(
    connection: &mut Connection,
    client: &mut Client,
    mut wanted: impl FnMut(&ClientEvent) -> bool,
) {
    let search = async {
        loop {
            while let Some(event) = client.take_event() {
                assert!(!matches!(event, ClientEvent::Kick { .. }), "{event:?}");
                if wanted(&event) {
                    return;
                }
            }
            let read = connection.receive(client, 0.0).await;
            read.expect("the connection is open");
        }
    };
    let found = tokio::time::timeout(PATIENCE, search).await;
    found.expect("it came");
}
