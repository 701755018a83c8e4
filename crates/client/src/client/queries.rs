//! What scripts ask of the replicated world: as of the last frame, so that the answers
//! agree with what the player sees.

use frolic_sim::{RayHit, Vec3, capsule};

use super::Client;
use crate::playback::{Drawn, DrawnKind};

/// Entities without the tag that a ray passes through before it gives up; the server
/// has the same limit.
const PASSED_MAX: usize = 64;

/// A ray, and what stops it.
#[derive(Clone, Copy, Debug)]
pub struct RayQuery<'a> {
    /// Where it starts.
    pub origin: Vec3,
    /// Where it goes; of any length but zero.
    pub direction: Vec3,
    /// How far it goes, in metres.
    pub distance_max: f32,
    /// Only entities with this tag stop it.
    pub tag: Option<&'a str>,
    /// Entities that it passes through.
    pub ignore: &'a [u32],
    /// Whether characters stop it.
    pub characters: bool,
}

impl Client {
    /// The first entity that stops a ray. Solids are those that the prediction
    /// collides with, terrain has the entity [`frolic_sim::TERRAIN`], and characters
    /// are where the last frame showed them. The own character and dead ones never
    /// stop it.
    pub fn raycast(&self, query: &RayQuery<'_>) -> Option<RayHit> {
        let direction = query.direction.try_normalize()?;
        if !query.origin.is_finite() || !query.distance_max.is_finite() {
            return None;
        }
        let mut ignore = query.ignore.to_vec();
        // Bounded: each round passes through one more entity without the tag.
        for _ in 0..PASSED_MAX {
            let hit = self.first_along(query, direction, &ignore)?;
            if query.tag.is_none_or(|tag| self.has_tag(hit.entity, tag)) {
                return Some(hit);
            }
            ignore.push(hit.entity);
        }
        None
    }

    fn first_along(&self, query: &RayQuery<'_>, direction: Vec3, ignore: &[u32]) -> Option<RayHit> {
        let RayQuery {
            origin,
            distance_max,
            ..
        } = *query;
        let solids = &self.scene.collision;
        let mut nearest = solids.raycast(origin, direction, distance_max, ignore);
        let Some(joined) = self.joined.as_ref().filter(|_| query.characters) else {
            return nearest;
        };
        let params = &joined.welcome.character;
        let can_be_hit = |drawn: &&Drawn| {
            let living = drawn.kind == DrawnKind::Character && !drawn.own && !drawn.dead;
            living && !ignore.contains(&drawn.id)
        };
        for character in self.drawn.iter().filter(can_be_hit) {
            let (feet, reach) = (
                character.position,
                nearest.map_or(distance_max, |hit| hit.distance),
            );
            let hit = capsule::cast(origin, direction, feet, params.radius, params.height);
            if let Some((distance, normal)) = hit.filter(|(distance, _)| *distance < reach) {
                nearest = Some(RayHit {
                    entity: character.id,
                    distance,
                    point: origin + direction * distance,
                    normal,
                });
            }
        }
        nearest
    }

    fn has_tag(&self, id: u32, tag: &str) -> bool {
        let resolved = self.resolve(id);
        resolved.is_some_and(|entity| entity.tags().iter().any(|known| known == tag))
    }
}
