//! Sensors: shapes that are not solid and detect what is inside and what passes
//! through, however thin the shape and however fast the movement.

use std::collections::BTreeMap;

use frolic_motion::{EntityId, Pose, Vec3};
use parry3d::bounding_volume::{Aabb, BoundingVolume};
use parry3d::partitioning::Bvh;
use parry3d::query::{ShapeCastOptions, cast_shapes, intersection_test};
use parry3d::shape::{Capsule, Shape as ParryShape, SharedShape};

use crate::collision::CollisionWorld;
use crate::shape::Shape;

/// Movement within a tick.
pub struct Mover {
    shape: Body,
    from: Pose,
    to: Pose,
}

enum Body {
    Capsule(Capsule),
    Solid(SharedShape),
}

impl Mover {
    /// An upright capsule whose lowest point moves from one place to another.
    pub fn capsule(radius: f32, height: f32, from: Vec3, to: Vec3) -> Self {
        let low = Vec3::Y * radius;
        let high = Vec3::Y * (height - radius).max(radius);
        Self {
            shape: Body::Capsule(Capsule::new(low, high, radius)),
            from: Pose::from_translation(from),
            to: Pose::from_translation(to),
        }
    }

    /// An entity's solid, from its pose a tick ago to its current one.
    pub fn solid(world: &CollisionWorld, entity: EntityId) -> Option<Self> {
        let solid = world.solid(entity)?;
        Some(Self {
            shape: Body::Solid(solid.shape.clone()),
            from: solid.previous_pose,
            to: solid.pose,
        })
    }

    fn shape(&self) -> &dyn ParryShape {
        match &self.shape {
            Body::Capsule(capsule) => capsule,
            Body::Solid(shape) => shape.as_ref(),
        }
    }

    fn bounds(&self) -> Aabb {
        let shape = self.shape();
        shape
            .compute_aabb(&self.from)
            .merged(&shape.compute_aabb(&self.to))
    }
}

/// The result of a sensor for a movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sensed {
    /// Inside at its end.
    Inside,
    /// Inside on the way, and outside again at its end.
    Passed,
    /// Not touched.
    Outside,
}

struct Sensor {
    slot: u32,
    shape: SharedShape,
    pose: Pose,
    /// Its pose at the end of the previous tick.
    previous: Pose,
}

/// All sensors of a world.
#[derive(Default)]
pub struct Sensors {
    sensors: BTreeMap<EntityId, Sensor>,
    slots: Vec<Option<EntityId>>,
    free: Vec<u32>,
    tree: Bvh,
    /// Those that moved since the tick before.
    moved: Vec<EntityId>,
}

