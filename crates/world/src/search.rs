//! Spatial queries of scripts, around a place or along a ray: in the present,
//! or as a player saw it.

use frolic_script::{EntityId, PlayerId, RaycastHit, RaycastRequest};
use frolic_sim::Vec3;

use crate::lag_compensation::{Ray, Seen};
use crate::space::Space;

/// Entities without the tag that a ray passes through before it gives up.
const PASSED_MAX: usize = 64;

/// Entities whose place is within a sphere, in order of ids, as a player saw
/// them. Without that player in the world, in the present.
pub(crate) fn find_near(
    space: &Space,
    center: Vec3,
    radius: f32,
    seen_by: PlayerId,
) -> Vec<EntityId> {
    match Seen::by(space, seen_by) {
        Some(seen) => seen.near(center, radius),
        None => space.entities.near(center, radius),
    }
}

/// The first entity along a ray.
pub(crate) fn find_along(space: &Space, request: &RaycastRequest) -> Option<RaycastHit> {
    let (origin, direction) = (Vec3::from(request.origin), Vec3::from(request.direction));
    let distance_max = request.distance_max;
    let seen = match request.seen_by.and_then(|player| Seen::by(space, player)) {
        Some(seen) => {
            let ray = Ray::new(origin, direction, distance_max)?;
            let characters = seen.characters_along(&ray);
            Some((seen, ray, characters))
        }
        None => None,
    };
    let cast = |ignore: &[EntityId]| match &seen {
        Some((seen, ray, characters)) => seen.first_along(ray, characters, ignore),
        None => space
            .collision
            .raycast(origin, direction, distance_max, ignore),
    };
    let mut ignore = request.ignore.clone();
    // Bounded: each round passes through one more entity without the tag.
    for _ in 0..PASSED_MAX {
        let hit = cast(&ignore)?;
        let wanted = request.tag.as_ref().is_none_or(|tag| {
            space
                .alive(hit.entity)
                .is_some_and(|entity| entity.tags.contains(tag))
        });
        if wanted {
            return Some(RaycastHit {
                entity: hit.entity,
                position: hit.point.to_array(),
                normal: hit.normal.to_array(),
                distance: hit.distance,
            });
        }
        ignore.push(hit.entity);
    }
    None
}
