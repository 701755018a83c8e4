//! The voxel terrain of a world: edits, blocks near a place, and rays.

use frolic_motion::Vec3;
use frolic_terrain::{Op, Terrain};
use parry3d::bounding_volume::Aabb;

use super::{CollisionWorld, RayHit};
use crate::block::{Block, TERRAIN};
use crate::changes::Change;

impl CollisionWorld {
    /// Sets or replaces the terrain.
    pub fn set_terrain(&mut self, terrain: Option<Terrain>) {
        self.terrain = terrain;
        let everywhere = Aabb::new(Vec3::splat(f32::MIN), Vec3::splat(f32::MAX));
        self.terrain_changed(&everywhere);
    }

    /// The terrain, if the world has one.
    pub fn terrain(&self) -> Option<&Terrain> {
        self.terrain.as_ref()
    }

    /// Changes the terrain and returns the result of `change`, which may change
    /// only blocks within the box of the operation.
    pub fn change_terrain<T>(
        &mut self,
        op: &Op,
        change: impl FnOnce(&mut Terrain) -> T,
    ) -> Option<T> {
        let terrain = self.terrain.as_mut()?;
        let result = change(terrain);
        let range = op.blocks(terrain.grid());
        if !range.is_empty() {
            let block_m = terrain.grid().block_m();
            let corner = |at: [i32; 3]| Vec3::from(at.map(|at| at as f32 * block_m));
            // A neighbouring block may have another exposed face now.
            let around = range.grown(1);
            let past = around.max.map(|at| at.saturating_add(1));
            self.terrain_changed(&Aabb::new(corner(around.min), corner(past)));
        }
        Some(result)
    }

    /// Replaces chunks of the terrain.
    pub fn replace_terrain<T>(&mut self, change: impl FnOnce(&mut Terrain) -> T) -> Option<T> {
        let result = change(self.terrain.as_mut()?);
        let everywhere = Aabb::new(Vec3::splat(f32::MIN), Vec3::splat(f32::MAX));
        self.terrain_changed(&everywhere);
        Some(result)
    }

    fn terrain_changed(&mut self, bounds: &Aabb) {
        self.changes.record(bounds, Change::Members);
    }

    /// Fills `out` with the blocks that intersect `bounds`.
    pub(crate) fn blocks_near(&self, bounds: &Aabb, out: &mut Vec<Block>) {
        out.clear();
        let Some(terrain) = &self.terrain else {
            return;
        };
        let mut blocks = Vec::new();
        terrain.blocks_touching(bounds.mins.to_array(), bounds.maxs.to_array(), &mut blocks);
        out.extend(blocks.iter().map(Block::new));
    }

    /// The first block along a ray; `direction` has length one.
    pub(super) fn raycast_terrain(
        &self,
        origin: Vec3,
        direction: Vec3,
        distance_max: f32,
    ) -> Option<RayHit> {
        let terrain = self.terrain.as_ref()?;
        let hit = terrain.raycast(origin.to_array(), direction.to_array(), distance_max)?;
        Some(RayHit {
            entity: TERRAIN,
            distance: hit.distance,
            point: origin + direction * hit.distance,
            normal: Vec3::from(hit.normal.map(|part| part as f32)),
        })
    }
}
