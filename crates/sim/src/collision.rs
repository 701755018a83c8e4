//! The solids that characters stand on and collide with, by entity id, in a
//! tree.
//!
//! Results never depend on the order in which shapes were added: the browser
//! receives them in another order than the server.

use std::sync::atomic::{AtomicU64, Ordering};

use frolic_motion::{EntityId, Pose, Vec3};
use frolic_terrain::Terrain;
use parry3d::bounding_volume::{Aabb, BoundingVolume};
use parry3d::partitioning::Bvh;
use parry3d::query::Ray;
use rustc_hash::FxHashMap;

use crate::block::TERRAIN;
use crate::changes::{Change, Changes};
use crate::convex::{Convex, Frame};
use crate::mesh::Meshes;
use crate::shape::Shape;
use crate::solid::{Solid, bounds};

mod terrain;

/// The box of a moving solid in the tree is enlarged by this, and reinserted
/// only when the solid leaves it.
const MOVER_MARGIN_M: f32 = 1.0;

/// All solids of a world.
pub struct CollisionWorld {
    /// Distinguishes worlds, for caches.
    id: u64,
    solids: Vec<Option<Solid>>,
    free: Vec<u32>,
    slots: FxHashMap<EntityId, u32>,
    tree: Bvh,
    /// Solids whose pose changed this tick; the previous pose of all others
    /// equals their pose.
    moved: Vec<u32>,
    meshes: Meshes,
    changes: Changes,
    /// Counts pose changes.
    changed: u64,
    /// Voxel terrain, if the world has it.
    terrain: Option<Terrain>,
}

/// The first hit of a ray.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RayHit {
    /// The entity that was hit.
    pub entity: EntityId,
    /// Distance along the ray.
    pub distance: f32,
    /// The point of contact.
    pub point: Vec3,
    /// The surface normal.
    pub normal: Vec3,
}

impl Default for CollisionWorld {
    fn default() -> Self {
        static WORLDS: AtomicU64 = AtomicU64::new(1);
        Self {
            id: WORLDS.fetch_add(1, Ordering::Relaxed),
            solids: Vec::new(),
            free: Vec::new(),
            slots: FxHashMap::default(),
            tree: Bvh::new(),
            moved: Vec::new(),
            meshes: Meshes::default(),
            changes: Changes::default(),
            changed: 0,
            terrain: None,
        }
    }
}

impl CollisionWorld {
    /// An empty world.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty world whose solids can use these meshes.
    pub fn with_meshes(meshes: Meshes) -> Self {
        Self {
            meshes,
            ..Self::default()
        }
    }

    /// The meshes that its solids can use.
    pub fn meshes(&self) -> &Meshes {
        &self.meshes
    }

