//! What characters stand on and bump into: solid shapes with ids, in a tree.
//!
//! Answers never depend on the order in which shapes were added: the browser
//! learns of them in another order than the server.

use std::collections::HashMap;

use parry3d::bounding_volume::Aabb;
use parry3d::math::{Pose3 as Pose, Vec3};
use parry3d::partitioning::Bvh;
use parry3d::query::Ray;
use parry3d::shape::SharedShape;

use crate::shape::Shape;

/// An entity's network id.
pub type EntityId = u32;

/// All solids of a world.
#[derive(Default)]
pub struct CollisionWorld {
    solids: Vec<Option<Solid>>,
    free: Vec<u32>,
    slots: HashMap<EntityId, u32>,
    tree: Bvh,
    /// Solids whose pose changed this tick; the others' previous pose is their pose.
    moved: Vec<u32>,
}

pub(crate) struct Solid {
    pub entity: EntityId,
    pub shape: SharedShape,
    pub pose: Pose,
    /// Where it was one tick ago; what stands on it is carried along.
    pub previous_pose: Pose,
}

/// What a ray met first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RayHit {
    /// Whose shape.
    pub entity: EntityId,
    /// Distance along the ray.
    pub distance: f32,
    /// Where.
    pub point: Vec3,
    /// Which way the surface faces.
    pub normal: Vec3,
}

impl CollisionWorld {
    /// An empty world.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a solid, or replaces the one this entity has.
    pub fn insert(&mut self, entity: EntityId, shape: Shape, pose: Pose) {
        self.remove(entity);
        let shape = shape.to_parry();
        let slot = self.free.pop().unwrap_or_else(|| {
            self.solids.push(None);
            (self.solids.len() - 1) as u32
        });
        self.tree.insert(shape.compute_aabb(&pose), slot);
        self.solids[slot as usize] = Some(Solid {
            entity,
            shape,
            pose,
            previous_pose: pose,
        });
        self.slots.insert(entity, slot);
    }

    /// Takes an entity's solid away, if it has one.
    pub fn remove(&mut self, entity: EntityId) {
        if let Some(slot) = self.slots.remove(&entity) {
            self.tree.remove(slot);
            self.solids[slot as usize] = None;
            self.free.push(slot);
            self.moved.retain(|&moved| moved != slot);
        }
    }

    /// Forgets last tick's movement. Call once before moving solids in a tick.
    pub fn begin_tick(&mut self) {
        for slot in self.moved.drain(..) {
            if let Some(solid) = &mut self.solids[slot as usize] {
                solid.previous_pose = solid.pose;
            }
        }
    }

    /// Moves a solid within a tick; whatever stands on it moves along.
    pub fn move_to(&mut self, entity: EntityId, pose: Pose) {
        if let Some(slot) = self.update(entity, pose) {
            self.moved.push(slot);
        }
    }

    /// Sets where a solid was and is: how a client replays a past tick.
    pub fn set_path(&mut self, entity: EntityId, previous: Pose, pose: Pose) {
        let Some(slot) = self.update(entity, pose) else {
            return;
        };
        if let Some(solid) = &mut self.solids[slot as usize] {
            solid.previous_pose = previous;
        }
        self.moved.push(slot);
    }

    /// Puts a solid elsewhere without carrying anybody.
    pub fn teleport(&mut self, entity: EntityId, pose: Pose) {
        if let Some(slot) = self.update(entity, pose)
            && let Some(solid) = &mut self.solids[slot as usize]
        {
            solid.previous_pose = pose;
        }
    }

    fn update(&mut self, entity: EntityId, pose: Pose) -> Option<u32> {
        let slot = *self.slots.get(&entity)?;
        let solid = self.solids[slot as usize].as_mut()?;
        solid.pose = pose;
        let aabb = solid.shape.compute_aabb(&pose);
        self.tree.insert(aabb, slot);
        Some(slot)
    }

    /// Whether this entity is solid.
    pub fn contains(&self, entity: EntityId) -> bool {
        self.slots.contains_key(&entity)
    }

    /// The first solid along a ray, ignoring `except`.
    pub fn raycast(
        &self,
        origin: Vec3,
        direction: Vec3,
        distance_max: f32,
        except: &[EntityId],
    ) -> Option<RayHit> {
        let direction = direction.try_normalize()?;
        if !origin.is_finite() || !distance_max.is_finite() {
            return None;
        }
        let ray = Ray::new(origin, direction);
        let (slot, hit) = self.tree.cast_ray(&ray, distance_max, |slot, best| {
            let solid = self.solids[slot as usize].as_ref()?;
            if except.contains(&solid.entity) {
                return None;
            }
            solid
                .shape
                .cast_ray_and_get_normal(&solid.pose, &ray, best, true)
                .map(|hit| hit.time_of_impact)
        })?;
        let solid = self.solids[slot as usize].as_ref()?;
        let normal = solid
            .shape
            .cast_ray_and_get_normal(&solid.pose, &ray, distance_max, true)
            .map_or(-direction, |hit| hit.normal);
        Some(RayHit {
            entity: solid.entity,
            distance: hit,
            point: origin + direction * hit,
            normal,
        })
    }

    /// Fills `out` with the solids whose boxes meet `aabb`, in order of their ids.
    pub(crate) fn near<'a>(&'a self, aabb: &Aabb, out: &mut Vec<&'a Solid>) {
        out.clear();
        out.extend(
            self.tree
                .intersect_aabb(aabb)
                .filter_map(|slot| self.solids[slot as usize].as_ref()),
        );
        out.sort_unstable_by_key(|solid| solid.entity);
    }

    pub(crate) fn solid(&self, entity: EntityId) -> Option<&Solid> {
        self.solids[*self.slots.get(&entity)? as usize].as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floor() -> CollisionWorld {
        let mut world = CollisionWorld::new();
        world.insert(
            1,
            Shape::Box(Vec3::new(10.0, 0.5, 10.0)),
            Pose::translation(0.0, -0.5, 0.0),
        );
        world
    }

    #[test]
    fn rays_meet_the_nearest_solid() {
        let mut world = floor();
        world.insert(2, Shape::Sphere(1.0), Pose::translation(0.0, 3.0, 0.0));
        let hit = world.raycast(Vec3::Y * 10.0, -Vec3::Y, 100.0, &[]).unwrap();
        assert_eq!((hit.entity, hit.distance), (2, 6.0));
        let hit = world
            .raycast(Vec3::Y * 10.0, -Vec3::Y, 100.0, &[2])
            .unwrap();
        assert_eq!((hit.entity, hit.point.y), (1, 0.0));
        assert_eq!(hit.normal, Vec3::Y);
        assert!(world.raycast(Vec3::Y, Vec3::ZERO, 10.0, &[]).is_none());
        assert!(world.raycast(Vec3::NAN, Vec3::X, 10.0, &[]).is_none());
    }

    #[test]
    fn removed_solids_are_gone_and_their_slots_reused() {
        let mut world = floor();
        world.remove(1);
        world.remove(1);
        assert!(!world.contains(1));
        assert!(
            world
                .raycast(Vec3::Y * 10.0, -Vec3::Y, 100.0, &[])
                .is_none()
        );
        world.insert(7, Shape::Sphere(1.0), Pose::identity());
        assert_eq!(world.solids.len(), 1);
    }
}
