//! Everything a client sends is accepted by a server, whatever the host asks for.

use frolic_protocol::Value;
use frolic_protocol::message::Resumption;
use frolic_protocol::packet::{self, CLIENT_MESSAGE_BYTES_MAX};

use super::*;
use crate::reliable::LOG_BYTES_MAX;

/// A client that has joined a world, and has sent its handshake.
pub(crate) fn joined() -> Client {
    let mut client = Client::new();
    welcome(&mut client, Resumption::New, 0);
    client
}

fn welcome(client: &mut Client, resumption: Resumption, received: u32) {
    let welcome = welcome_message(resumption, received);
    let packet = packet::single(&ServerMessage::Welcome(Box::new(welcome)));
    client.receive(&packet, 0.0).expect("a welcome");
    while client.take_event().is_some() {}
}

fn welcome_message(resumption: Resumption, received: u32) -> Welcome {
    Welcome {
        tick: 1,
        entity_id: 1,
        player_id: "p".into(),
        player_number: 1,
        world_id: "w".into(),
        room_code: "R".into(),
        tick_hz: 60,
        snapshot_hz: 20,
        resume_token: "token".into(),
        server_time: 0.0,
        revision: String::new(),
        character: Default::default(),
        resumption,
        received,
        sent: 0,
    }
}

/// Whatever tick rate a server sends, steps have a usable length.
#[test]
fn a_welcome_with_an_impossible_clock_is_brought_into_range() {
    for (said, taken) in [
        ((u32::MAX, u32::MAX), (240, 240)),
        ((u32::MAX, 1), (240, 1)),
        ((0, 0), (1, 1)),
        ((30, 60), (30, 30)),
        ((60, 20), (60, 20)),
    ] {
        let mut client = Client::new();
        let mut welcome = welcome_message(Resumption::New, 0);
        (welcome.tick_hz, welcome.snapshot_hz) = said;
        let packet = packet::single(&ServerMessage::Welcome(Box::new(welcome)));
        client.receive(&packet, 0.0).expect("a welcome");
        let Some(ClientEvent::Welcome(received)) = client.take_event() else {
            panic!("a welcome is reported");
        };
        assert_eq!((received.tick_hz, received.snapshot_hz), taken, "{said:?}");
        let known = client.welcomed().expect("welcomed");
        assert_eq!((known.tick_hz, known.snapshot_hz), taken, "{said:?}");
    }
}

fn text(bytes: usize) -> Value {
    Value::String("x".repeat(bytes))
}

/// An event whose packet has exactly `bytes` bytes.
fn event_of(bytes: usize) -> ClientMessage {
    let event = |last: usize| {
        let mut values = vec![text(16 * 1024); 3];
        values.push(text(last));
        let args = Args(values);
        ClientMessage::Event {
            name: "Big".into(),
            args,
        }
    };
    let without = packet::single(&event(16_000)).len() - 16_000;
    let event = event(bytes - without);
    assert_eq!(packet::single(&event).len(), bytes);
    event
}

/// All messages that a client sends, each piece no larger than a server accepts and
/// decodable by itself.
fn said(client: &mut Client) -> (Vec<usize>, Vec<ClientMessage>) {
    let pieces: Vec<Vec<u8>> = std::iter::from_fn(|| client.take_reliable()).collect();
    let read = |piece: &Vec<u8>| -> Vec<ClientMessage> {
        assert!(piece.len() <= CLIENT_MESSAGE_BYTES_MAX, "{}", piece.len());
        packet::read(piece, CLIENT_MESSAGE_BYTES_MAX).expect("whole messages")
    };
    let messages = pieces.iter().flat_map(read).collect();
    (pieces.iter().map(Vec::len).collect(), messages)
}

fn numbers(messages: &[ClientMessage]) -> Vec<u32> {
    let number = |message: &ClientMessage| match message {
        ClientMessage::Event { args, .. } => match args.0.first() {
            Some(Value::Number(number)) => Some(*number as u32),
            _ => None,
        },
        _ => None,
    };
    messages.iter().filter_map(number).collect()
}

fn codes(client: &mut Client) -> Vec<String> {
    let events = std::iter::from_fn(|| client.take_event());
    let code = |event| match event {
        ClientEvent::Error { code, .. } => Some(code),
        _ => None,
    };
    events.filter_map(code).collect()
}

