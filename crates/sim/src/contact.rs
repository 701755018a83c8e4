//! Contacts of a capsule with the solids near it: depth, normal, and whether it
//! can be walked on.

use frolic_motion::{CharacterParams, Vec3};
use parry3d::bounding_volume::Aabb;

use crate::block::Block;
use crate::collision::CollisionWorld;
use crate::convex::{self, Core, Gap};
use crate::obstacle::Obstacle;
use crate::solid::Solid;

/// Distance at which a surface below still counts as touched.
pub(crate) const SKIN: f32 = 0.02;
/// Steeper surfaces neither carry nor stop a fall.
const FACING_UP_MIN: f32 = 0.01;
/// A fall ends this near to a surface.
const LANDED_M: f32 = 1e-4;
/// Bounds the search for the end of a fall. Flat ground takes two rounds.
const FALL_ROUNDS_MAX: usize = 8;

/// A contact between a capsule and a solid.
pub(crate) struct Contact {
    /// From the solid towards the capsule.
    pub normal: Vec3,
    /// How far the capsule is inside; negative within the skin.
    pub depth: f32,
    /// The point of contact.
    pub point: Vec3,
    /// How far it must rise to clear the edge of a step, if the contact is one.
    pub step_lift: Option<f32>,
}

/// The bounding box of a capsule that moves by `travel`, enlarged by `margin`.
pub(crate) fn swept_bounds(
    params: &CharacterParams,
    feet: Vec3,
    travel: Vec3,
    margin: f32,
) -> Aabb {
    let low = Vec3::new(-params.radius, 0.0, -params.radius);
    let high = Vec3::new(params.radius, params.height, params.radius);
    let end = feet + travel;
    Aabb::new(
        feet.min(end) + low - Vec3::splat(margin),
        feet.max(end) + high + Vec3::splat(margin),
    )
}

/// The solids near a character, in order of ids, and the blocks.
#[derive(Clone, Copy)]
pub(crate) struct Near<'a> {
    pub world: &'a CollisionWorld,
    pub slots: &'a [u32],
    /// Convex parts of non-convex solids.
    pub pieces: &'a [Solid],
    pub blocks: &'a [Block],
}

impl<'a> Near<'a> {
    pub fn solids(self) -> impl Iterator<Item = &'a Solid> {
        self.slots
            .iter()
            .filter_map(move |&slot| self.world.at(slot))
            .filter(|solid| solid.mesh.is_none() && !solid.passable)
            .chain(self.pieces)
    }
}

fn core(params: &CharacterParams, feet: Vec3) -> Core {
    Core {
        low: feet + Vec3::Y * params.radius,
        length: params.height - 2.0 * params.radius,
    }
}

/// Whether the box of a solid is within `reach` of a core that may also descend
/// by `drop`. If not, the solid needs no further test.
fn in_reach(solid: &impl Obstacle, core: &Core, reach: f32, drop: f32) -> bool {
    let (low, high) = (solid.bounds().mins, solid.bounds().maxs);
    core.low.x + reach >= low.x
        && core.low.x - reach <= high.x
        && core.low.z + reach >= low.z
        && core.low.z - reach <= high.z
        && core.low.y + core.length + reach >= low.y
        && core.low.y - drop - reach <= high.y
}

/// The contact of a capsule at `feet` with one solid, if any.
///
/// The capsule is treated as a segment with a radius: while the solid is no
/// deeper than the radius, the closest points of segment and solid are exact
/// and cheap; only deeper ones need the penetration solver.
pub(crate) fn touch(
    params: &CharacterParams,
    feet: Vec3,
    solid: &impl Obstacle,
    near: Near,
) -> Option<Contact> {
    let core = core(params, feet);
    let reach = params.radius + SKIN;
    if !in_reach(solid, &core, reach, 0.0) {
        return None;
    }
    let gap = match convex::gap(solid.convex(), solid.frame(), &core) {
        Some(gap) => gap,
        None => solid.penetration(&core, reach)?,
    };
    if gap.distance > reach || solid.hides(&gap) {
        return None;
    }
    Some(Contact {
        normal: gap.normal,
        depth: params.radius - gap.distance,
        point: gap.point,
        step_lift: step_lift(params, feet, solid, near, &gap),
    })
}

