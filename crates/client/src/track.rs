//! The recent states of one entity, and what to draw between them.

use std::collections::VecDeque;

use frolic_protocol::EntityState;
use frolic_protocol::entity::{EntityKind, flags};
use frolic_protocol::snapshot::CellKey;
use frolic_sim::{Angle, Motion, Rotation, Vec3};

use crate::drawn::{Drawn, DrawnKind};

/// States stored per entity: more than playback ever lags behind.
const SAMPLES_MAX: usize = 32;
/// Gaps that are inspected to determine an entity's update interval.
const GAPS: usize = 4;
/// Beyond the newest state, motion continues straight for this long, then stops.
const EXTRAPOLATION_MAX_S: f32 = 0.25;
/// Entities drawn in the own time are extrapolated for longer: they must not lag
/// behind the character that pushes them.
const LED_EXTRAPOLATION_MAX_S: f32 = 0.5;
/// How fast a wrong extrapolation is corrected, and up to which distance.
const FOLLOW_PER_S: f32 = 9.0;
const FOLLOWED_MAX_M: f32 = 2.5;
/// Smaller leads count as zero.
const LEAD_MIN: f32 = 1e-3;

/// One entity.
pub(crate) struct Track {
    /// The cell that replicated it last.
    pub cell: CellKey,
    samples: VecDeque<Sample>,
    /// Ticks by which it is shown later than its surroundings: far entities are
    /// updated less often, and need a longer history to interpolate.
    pub lag: f32,
    /// How much of the own time it is drawn in, 0 to 1: for a ridden platform, and
    /// what the own character pushes.
    pub lead: f32,
    /// Where it was last drawn.
    shown: Option<(Vec3, Rotation)>,
    /// Whether it was ever carried: most never are.
    rides: bool,
}

struct Sample {
    tick: u32,
    state: EntityState,
    /// The entity that carried it here from the previous state.
    carrier: Option<u32>,
    /// Not received: inserted as the moment at which the entity presumably started
    /// to move.
    made_up: bool,
}

/// A motion while being carried: standing still on another entity, which is on a
/// path and so known better.
pub(crate) struct Ride {
    pub carrier: u32,
    /// Between the states of these ticks …
    pub from: u32,
    pub to: u32,
    /// … it is drawn at this one.
    pub at: f64,
}

impl Track {
    pub fn new(cell: CellKey) -> Self {
        Self {
            cell,
            samples: VecDeque::new(),
            lag: 0.0,
            lead: 0.0,
            shown: None,
            rides: false,
        }
    }

    /// Adds a state. False when it is older than the newest one.
    pub fn learn(&mut self, cell: CellKey, tick: u32, state: EntityState, update: f32) -> bool {
        let last = self.samples.back().map(|last| (last.tick, last.state));
        if let Some((last_tick, last_state)) = last {
            if last_tick > tick || last_tick == tick && self.cell != cell {
                return false;
            }
            self.cell = cell;
            if last_state == state && at_rest(&state) {
                return false;
            }
            if last_tick == tick {
                self.samples.pop_back();
            } else if at_rest(&last_state) && state.motion.is_none() {
                // No updates while it stood still: it started just now, not at its
                // last update. A path has its own start.
                let usual = self.usual_gap(update).round().max(1.0) as u32;
                if tick - last_tick > usual {
                    self.push(tick - usual, last_state, true);
                }
            }
        }
        self.cell = cell;
        self.push(tick, state, false);
        true
    }