#[test]
fn many_messages_of_one_frame_leave_in_pieces_that_a_server_takes() {
    let mut client = joined();
    for number in 0..150 {
        let args = Args(vec![Value::Number(f64::from(number)), text(1000)]);
        client.fire_server("Letter".into(), args);
    }
    let (sizes, messages) = said(&mut client);
    assert_eq!(numbers(&messages), (0..150).collect::<Vec<_>>());
    // As few as possible: all but the last are nearly full.
    assert_eq!(sizes.len(), 3, "{sizes:?}");
    assert!(sizes[..2].iter().all(|size| *size > 63_000), "{sizes:?}");
    assert!(client.take_reliable().is_none());
}

#[test]
fn messages_queued_while_disconnected_are_sent_in_pieces_after_reconnecting() {
    let mut client = joined();
    client.reconnect();
    for number in 0..200 {
        let args = Args(vec![Value::Number(f64::from(number)), text(400)]);
        client.fire_server("Letter".into(), args);
    }
    assert_eq!(
        said(&mut client).0,
        [0usize; 0],
        "nothing before the welcome"
    );
    welcome(&mut client, Resumption::Resumed, 0);
    let (sizes, messages) = said(&mut client);
    assert_eq!(numbers(&messages), (0..200).collect::<Vec<_>>());
    assert_eq!(sizes.len(), 2, "{sizes:?}");
}

#[test]
fn inputs_do_not_make_a_websocket_message_too_long() {
    let mut client = joined();
    client.send(&event_of(CLIENT_MESSAGE_BYTES_MAX - 1));
    for number in 0..200 {
        let args = Args(vec![Value::Number(f64::from(number)), text(1000)]);
        client.fire_server_unreliable("Often".into(), args);
    }
    let mut bytes = 0;
    while let Some(packet) = client.take_packet() {
        assert!(packet.len() <= CLIENT_MESSAGE_BYTES_MAX, "{}", packet.len());
        let read = packet::read::<ClientMessage>(&packet, CLIENT_MESSAGE_BYTES_MAX);
        assert!(!read.expect("whole messages").is_empty());
        bytes += packet.len();
    }
    assert!(bytes > 3 * CLIENT_MESSAGE_BYTES_MAX, "{bytes}");
    assert!(client.take_datagram().is_none() && client.take_reliable().is_none());
}