/// Whether `point` is the edge of a step low enough to walk onto, and if so how
/// far the round foot must rise to rest on it. Rising by just that much each
/// tick moves the capsule over the edge in a smooth arc.
fn step_lift(
    params: &CharacterParams,
    feet: Vec3,
    solid: &impl Obstacle,
    near: Near,
    gap: &Gap,
) -> Option<f32> {
    let (point, normal) = (gap.point, gap.normal);
    let height = point.y - feet.y;
    if normal.y <= FACING_UP_MIN || params.walkable(normal) || height > params.step_height {
        return None;
    }
    // Is there a floor to stand on slightly inside the edge?
    let inward = Vec3::new(-normal.x, 0.0, -normal.z).try_normalize()? * 0.02;
    let above = point + inward + Vec3::Y * 0.05;
    let is_floor = |floor: Option<Vec3>| floor.is_some_and(|floor| params.walkable(floor));
    // The riser of a step and its tread are two triangles of one mesh.
    let carries = is_floor(solid.floor_below(above, 0.1))
        || solid.is_piece()
            && near.pieces.iter().any(|piece| {
                piece.entity == solid.entity() && is_floor(piece.floor_below(above, 0.1))
            });
    if !carries {
        return None;
    }
    let aside_sq =
        (point.x - feet.x) * (point.x - feet.x) + (point.z - feet.z) * (point.z - feet.z);
    let drop_sq = params.radius * params.radius - aside_sq;
    if drop_sq <= 0.0 {
        return None;
    }
    let rest = point.y - params.radius + drop_sq.sqrt();
    // Within the skin above it, the foot already rests on the edge.
    (rest > feet.y - SKIN).then_some((rest - feet.y).max(0.0))
}

/// Whether a capsule fits at `feet` without penetrating anything.
pub(crate) fn is_free(params: &CharacterParams, feet: Vec3, near: Near) -> bool {
    let core = core(params, feet);
    let slack = 0.005;
    near.solids()
        .all(|solid| is_clear_of(params, &core, slack, solid))
        && near
            .blocks
            .iter()
            .all(|block| is_clear_of(params, &core, slack, block))
}

fn is_clear_of(params: &CharacterParams, core: &Core, slack: f32, solid: &impl Obstacle) -> bool {
    !in_reach(solid, core, params.radius, 0.0)
        || convex::gap(solid.convex(), solid.frame(), core)
            .is_some_and(|gap| gap.distance > params.radius - slack)
}

/// How far the capsule can descend before it rests on something.
pub(crate) fn drop_distance(
    params: &CharacterParams,
    feet: Vec3,
    distance_max: f32,
    near: Near,
) -> Option<f32> {
    let core = core(params, feet);
    let onto_solids = near
        .solids()
        .filter(|solid| in_reach(*solid, &core, params.radius, distance_max))
        .filter_map(|solid| drop_onto(params.radius, core, distance_max, solid));
    let blocks = near.blocks.iter();
    let onto_blocks = blocks
        .filter(|block| in_reach(*block, &core, params.radius, distance_max))
        .filter_map(|block| drop_onto(params.radius, core, distance_max, block));
    onto_solids
        .chain(onto_blocks)
        .reduce(|least, drop| if drop < least { drop } else { least })
}

/// How far a core can descend before it is within `radius` of a solid.
///
/// The distance to a convex solid is a convex function of the path, so
/// extrapolating its current slope never overshoots.
fn drop_onto(radius: f32, mut core: Core, distance_max: f32, solid: &impl Obstacle) -> Option<f32> {
    let start = core.low.y;
    let mut drop = 0.0;
    for _ in 0..FALL_ROUNDS_MAX {
        let Some(gap) = convex::gap(solid.convex(), solid.frame(), &core) else {
            return Some(drop);
        };
        if gap.normal.y <= FACING_UP_MIN {
            return None;
        }
        let left = gap.distance - radius;
        if left <= LANDED_M {
            break;
        }
        drop += left / gap.normal.y;
        if drop > distance_max {
            return None;
        }
        core.low.y = start - drop;
    }
    Some(drop)
}
