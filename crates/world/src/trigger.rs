//! Triggers: who is inside what, and who just came or went (SIM-9).

use std::collections::{BTreeMap, BTreeSet};

use frolic_sim::{Pose, Shape, Vec3};

/// One trigger's extent, and who is inside.
struct Volume {
    shape: Shape,
    pose: Pose,
    inside: BTreeSet<u32>,
}

/// All triggers of a world.
#[derive(Default)]
pub(crate) struct Triggers {
    volumes: BTreeMap<u32, Volume>,
}

/// A crossing of a trigger's border.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crossing {
    pub trigger: u32,
    pub other: u32,
    pub entered: bool,
}

/// Somebody's way in this tick, as an upright capsule; a ball is one that is
/// twice its radius high.
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
        let inside = BTreeSet::new();
        self.volumes.insert(
            entity,
            Volume {
                shape,
                pose,
                inside,
            },
        );
    }

    pub fn move_to(&mut self, entity: u32, pose: Pose) {
        if let Some(volume) = self.volumes.get_mut(&entity) {
            volume.pose = pose;
        }
    }

    /// Changes a trigger's extent; who is inside is found out at the next tick.
    pub fn reshape(&mut self, entity: u32, shape: Shape, pose: Pose) {
        if let Some(volume) = self.volumes.get_mut(&entity) {
            (volume.shape, volume.pose) = (shape, pose);
        }
    }

    /// Takes a trigger away; whoever was inside has left it.
    pub fn remove(&mut self, entity: u32) -> Vec<Crossing> {
        let volume = self.volumes.remove(&entity);
        let inside = volume.map(|volume| volume.inside).unwrap_or_default();
        inside
            .into_iter()
            .map(|other| left(entity, other))
            .collect()
    }

    /// Takes an entity out of every trigger: it is gone.
    pub fn forget(&mut self, other: u32) -> Vec<Crossing> {
        self.volumes
            .iter_mut()
            .filter_map(|(trigger, volume)| {
                volume.inside.remove(&other).then(|| left(*trigger, other))
            })
            .collect()
    }

    /// Who is inside what, for a fingerprint.
    pub fn occupied(&self) -> impl Iterator<Item = (u32, impl Iterator<Item = u32>)> {
        let volumes = self.volumes.iter();
        volumes
            .filter(|(_, volume)| !volume.inside.is_empty())
            .map(|(trigger, volume)| (*trigger, volume.inside.iter().copied()))
    }

    /// Finds who came and went on these ways. Whoever passes right through
    /// within a tick enters and leaves, each once.
    pub fn cross(&mut self, ways: &[Way]) -> Vec<Crossing> {
        let mut crossings = Vec::new();
        for (trigger, volume) in &mut self.volumes {
            let extent = volume.shape.bounding_radius();
            for way in ways {
                let reach = extent + way.height;
                let was_inside = volume.inside.contains(&way.entity);
                let near = (way.from - volume.pose.translation).length()
                    <= reach + (way.to - way.from).length();
                if !near && !was_inside {
                    continue;
                }
                let is_inside = near && volume.holds(way, way.to);
                let passed = near && !was_inside && !is_inside && volume.meets(way);
                if (is_inside || passed) && !was_inside {
                    crossings.push(Crossing {
                        trigger: *trigger,
                        other: way.entity,
                        entered: true,
                    });
                    volume.inside.insert(way.entity);
                }
                if (was_inside && !is_inside) || passed {
                    crossings.push(left(*trigger, way.entity));
                    volume.inside.remove(&way.entity);
                }
            }
        }
        crossings
    }
}

fn left(trigger: u32, other: u32) -> Crossing {
    Crossing {
        trigger,
        other,
        entered: false,
    }
}

impl Volume {
    fn holds(&self, way: &Way, feet: Vec3) -> bool {
        self.shape
            .overlaps_capsule(&self.pose, way.radius, way.height, feet)
    }

    /// Looks along the way in steps shorter than the capsule is thick.
    fn meets(&self, way: &Way) -> bool {
        let length = (way.to - way.from).length();
        let steps = (length / way.radius).ceil().min(64.0) as u32;
        (1..steps).any(|step| {
            let fraction = step as f32 / steps as f32;
            self.holds(way, way.from + (way.to - way.from) * fraction)
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
        let crossings = triggers.cross(&[way]);
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
    fn whoever_vanishes_has_left() {
        let mut triggers = slab();
        walk(&mut triggers, 1.0, 0.0);
        assert_eq!(triggers.forget(1).len(), 1);
        assert_eq!(triggers.forget(1).len(), 0);
        walk(&mut triggers, 1.0, 0.0);
        assert_eq!(triggers.remove(7).len(), 1);
    }
}
