//! Triggers: which entities are inside, and which just entered or left.

use std::collections::{BTreeMap, BTreeSet};

use frolic_sim::sensor::{Mover, Sensed, Sensors};
use frolic_sim::{CollisionWorld, Pose, Shape, Vec3};

/// All triggers of a world.
#[derive(Default)]
pub(crate) struct Triggers {
    sensors: Sensors,
    /// The entities inside each trigger; no entry for an empty one.
    inside: BTreeMap<u32, BTreeSet<u32>>,
    /// The reverse: the triggers that an entity is in.
    within: BTreeMap<u32, BTreeSet<u32>>,
    near: Vec<u32>,
}

/// A crossing of a trigger's border.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crossing {
    pub trigger: u32,
    pub other: u32,
    pub entered: bool,
}

/// An entity's movement in this tick, as an upright capsule; a sphere is one of
/// height twice its radius.
pub(crate) struct Way {
    pub entity: u32,
    /// Lowest point at the start and at the end.
    pub from: Vec3,
    pub to: Vec3,
    pub radius: f32,
    pub height: f32,
}

impl Triggers {
    pub fn insert(&mut self, entity: u32, shape: Shape, pose: Pose) {
        self.sensors.insert(entity, shape, pose);
    }

    pub fn move_to(&mut self, entity: u32, pose: Pose) {
        self.sensors.move_to(entity, pose);
    }

    /// Changes a trigger's extent; its occupants are determined at the next
    /// tick.
    pub fn reshape(&mut self, entity: u32, shape: Shape, pose: Pose) {
        if self.sensors.contains(entity) {
            self.sensors.insert(entity, shape, pose);
        }
    }

    /// Removes a trigger; its occupants have left it.
    pub fn remove(&mut self, entity: u32) -> Vec<Crossing> {
        self.sensors.remove(entity);
        let inside = self.inside.get(&entity).cloned().unwrap_or_default();
        inside
            .into_iter()
            .filter_map(|other| self.leave(entity, other))
            .collect()
    }

    /// Removes an entity from every trigger.
    pub fn forget(&mut self, other: u32) -> Vec<Crossing> {
        let within = self.within.get(&other).cloned().unwrap_or_default();
        within
            .into_iter()
            .filter_map(|trigger| self.leave(trigger, other))
            .collect()
    }

    /// The occupants of each trigger, for a fingerprint.
    pub fn occupied(&self) -> impl Iterator<Item = (u32, impl Iterator<Item = u32>)> {
        let inside = self.inside.iter();
        inside.map(|(trigger, inside)| (*trigger, inside.iter().copied()))
    }

    /// Finds which entities entered and left in this tick: those on `ways`, and
    /// solids that moved. An entity that passes right through enters and
    /// leaves, each once.
    pub fn cross(&mut self, solids: &CollisionWorld, ways: &[Way]) -> Vec<Crossing> {
        let mut crossings = Vec::new();
        if self.sensors.is_empty() {
            return crossings;
        }
        for way in ways {
            let mover = Mover::capsule(way.radius, way.height, way.from, way.to);
            self.cross_one(way.entity, &mover, &mut crossings);
        }
        // Entities at rest can enter and leave a trigger that moves.
        let mut asked: BTreeSet<u32> = solids.moved().collect();
        for trigger in self.sensors.moved() {
            asked.extend(self.inside.get(trigger).into_iter().flatten());
        }
        for way in ways {
            asked.remove(&way.entity);
        }
        for entity in asked {
            if let Some(mover) = Mover::solid(solids, entity) {
                self.cross_one(entity, &mover, &mut crossings);
            }
        }
        self.sensors.end_tick();
        crossings
    }

    fn cross_one(&mut self, other: u32, mover: &Mover, crossings: &mut Vec<Crossing>) {
        let mut near = std::mem::take(&mut self.near);
        self.sensors.near(mover, &mut near);
        let was_within = self.within.get(&other).cloned().unwrap_or_default();
        near.extend(was_within.iter().copied());
        near.sort_unstable();
        near.dedup();
        for trigger in near.drain(..).filter(|trigger| *trigger != other) {
            let was_inside = was_within.contains(&trigger);
            let sensed = self.sensors.sense(trigger, mover);
            if !was_inside && sensed != Sensed::Outside {
                self.inside.entry(trigger).or_default().insert(other);
                self.within.entry(other).or_default().insert(trigger);
                crossings.push(Crossing {
                    trigger,
                    other,
                    entered: true,
                });
            }
            if sensed != Sensed::Inside {
                crossings.extend(self.leave(trigger, other));
            }
        }
        self.near = near;
    }

    /// Removes an entity from a trigger, if it was inside.
    fn leave(&mut self, trigger: u32, other: u32) -> Option<Crossing> {
        let inside = self.inside.get_mut(&trigger)?;
        if !inside.remove(&other) {
            return None;
        }
        if inside.is_empty() {
            self.inside.remove(&trigger);
        }
        if let Some(within) = self.within.get_mut(&other) {
            within.remove(&trigger);
            if within.is_empty() {
                self.within.remove(&other);
            }
        }
        Some(Crossing {
            trigger,
            other,
            entered: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slab() -> Triggers {
        let mut triggers = Triggers::default();
        let thin = Shape::Box(Vec3::new(5.0, 2.0, 0.01));
        triggers.insert(7, thin, Pose::translation(0.0, 1.0, 0.0));
        triggers
    }

    fn walk(triggers: &mut Triggers, from: f32, to: f32) -> Vec<bool> {
        let way = Way {
            entity: 1,
            from: Vec3::new(0.0, 0.0, from),
            to: Vec3::new(0.0, 0.0, to),
            radius: 0.4,
            height: 1.8,
        };
        let crossings = triggers.cross(&CollisionWorld::new(), &[way]);
        crossings.iter().map(|crossing| crossing.entered).collect()
    }

    #[test]
    fn enters_and_leaves_exactly_once() {
        let mut triggers = slab();
        assert_eq!(walk(&mut triggers, 2.0, 1.0), [] as [bool; 0]);
        assert_eq!(walk(&mut triggers, 1.0, 0.3), [true]);
        assert_eq!(walk(&mut triggers, 0.3, 0.0), [] as [bool; 0]);
        assert_eq!(walk(&mut triggers, 0.0, -2.0), [false]);
    }

    #[test]
    fn a_fast_mover_cannot_skip_a_thin_trigger() {
        let mut triggers = slab();
        assert_eq!(walk(&mut triggers, 4.0, -4.0), [true, false]);
    }

    #[test]
    fn a_removed_entity_has_left() {
        let mut triggers = slab();
        walk(&mut triggers, 1.0, 0.0);
        assert_eq!(triggers.forget(1).len(), 1);
        assert_eq!(triggers.forget(1).len(), 0);
        walk(&mut triggers, 1.0, 0.0);
        assert_eq!(triggers.remove(7).len(), 1);
    }
}
