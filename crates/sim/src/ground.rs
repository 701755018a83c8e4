//! Voxel terrain among the solids: the blocks near a character, and its
//! contacts with them.
//!
//! A single block would have edges and sides that the terrain does not have:
//! between two blocks of a floor there is nothing to stumble over. Contacts
//! that point into a neighbour are discarded, because the neighbour is nearer;
//! so a character collides with the surface of all blocks together.

use frolic_terrain::{Op, Terrain};
use parry3d::bounding_volume::Aabb;
use parry3d::math::Vec3;

use crate::changes::Change;
use crate::collision::{CollisionWorld, EntityId, RayHit};
use crate::contact::Obstacle;
use crate::convex::{self, Convex, Core, FloorBelow, Frame, Gap};

/// The entity id of terrain in contacts and ray hits: no entity has this id.
pub const TERRAIN: EntityId = 0;

/// A component of a normal that is more than a rounding error.
const LEANING: f32 = 1e-3;

/// A solid block, prepared for collision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    convex: Convex,
    frame: Frame,
    bounds: Aabb,
    covered: u8,
}

impl Block {
    fn new(block: &frolic_terrain::Block) -> Self {
        let (mins, maxs) = (Vec3::from(block.min), Vec3::from(block.max));
        Self {
            convex: Convex::Box {
                half: (maxs - mins) * 0.5,
                round: 0.0,
            },
            frame: Frame::upright((mins + maxs) * 0.5),
            bounds: Aabb::new(mins, maxs),
            covered: block.covered,
        }
    }
}

impl Obstacle for Block {
    fn entity(&self) -> EntityId {
        TERRAIN
    }

    fn convex(&self) -> &Convex {
        &self.convex
    }

    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn bounds(&self) -> &Aabb {
        &self.bounds
    }

    /// A character inside terrain is moved up: there is always air above.
    fn penetration(&self, core: &Core, _reach: f32) -> Option<Gap> {
        let top = self.bounds.maxs.y;
        Some(Gap {
            distance: core.low.y - top,
            normal: Vec3::Y,
            point: Vec3::new(core.low.x, top, core.low.z),
        })
    }

    fn floor_below(&self, point: Vec3, distance: f32) -> Option<Vec3> {
        match convex::floor_below(&self.convex, &self.frame, point, distance) {
            FloorBelow::Known(normal) => normal,
            FloorBelow::Unknown => None,
        }
    }

    fn hides(&self, gap: &Gap) -> bool {
        // Inside there is one way out, whatever lies on top.
        if gap.distance < 0.0 {
            return false;
        }
        let normal = gap.normal;
        let leans = |part: f32, low: u8| {
            (part < -LEANING && self.covered & low != 0)
                || (part > LEANING && self.covered & (low << 1) != 0)
        };
        leans(normal.x, 1) || leans(normal.y, 4) || leans(normal.z, 16)
    }
}

impl CollisionWorld {
    /// Sets or replaces the terrain.
    pub fn set_terrain(&mut self, terrain: Option<Terrain>) {
        self.terrain = terrain;
        let everywhere = Aabb::new(Vec3::splat(f32::MIN), Vec3::splat(f32::MAX));
        self.ground_changed(&everywhere);
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
            self.ground_changed(&Aabb::new(corner(around.min), corner(past)));
        }
        Some(result)
    }

    /// Replaces chunks of the terrain.
    pub fn replace_terrain<T>(&mut self, change: impl FnOnce(&mut Terrain) -> T) -> Option<T> {
        let result = change(self.terrain.as_mut()?);
        let everywhere = Aabb::new(Vec3::splat(f32::MIN), Vec3::splat(f32::MAX));
        self.ground_changed(&everywhere);
        Some(result)
    }

    fn ground_changed(&mut self, bounds: &Aabb) {
        self.changes.note(bounds, Change::Members);
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
    pub(crate) fn raycast_terrain(
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
