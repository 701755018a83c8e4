//! What a server had for a client, between two of its processes: a log of
//! messages that count, as bytes that nobody else looks into.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::SentLog;
use crate::message::ServerMessage;
use crate::value::Args;

/// Rises with every change of [`ServerMessage`] or of this form. What another
/// version wrote is not read.
const VERSION: u8 = 1;
/// Bytes of everything but the messages.
const HEAD_BYTES: usize = 32;

/// A message that counts, and what the client wants to have back in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptMessage<'a> {
    /// What it says.
    pub message: Cow<'a, ServerMessage>,
    /// JSON; see `json::encode_counted`.
    pub echo: Option<Cow<'a, str>>,
}

impl KeptMessage<'_> {
    /// As much as it takes in [`KeptLog::to_bytes`], or more.
    fn bytes(&self, message_bytes: usize) -> usize {
        message_bytes + self.echo.as_ref().map_or(0, |echo| echo.len()) + 8
    }
}

/// A call that was heard and not answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptCall<'a> {
    /// From the invoke.
    pub id: u32,
    /// As [`KeptMessage::echo`], for its answer.
    pub echo: Option<Cow<'a, str>>,
}

/// Messages that were not confirmed, in their order, and calls that nobody will
/// answer any more.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptLog<'a> {
    /// Number of the message before the first.
    pub base: u32,
    /// Number of the newest that was told.
    pub told: u32,
    /// Whether the client confirms with snapshots what it has.
    pub confirms: bool,
    /// Those behind `base`, without a gap.
    pub messages: Vec<KeptMessage<'a>>,
    /// Calls that the next process says so of.
    pub calls: Vec<KeptCall<'a>>,
}

impl<'a> KeptLog<'a> {
    /// What a log has to keep of the messages behind `after` and up to `until`,
    /// in up to about so many bytes. The oldest make room, as they do in the
    /// log itself: who asks for them is told of the gap.
    pub fn of<M>(
        log: &'a SentLog<M>,
        (after, until): (u32, u32),
        bytes_max: usize,
        as_kept: impl Fn(&'a M) -> KeptMessage<'a>,
    ) -> Self {
        let (base, unconfirmed) = log.unconfirmed();
        let until = until.clamp(base, log.sent());
        let after = after.clamp(base, until);
        let (skipped, count) = ((after - base) as usize, (until - after) as usize);
        let wanted = unconfirmed.skip(skipped).take(count);
        let mut room = bytes_max.saturating_sub(HEAD_BYTES);
        let mut messages = Vec::new();
        for (message, bytes) in wanted.rev() {
            let kept = as_kept(message);
            let Some(left) = room.checked_sub(kept.bytes(bytes)) else {
                break;
            };
            room = left;
            messages.push(kept);
        }
        messages.reverse();
        Self {
            base: until - messages.len() as u32,
            told: log.told().min(until),
            confirms: false,
            messages,
            calls: Vec::new(),
        }
    }

    /// Nothing for a log that never had anything.
    pub fn to_bytes(&self) -> Vec<u8> {
        if *self == KeptLog::default() {
            return Vec::new();
        }
        postcard::to_stdvec(&(VERSION, self)).unwrap_or_default()
    }
}

impl KeptLog<'static> {
    /// Reads what [`to_bytes`](Self::to_bytes) wrote; nothing that was written by
    /// another version. Entities that do not last are nil: they ended with
    /// their process, and their ids are given again.
    pub fn from_bytes(bytes: &[u8], lasts: &impl Fn(u32) -> bool) -> Option<Self> {
        let (version, rest) = bytes.split_first()?;
        if *version != VERSION {
            return None;
        }
        let mut log: Self = postcard::from_bytes(rest).ok()?;
        for kept in &mut log.messages {
            match kept.message.to_mut() {
                ServerMessage::Event { args, .. }
                | ServerMessage::InvokeResult {
                    result: Ok(args), ..
                } => keep_entities(args, lasts),
                _ => {}
            }
        }
        Some(log)
    }
}

