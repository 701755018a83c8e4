//! The closed forms against brute force and against the general solver.

use super::*;
use crate::random::Random;
use frolic_motion::Rotation;
use parry3d::query::{self, Ray};
use parry3d::shape::Segment;

#[test]
fn gaps_are_those_of_the_general_solver() {
    let mut random = Random::new(5);
    let (mut apart, mut inside) = (0, 0);
    for case in 0..20_000 {
        let shape = random.shape(0.05, 3.0);
        let turn = random.stance();
        let mut part = || random.range(-4.0, 4.0);
        let pose = Pose::from_parts(Vec3::new(part(), part(), part()), turn);
        let low = Vec3::new(part(), part(), part());
        let core = Core { low, length: 1.0 };
        let segment = Segment::new(low, low + Vec3::Y);
        let solid = shape.to_parry();
        let general = query::distance(&pose, solid.as_ref(), &Pose::identity(), &segment)
            .unwrap()
            .distance;
        // Points along the core, each with its exact distance.
        let sampled = (0..=200)
            .map(|i| low + Vec3::Y * (i as f32 / 200.0))
            .map(|point| solid.distance_to_point(&pose, point, true))
            .fold(f32::MAX, f32::min);
        match gap(&Convex::from(shape), &Frame::from(&pose), &core) {
            Some(gap) => {
                apart += 1;
                let what = format!("{case}: {shape:?} {pose:?} {low}: {gap:?}");
                let distance = gap.distance.max(0.0);
                assert!(distance < sampled + 1e-4, "{what}, there is {sampled}");
                assert!(distance > sampled - 6e-3, "{what}, not below {sampled}");
                // The general solver is accurate to a few millimetres on round
                // solids.
                let precision = 5e-3 * (1.0 + distance);
                assert!(
                    (distance - general).abs() < precision,
                    "{what}, not {general}"
                );
                assert!((gap.normal.length() - 1.0).abs() < 1e-5, "{what}");
                // The point is on the solid, at that distance from the core.
                let off = solid.distance_to_point(&pose, gap.point, true);
                assert!(off < 1e-4, "{what}, off by {off}");
                let height = gap.point.y.clamp(low.y, low.y + 1.0);
                let reach = (gap.point - Vec3::new(low.x, height, low.z)).length();
                assert!(
                    gap.distance < 0.0 || (reach - gap.distance).abs() < 1e-4,
                    "{what}, {reach} away"
                );
            }
            None => {
                inside += 1;
                assert!(
                    general < 1e-3,
                    "{case}: {shape:?} {pose:?} {low}: {general}"
                );
            }
        }
    }
    assert!(apart > 5000 && inside > 300, "{apart} {inside}");
}

#[test]
fn level_ground_faces_straight_up_to_the_last_bit() {
    let mut random = Random::new(6);
    for _ in 0..1000 {
        let turn = Rotation::from_xyzw(0.0, random.range(-1.0, 1.0), 0.0, 1.0).normalize();
        let pose = Pose::from_parts(Vec3::new(random.range(-500.0, 500.0), -0.5, 0.0), turn);
        let half = Vec3::new(1000.0, 0.5, 1000.0);
        let core = Core {
            low: Vec3::new(
                random.range(-100.0, 100.0),
                0.4,
                random.range(-100.0, 100.0),
            ),
            length: 1.0,
        };
        for shape in [
            Shape::Box(half),
            Shape::Cylinder {
                half_height: 0.5,
                radius: 1000.0,
            },
        ] {
            let gap = gap(&Convex::from(shape), &Frame::from(&pose), &core).unwrap();
            assert_eq!(gap.normal, Vec3::Y);
            assert!((gap.distance - 0.4).abs() < 1e-6);
        }
    }
}

/// From above, the top of a solid has the normal that a general ray finds.
#[test]
fn floors_are_those_a_ray_meets() {
    let mut random = Random::new(8);
    let (mut hits, mut misses) = (0, 0);
    for case in 0..20_000 {
        let shape = random.shape(0.05, 3.0);
        let convex = Convex::from(shape);
        let turn = random.stance();
        let mut part = || random.range(-2.0, 2.0);
        let pose = Pose::from_parts(Vec3::new(part(), part(), part()), turn);
        let from = Vec3::new(part(), part() + 1.0, part());
        let ray = Ray::new(from, -Vec3::Y);
        let solid = shape.to_parry();
        if solid.distance_to_point(&pose, from, true) < 0.05 {
            continue;
        }
        let FloorBelow::Known(ours) = floor_below(&convex, &Frame::from(&pose), from, 3.0) else {
            assert!(matches!(shape, Shape::Sphere(_) | Shape::Capsule { .. }));
            continue;
        };
        let general = solid.cast_ray_and_get_normal(&pose, &ray, 3.0, false);
        match (ours, general) {
            (Some(ours), Some(general)) => {
                hits += 1;
                // On an edge either face is right.
                let at_edge = ours.dot(general.normal) < 0.999;
                let hit = from - Vec3::Y * general.time_of_impact;
                let beside = [Vec3::X, -Vec3::X, Vec3::Z, -Vec3::Z].map(|aside| {
                    let ray = Ray::new(hit + aside * 0.02 + Vec3::Y, -Vec3::Y);
                    let found = solid.cast_ray_and_get_normal(&pose, &ray, 3.0, false);
                    found.is_none_or(|found| ours.dot(found.normal) > 0.99)
                });
                assert!(
                    !at_edge || beside.contains(&true),
                    "{case}: {shape:?} {pose:?} {from}: {ours} and not {general:?}"
                );
            }
            (None, None) => misses += 1,
            (ours, general) => {
                // Only where the ray grazes the solid, or ends at it.
                let along = general.map_or(3.0, |hit| hit.time_of_impact);
                let near = from - Vec3::Y * along;
                let spared = (0..300)
                    .map(|i| from - Vec3::Y * (i as f32 * 0.01))
                    .map(|point| solid.contains_point(&pose, point))
                    .filter(|inside| *inside)
                    .count();
                assert!(
                    spared < 8 || along > 2.99,
                    "{case}: {shape:?} {pose:?} {near}: {ours:?} and {general:?}"
                );
            }
        }
    }
    assert!(hits > 1500 && misses > 1500, "{hits} {misses}");
}