impl Sensors {
    /// Adds a sensor, or replaces the one this entity has.
    pub fn insert(&mut self, entity: EntityId, shape: Shape, pose: Pose) {
        self.remove(entity);
        let shape = shape.to_parry();
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize] = Some(entity);
        self.tree.insert(shape.compute_aabb(&pose), slot);
        self.sensors.insert(
            entity,
            Sensor {
                slot,
                shape,
                pose,
                previous: pose,
            },
        );
    }

    /// Removes an entity's sensor; false if it has none.
    pub fn remove(&mut self, entity: EntityId) -> bool {
        let Some(sensor) = self.sensors.remove(&entity) else {
            return false;
        };
        self.tree.remove(sensor.slot);
        self.slots[sensor.slot as usize] = None;
        self.free.push(sensor.slot);
        self.moved.retain(|moved| *moved != entity);
        true
    }

    /// Moves a sensor; it detects what it sweeps over.
    pub fn move_to(&mut self, entity: EntityId, pose: Pose) {
        let Some(sensor) = self.sensors.get_mut(&entity) else {
            return;
        };
        sensor.pose = pose;
        let swept = sensor.shape.compute_aabb(&sensor.previous);
        let swept = swept.merged(&sensor.shape.compute_aabb(&pose));
        self.tree.remove(sensor.slot);
        self.tree.insert(swept, sensor.slot);
        if !self.moved.contains(&entity) {
            self.moved.push(entity);
        }
    }

    /// Whether there are no sensors.
    pub fn is_empty(&self) -> bool {
        self.sensors.is_empty()
    }

    /// Whether this entity is a sensor.
    pub fn contains(&self, entity: EntityId) -> bool {
        self.sensors.contains_key(&entity)
    }

    /// Sensors that moved since the tick before.
    pub fn moved(&self) -> &[EntityId] {
        &self.moved
    }

    /// Ends a tick, after all movements were tested.
    pub fn end_tick(&mut self) {
        for entity in self.moved.drain(..) {
            if let Some(sensor) = self.sensors.get_mut(&entity) {
                sensor.previous = sensor.pose;
                self.tree.remove(sensor.slot);
                let bounds = sensor.shape.compute_aabb(&sensor.pose);
                self.tree.insert(bounds, sensor.slot);
            }
        }
    }

    /// Fills `out` with the sensors that a movement may touch, in order of ids.
    pub fn near(&self, mover: &Mover, out: &mut Vec<EntityId>) {
        out.clear();
        let bounds = mover.bounds();
        let slots = self.tree.intersect_aabb(&bounds);
        out.extend(slots.filter_map(|slot| self.slots.get(slot as usize).copied().flatten()));
        out.sort_unstable();
    }

    /// Tests a movement against a sensor.
    pub fn sense(&self, entity: EntityId, mover: &Mover) -> Sensed {
        let Some(sensor) = self.sensors.get(&entity) else {
            return Sensed::Outside;
        };
        let shape = mover.shape();
        let inside = intersection_test(&sensor.pose, sensor.shape.as_ref(), &mover.to, shape)
            .is_ok_and(|test| test.intersecting);
        if inside {
            return Sensed::Inside;
        }
        // With the rotation of the end, translated from where both were.
        let start = Pose::from_parts(mover.from.translation, mover.to.rotation);
        let own_start = Pose::from_parts(sensor.previous.translation, sensor.pose.rotation);
        let way = mover.to.translation - mover.from.translation;
        let own_way = sensor.pose.translation - sensor.previous.translation;
        let met = cast_shapes(
            &own_start,
            own_way,
            sensor.shape.as_ref(),
            &start,
            way,
            shape,
            ShapeCastOptions::with_max_time_of_impact(1.0),
        );
        if matches!(met, Ok(Some(_))) {
            Sensed::Passed
        } else {
            Sensed::Outside
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet() -> Sensors {
        let mut sensors = Sensors::default();
        let thin = Shape::Box(Vec3::new(5.0, 2.0, 0.005));
        sensors.insert(7, thin, Pose::translation(0.0, 1.0, 0.0));
        sensors
    }

    fn ball(from: Vec3, to: Vec3) -> Mover {
        Mover::capsule(0.05, 0.1, from, to)
    }

    #[test]
    fn a_sheet_notices_whatever_flies_through_it() {
        let sensors = sheet();
        for distance in [0.2, 3.0, 40.0, 900.0] {
            let through = ball(
                Vec3::new(0.3, 1.0, distance),
                Vec3::new(0.1, 1.0, -distance),
            );
            assert_eq!(sensors.sense(7, &through), Sensed::Passed, "{distance} m");
            let mut near = Vec::new();
            sensors.near(&through, &mut near);
            assert_eq!(near, [7]);
        }
        let beside = ball(Vec3::new(6.0, 1.0, 40.0), Vec3::new(6.0, 1.0, -40.0));
        assert_eq!(sensors.sense(7, &beside), Sensed::Outside);
        let short = ball(Vec3::new(0.0, 1.0, 3.0), Vec3::new(0.0, 1.0, 0.2));
        assert_eq!(sensors.sense(7, &short), Sensed::Outside);
    }

    #[test]
    fn a_moving_sensor_detects_an_entity_at_rest() {
        let mut sensors = sheet();
        sensors.move_to(7, Pose::translation(0.0, 1.0, -30.0));
        let standing = ball(Vec3::new(0.0, 1.0, -10.0), Vec3::new(0.0, 1.0, -10.0));
        assert_eq!(sensors.sense(7, &standing), Sensed::Passed);
        sensors.end_tick();
        assert_eq!(sensors.sense(7, &standing), Sensed::Outside);
    }

    #[test]
    fn what_began_inside_and_ends_outside_came_through() {
        let sensors = sheet();
        let leaves = ball(Vec3::new(0.0, 1.0, 0.0), Vec3::new(0.0, 1.0, 5.0));
        assert_eq!(sensors.sense(7, &leaves), Sensed::Passed);
    }
}