fn keep_entities(args: &mut Args, lasts: &impl Fn(u32) -> bool) {
    let values = std::mem::take(&mut args.0).into_iter();
    args.0 = values.map(|value| value.with_entities(lasts)).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    fn event(number: f64) -> ServerMessage {
        ServerMessage::Event {
            name: "Falls".into(),
            args: Args(vec![
                Value::Number(number),
                Value::List(vec![Value::Entity(7), Value::Entity(1_000_007)]),
            ]),
        }
    }

    fn kept(log: &SentLog<ServerMessage>, bytes_max: usize) -> Vec<u8> {
        let all = (0, u32::MAX);
        let kept = KeptLog::of(log, all, bytes_max, |message| KeptMessage {
            message: Cow::Borrowed(message),
            echo: Some("\"label\"".into()),
        });
        kept.to_bytes()
    }

    fn read(bytes: &[u8]) -> Option<KeptLog<'static>> {
        KeptLog::from_bytes(bytes, &|id| id < 1_000_000)
    }

    #[test]
    fn what_was_not_confirmed_is_read_again_but_for_entities_that_are_gone() {
        let mut log = SentLog::default();
        for number in 1..=4 {
            log.push(event(f64::from(number)), 40);
        }
        log.tell_all();
        log.confirm(1);
        let back = read(&kept(&log, 1000)).unwrap();
        assert_eq!((back.base, back.told), (1, 4));
        let last = back.messages.last().unwrap();
        assert_eq!(last.echo.as_deref(), Some("\"label\""));
        let ServerMessage::Event { args, .. } = &*last.message else {
            panic!("{last:?}");
        };
        let entities = Value::List(vec![Value::Entity(7), Value::Nil]);
        assert_eq!(args.0, [Value::Number(4.0), entities]);

        // With little room the newest are kept, and whoever asks for the others
        // is told of the gap.
        let bytes = kept(&log, HEAD_BYTES + 2 * 55);
        let back = read(&bytes).unwrap();
        assert_eq!((back.base, back.messages.len()), (2, 2));
        assert!(bytes.len() <= HEAD_BYTES + 2 * 55, "{}", bytes.len());
        let of = |range| {
            KeptLog::of(&log, range, 1000, |message| KeptMessage {
                message: Cow::Borrowed(message),
                echo: None,
            })
        };
        let some = of((2, 3));
        assert_eq!((some.base, some.messages.len(), some.told), (2, 1, 3));
        assert_eq!((of((9, 0)).base, of((9, 9)).base), (1, 4));
    }

    /// When this fails, [`VERSION`] has to rise: a process of the new version
    /// would take these bytes for something else.
    #[test]
    fn the_form_is_the_one_of_its_version() {
        let mut log = SentLog::default();
        log.push(event(1.0), 40);
        let chat = ServerMessage::Chat {
            from: "Ada".into(),
            text: "hello".into(),
            player_id: "user_1".into(),
        };
        log.push(chat, 20);
        let result = Ok(Args(vec![Value::Nil]));
        log.push(ServerMessage::InvokeResult { id: 3, result }, 10);
        let mut hex = String::new();
        for byte in kept(&log, 1000) {
            hex.push_str(&format!("{byte:02x}"));
        }
        let version_1 = "0100000003090546616c6c730f020401080207070000000747420f000107226c6162656c22\
            0b034164610568656c6c6f06757365725f310107226c6162656c22\
            0a03000201000107226c6162656c2200";
        assert_eq!(hex, version_1);
    }

    #[test]
    fn bytes_of_another_version_are_left_alone() {
        assert!(KeptLog::default().to_bytes().is_empty());
        assert_eq!(read(&[]), None);
        let mut log = SentLog::default();
        log.push(event(1.0), 40);
        let mut bytes = kept(&log, 1000);
        bytes.truncate(bytes.len() - 1);
        assert_eq!(read(&bytes), None);
        bytes[0] = VERSION + 1;
        assert_eq!(read(&bytes), None);
    }
}
