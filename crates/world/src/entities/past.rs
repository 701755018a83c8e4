//! History of positions over the last ticks.
//!
//! Each tick records what moves. What is at rest costs nothing: when it starts
//! to move, or is teleported, the place that it leaves is recorded with the
//! tick before, so the first record from some moment on is the place at that
//! moment.

use std::collections::VecDeque;

use frolic_scene::SceneEntity;
use frolic_sim::Vec3;
use rustc_hash::FxHashMap;

use super::Entity;
use crate::moment::{Moment, REWIND_MAX_MS};

/// A longer distance in one tick counts as a teleport: there is no
/// interpolation between the two places.
const STEP_MAX_M: f32 = 20.0;

/// The place of an entity at one tick.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub entity: u32,
    /// Counts teleports, between which there is no interpolation.
    pub jumps: u8,
    pub position: Vec3,
}

impl Place {
    /// The current place of an entity.
    pub fn of(entity: &Entity) -> Self {
        Self {
            entity: entity.id,
            jumps: entity.jumps,
            position: entity.position,
        }
    }

    fn leads_to(&self, after: &Self) -> bool {
        let way = after.position - self.position;
        self.jumps == after.jumps && way.length_squared() <= STEP_MAX_M * STEP_MAX_M
    }
}

/// All moving entities at one tick.
#[derive(Default)]
struct Frame {
    tick: u32,
    /// By entity.
    places: Vec<Place>,
    /// Entities at rest in this tick that left their place in the next. Never
    /// iterated in an order that matters.
    left: FxHashMap<u32, Place>,
    /// The id of the next entity at that time: entities from there on are
    /// newer.
    next_entity: u32,
}

impl Frame {
    fn moving(&self, entity: u32) -> Option<&Place> {
        let found = self.places.binary_search_by_key(&entity, |p| p.entity);
        self.places.get(found.ok()?)
    }

    fn place(&self, entity: u32) -> Option<&Place> {
        self.moving(entity).or_else(|| self.left.get(&entity))
    }

    fn all(&self) -> impl Iterator<Item = &Place> {
        self.places.iter().chain(self.left.values())
    }
}

/// The last ticks, in a ring of reused buffers.
#[derive(Default)]
pub(crate) struct Past {
    frames: VecDeque<Frame>,
}

impl Past {
    /// The newest moment.
    pub fn now(&self) -> Option<Moment> {
        Some(Moment::new(self.frames.back()?.tick, 0))
    }

    /// The tick that is recorded next: the current one, or between two the
    /// following one.
    pub fn next_tick(&self) -> Option<u32> {
        Some(self.frames.back()?.tick + 1)
    }

    /// Records the place that an entity leaves which may have been at rest.
    pub fn note_left(&mut self, entity: u32, jumps: u8, position: Vec3) {
        let Some(newest) = self.frames.back_mut() else {
            return;
        };
        // A moving entity is recorded already, and of several places in a tick
        // the first counts.
        if newest.moving(entity).is_none() {
            newest.left.entry(entity).or_insert(Place {
                entity,
                jumps,
                position,
            });
        }
    }

    fn frame(&self, tick: u32) -> Option<&Frame> {
        let first = self.frames.front()?.tick;
        self.frames.get(tick.checked_sub(first)? as usize)
    }

    /// The place at a moment of an entity that is at `now`, if `next_entity` is
    /// the next id; none if it did not exist yet.
    pub fn place(&self, now: Place, at: Moment, next_entity: u32) -> Option<Place> {
        // If the world is younger than the moment, the oldest one.
        let oldest = Moment::new(self.frames.front()?.tick, 0);
        let at = at.max(oldest);
        let frame = self.frame(at.tick())?;
        if came_since(now.entity, frame.next_entity, next_entity) {
            return None;
        }
        let mut before = self.first_from(at.tick(), now);
        if at.fraction() == 0.0 || self.frame(at.tick() + 1).is_none() {
            return Some(before);
        }
        let after = self.first_from(at.tick() + 1, now);
        if !before.leads_to(&after) {
            // Clients show a teleport at its destination, without
            // interpolation.
            return Some(after);
        }
        before.position += (after.position - before.position) * at.fraction();
        Some(before)
    }

    /// The first record from a tick on; without one the entity has been at rest
    /// until now.
    fn first_from(&self, tick: u32, now: Place) -> Place {
        let newest = self.frames.back().map_or(0, |frame| frame.tick);
        let noted = (tick..=newest).find_map(|tick| self.frame(tick)?.place(now.entity));
        noted.copied().unwrap_or(now)
    }

    /// Entities that may have been seen near something since a moment, each
    /// once, except those still at rest. `near` receives a place and the
    /// possible distance from it.
    pub fn noted_since(&self, at: Moment, near: impl Fn(Vec3, f32) -> bool) -> Vec<u32> {
        let frames = self.frames.iter().filter(|frame| frame.tick >= at.tick());
        // A position between two places is no further from either than they are
        // from each other.
        let places = frames
            .flat_map(Frame::all)
            .filter(|place| near(place.position, STEP_MAX_M));
        let mut found: Vec<u32> = places.map(|place| place.entity).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Whether an id was assigned after `then` was the next one and before `now`
/// is. Ids wrap around to the first one after the scene's.
fn came_since(id: u32, then: u32, now: u32) -> bool {
    if then <= now {
        return (then..now).contains(&id);
    }
    id >= then || (SceneEntity::ID_MAX + 1..now).contains(&id)
}

impl Past {
    /// Records the places of all moving entities at the end of a tick, when
    /// `next_entity` is the next id.
    pub fn remember(
        &mut self,
        tick: u32,
        tick_hz: u32,
        next_entity: u32,
        places: impl Iterator<Item = Place>,
    ) {
        let frames_max = (tick_hz * REWIND_MAX_MS).div_ceil(1000) as usize + 2;
        let mut frame = if self.frames.len() >= frames_max {
            self.frames.pop_front().unwrap_or_default()
        } else {
            Frame::default()
        };
        frame.tick = tick;
        frame.next_entity = next_entity;
        frame.left.clear();
        frame.places.clear();
        frame.places.extend(places);
        frame.places.sort_unstable_by_key(|place| place.entity);
        self.frames.push_back(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_ids_distinguish_newer_entities() {
        let first = SceneEntity::ID_MAX + 1;
        assert!(came_since(first + 5, first + 5, first + 6));
        assert!(!came_since(first + 4, first + 5, first + 6));
        assert!(!came_since(first + 5, first + 5, first + 5));
        // Ids wrapped around in between.
        let (then, now) = (u32::MAX - 1, first + 2);
        for (id, came) in [
            (u32::MAX, true),
            (u32::MAX - 1, true),
            (u32::MAX - 2, false),
            (first, true),
            (first + 2, false),
            (1, false),
        ] {
            assert_eq!(came_since(id, then, now), came, "{id}");
        }
        assert!(!came_since(u32::MAX - 2, now, now + 3), "older than all");
    }
}
