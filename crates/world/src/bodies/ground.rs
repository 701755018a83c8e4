//! Bodies on voxel terrain: rapier gets a collider for each chunk near a moving
//! body, and a new one when the chunk changes.

use std::collections::BTreeMap;

use frolic_sim::Vec3;
use frolic_terrain::{CHUNK_SIDE, ChunkPos, Terrain, first_block, index_in_chunk};
use rapier3d::prelude::{ColliderHandle, IVector, SharedShape};

use super::physics::Physics;
use super::{Bodies, shapes};
use crate::space::Space;

/// Distance ahead of a body within which terrain colliders must exist.
const MARGIN_M: f32 = 0.5;
/// Chunk colliders in memory; above this, those not used recently are removed.
const TILES_MAX: usize = 512;
const UNUSED_TICKS_MAX: u32 = 60 * 60;
/// Chunks that one body may reach in a tick. A faster body is stopped by the
/// chunks at its start.
const REACHED_MAX: u64 = 64;

/// The chunk colliders in rapier.
#[derive(Default)]
pub(super) struct GroundTiles(BTreeMap<ChunkPos, Tile>);

struct Tile {
    /// None for air.
    collider: Option<ColliderHandle>,
    version: u32,
    /// The last tick in which a body was near.
    tick: u32,
}

impl GroundTiles {
    /// Ensures that rapier has the current version of a chunk.
    fn need(&mut self, at: ChunkPos, terrain: &Terrain, physics: &mut Physics, tick: u32) {
        let version = terrain.version(at);
        if let Some(tile) = self.0.get_mut(&at) {
            tile.tick = tick;
            if tile.version == version {
                return;
            }
        }
        self.drop(at, physics);
        let collider = solid_of(terrain, at).map(|shape| {
            let corner = first_block(at).map(|block| block as f32);
            let place = Vec3::from(corner) * terrain.grid().block_m();
            let collider = shapes::collider(shape, None, frolic_sim::TERRAIN);
            physics.insert_collider(collider.translation(place), None)
        });
        let tile = Tile {
            collider,
            version,
            tick,
        };
        self.0.insert(at, tile);
    }

    /// Removes a chunk's collider and wakes the bodies on it.
    fn drop(&mut self, at: ChunkPos, physics: &mut Physics) {
        if let Some(collider) = self.0.remove(&at).and_then(|tile| tile.collider) {
            physics.remove_collider(collider);
        }
    }

    fn forget_old(&mut self, physics: &mut Physics, tick: u32) {
        if self.0.len() <= TILES_MAX {
            return;
        }
        let old = |tile: &Tile| tick.saturating_sub(tile.tick) > UNUSED_TICKS_MAX;
        let old = self.0.iter().filter(|(_, tile)| old(tile));
        let old: Vec<ChunkPos> = old.map(|(at, _)| *at).collect();
        old.into_iter().for_each(|at| self.drop(at, physics));
    }
}

/// The solid blocks of a chunk, relative to its lowest corner.
fn solid_of(terrain: &Terrain, at: ChunkPos) -> Option<SharedShape> {
    let chunk = terrain.chunk(at)?;
    if chunk.only().is_some_and(|material| !material.is_solid()) {
        return None;
    }
    let side = CHUNK_SIDE;
    let mut blocks = Vec::new();
    for (y, z, x) in
        (0..side).flat_map(|y| (0..side).flat_map(move |z| (0..side).map(move |x| (y, z, x))))
    {
        if chunk.get(index_in_chunk([x, y, z])).is_solid() {
            blocks.push(IVector::new(x, y, z));
        }
    }
    let size = Vec3::splat(terrain.grid().block_m());
    (!blocks.is_empty()).then(|| SharedShape::voxels(size, &blocks))
}

impl Bodies {
    /// Adds terrain colliders wherever bodies move in this tick, and renews
    /// those in `changed` boxes.
    pub(super) fn ground(&mut self, space: &Space, changed: &[[[f32; 3]; 2]]) {
        let Some(terrain) = space.collision.terrain() else {
            return;
        };
        let (tick, dt) = (space.tick, space.dt());
        let (tiles, physics) = (&mut self.ground_tiles, &mut self.physics);
        for [low, high] in changed {
            for at in terrain.grid().blocks_meeting(*low, *high).grown(1).chunks() {
                if tiles.0.contains_key(&at) {
                    tiles.need(at, terrain, physics, tick);
                }
            }
        }
        let awake = self.awake.iter().map(|awake| awake.entity);
        for entity in awake.chain(self.fresh.drain(..)) {
            let Some((low, high)) = space.collision.bounds_of(entity) else {
                continue;
            };
            let speed = space.entities.get(entity);
            let speed = speed.map_or(Vec3::ZERO, |entity| entity.velocity);
            let way = speed * dt;
            let low = low.min(low + way) - Vec3::splat(MARGIN_M);
            let high = high.max(high + way) + Vec3::splat(MARGIN_M);
            let range = terrain
                .grid()
                .blocks_meeting(low.to_array(), high.to_array());
            if range.volume() > REACHED_MAX * u64::pow(CHUNK_SIDE as u64, 3) {
                continue;
            }
            for at in range.chunks() {
                tiles.need(at, terrain, physics, tick);
            }
        }
        tiles.forget_old(physics, tick);
    }
}
