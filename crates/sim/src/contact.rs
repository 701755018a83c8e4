//! A capsule against the solids near it: how deep, which way out, can it be walked on.

use parry3d::bounding_volume::Aabb;
use parry3d::math::{Pose3 as Pose, Vec3};
use parry3d::query::{self, Ray, ShapeCastOptions};
use parry3d::shape::{Capsule, Segment};

use crate::character::CharacterParams;
use crate::collision::Solid;

/// Distance at which a surface below still counts as touched.
pub(crate) const SKIN: f32 = 0.02;

/// One touch of a capsule and a solid.
pub(crate) struct Contact {
    /// From the solid towards the capsule.
    pub normal: Vec3,
    /// How far the capsule is inside; negative within the skin.
    pub depth: f32,
    /// How far it must rise to be free, where the touch is the edge of a step.
    pub step_lift: Option<f32>,
}

/// The box around a capsule that moves by `travel`, grown by `margin`.
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

fn core(params: &CharacterParams, feet: Vec3) -> Segment {
    Segment::new(
        feet + Vec3::Y * params.radius,
        feet + Vec3::Y * (params.height - params.radius),
    )
}

/// The touch of a capsule standing at `feet` with one solid, if any.
///
/// The capsule is taken as a segment with a radius: as long as the solid
/// reaches no deeper than the radius, the closest points of segment and solid
/// are exact and cheap; only deeper ones need the penetration solver.
pub(crate) fn touch(params: &CharacterParams, feet: Vec3, solid: &Solid) -> Option<Contact> {
    let contact = query::contact(
        &solid.pose,
        solid.shape.as_ref(),
        &Pose::identity(),
        &core(params, feet),
        params.radius + SKIN,
    )
    .ok()??;
    let normal = contact.normal1;
    if !normal.is_finite() {
        return None;
    }
    Some(Contact {
        normal,
        depth: params.radius - contact.dist,
        step_lift: step_lift(params, feet, solid, contact.point1, normal),
    })
}

/// Whether `point` is the edge of a step low enough to walk onto, and if so
/// how far the round foot must rise to rest on it. Rising by just that much
/// each tick carries the capsule over the edge in a smooth arc.
fn step_lift(
    params: &CharacterParams,
    feet: Vec3,
    solid: &Solid,
    point: Vec3,
    normal: Vec3,
) -> Option<f32> {
    let height = point.y - feet.y;
    if normal.y <= 0.01 || params.walkable(normal) || height > params.step_height {
        return None;
    }
    // A hair inside the edge, is there a floor to stand on?
    let inward = Vec3::new(-normal.x, 0.0, -normal.z).try_normalize()? * 0.02;
    let ray = Ray::new(point + inward + Vec3::Y * 0.05, -Vec3::Y);
    let hit = solid
        .shape
        .cast_ray_and_get_normal(&solid.pose, &ray, 0.1, false)?;
    if !params.walkable(hit.normal) {
        return None;
    }
    let aside_sq =
        (point.x - feet.x) * (point.x - feet.x) + (point.z - feet.z) * (point.z - feet.z);
    let drop_sq = params.radius * params.radius - aside_sq;
    if drop_sq <= 0.0 {
        return None;
    }
    let rest = point.y - params.radius + drop_sq.sqrt();
    // Within the skin above it, the foot rests on the edge already.
    (rest > feet.y - SKIN).then_some((rest - feet.y).max(0.0))
}

/// Whether a capsule fits at `feet` without being inside anything.
pub(crate) fn is_free(params: &CharacterParams, feet: Vec3, solids: &[&Solid]) -> bool {
    let core = core(params, feet);
    let slack = 0.005;
    solids.iter().all(|solid| {
        query::distance(&solid.pose, solid.shape.as_ref(), &Pose::identity(), &core)
            .map_or(true, |found| found.distance > params.radius - slack)
    })
}

/// How far the capsule can go straight down before it rests on something.
pub(crate) fn drop_distance(
    params: &CharacterParams,
    feet: Vec3,
    distance_max: f32,
    solids: &[&Solid],
) -> Option<f32> {
    let core = core(params, feet);
    let capsule = Capsule::new(core.a, core.b, params.radius);
    let options = ShapeCastOptions {
        max_time_of_impact: distance_max,
        ..ShapeCastOptions::default()
    };
    solids
        .iter()
        .filter_map(|solid| {
            query::cast_shapes(
                &Pose::identity(),
                -Vec3::Y,
                &capsule,
                &solid.pose,
                Vec3::ZERO,
                solid.shape.as_ref(),
                options,
            )
            .ok()?
            .map(|hit| hit.time_of_impact)
        })
        .reduce(f32::min)
}
