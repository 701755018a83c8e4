//! A client's message log between two processes of a server: reliable messages, as
//! bytes that are opaque to everything else.

use serde::{Deserialize, Serialize, Serializer};

use super::{COUNT_MAX, SentLog};
use crate::message::ServerMessage;
use crate::packet::{self, SERVER_MESSAGE_BYTES_MAX};
use crate::value::Args;

/// Raised with every change of [`ServerMessage`] or of this format. Logs of another
/// version are ignored.
const VERSION: u8 = 1;
/// Bytes of everything but the messages.
const HEAD_BYTES: usize = 32;

/// A reliable message as it was sent, and the value that it repeats from the
/// client's request. Logs are persisted about every second, so nothing is encoded
/// again for that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PersistedPacket<'a> {
    /// See [`packet::single`].
    #[serde(serialize_with = "as_bytes")]
    pub packet: &'a [u8],
    /// JSON; see `json::encode_counted`.
    pub echo: Option<String>,
}

impl PersistedPacket<'_> {
    /// Upper bound of its size in [`PersistedLog::to_bytes`].
    fn bytes(&self) -> usize {
        self.packet.len() + self.echo.as_ref().map_or(0, String::len) + 8
    }
}

fn as_bytes<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

/// A decoded reliable message.
#[derive(Clone, Debug, PartialEq)]
pub struct PersistedMessage {
    /// The message.
    pub message: ServerMessage,
    /// As [`PersistedPacket::echo`].
    pub echo: Option<String>,
}

/// A call that was received and not answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistedCall {
    /// From the invoke.
    pub id: u32,
    /// As [`PersistedPacket::echo`], for its answer.
    pub echo: Option<String>,
}

impl PersistedCall {
    /// Upper bound of its size in [`PersistedLog::to_bytes`].
    pub fn bytes(&self) -> usize {
        self.echo.as_ref().map_or(0, String::len) + 16
    }
}

/// Unacknowledged messages in order, and calls that will not be answered any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PersistedLog<M> {
    /// Number of the message before the first.
    pub base: u32,
    /// Number of the newest message that was sent.
    pub written: u32,
    /// Whether the client acknowledges through snapshots.
    pub confirms: bool,
    /// The messages after `base`, without a gap.
    pub messages: Vec<M>,
    /// Calls that the next process must answer with an error.
    pub calls: Vec<PersistedCall>,
}

impl<M> Default for PersistedLog<M> {
    fn default() -> Self {
        Self {
            base: 0,
            written: 0,
            confirms: false,
            messages: Vec::new(),
            calls: Vec::new(),
        }
    }
}

