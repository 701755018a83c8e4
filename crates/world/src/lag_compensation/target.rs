//! Positions of characters for a shot in flight.
//!
//! A shooter sees others in the past but their own shots in the present: on
//! their screen the two meet while the server's clock is already further. So a
//! shot carries the delay that its shooter had when it was fired, and hits
//! characters where they were that long ago ([`view_delay`]). The
//! delay of a long flight decreases gradually ([`delay_left`]), so that a
//! player who sees the shot coming can step aside.

use frolic_sim::Vec3;

use crate::entities::{Entity, Place};
use crate::moment::{BUFFER_MS, Moment, PER_TICK, REWIND_MAX_MS};
use crate::player::Player;
use crate::space::Space;

/// Up to this flight time a shot hits exactly what its shooter saw.
const FULL_MS: u32 = 250;
/// After this flight time it hits current positions.
const NOTHING_MS: u32 = 1_000;

/// A character at some moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stand {
    pub feet: Vec3,
    /// Counts teleports, between which there is no interpolation.
    pub jumps: u8,
}

/// What remains of a shooter's delay after a flight of this many ticks.
pub(crate) fn delay_left(delay: u32, age_ticks: u32, tick_hz: u32) -> u32 {
    let age_ms = u64::from(age_ticks) * 1000 / u64::from(tick_hz.max(1));
    let full = u64::from(FULL_MS);
    let fading = u64::from(NOTHING_MS - FULL_MS);
    let faded = age_ms.saturating_sub(full).min(fading);
    (u64::from(delay) * (fading - faded) / fading) as u32
}

/// The longest delay that is ever used, in 1/256 of a tick.
fn delay_max(tick_hz: u32) -> u32 {
    (u64::from(REWIND_MAX_MS) * u64::from(tick_hz) * PER_TICK / 1000) as u32
}

/// How long ago a player saw the others when they acted, in 1/256 of a tick
/// before the end of this one: with this tick's input if `by_input`, else
/// with the message that arrived last.
pub(crate) fn view_delay(space: &Space, player: &Player, by_input: bool) -> u32 {
    let now = u64::from(space.tick) * PER_TICK;
    let most = delay_max(space.tick_hz);
    let behind = match player.shown.said {
        // Reported with the newest input; the one in use is some ticks
        // older. Events are not queued.
        Some(said) => {
            let waiting = if by_input { player.inputs.queued() } else { 0 };
            let waiting = u64::from(waiting) * PER_TICK;
            now.saturating_sub(said.word().saturating_sub(waiting))
        }
        None => {
            let ms = u64::from(BUFFER_MS) + u64::from(player.shown.round_trip_ms);
            ms * u64::from(space.tick_hz) * PER_TICK / 1000
        }
    };
    behind.min(u64::from(most)) as u32
}

/// The additional delay with which a shooter, whose character is at `eye`, sees
/// a distant target, because it is updated less often.
pub(crate) fn extra_delay(space: &Space, target: u32, (shooter, eye): (&Player, Vec3)) -> u32 {
    let entity = space.entities.get(target);
    let ticks = entity.map_or(0.0, |entity| space.updates.lag_ticks(entity, shooter, eye));
    (ticks * PER_TICK as f32) as u32
}

/// A character as it was `delay` / 256 ticks before the end of this tick.
/// None if it did not exist yet, or was in another life.
pub(crate) fn stand_before(space: &Space, character: u32, delay: u32) -> Option<Stand> {
    let entity = space.alive(character)?;
    let here = Place::of(entity);
    let now = Stand {
        feet: here.position,
        jumps: here.jumps,
    };
    let delay = u64::from(delay.min(delay_max(space.tick_hz)));
    if delay == 0 {
        return Some(now);
    }
    let tick = u64::from(space.tick) * PER_TICK;
    let at = Moment(tick.saturating_sub(delay));
    if !lived_at(space, entity, at) {
        return None;
    }
    let (past, next) = (space.entities.past(), space.entities.next_id());
    if delay >= PER_TICK {
        let place = past.place(here, at, next)?;
        return Some(Stand {
            feet: place.position,
            jumps: place.jumps,
        });
    }
    // Between the last tick, which is recorded, and this one, which is not
    // yet.
    let last = Moment(tick.saturating_sub(PER_TICK));
    let last = past.place(here, last, next)?;
    if last.jumps != now.jumps {
        return Some(now);
    }
    let share = 1.0 - delay as f32 / PER_TICK as f32;
    Some(Stand {
        feet: last.position + (now.feet - last.position) * share,
        ..now
    })
}

/// Whether a character's current life had begun at a moment. A hit on a
/// character seen in an earlier life must not hurt it in this one.
pub(super) fn lived_at(space: &Space, character: &Entity, at: Moment) -> bool {
    let player = character.player.and_then(|n| space.players.get(&n));
    player.is_none_or(|player| at >= Moment::new(player.vitality.life.first_tick, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shot_gives_its_delay_back_on_the_way() {
        let left = |age| delay_left(3_000, age, 60);
        assert_eq!((left(0), left(15)), (3_000, 3_000));
        assert!(left(30) < 3_000 && left(30) > left(45));
        assert_eq!((left(60), left(600)), (0, 0));
        assert_eq!(delay_left(0, 5, 60), 0);
    }
}