    fn push(&mut self, tick: u32, state: EntityState, made_up: bool) {
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample {
            tick,
            state,
            carrier: None,
            made_up,
        });
    }

    /// The motion of a character that does not walk and yet has moved: from when to
    /// when, and how far.
    pub fn unexplained_way(&self) -> Option<(u32, u32, Vec3)> {
        let newest = self.samples.back()?;
        let received = self.samples.iter().rev().skip(1);
        let before = received.into_iter().find(|sample| !sample.made_up)?;
        let (old, new) = (&before.state, &newest.state);
        let stands = at_rest(old) && at_rest(new) && (old.flags ^ new.flags) & flags::JUMPS == 0;
        let carried = stands && new.kind == EntityKind::Character && old.position != new.position;
        carried.then(|| (before.tick, newest.tick, new.place() - old.place()))
    }

    /// Records what carried it to its newest state: it did not move by itself.
    pub fn note_carrier(&mut self, carrier: u32) {
        let before = self.samples.len().saturating_sub(2);
        if self
            .samples
            .get(before)
            .is_some_and(|sample| sample.made_up)
        {
            self.samples.remove(before);
        }
        if let Some(newest) = self.samples.back_mut() {
            newest.carrier = Some(carrier);
            self.rides = true;
        }
    }

    /// How it is carried at a tick, if it is. Beyond the newest state its carrier
    /// stays the same.
    pub fn ride_at(&self, tick: f64) -> Option<Ride> {
        if !self.rides {
            return None;
        }
        let after = self.samples.partition_point(|s| f64::from(s.tick) <= tick);
        let before = self.samples.get(after.checked_sub(1)?)?;
        let to = self.samples.get(after).unwrap_or(before);
        Some(Ride {
            carrier: to.carrier?,
            from: before.tick,
            to: to.tick,
            at: tick,
        })
    }

    /// Ticks between two of its states; a lost packet does not count.
    pub fn usual_gap(&self, update: f32) -> f32 {
        let newest = self.samples.iter().rev();
        let older = newest.clone().skip(1);
        let gaps = newest.zip(older).take(GAPS);
        let least = gaps.map(|(new, old)| new.tick - old.tick).min();
        least.map_or(update, |least| (least as f32).max(update))
    }

    /// Its current state, as far as known.
    pub fn newest(&self) -> Option<&EntityState> {
        self.samples.back().map(|sample| &sample.state)
    }

    /// The same, with its tick.
    pub fn newest_dated(&self) -> Option<(u32, &EntityState)> {
        let newest = self.samples.back();
        newest.map(|sample| (sample.tick, &sample.state))
    }

    /// What to draw at a tick.
    pub fn drawn_at(&self, tick: f64, tick_s: f64) -> Option<Drawn> {
        let after = self.samples.partition_point(|s| f64::from(s.tick) <= tick);
        let before = after.checked_sub(1).and_then(|at| self.samples.get(at));
        let after = self.samples.get(after);
        let mut drawn = match (before, after) {
            (Some(before), Some(after)) => {
                let span = f64::from(after.tick - before.tick);
                let fraction = (tick - f64::from(before.tick)) / span;
                between(&before.state, &after.state, fraction as f32)
            }
            (Some(last), None) => {
                let mut drawn = drawn(&last.state);
                let ahead_s = ((tick - f64::from(last.tick)) * tick_s) as f32;
                let led = LED_EXTRAPOLATION_MAX_S - EXTRAPOLATION_MAX_S;
                let most = EXTRAPOLATION_MAX_S + led * self.lead;
                drawn.position += drawn.velocity * ahead_s.clamp(0.0, most);
                drawn
            }
            (None, Some(first)) => drawn(&first.state),
            (None, None) => return None,
        };
        if let Some(motion) = self.motion_at(tick) {
            drawn.position = motion.position_between(tick);
        }
        Some(drawn)
    }

    /// What is drawn in the own time is extrapolated, and each new state corrects
    /// it: quickly, but without a jump.
    pub fn follow(&mut self, drawn: &mut Drawn, frame_s: f32) {
        if self.lead < LEAD_MIN {
            self.lead = 0.0;
        }
        let on_a_path = self.newest().is_some_and(|state| state.motion.is_some());
        if let Some((position, rotation)) = self.shown.filter(|_| self.lead > 0.0 && !on_a_path) {
            let left = (-FOLLOW_PER_S * frame_s).exp();
            let ahead = position + drawn.velocity * frame_s - drawn.position;
            if ahead.length() < FOLLOWED_MAX_M {
                drawn.position += ahead * left;
                drawn.rotation = rotation.slerp(drawn.rotation, 1.0 - left);
            }
        }
        self.shown = Some((drawn.position, drawn.rotation));
    }

    /// How far its path took it between two ticks, if it is on one and moved.
    pub fn way_of_path(&self, from: u32, to: u32) -> Option<Vec3> {
        self.newest()?.motion?;
        let place = |tick: u32| Some(self.drawn_at(f64::from(tick), 0.0)?.position);
        let way = place(to)? - place(from)?;
        (way != Vec3::ZERO).then_some(way)
    }

    /// Where it is at a tick, if it did not jump there since another.
    pub fn place_since(&self, from: u32, tick: f64, tick_s: f64) -> Option<Vec3> {
        let jumps = |tick: f64| {
            let after = self.samples.partition_point(|s| f64::from(s.tick) <= tick);
            let sample = self.samples.get(after.saturating_sub(1))?;
            Some(sample.state.flags & flags::JUMPS)
        };
        if jumps(f64::from(from)) != jumps(tick) {
            return None;
        }
        Some(self.drawn_at(tick, tick_s)?.position)
    }

    /// The path it is on at a tick, if any.
    pub fn motion_at(&self, tick: f64) -> Option<Motion> {
        let after = self.samples.partition_point(|s| f64::from(s.tick) <= tick);
        let motion = |at: usize| self.samples.get(at).and_then(|sample| sample.state.motion);
        // The next state may be on a path that has started already.
        let next = motion(after).filter(|motion| tick >= f64::from(motion.start_tick));
        next.or_else(|| motion(after.checked_sub(1)?))
    }
}

