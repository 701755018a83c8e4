//! Frames as clients send them, whole and split anywhere; and what is refused.

use super::*;
use proptest::prelude::*;

const MAX: usize = 70_000;

/// A frame as a client writes it.
fn frame(first: u8, payload: &[u8], mask: [u8; 4]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ 0..126 => bytes.push(0x80 | length as u8),
        length @ 126..0x1_0000 => {
            bytes.push(0x80 | 126);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            bytes.push(0x80 | 127);
            bytes.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&mask);
    let masked = payload.iter().zip(mask.iter().cycle());
    bytes.extend(masked.map(|(byte, mask)| byte ^ mask));
    bytes
}

/// An owned copy of what was read.
#[derive(Clone, Debug, PartialEq)]
enum Came {
    Binary(Vec<u8>),
    Text(String),
    Piece,
    Ping(Vec<u8>),
    Pong,
    Close(Option<u16>),
}

fn read(reader: &mut FrameReader, bytes: &[u8]) -> Result<Vec<Came>, FrameError> {
    let mut came = Vec::new();
    reader.read::<FrameError>(&mut bytes.to_vec(), &mut |incoming| {
        came.push(match incoming {
            Incoming::Binary(bytes) => Came::Binary(bytes.to_vec()),
            Incoming::Text(text) => Came::Text(text.to_owned()),
            Incoming::Piece => Came::Piece,
            Incoming::Ping(bytes) => Came::Ping(bytes.to_vec()),
            Incoming::Pong => Came::Pong,
            Incoming::Close(code) => Came::Close(code),
        });
        Ok(())
    })?;
    Ok(came)
}

fn any_came() -> impl Strategy<Value = Came> {
    let control = || prop::collection::vec(any::<u8>(), 0..=CONTROL_BYTES_MAX);
    prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..300).prop_map(Came::Binary),
        1 => (65_000usize..66_000).prop_map(|length| Came::Binary(vec![9; length])),
        2 => ".{0,80}".prop_map(Came::Text),
        1 => control().prop_map(Came::Ping),
        1 => Just(Came::Pong),
    ]
}

/// The frames of one message, split into as many fragments as there are `cuts`.
fn frames(came: &Came, cuts: &[prop::sample::Index], mask: [u8; 4]) -> (Vec<u8>, Vec<Came>) {
    let (opcode, payload) = match came {
        Came::Binary(bytes) => (2, &bytes[..]),
        Came::Text(text) => (1, text.as_bytes()),
        Came::Ping(bytes) => return (frame(0x89, bytes, mask), vec![came.clone()]),
        _ => return (frame(0x8a, b"x", mask), vec![came.clone()]),
    };
    let mut at: Vec<usize> = cuts
        .iter()
        .map(|cut| cut.index(payload.len() + 1))
        .collect();
    at.sort_unstable();
    let starts = std::iter::once(0).chain(at.iter().copied());
    let ends = at.iter().copied().chain([payload.len()]);
    let mut bytes = Vec::new();
    for (index, (start, end)) in starts.zip(ends).enumerate() {
        let last = if index == at.len() { 0x80 } else { 0 };
        let opcode = if index == 0 { opcode } else { 0 };
        bytes.extend(frame(last | opcode, &payload[start..end], mask));
    }
    let mut all = vec![Came::Piece; at.len()];
    all.push(came.clone());
    (bytes, all)
}

proptest! {
    #[test]
    fn messages_come_whole_however_they_are_cut(
        messages in prop::collection::vec((any_came(), prop::collection::vec(any::<prop::sample::Index>(), 0..3), any::<[u8; 4]>()), 1..6),
        read_bytes in 1usize..2_000,
    ) {
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        for (came, cuts, mask) in &messages {
            let (framed, all) = frames(came, cuts, *mask);
            bytes.extend(framed);
            expected.extend(all);
        }
        let mut reader = FrameReader::new(MAX);
        let mut came = Vec::new();
        for part in bytes.chunks(read_bytes) {
            came.extend(read(&mut reader, part).unwrap());
        }
        prop_assert_eq!(came, expected);
        prop_assert_eq!(reader.begun.capacity(), 0, "nothing is stored between messages");
    }

    #[test]
    fn any_bytes_are_refused_or_read_and_never_keep_more_than_a_message(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20)) {
        let mut reader = FrameReader::new(1_000);
        for part in parts {
            if read(&mut reader, &part).is_err() {
                break;
            }
            prop_assert!(reader.begun.len() <= 1_000 + HEADER_BYTES_MAX);
            prop_assert!(reader.message.as_ref().is_none_or(|pieces| pieces.bytes.len() <= 1_000));
        }
    }
}

#[test]
fn what_clients_may_not_send_is_refused_with_a_reason() {
    let mask = [1, 2, 3, 4];
    let unmasked = vec![0x82, 1, 7];
    let announced = |bytes: u64| {
        let mut head = vec![0x82, 0xff];
        head.extend_from_slice(&bytes.to_be_bytes());
        head
    };
    let within = [frame(0x02, b"a", mask), frame(0x82, b"b", mask)].concat();
    let grown = [
        frame(0x02, &[0; 40_000], mask),
        frame(0x80, &[0; 40_000], mask),
    ]
    .concat();
    for (bytes, reason) in [
        (unmasked, "not masked"),
        (frame(0xc2, b"a", mask), "reserved bits"),
        (frame(0x83, b"a", mask), "unknown kind"),
        (frame(0x8b, b"a", mask), "unknown kind"),
        (frame(0x80, b"a", mask), "nothing is there to be continued"),
        (within, "begins within another"),
        (frame(0x09, b"a", mask), "control frame"),
        (frame(0x89, &[0; 126], mask), "control frame"),
        (frame(0x88, &[3], mask), "half a code"),
        (frame(0x81, &[0xff], mask), "not UTF-8"),
        (announced(MAX as u64 + 1), "at most 70000 bytes"),
        (announced(u64::MAX), "at most 70000 bytes"),
        (grown, "at most 70000 bytes"),
    ] {
        let error = read(&mut FrameReader::new(MAX), &bytes).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}, not {reason}");
    }
}

#[test]
fn control_frames_come_between_the_pieces_of_a_message() {
    let mask = [9; 4];
    let bytes = [
        frame(0x01, "gr\u{fc}".as_bytes().split_at(3).0, mask),
        frame(0x89, b"there?", mask),
        frame(0x80, &"gr\u{fc}\u{df}e".as_bytes()[3..], mask),
    ]
    .concat();
    let came = read(&mut FrameReader::new(MAX), &bytes).unwrap();
    let expected = [
        Came::Piece,
        Came::Ping(b"there?".to_vec()),
        Came::Text("gr\u{fc}\u{df}e".into()),
    ];
    assert_eq!(came, expected, "a letter may be cut in two");
}

#[test]
fn nothing_is_read_behind_the_end() {
    let mask = [0; 4];
    let bytes = [frame(0x88, &[3, 232], mask), frame(0x82, b"more", mask)].concat();
    let mut reader = FrameReader::new(MAX);
    assert_eq!(
        read(&mut reader, &bytes).unwrap(),
        [Came::Close(Some(1000))]
    );
    assert_eq!(read(&mut reader, &bytes).unwrap(), []);
    assert_eq!(reader.begun.len(), 0);
}