    /// Adds a solid, or replaces the one this entity has. A mesh that this
    /// world does not have is not solid.
    pub fn insert(&mut self, entity: EntityId, shape: Shape, pose: Pose) {
        self.remove(entity);
        let shape = shape.thickened();
        let mesh = match shape {
            Shape::Mesh { id, scale, .. } => match self.meshes.get(id) {
                Some(mesh) => Some((mesh.clone(), scale)),
                None => return,
            },
            _ => None,
        };
        let convex = Convex::from(shape);
        let shape = shape.to_parry();
        let bounds = bounds(&shape, &mesh, &pose);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.solids.push(None);
            (self.solids.len() - 1) as u32
        });
        self.tree.insert(bounds, slot);
        self.changes.record(&bounds, Change::Members);
        self.solids[slot as usize] = Some(Solid {
            entity,
            convex,
            frame: Frame::from(&pose),
            bounds,
            tree_bounds: bounds,
            shape,
            mesh,
            pushable: false,
            passable: false,
            pose,
            previous_pose: pose,
            listed: false,
            late: false,
            changed: self.changed,
        });
        self.slots.insert(entity, slot);
    }

    /// Sets whether a solid can be pushed: it slows a character only by the
    /// difference in speed.
    pub fn set_pushable(&mut self, entity: EntityId, pushable: bool) {
        let slot = self.slots.get(&entity);
        let solid = slot.and_then(|slot| self.solids[*slot as usize].as_mut());
        if let Some(solid) = solid.filter(|solid| solid.pushable != pushable) {
            solid.pushable = pushable;
            self.changes.record(&solid.tree_bounds, Change::Members);
        }
    }

    /// Removes an entity's solid, if it has one.
    pub fn remove(&mut self, entity: EntityId) {
        let Some(slot) = self.slots.remove(&entity) else {
            return;
        };
        self.tree.remove(slot);
        if let Some(solid) = self.solids[slot as usize].take() {
            self.changes.record(&solid.tree_bounds, Change::Members);
            if solid.listed {
                self.moved.retain(|&moved| moved != slot);
            }
        }
        self.free.push(slot);
    }

    /// Sets whether characters pass through a solid; rays still hit it.
    pub fn set_passable(&mut self, entity: EntityId, passable: bool) {
        let slot = self.slots.get(&entity);
        let solid = slot.and_then(|slot| self.solids[*slot as usize].as_mut());
        if let Some(solid) = solid.filter(|solid| solid.passable != passable) {
            solid.passable = passable;
            self.changes.record(&solid.tree_bounds, Change::Members);
        }
    }

    /// Resets last tick's movement. Call once before moving solids in a tick.
    pub fn begin_tick(&mut self) {
        self.moved.retain(|&slot| {
            let Some(solid) = &mut self.solids[slot as usize] else {
                return false;
            };
            if std::mem::take(&mut solid.late) {
                return true;
            }
            solid.listed = false;
            if solid.previous_pose != solid.pose {
                solid.previous_pose = solid.pose;
                self.changed += 1;
                solid.changed = self.changed;
                self.changes.record(&solid.bounds, Change::Pose);
            }
            false
        });
    }

    /// Moves a solid within a tick; what stands on it is carried.
    pub fn move_to(&mut self, entity: EntityId, pose: Pose) {
        self.update(entity, pose, |solid| solid.previous_pose);
    }

    /// Moves a solid after characters have stepped; what stands on it is
    /// carried in the next tick.
    pub fn move_late(&mut self, entity: EntityId, pose: Pose) {
        let slot = self.update(entity, pose, |solid| solid.pose);
        let solid = slot.and_then(|slot| self.solids[slot as usize].as_mut());
        if let Some(solid) = solid {
            solid.late = solid.listed;
        }
    }

    /// Sets the previous and current pose of a solid, with which a client
    /// replays a past tick.
    pub fn set_path(&mut self, entity: EntityId, previous: Pose, pose: Pose) {
        self.update(entity, pose, |_| previous);
    }

    /// Teleports a solid without carrying anything.
    pub fn teleport(&mut self, entity: EntityId, pose: Pose) {
        self.update(entity, pose, |_| pose);
    }

    /// Returns the slot of the entity, if it is solid.
    fn update(
        &mut self,
        entity: EntityId,
        pose: Pose,
        previous: impl Fn(&Solid) -> Pose,
    ) -> Option<u32> {
        let slot = *self.slots.get(&entity)?;
        let solid = self.solids[slot as usize].as_mut()?;
        let previous_pose = previous(solid);
        if same(&solid.pose, &pose) && same(&solid.previous_pose, &previous_pose) {
            return Some(slot);
        }
        self.changed += 1;
        solid.changed = self.changed;
        let before = solid.bounds;
        solid.pose = pose;
        solid.previous_pose = previous_pose;
        solid.frame = Frame::from(&pose);
        solid.bounds = bounds(&solid.shape, &solid.mesh, &pose);
        if !solid.listed && previous_pose != pose {
            solid.listed = true;
            self.moved.push(slot);
        }
        if solid.tree_bounds.contains(&solid.bounds) {
            let passed = before.merged(&solid.bounds);
            self.changes.record(&passed, Change::Pose);
            return Some(slot);
        }
        // Remove and insert: updating a leaf in place would only ever enlarge
        // the boxes above it.
        self.changes.record(&solid.tree_bounds, Change::Members);
        solid.tree_bounds = solid.bounds.loosened(MOVER_MARGIN_M);
        self.changes.record(&solid.tree_bounds, Change::Members);
        self.tree.remove(slot);
        self.tree.insert(solid.tree_bounds, slot);
        Some(slot)
    }

    /// Whether this entity is solid.
    pub fn contains(&self, entity: EntityId) -> bool {
        self.slots.contains_key(&entity)
    }

    /// The first solid along a ray, ignoring `except`; terrain has the entity
    /// [`TERRAIN`].
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
        let on_terrain = if except.contains(&TERRAIN) {
            None
        } else {
            self.raycast_terrain(origin, direction, distance_max)
        };
        let distance_max = on_terrain.map_or(distance_max, |hit| hit.distance);
        let on_solid = self.raycast_solids(origin, direction, distance_max, except);
        on_solid.or(on_terrain)
    }

    fn raycast_solids(
        &self,
        origin: Vec3,
        direction: Vec3,
        distance_max: f32,
        except: &[EntityId],
    ) -> Option<RayHit> {
        let ray = Ray::new(origin, direction);
        let (slot, hit) = self.tree.cast_ray(&ray, distance_max, |slot, best| {
            let solid = self.solids[slot as usize].as_ref()?;
            if except.contains(&solid.entity) {
                return None;
            }
            solid.raycast(&ray, best).map(|(distance, _)| distance)
        })?;
        let solid = self.solids[slot as usize].as_ref()?;
        let normal = solid
            .raycast(&ray, distance_max)
            .map_or(-direction, |(_, normal)| normal);
        Some(RayHit {
            entity: solid.entity,
            distance: hit,
            point: origin + direction * hit,
            normal,
        })
    }

    /// Fills `out` with the slots of all solids that intersect `bounds`, and
    /// possibly of others near it, in order of ids.
    pub(crate) fn near(&self, bounds: &Aabb, out: &mut Vec<u32>) {
        out.clear();
        out.extend(self.tree.intersect_aabb(bounds));
        out.sort_unstable_by_key(|&slot| self.at(slot).map(|solid| solid.entity));
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The count of pose changes.
    pub(crate) fn changed(&self) -> u64 {
        self.changed
    }

    /// The solid in a slot.
    pub(crate) fn at(&self, slot: u32) -> Option<&Solid> {
        self.solids.get(slot as usize)?.as_ref()
    }

    /// Entities whose solid moved since a tick ago, in any order.
    pub fn moved(&self) -> impl Iterator<Item = EntityId> {
        let solids = self.moved.iter().filter_map(|&slot| self.at(slot));
        solids.map(|solid| solid.entity)
    }

    /// Whether any solid moved since a tick ago.
    pub(crate) fn moves(&self) -> bool {
        !self.moved.is_empty()
    }

    /// The solids that moved since a tick ago.
    pub(crate) fn moved_solids(&self) -> impl Iterator<Item = &Solid> {
        self.moved.iter().filter_map(|&slot| self.at(slot))
    }

    pub(crate) fn solid(&self, entity: EntityId) -> Option<&Solid> {
        self.solids[*self.slots.get(&entity)? as usize].as_ref()
    }
}

/// Bitwise equality: a nearly equal pose is different.
fn same(a: &Pose, b: &Pose) -> bool {
    let bits = |pose: &Pose| {
        (
            pose.translation.to_array().map(f32::to_bits),
            pose.rotation.to_array().map(f32::to_bits),
        )
    };
    bits(a) == bits(b)
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
