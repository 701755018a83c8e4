//! Limits the distinct strings that a client may intern in the script VM.
//!
//! Luau interns every string in a table whose hash has no secret: 20,000 names
//! chosen to collide cost it seconds. So strings from clients are counted and
//! limited.
//!
//! What is rejected is not recorded, so a replay does not see it. That must not
//! affect what is accepted: a rejected request costs nothing.

use std::collections::HashMap;

use frolic_protocol::Value;
use frolic_protocol::token_bucket::{RateLimit, TokenBucket};

use crate::player::PlayerNumber;

/// Strings that a player may send.
const STRINGS: RateLimit = RateLimit {
    burst: 512.0,
    per_s: 1000.0,
};

/// The remaining quota of each player.
#[derive(Debug, Default)]
pub(crate) struct StringQuota {
    left: HashMap<PlayerNumber, TokenBucket>,
}

impl StringQuota {
    /// Whether what a player sends at `tick` is within the quota.
    pub fn admit(&mut self, player: PlayerNumber, tick: u32, tick_hz: u32, args: &[Value]) -> bool {
        // The name of the event counts as one.
        let strings = 1 + args.iter().map(strings_of).sum::<usize>();
        let now_s = f64::from(tick) / f64::from(tick_hz.max(1));
        let bucket = self.left.entry(player).or_default();
        bucket.take(STRINGS, strings as f64, now_s).is_ok()
    }

    /// Removes a player.
    pub fn forget(&mut self, player: PlayerNumber) {
        self.left.remove(&player);
    }
}

/// Decoding limits the nesting depth of values.
fn strings_of(value: &Value) -> usize {
    match value {
        Value::String(_) | Value::Buffer(_) => 1,
        Value::List(items) => items.iter().map(strings_of).sum(),
        Value::Map(map) => map.values().map(|value| 1 + strings_of(value)).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Value {
        Value::String("x".into())
    }

    #[test]
    fn a_flood_of_strings_is_refused_and_ends() {
        let mut words = StringQuota::default();
        let many = vec![Value::List(vec![text(); 100])];
        let passed = (0..60)
            .filter(|tick| words.admit(1, *tick, 60, &many))
            .count();
        // 512 in a burst and 1,000 in the second that passes, 101 each.
        assert_eq!(passed, 14);
        assert!(words.admit(2, 60, 60, &many), "others are not concerned");
        assert!(words.admit(1, 120, 60, &many), "a second later");
    }

    #[test]
    fn asking_in_vain_changes_nothing() {
        for tick_hz in [7, 20, 30, 60, 144] {
            let (mut often, mut seldom) = (StringQuota::default(), StringQuota::default());
            let some = vec![text(); 36];
            for tick in 0..2_000 {
                if often.admit(1, tick, tick_hz, &some) {
                    assert!(seldom.admit(1, tick, tick_hz, &some), "{tick} at {tick_hz}");
                }
            }
        }
    }

    #[test]
    fn keys_and_nested_strings_count_numbers_do_not() {
        let map = Value::Map([("a".to_owned(), text()), ("b".to_owned(), Value::Nil)].into());
        assert_eq!(strings_of(&map), 3);
        assert_eq!(strings_of(&Value::List(vec![Value::Number(1.0); 9])), 0);
    }
}
