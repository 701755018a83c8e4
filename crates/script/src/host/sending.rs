//! Limits of messages from scripts to players: bytes in a tick, and events on average,
//! counted for each script, so that one that floods silences only itself.
//! Counts alone decide, so a replay refuses the same.

use std::collections::BTreeMap;

use crate::limits::VmLimits;

/// Events that one script may send to each player at once.
const EVENTS_AT_ONCE: u32 = 2_048;
/// Events that one script may send to each player per tick on average.
const EVENTS_PER_TICK: u32 = 32;
/// Bytes of an event besides its name and arguments.
const EVENT_BYTES: usize = 16;

/// Bytes and events that scripts have sent, by the number of the script.
#[derive(Default)]
pub(crate) struct Sending {
    bytes: usize,
    bytes_by: BTreeMap<u32, usize>,
    /// Deliveries (an event to all players is one for each) that the average
    /// does not cover yet.
    ahead_by: BTreeMap<u32, u32>,
    players: u32,
}

impl Sending {
    pub fn begin_tick(&mut self, players: usize) {
        self.bytes = 0;
        self.bytes_by.clear();
        self.players = u32::try_from(players).unwrap_or(u32::MAX).max(1);
        let covered = EVENTS_PER_TICK.saturating_mul(self.players);
        self.ahead_by.retain(|_, ahead| {
            *ahead = ahead.saturating_sub(covered);
            *ahead > 0
        });
    }

    /// Takes one event, with the bytes of its name and arguments, off what a
    /// script may send.
    pub fn charge_event(
        &mut self,
        script: u32,
        to_all: bool,
        bytes: usize,
        limits: &VmLimits,
    ) -> Result<(), String> {
        let players = self.players.max(1);
        let deliveries = if to_all { players } else { 1 };
        let ahead = self.ahead_by.get(&script).copied().unwrap_or(0);
        let ahead = ahead.saturating_add(deliveries);
        if ahead > EVENTS_AT_ONCE.saturating_mul(players) {
            return Err(format!(
                "a script may send {EVENTS_PER_TICK} events per tick to each player; send several values in one event"
            ));
        }
        self.charge_bytes(script, bytes.saturating_add(EVENT_BYTES), limits)?;
        self.ahead_by.insert(script, ahead);
        Ok(())
    }

    /// Takes bytes off what a script may send in this tick: at most three quarters
    /// of what all may. What is refused does not count.
    pub fn charge_bytes(
        &mut self,
        script: u32,
        bytes: usize,
        limits: &VmLimits,
    ) -> Result<(), String> {
        let most = limits.send_bytes_per_tick;
        let share = most - most / 4;
        let own = self.bytes_by.entry(script).or_default();
        let (own_after, all_after) = (own.saturating_add(bytes), self.bytes.saturating_add(bytes));
        if own_after > share {
            return Err(format!(
                "a script may send {share} bytes per tick; send less or more rarely"
            ));
        }
        if all_after > most {
            return Err(format!(
                "scripts may send {most} bytes per tick; send less or more rarely"
            ));
        }
        *own = own_after;
        self.bytes = all_after;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: u32 = 1;
    const OTHER: u32 = 2;

    #[test]
    fn bytes_that_one_script_floods_are_left_for_others() {
        let limits = VmLimits {
            send_bytes_per_tick: 4_000,
            ..VmLimits::default()
        };
        let mut sending = Sending::default();
        sending.begin_tick(1);
        assert!(
            sending.charge_bytes(ONE, 5_000, &limits).is_err(),
            "too much"
        );
        assert_eq!(sending.charge_bytes(ONE, 3_000, &limits), Ok(()));
        assert!(sending.charge_bytes(ONE, 1, &limits).is_err());
        assert_eq!(sending.charge_bytes(OTHER, 1_000, &limits), Ok(()));
        assert!(sending.charge_bytes(OTHER, 1, &limits).is_err(), "all used");
        sending.begin_tick(1);
        assert_eq!(sending.charge_bytes(OTHER, 3_000, &limits), Ok(()));
    }

    #[test]
    fn empty_events_are_limited_for_each_script_by_the_number_of_players() {
        let limits = VmLimits {
            send_bytes_per_tick: usize::MAX,
            ..VmLimits::default()
        };
        let mut sending = Sending::default();
        let flood = |sending: &mut Sending, script, to_all| {
            let sent = (0..100_000).map(|_| sending.charge_event(script, to_all, 0, &limits));
            sent.take_while(Result::is_ok).count() as u32
        };
        sending.begin_tick(3);
        assert_eq!(flood(&mut sending, ONE, true), EVENTS_AT_ONCE);
        assert_eq!(flood(&mut sending, ONE, false), 0);
        assert_eq!(flood(&mut sending, OTHER, false), EVENTS_AT_ONCE * 3);
        sending.begin_tick(3);
        assert_eq!(flood(&mut sending, ONE, true), EVENTS_PER_TICK);
        for _ in 0..EVENTS_AT_ONCE / EVENTS_PER_TICK {
            sending.begin_tick(3);
        }
        assert_eq!(flood(&mut sending, ONE, true), EVENTS_AT_ONCE);
    }
}
