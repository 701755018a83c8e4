//! Ray cast against an upright capsule.

use frolic_motion::Vec3;

/// Where a ray of unit direction first hits a capsule whose lowest point is
/// `feet`: the distance, and the surface normal. Zero if it starts inside.
pub fn cast(
    origin: Vec3,
    direction: Vec3,
    feet: Vec3,
    radius: f32,
    height: f32,
) -> Option<(f32, Vec3)> {
    let low = feet + Vec3::Y * radius;
    let straight = (height - 2.0 * radius).max(0.0);
    // Start close by: squares of long distances would lose precision.
    let middle = low + Vec3::Y * (straight * 0.5);
    let skipped = ((middle - origin).dot(direction) - height - radius).max(0.0);
    let from = origin + direction * skipped - low;
    if nearest_sq(from, straight) <= radius * radius {
        return Some((skipped, -direction));
    }
    let side = side(from, direction, radius).filter(|distance| {
        let height = (from + direction * *distance).y;
        *distance >= 0.0 && (0.0..=straight).contains(&height)
    });
    let ends = [0.0, straight].map(|end| ball(from - Vec3::Y * end, direction, radius));
    let distances = [side, ends[0], ends[1]].into_iter().flatten();
    let distance = distances.reduce(f32::min)?;
    let point = from + direction * distance;
    let core = Vec3::Y * point.y.clamp(0.0, straight);
    let normal = (point - core).try_normalize().unwrap_or(-direction);
    Some((skipped + distance, normal))
}

/// Squared distance to the core of the capsule.
fn nearest_sq(point: Vec3, straight: f32) -> f32 {
    (point - Vec3::Y * point.y.clamp(0.0, straight)).length_squared()
}

/// The infinite upright cylinder around the origin.
fn side(from: Vec3, direction: Vec3, radius: f32) -> Option<f32> {
    let flat = |v: Vec3| Vec3::new(v.x, 0.0, v.z);
    let (from, direction) = (flat(from), flat(direction));
    let a = direction.length_squared();
    if a < 1e-9 {
        return None;
    }
    let b = from.dot(direction);
    let c = from.length_squared() - radius * radius;
    let root = b * b - a * c;
    (root >= 0.0).then(|| (-b - root.sqrt()) / a)
}

/// The sphere around the origin.
fn ball(from: Vec3, direction: Vec3, radius: f32) -> Option<f32> {
    let b = from.dot(direction);
    let c = from.length_squared() - radius * radius;
    let root = b * b - c;
    let distance = -b - root.max(0.0).sqrt();
    (root >= 0.0 && distance >= 0.0).then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::{CollisionWorld, Pose, Shape};

    /// The collision library is slower and needs a shape for each moment, but
    /// is the reference: both must agree.
    #[test]
    fn it_agrees_with_the_collision_library() {
        let mut random = Random::new(5);
        let (radius, height) = (0.35, 1.8);
        let mut hits = 0;
        for round in 0..5_000 {
            let mut vector = |size: f32| {
                Vec3::new(
                    random.range(-size, size),
                    random.range(-size, size),
                    random.range(-size, size),
                )
            };
            let feet = vector(5.0);
            let origin = feet + vector(30.0);
            let towards = feet + Vec3::Y * 0.9 + vector(1.2) - origin;
            let direction = match round % 10 {
                0 => Vec3::new(0.0, -origin.y.signum(), 0.0),
                _ => towards.normalize(),
            };
            let mut world = CollisionWorld::new();
            let shape = Shape::Capsule {
                half_height: height * 0.5 - radius,
                radius,
            };
            let middle = feet + Vec3::Y * (height * 0.5);
            world.insert(1, shape, Pose::from_translation(middle));
            let expected = world.raycast(origin, direction, 1_000.0, &[]);
            let found = cast(origin, direction, feet, radius, height);
            match (expected, found) {
                (Some(expected), Some((distance, normal))) => {
                    hits += 1;
                    assert!((expected.distance - distance).abs() < 0.02, "{round}");
                    let grazes = normal.dot(direction).abs() < 0.2;
                    assert!(grazes || expected.normal.dot(normal) > 0.98, "{round}");
                }
                (None, None) => {}
                // Rays that graze the rim may go either way.
                (expected, found) => {
                    let rim = cast(origin, direction, feet, radius * 0.99, height).is_some()
                        != cast(origin, direction, feet, radius * 1.01, height).is_some();
                    assert!(rim, "{round}: {expected:?} {found:?}");
                }
            }
        }
        assert!(hits > 500, "{hits}");
    }

    #[test]
    fn far_shots_and_starts_inside() {
        let feet = Vec3::new(2_000.0, 0.0, 0.0);
        let (distance, normal) = cast(Vec3::Y * 0.9, Vec3::X, feet, 0.35, 1.8).unwrap();
        assert!((distance - 1_999.65).abs() < 0.01, "{distance}");
        assert!((normal + Vec3::X).length() < 0.01);
        assert!(cast(Vec3::Y * 0.9, -Vec3::X, feet, 0.35, 1.8).is_none());
        let inside = cast(feet + Vec3::Y, Vec3::X, feet, 0.35, 1.8);
        assert_eq!(inside.map(|(distance, _)| distance), Some(0.0));
    }
}
