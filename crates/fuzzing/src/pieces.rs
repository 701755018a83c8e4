//! Small things that come inside of others: parts of packets, what an entity's
//! definition does not say, and how a character looks.

use std::collections::BTreeMap;

use frolic_protocol::avatar::AvatarLooks;
use frolic_protocol::details::{Details, Looks};
use frolic_protocol::fragment::{self, Assembler, Fragment, PARTS_MAX};
use frolic_protocol::packet::SERVER_MESSAGE_BYTES_MAX;
use frolic_protocol::{Value, packet};

/// Arbitrary fragments arrive: a completed packet consists of bytes among them.
/// Then an honest packet arrives in fragments, in the order that the bytes
/// give, and is completed whatever came before it.
pub fn parts(bytes: &[u8]) {
    let Ok(foreign) = packet::read::<Fragment>(bytes, SERVER_MESSAGE_BYTES_MAX) else {
        return;
    };
    let mut assembler = Assembler::default();
    let mut pushed: BTreeMap<u32, usize> = BTreeMap::new();
    for part in foreign {
        let number = part.packet;
        *pushed.entry(number).or_default() += part.bytes.len();
        if let Some(whole) = assembler.push(part) {
            assert!(whole.len() <= pushed[&number], "more than there was");
            assert!(whole.len() <= PARTS_MAX * fragment::PART_DATAGRAM_BYTES);
            whole_again(&whole);
        }
    }
    let honest: Vec<u8> = bytes.iter().copied().cycle().take(3_000).collect();
    if honest.is_empty() {
        return;
    }
    let unused = (0..).find(|number| !pushed.contains_key(number));
    let unused = unused.expect("few packets came before it");
    let cut = fragment::cut(unused, &honest).expect("it is short");
    let mut parts: Vec<Fragment> = cut.collect();
    parts.sort_by_key(|part| bytes[usize::from(part.index) % bytes.len()]);
    let last = parts.pop().expect("there are three");
    for part in parts {
        assert_eq!(assembler.push(part.clone()), None);
        assert_eq!(assembler.push(part), None, "twice is once");
    }
    assert_eq!(assembler.push(last), Some(honest));
}

/// Fragmented again, a packet is the same.
fn whole_again(whole: &[u8]) {
    let mut assembler = Assembler::default();
    let Some(parts) = fragment::cut(7, whole) else {
        return;
    };
    let again: Vec<Vec<u8>> = parts.filter_map(|part| assembler.push(part)).collect();
    assert_eq!(again.concat(), whole);
}

pub fn part_seeds() -> Vec<Vec<u8>> {
    let long: Vec<u8> = (0..4_000u32).map(|at| at as u8).collect();
    let parts = |number, bytes| fragment::cut(number, bytes).into_iter().flatten();
    let in_order: Vec<Fragment> = parts(4, &long[..]).collect();
    let mut mixed: Vec<Fragment> = parts(5, &long[..2_500]).chain(parts(6, b"short")).collect();
    mixed.reverse();
    let write = |parts: &[Fragment]| {
        let mut bytes = Vec::new();
        parts
            .iter()
            .for_each(|part| packet::write(&mut bytes, part));
        bytes
    };
    vec![write(&in_order), write(&mixed), write(&mixed[..2])]
}

/// Decoded values are sane, and equal when encoded again. Bytes are compared,
/// because NaN is not equal to itself.
pub fn details(bytes: &[u8]) {
    let Some(details) = Details::decode(bytes) else {
        return;
    };
    let scale = details.looks.scale.unwrap_or_default();
    assert!(scale.iter().all(|part| part.is_finite()), "{scale:?}");
    let opacity = details.looks.opacity.unwrap_or_default();
    assert!((0.0..=1.0).contains(&opacity), "{opacity}");
    let written = details.encode();
    let again = Details::decode(&written).expect("what we write we read");
    assert_eq!(again.encode(), written);
}

pub fn detail_seeds() -> Vec<Vec<u8>> {
    let attributes = BTreeMap::from([
        ("Team".to_owned(), Value::String("red".into())),
        ("Speed".to_owned(), Value::Number(2.5)),
        (
            "Path".to_owned(),
            Value::List(vec![Value::Vector([1.0, 0.0, 2.0])]),
        ),
    ]);
    let looks = Looks {
        color: Some([1, 2, 3]),
        opacity: Some(0.5),
        scale: Some([2.0, 1.0, 0.5]),
    };
    [
        Details::default(),
        Details {
            attributes: attributes.clone(),
            looks: Looks::default(),
        },
        Details { attributes, looks },
    ]
    .iter()
    .map(Details::encode)
    .collect()
}

/// Any text is some character, which looks the same after both of its forms.
pub fn avatar(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let looks = AvatarLooks::from_json(text);
    let json = serde_json::to_string(&looks).expect("plain values");
    assert_eq!(AvatarLooks::from_json(&json), looks);
    let packed = packet::single(&looks);
    let read = packet::read::<AvatarLooks>(&packed, SERVER_MESSAGE_BYTES_MAX);
    assert_eq!(read, Ok(vec![looks]));
    // The strict form accepts nothing that the lenient one reads differently,
    // except lists without names, which no encoder writes.
    if text.trim_start().starts_with('{')
        && let Ok(strict) = serde_json::from_str::<AvatarLooks>(text)
    {
        assert_eq!(strict, looks, "{text}");
    }
}

pub fn avatar_seeds() -> Vec<Vec<u8>> {
    [
        r##"{"skin":"#ffdcb8","hair":"#000000","shirt":"#ff5d5d","trousers":"#123456","accent":"#ffffff","hat":"crown","face":"wink"}"##,
        r##"{"skin":null,"hair":null,"shirt":null,"trousers":null,"accent":null,"hat":"none","face":"smile"}"##,
        r##"{"hat":"top_hat","face":"cool","shirt":"red"}"##,
        "{}",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}
