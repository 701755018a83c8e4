//! Blocks of voxel terrain among the solids that a character meets.
//!
//! A single block would have edges and sides that the terrain does not have:
//! between two blocks of a floor there is nothing to stumble over. Contacts
//! that point into a neighbour are discarded, because the neighbour is nearer;
//! so a character collides with the surface of all blocks together.

use frolic_motion::{EntityId, Vec3};
use parry3d::bounding_volume::Aabb;

use crate::convex::{self, Convex, Core, FloorBelow, Frame, Gap};
use crate::obstacle::Obstacle;

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
    pub fn new(block: &frolic_terrain::Block) -> Self {
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
