//! How messages are sent on a lossy connection.

use std::time::Duration;

use frolic_protocol::packet::SERVER_MESSAGE_BYTES_MAX;
use frolic_protocol::{Args, Value};
use tokio::sync::{mpsc, oneshot};

use super::*;
use crate::connection::{ConnectionPermits, OUTBOX_PACKETS, Outbound, QuicConnection};

struct Lossy {
    session: Session,
    outgoing: mpsc::Receiver<Outbound>,
    ended: oneshot::Receiver<String>,
    metrics: Arc<Metrics>,
}

/// How a packet left, and what was in it.
#[derive(Debug, PartialEq)]
enum Left {
    Reliable(Vec<ServerMessage>),
    Loose(Vec<ServerMessage>),
    Close,
}

impl Lossy {
    fn new() -> Self {
        let metrics = Arc::new(Metrics::default());
        let permits = ConnectionPermits::new(8, metrics.clone());
        let permit = permits.take([127, 0, 0, 1].into()).unwrap();
        let (outbox, outgoing) = mpsc::channel(OUTBOX_PACKETS);
        let (end, ended) = oneshot::channel();
        let connection = Connection::Quic(QuicConnection::new(outbox, end, Arc::default()));
        Self {
            session: Session::new(
                Encoding::Binary,
                None,
                connection,
                permit,
                0,
                Instant::now(),
            ),
            outgoing,
            ended,
            metrics,
        }
    }

    fn left(&mut self) -> Vec<Left> {
        self.session.flush(Instant::now(), &self.metrics);
        let read = |bytes: &[u8]| packet::read(bytes, SERVER_MESSAGE_BYTES_MAX).unwrap();
        let packets = std::iter::from_fn(|| self.outgoing.try_recv().ok());
        let left = packets.map(|outbound| match outbound {
            Outbound::Reliable(bytes) => Left::Reliable(read(&bytes)),
            Outbound::Loose(bytes) => {
                assert!(bytes.len() <= DATAGRAM_BYTES_MAX);
                Left::Loose(read(&bytes))
            }
            Outbound::Snapshot(_) => panic!("no snapshot is expected"),
            Outbound::Close(_) => Left::Close,
        });
        left.collect()
    }
}

fn pong() -> ServerMessage {
    ServerMessage::Pong {
        t: 1.0,
        server_time: 2.0,
        tick: 3,
        received: 4,
    }
}

fn kick() -> ServerMessage {
    ServerMessage::Kick {
        reason: "over".into(),
    }
}

fn event(letters: usize) -> ServerMessage {
    ServerMessage::UnreliableEvent {
        name: "Flickers".into(),
        args: Args(vec![Value::String("x".repeat(letters))]),
    }
}

#[test]
fn losable_messages_are_sent_as_one_separate_packet() {
    let mut lossy = Lossy::new();
    let error = ServerMessage::Error {
        code: "busy".into(),
        message: "later".into(),
    };
    let (short, encoded) = (event(10), packet::single(&event(10)));
    lossy.session.send_packet_or(&encoded, &short);
    lossy.session.send(&error);
    lossy.session.send_echoing(&pong(), None);
    assert!(lossy.session.is_restless());
    let left = lossy.left();
    let expected = [
        Left::Reliable(vec![error]),
        Left::Loose(vec![short, pong()]),
    ];
    assert_eq!(left, expected);
    assert_eq!(lossy.left(), [], "each is sent once");
}

#[test]
fn messages_too_large_for_a_datagram_go_in_another_or_on_the_stream() {
    let mut lossy = Lossy::new();
    for letters in [500, 500, 500, 5_000] {
        lossy.session.send(&event(letters));
    }
    let expected = [
        Left::Loose(vec![event(500), event(500)]),
        Left::Reliable(vec![event(5_000)]),
        Left::Loose(vec![event(500)]),
    ];
    assert_eq!(lossy.left(), expected);
}

#[test]
fn nothing_is_sent_after_the_close_reason() {
    let mut lossy = Lossy::new();
    lossy.session.send(&pong());
    lossy.session.kick(KickCause::Left, "over");
    assert_eq!(lossy.left(), [Left::Reliable(vec![kick()]), Left::Close]);
}

#[test]
fn a_kicked_client_that_reads_nothing_is_disconnected_soon() {
    let mut lossy = Lossy::new();
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    // More than its task's queue holds: the close reason waits behind all of it.
    for _ in 0..2 * OUTBOX_PACKETS {
        lossy.session.send_packet(&vec![0; PACKET_BYTES]);
    }
    lossy.session.flush(at(0), &lossy.metrics);
    lossy.session.kick(KickCause::Left, "over");
    for ms in [10, 1_000, 2_000] {
        lossy.session.flush(at(ms), &lossy.metrics);
        assert!(lossy.session.is_restless(), "it is looked after");
        assert!(lossy.ended.try_recv().is_err(), "after {ms} ms");
    }
    lossy.session.flush(at(2_020), &lossy.metrics);
    assert_eq!(lossy.ended.try_recv().as_deref(), Ok("over"));
}

#[test]
fn packets_the_task_has_not_sent_count_as_waiting() {
    const PACKETS: usize = 20;
    let mut lossy = Lossy::new();
    assert!(!lossy.session.is_clogged());
    for _ in 0..PACKETS {
        lossy.session.send_packet(&vec![0; PACKET_BYTES]);
    }
    lossy.session.flush(Instant::now(), &lossy.metrics);
    assert_eq!(
        lossy.session.connection.waiting_bytes(),
        PACKETS * PACKET_BYTES
    );
    assert!(lossy.session.is_clogged());
}