impl<'a> PersistedLog<PersistedPacket<'a>> {
    /// The messages of a log after `after` and up to `until`, in up to about
    /// `bytes_max` bytes. The oldest are dropped when it is full, as in the log
    /// itself: a peer that asks for them is notified of the gap.
    pub fn of<M>(
        log: &'a SentLog<M>,
        (after, until): (u32, u32),
        bytes_max: usize,
        as_persisted: impl Fn(&'a M) -> PersistedPacket<'a>,
    ) -> Self {
        let (base, unconfirmed) = log.unconfirmed();
        let until = until.clamp(base, log.sent());
        let after = after.clamp(base, until);
        let (skipped, count) = ((after - base) as usize, (until - after) as usize);
        let wanted = unconfirmed.skip(skipped).take(count);
        let mut room = bytes_max.saturating_sub(HEAD_BYTES);
        let mut messages = Vec::new();
        for message in wanted.rev() {
            let persisted = as_persisted(message);
            let Some(left) = room.checked_sub(persisted.bytes()) else {
                break;
            };
            room = left;
            messages.push(persisted);
        }
        messages.reverse();
        Self {
            base: until - messages.len() as u32,
            written: log.written().min(until),
            confirms: false,
            messages,
            calls: Vec::new(),
        }
    }

    /// Empty for a log that never had anything.
    pub fn to_bytes(&self) -> Vec<u8> {
        if *self == Self::default() {
            return Vec::new();
        }
        postcard::to_stdvec(&(VERSION, self)).unwrap_or_default()
    }
}

impl PersistedLog<PersistedMessage> {
    /// Reads what [`to_bytes`](PersistedLog::to_bytes) wrote; none for another version.
    /// Entities that are not persistent become nil: they ended with their process,
    /// and their ids are reused. The log may be followed by others that were
    /// written later and have calls only.
    pub fn from_bytes(bytes: &[u8], lasts: &impl Fn(u32) -> bool) -> Option<Self> {
        let (mut log, mut rest) = read_one(bytes)?;
        while !rest.is_empty() {
            let (later, behind) = read_one(rest)?;
            log.calls = later.calls;
            rest = behind;
        }
        if log.base > COUNT_MAX {
            return None;
        }
        let messages = log.messages.into_iter().map(|persisted| {
            let mut found = packet::read(persisted.packet, SERVER_MESSAGE_BYTES_MAX).ok()?;
            let mut message = found.pop().filter(|_| found.is_empty())?;
            retain_entities(&mut message, lasts);
            let echo = persisted.echo;
            Some(PersistedMessage { message, echo })
        });
        Some(Self {
            base: log.base,
            written: log.written,
            confirms: log.confirms,
            messages: messages.collect::<Option<_>>()?,
            calls: log.calls,
        })
    }
}

/// The first log in the bytes, and the rest.
fn read_one(bytes: &[u8]) -> Option<(PersistedLog<PersistedPacket<'_>>, &[u8])> {
    let (version, rest) = bytes.split_first()?;
    if *version != VERSION {
        return None;
    }
    postcard::take_from_bytes(rest).ok()
}

fn retain_entities(message: &mut ServerMessage, lasts: &impl Fn(u32) -> bool) {
    let (ServerMessage::Event { args, .. }
    | ServerMessage::InvokeResult {
        result: Ok(args), ..
    }) = message
    else {
        return;
    };
    let Args(values) = std::mem::take(args);
    let values = values.into_iter().map(|value| value.with_entities(lasts));
    *args = Args(values.collect());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    fn event(number: f64) -> Vec<u8> {
        packet::single(&ServerMessage::Event {
            name: "Falls".into(),
            args: Args(vec![
                Value::Number(number),
                Value::List(vec![Value::Entity(7), Value::Entity(1_000_007)]),
            ]),
        })
    }

    fn push(log: &mut SentLog<Vec<u8>>, packet: Vec<u8>) {
        let bytes = packet.len();
        log.push(packet, bytes);
    }

    fn persisted(log: &SentLog<Vec<u8>>, bytes_max: usize) -> Vec<u8> {
        let all = (0, u32::MAX);
        let persisted = PersistedLog::of(log, all, bytes_max, |packet| PersistedPacket {
            packet,
            echo: Some("\"label\"".into()),
        });
        persisted.to_bytes()
    }

    fn read(bytes: &[u8]) -> Option<PersistedLog<PersistedMessage>> {
        PersistedLog::from_bytes(bytes, &|id| id < 1_000_000)
    }

    #[test]
    fn what_was_not_confirmed_is_read_again_but_for_entities_that_are_gone() {
        let mut log = SentLog::default();
        for number in 1..=4 {
            push(&mut log, event(f64::from(number)));
        }
        log.mark_all_written();
        log.confirm(1);
        let back = read(&persisted(&log, 1000)).unwrap();
        assert_eq!((back.base, back.written), (1, 4));
        let last = back.messages.last().unwrap();
        assert_eq!(last.echo.as_deref(), Some("\"label\""));
        let ServerMessage::Event { args, .. } = &last.message else {
            panic!("{last:?}");
        };
        let entities = Value::List(vec![Value::Entity(7), Value::Nil]);
        assert_eq!(args.0, [Value::Number(4.0), entities]);

        // With little capacity the newest are retained, and a peer that asks for
        // the others is notified of the gap.
        let room_for_two = HEAD_BYTES + 2 * (event(1.0).len() + 15);
        let bytes = persisted(&log, room_for_two);
        let back = read(&bytes).unwrap();
        assert_eq!((back.base, back.messages.len()), (2, 2));
        assert!(bytes.len() <= room_for_two, "{}", bytes.len());
        let of = |range| {
            PersistedLog::of(&log, range, 1000, |packet| PersistedPacket {
                packet,
                echo: None,
            })
        };
        let some = of((2, 3));
        assert_eq!((some.base, some.messages.len(), some.written), (2, 1, 3));
        assert_eq!((of((9, 0)).base, of((9, 9)).base), (1, 4));
    }

    /// When this fails, [`VERSION`] must be raised: a process of the new version
    /// would misread these bytes.
    #[test]
    fn the_form_is_the_one_of_its_version() {
        let mut log = SentLog::default();
        push(&mut log, event(1.0));
        let chat = ServerMessage::Chat {
            from: "Ada".into(),
            text: "hello".into(),
            player_id: "user_1".into(),
        };
        push(&mut log, packet::single(&chat));
        let result = Ok(Args(vec![Value::Nil]));
        let answer = ServerMessage::InvokeResult { id: 3, result };
        push(&mut log, packet::single(&answer));
        let mut hex = String::new();
        for byte in persisted(&log, 1000) {
            hex.push_str(&format!("{byte:02x}"));
        }
        let version_1 = "01000000031817090546616c6c730f020401080207070000000747420f000107226c6162656c22\
            13120b034164610568656c6c6f06757365725f310107226c6162656c22\
            07060a03000201000107226c6162656c2200";
        assert_eq!(hex, version_1);
    }

    #[test]
    fn bytes_of_another_version_are_left_alone() {
        let mut log = SentLog::default();
        assert!(persisted(&log, 1000).is_empty());
        assert_eq!(read(&[]), None);
        push(&mut log, event(1.0));
        let mut bytes = persisted(&log, 1000);
        bytes.truncate(bytes.len() - 1);
        assert_eq!(read(&bytes), None);
        bytes[0] = VERSION + 1;
        assert_eq!(read(&bytes), None);
    }

    #[test]
    fn calls_that_were_persisted_later_follow_the_log() {
        let mut log = SentLog::default();
        push(&mut log, event(1.0));
        let calls = |ids: &[u32]| {
            let call = |id: &u32| PersistedCall {
                id: *id,
                echo: None,
            };
            let calls = ids.iter().map(call).collect();
            let log: PersistedLog<PersistedPacket<'_>> = PersistedLog {
                calls,
                ..PersistedLog::default()
            };
            log.to_bytes()
        };
        let bytes = [persisted(&log, 1000), calls(&[3, 4]), calls(&[4, 5])].concat();
        let back = read(&bytes).unwrap();
        assert_eq!(back.messages.len(), 1);
        let ids: Vec<u32> = back.calls.iter().map(|call| call.id).collect();
        assert_eq!(ids, [4, 5], "the last word counts");
        assert_eq!(read(&calls(&[6])).unwrap().calls[0].id, 6);
        assert_eq!(read(&bytes[..bytes.len() - 1]), None);
    }

    #[test]
    fn invalid_messages_are_not_sent() {
        for damaged in [vec![], vec![0xff; 40], [event(1.0), event(2.0)].concat()] {
            let mut log = SentLog::default();
            push(&mut log, damaged);
            assert_eq!(read(&persisted(&log, 1000)), None);
        }
    }
}
