//! A character's cache between steps: the solids around it, and whether it is
//! at rest.
//!
//! Both only shortcut what the step would have found anyway. The cached solids
//! are those around a larger box; each step selects from them the ones that
//! meet its own box, which is what the tree would have returned. A step that
//! changed nothing changes nothing again, as long as the character, its input
//! and the solids around it are the same.

use frolic_motion::{CharacterParams, CharacterState, EntityId, Vec3};
use parry3d::bounding_volume::{Aabb, BoundingVolume};
use smallvec::SmallVec;

use crate::block::Block;
use crate::changes::{self, Cells};
use crate::collision::CollisionWorld;
use crate::contact::Near;
use crate::obstacle::Obstacle;
use crate::solid::Solid;

/// How much larger the cached box is on every side: a dozen walking steps pass
/// between two tree queries.
const MARGIN_M: f32 = 1.0;

/// Caches what the steps of one character found. Losing it costs only time.
#[derive(Clone, Debug, Default)]
pub struct StepCache {
    around: Option<Around>,
    /// Solids that meet the box of `around`, in order of ids. Usually few;
    /// stored inline, because thousands of characters read theirs in every
    /// tick.
    candidates: SmallVec<[u32; 4]>,
    /// Those of them that meet the box of the current step.
    near: SmallVec<[u32; 4]>,
    /// The same for the blocks of the terrain, in their order.
    candidate_blocks: Vec<Block>,
    near_blocks: Vec<Block>,
    /// The box of the current step.
    bounds: Option<Aabb>,
    rest: Option<Rest>,
    /// The triangles of meshes that meet the box of the current step.
    pieces: Vec<Solid>,
    /// Buffer of tree queries.
    found: Vec<u32>,
    /// Contacts of the last step.
    touches: Vec<Touch>,
}

/// A contact of a character in its last step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Touch {
    /// The entity of the solid.
    pub entity: EntityId,
    /// The point of contact.
    pub point: Vec3,
    /// From the solid towards the character.
    pub normal: Vec3,
    /// Speed of the character against it, in metres per second.
    pub speed: f32,
    /// Whether the character can stand on it.
    pub stands: bool,
}

/// Where the candidates were collected, and the change counts that validate
/// them.
#[derive(Clone, Copy, Debug)]
struct Around {
    world: u64,
    bounds: Aabb,
    cells: Cells,
    members: u64,
}

/// A state that an idle step leaves unchanged.
#[derive(Clone, Copy, Debug)]
struct Rest {
    state: CharacterState,
    params: CharacterParams,
    dt: f32,
    /// The box of that step.
    bounds: Aabb,
    /// Pose changes in the cells around, as of the last check.
    poses: u64,
    /// Pose changes in the whole world, as of that step.
    changed: u64,
}

impl StepCache {
    /// Contacts of the last computed step, one per entity. The step of a
    /// character at rest is skipped; it would touch the same.
    pub fn touches(&self) -> &[Touch] {
        &self.touches
    }

    pub(crate) fn take_touches(&mut self) -> Vec<Touch> {
        let mut touches = std::mem::take(&mut self.touches);
        touches.clear();
        touches
    }

    pub(crate) fn store_touches(&mut self, touches: Vec<Touch>) {
        self.touches = touches;
    }

    /// The solids whose boxes intersect `bounds`, in order of ids.
    pub(crate) fn near<'a>(&'a mut self, world: &'a CollisionWorld, bounds: &Aabb) -> Near<'a> {
        if !self.holds(world, bounds) {
            self.look(world, bounds);
        }
        // The recorded rest belongs to the previous step.
        self.rest = None;
        self.bounds = Some(*bounds);
        self.near.clear();
        let meets = |slot: u32| {
            let solid = world.at(slot);
            solid.is_some_and(|solid| solid.bounds.intersects(bounds))
        };
        let candidates = self.candidates.iter().copied();
        self.near.extend(candidates.filter(|&slot| meets(slot)));
        self.pieces.clear();
        for &slot in &self.near {
            if let Some(solid) = world.at(slot).filter(|solid| !solid.passable) {
                solid.add_pieces(bounds, &mut self.found, &mut self.pieces);
            }
        }
        self.near_blocks.clear();
        let blocks = self.candidate_blocks.iter();
        let blocks = blocks.filter(|block| block.bounds().intersects(bounds));
        self.near_blocks.extend(blocks.copied());
        Near {
            world,
            slots: &self.near,
            pieces: &self.pieces,
            blocks: &self.near_blocks,
        }
    }

    fn holds(&self, world: &CollisionWorld, bounds: &Aabb) -> bool {
        self.around.is_some_and(|around| {
            around.world == world.id()
                && around.bounds.contains(bounds)
                && around.members == world.changes().count(around.cells).members
        })
    }

    fn look(&mut self, world: &CollisionWorld, bounds: &Aabb) {
        let wide = bounds.loosened(MARGIN_M);
        self.around = changes::cells(&wide).map(|cells| Around {
            world: world.id(),
            bounds: wide,
            cells,
            members: world.changes().count(cells).members,
        });
        // A very fast character: its box is too wide to be worth caching.
        let bounds = if self.around.is_some() { &wide } else { bounds };
        world.near(bounds, &mut self.found);
        self.candidates.clear();
        self.candidates.extend_from_slice(&self.found);
        world.blocks_near(bounds, &mut self.candidate_blocks);
    }

    /// Whether an idle step would leave this character unchanged.
    pub(crate) fn rests(
        &mut self,
        world: &CollisionWorld,
        params: &CharacterParams,
        state: &CharacterState,
        dt: f32,
    ) -> bool {
        let (Some(rest), Some(around)) = (&mut self.rest, &self.around) else {
            return false;
        };
        let as_before = same(&rest.state, state)
            && rest.dt.to_bits() == dt.to_bits()
            && rest.params.bits() == params.bits()
            && around.world == world.id();
        if !as_before {
            return false;
        }
        let count = world.changes().count(around.cells);
        if count.poses == rest.poses {
            return true;
        }
        // Something moved close by. It matters if it was near or is now.
        let matters = |slot: u32| {
            let solid = world.at(slot);
            solid.is_none_or(|solid| {
                solid.changed > rest.changed
                    && (solid.bounds.intersects(&rest.bounds) || self.near.contains(&slot))
            })
        };
        let rests =
            count.members == around.members && !self.candidates.iter().any(|&slot| matters(slot));
        if rests {
            rest.poses = count.poses;
        }
        rests
    }

    /// Records the outcome of an idle step.
    pub(crate) fn record_idle_step(
        &mut self,
        world: &CollisionWorld,
        params: &CharacterParams,
        before: &CharacterState,
        after: &CharacterState,
        dt: f32,
    ) {
        // Only if it stands on something: its ground is then among the solids
        // near it, and the step depends on nothing else.
        if let (Some(around), Some(bounds)) = (self.around, self.bounds)
            && after.grounded()
            && same(before, after)
        {
            self.rest = Some(Rest {
                state: *after,
                params: *params,
                dt,
                bounds,
                poses: world.changes().count(around.cells).poses,
                changed: world.changed(),
            });
        }
    }
}

/// Bitwise equality: zero and negative zero are different states.
fn same(a: &CharacterState, b: &CharacterState) -> bool {
    let bits = |v: Vec3| v.to_array().map(f32::to_bits);
    bits(a.feet) == bits(b.feet)
        && bits(a.velocity) == bits(b.velocity)
        && bits(a.ground_normal) == bits(b.ground_normal)
        && a.ground == b.ground
        && a.air_ticks == b.air_ticks
}