#[test]
fn the_largest_message_is_accepted_and_a_larger_one_refused_with_an_error() {
    let mut client = joined();
    client.send(&event_of(CLIENT_MESSAGE_BYTES_MAX));
    assert_eq!(said(&mut client).0, [CLIENT_MESSAGE_BYTES_MAX]);
    assert!(codes(&mut client).is_empty());

    client.send(&event_of(CLIENT_MESSAGE_BYTES_MAX + 1));
    match client.take_event() {
        Some(ClientEvent::Error { code, message }) => {
            assert_eq!(code, "event_too_large");
            assert!(
                message.contains("the event Big takes 65537 bytes"),
                "{message}"
            );
            assert!(message.contains("65536 are the most"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    // It is not stored either: only the first is sent again.
    client.reconnect();
    welcome(&mut client, Resumption::Resumed, 0);
    assert_eq!(said(&mut client).0, [CLIENT_MESSAGE_BYTES_MAX]);
}

#[test]
fn messages_that_would_close_the_connection_are_refused() {
    let mut client = joined();
    let large = || Args(vec![text(16 * 1024); 5]);
    client.cast_spell("s".into(), large());
    client.send(&ClientMessage::Chat {
        text: "x".repeat(70_000),
    });
    client.send(&ClientMessage::Hide {
        player_id: "x".repeat(70_000),
        hidden: true,
    });
    client.fire_server_unreliable("x".repeat(70_000), Args::default());
    client.fire_server("Long".into(), Args(vec![text(16 * 1024 + 1)]));
    let nowhere = Args(vec![Value::Vector([f32::NAN; 3])]);
    client.fire_server_unreliable("Where".into(), nowhere);
    let found = codes(&mut client);
    let wanted = [
        "spell_too_large",
        "bad_chat",
        "message_too_large",
        "event_too_large",
        "bad_args",
        "bad_args",
    ];
    assert_eq!(found, wanted);
    assert!(client.take_packet().is_none());
}

/// A calling script would wait for ever.
#[test]
fn a_call_that_is_refused_gets_its_answer() {
    let mut client = joined();
    let call = |id, args| ClientMessage::Invoke {
        id,
        name: "Price".into(),
        args: Args(args),
    };
    client.send(&call(7, vec![text(16 * 1024); 5]));
    client.reconnect();
    for id in 8..100 {
        client.send(&call(id, vec![text(16 * 1024)]));
    }
    let events = std::iter::from_fn(|| client.take_event());
    let failed: Vec<u32> = events
        .filter_map(|event| match event {
            ClientEvent::InvokeResult { id, result } => result.is_err().then_some(id),
            _ => None,
        })
        .collect();
    let stored = (LOG_BYTES_MAX / packet::single(&call(8, vec![text(16 * 1024)])).len()) as u32;
    let wanted: Vec<u32> = std::iter::once(7).chain(8 + stored..100).collect();
    assert_eq!(failed, wanted);
}

#[test]
fn a_request_for_many_scripts_with_long_paths_is_cut() {
    let mut client = joined();
    let path = |number: usize| format!("{}/{number}.luau", "long".repeat(45));
    client.scripts().request((0..3000).map(path).collect());
    client
        .scripts()
        .request((0..1500).map(|number| number.to_string()).collect());
    assert!(codes(&mut client).is_empty());
    let mut asked = Vec::new();
    for message in said(&mut client).1 {
        if let ClientMessage::ScriptRequest { paths, .. } = message {
            assert!(paths.len() <= 1024);
            asked.extend(paths);
        }
    }
    assert_eq!(asked.len(), 4500);
    assert_eq!(asked[2999], path(2999));
}

/// Advances frame by frame and returns the times of its pings.
fn pings(client: &mut Client, from_ms: u32, to_ms: u32) -> Vec<f64> {
    let mut times = Vec::new();
    for now_ms in (from_ms..to_ms).step_by(10) {
        client.advance(f64::from(now_ms));
        while let Some(datagram) = client.take_datagram() {
            let messages = packet::read(&datagram, CLIENT_MESSAGE_BYTES_MAX).expect("messages");
            times.extend(messages.iter().filter_map(|message| match message {
                ClientMessage::Ping { t, .. } => Some(*t),
                _ => None,
            }));
        }
    }
    times
}

#[test]
fn pings_follow_each_other_quickly_until_one_is_answered() {
    let mut client = joined();
    assert_eq!(client.stats(0.0).rtt_ms, None, "nothing is known yet");
    let lost = pings(&mut client, 0, 1000);
    assert!(lost.len() >= 4, "asked again soon: {lost:?}");
    let pong = packet::single(&ServerMessage::Pong {
        t: lost[3],
        server_time: 0.0,
        tick: 1,
        received: 0,
    });
    client.receive(&pong, lost[3] + 200.0).expect("a pong");
    assert_eq!(client.stats(1000.0).rtt_ms, Some(200.0));
    let steady = pings(&mut client, 1000, 5000);
    assert!(steady.len() <= 5, "once a second: {steady:?}");
}

fn letter(number: u32) -> Vec<u8> {
    packet::single(&ServerMessage::Event {
        name: "Letter".into(),
        args: Args(vec![Value::Number(f64::from(number))]),
    })
}

/// The numbers of the letters among the events, in their order.
fn letters(client: &mut Client) -> Vec<u32> {
    let events = std::iter::from_fn(|| client.take_event());
    let number = |event| match event {
        ClientEvent::Remote { args, .. } => match args.0.first() {
            Some(Value::Number(number)) => Some(*number as u32),
            _ => None,
        },
        _ => None,
    };
    events.filter_map(number).collect()
}

#[test]
fn a_host_that_takes_no_events_loses_the_connection_but_no_reliable_event() {
    let mut client = joined();
    let took_in = (0..10_000).take_while(|number| client.receive(&letter(*number), 0.0).is_ok());
    let took_in = took_in.count() as u32;
    assert!(took_in >= 4000, "{took_in}");
    assert_eq!(letters(&mut client), (0..took_in).collect::<Vec<_>>());
    // The rest was not received, and is sent again on the next connection.
    assert_eq!(client.output.channel.received(), took_in);
}

#[test]
fn all_events_of_one_packet_are_reported() {
    let mut client = joined();
    let packet: Vec<u8> = (0..10_000).flat_map(letter).collect();
    client.receive(&packet, 0.0).expect("one packet");
    assert_eq!(letters(&mut client), (0..10_000).collect::<Vec<_>>());
    client.receive(&letter(10_000), 0.0).expect("room again");
}

#[test]
fn transient_events_leave_capacity_for_reliable_ones() {
    let mut client = joined();
    let flicker = packet::single(&ServerMessage::UnreliableEvent {
        name: "Flickers".into(),
        args: Args::default(),
    });
    for _ in 0..10_000 {
        client
            .receive(&flicker, 0.0)
            .expect("not a reason to leave");
    }
    client.receive(&letter(7), 0.0).expect("there is room");
    assert_eq!(letters(&mut client), [7]);
}
