//! How many strings a client may bring into the scripts' VM.
//!
//! Luau keeps every string once, in a table whose hash has no secret: 20,000
//! names that were chosen to collide take it seconds to tell apart. So what
//! comes from clients is counted, and few enough get in.

use std::collections::HashMap;

use frolic_protocol::Value;

use crate::player::PlayerNumber;

/// Strings at once.
const BURST: f32 = 512.0;
/// Strings per second after that.
const PER_SECOND: f32 = 1000.0;

/// What each player has left.
#[derive(Debug, Default)]
pub(crate) struct Words {
    left: HashMap<PlayerNumber, Allowance>,
}

#[derive(Debug)]
struct Allowance {
    left: f32,
    tick: u32,
}

impl Words {
    /// Whether what a player sends at `tick` still gets in.
    pub fn admit(&mut self, player: PlayerNumber, tick: u32, tick_hz: u32, args: &[Value]) -> bool {
        let allowance = self
            .left
            .entry(player)
            .or_insert(Allowance { left: BURST, tick });
        let seconds = tick.saturating_sub(allowance.tick) as f32 / tick_hz as f32;
        allowance.left = (allowance.left + seconds * PER_SECOND).min(BURST);
        allowance.tick = tick;
        // The name of the event is one of them.
        let wanted = 1.0 + args.iter().map(strings_of).sum::<usize>() as f32;
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
        Value::String(_) => 1,
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
        let mut words = Words::default();
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
    fn keys_and_nested_strings_count_numbers_do_not() {
        let map = Value::Map([("a".to_owned(), text()), ("b".to_owned(), Value::Nil)].into());
        assert_eq!(strings_of(&map), 3);
        assert_eq!(strings_of(&Value::List(vec![Value::Number(1.0); 9])), 0);
    }
}
