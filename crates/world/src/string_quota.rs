//! Limits the distinct strings that a client may intern in the script VM.
//!
//! Luau keeps every string once, in a table whose hash has no secret: 20,000
//! names that were chosen to collide take it seconds to tell apart. So what
//! comes from clients is counted, and few enough get in.
//!
//! What is kept out is not recorded, so a replay does not ask for it. That must
//! make no difference to what gets in: strings are counted in parts without a
//! remainder, and asking costs nothing.

use std::collections::HashMap;

use frolic_protocol::Value;

use crate::player::PlayerNumber;

/// Strings at once.
const BURST: u64 = 512;
/// Strings per second after that.
const PER_SECOND: u64 = 1000;

/// What each player has left.
#[derive(Debug, Default)]
pub(crate) struct StringQuota {
    left: HashMap<PlayerNumber, Allowance>,
}

#[derive(Debug)]
struct Allowance {
    /// In parts of a string, of which it has as many as a second has ticks: so
    /// what comes back in a tick is a whole number of them.
    left: u64,
    tick: u32,
}

impl StringQuota {
    /// Whether what a player sends at `tick` still gets in.
    pub fn admit(&mut self, player: PlayerNumber, tick: u32, tick_hz: u32, args: &[Value]) -> bool {
        let parts = u64::from(tick_hz.max(1));
        let most = BURST * parts;
        let full = Allowance { left: most, tick };
        let allowance = self.left.entry(player).or_insert(full);
        let ticks = tick.saturating_sub(allowance.tick);
        allowance.left = (allowance.left + u64::from(ticks) * PER_SECOND).min(most);
        allowance.tick = tick;
        // The name of the event is one of them.
        let strings = 1 + args.iter().map(strings_of).sum::<usize>();
        let wanted = strings as u64 * parts;
        let enough = wanted <= allowance.left;
        if enough {
            allowance.left -= wanted;
        }
        enough
    }

    /// A player is gone.
    pub fn forget(&mut self, player: PlayerNumber) {
        self.left.remove(&player);
    }
}

/// Decoding bounds how deep values are nested.
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
    fn a_flood_of_strings_is_kept_out_and_ends() {
        let mut words = StringQuota::default();
        let many = vec![Value::List(vec![text(); 100])];
        let passed = (0..60)
            .filter(|tick| words.admit(1, *tick, 60, &many))
            .count();
        // 512 at once and 1,000 in the second that passes, 101 each.
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