fn at_rest(state: &EntityState) -> bool {
    state.velocity == [0; 3] && state.motion.is_none()
}

fn drawn(state: &EntityState) -> Drawn {
    let character = state.kind == EntityKind::Character;
    Drawn {
        id: state.id,
        kind: if character {
            DrawnKind::Character
        } else {
            DrawnKind::Thing
        },
        definition: state.definition,
        grounded: state.has(flags::GROUNDED),
        dead: character && state.has(flags::DEAD),
        own: false,
        position: state.place(),
        rotation: state.turn(),
        velocity: state.speed(),
        yaw: Angle(state.look[0]).radians(),
        pitch: Angle(state.look[1]).radians(),
        mood: state.mood,
    }
}

fn between(old: &EntityState, new: &EntityState, fraction: f32) -> Drawn {
    let (a, mut b) = (drawn(old), drawn(new));
    if (old.flags ^ new.flags) & flags::JUMPS == 0 {
        b.position = a.position + (b.position - a.position) * fraction;
    }
    b.rotation = a.rotation.slerp(b.rotation, fraction);
    b.velocity = a.velocity + (b.velocity - a.velocity) * fraction;
    let turn = Angle(new.look[0].wrapping_sub(old.look[0])).radians();
    b.yaw = a.yaw + turn * fraction;
    b
}

#[cfg(test)]
mod tests {
    use frolic_protocol::quantize;

    use super::*;

    const TICK_S: f64 = 1.0 / 60.0;

    /// An entity at a position that moves on at 4 m/s.
    fn state(x: f32) -> EntityState {
        let mut state = EntityState::new(7, EntityKind::Thing);
        state.position = quantize::position(Vec3::X * x);
        state.velocity = quantize::velocity(Vec3::X * 4.0);
        state
    }

    /// With states at ticks 60 and 63.
    fn track() -> Track {
        let mut track = Track::new(CellKey::Everywhere);
        assert!(track.learn(CellKey::Everywhere, 60, state(1.0), 3.0));
        assert!(track.learn(CellKey::Everywhere, 63, state(1.2), 3.0));
        track
    }

    fn x_at(track: &Track, tick: f64) -> f32 {
        let drawn = track.drawn_at(tick, TICK_S);
        drawn.expect("it was replicated").position.x
    }

    fn assert_near(x: f32, expected: f32) {
        assert!((x - expected).abs() < 0.005, "{x} instead of {expected}");
    }

    #[test]
    fn it_is_drawn_between_the_states_around_a_moment() {
        let track = track();
        for (tick, x) in [(50.0, 1.0), (60.0, 1.0), (61.5, 1.1), (63.0, 1.2)] {
            assert_near(x_at(&track, tick), x);
        }
        assert!(
            Track::new(CellKey::Everywhere)
                .drawn_at(1.0, TICK_S)
                .is_none()
        );
    }

    #[test]
    fn beyond_the_newest_state_it_continues_for_a_quarter_of_a_second_and_stops() {
        let mut track = track();
        assert_near(x_at(&track, 63.0 + 6.0), 1.2 + 0.4);
        for late in [15.0, 16.0, 60.0, 60_000.0] {
            assert_near(x_at(&track, 63.0 + late), 1.2 + 1.0);
        }
        // A pushed entity continues for longer, and stops too.
        track.lead = 1.0;
        for late in [30.0, 60.0, 60_000.0] {
            assert_near(x_at(&track, 63.0 + late), 1.2 + 2.0);
        }
    }

    #[test]
    fn a_late_state_is_ignored() {
        let mut track = track();
        assert!(!track.learn(CellKey::Everywhere, 61, state(9.0), 3.0));
        assert_near(x_at(&track, 61.0), 1.0 + 0.2 / 3.0);
    }
}
