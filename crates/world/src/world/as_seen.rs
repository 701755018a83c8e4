//! The world as one player saw it, for tests and tools.

use std::cell::Ref;

use frolic_sim::{RayHit, Vec3};

use super::World;
use crate::lag_compensation::{Ray, Seen, SeenCharacter, Viewer};
use crate::player::PlayerNumber;
use crate::space::Space;

/// The world as one player saw it. The player's own character is where it is
/// now, and so are the entities that it stands on or walks against, because
/// clients predict these. Rays hit solids at their current poses.
pub struct AsSeen<'world> {
    space: Ref<'world, Space>,
    viewer: Viewer,
}

impl World {
    /// What a player saw when they sent the message that arrived last, limited
    /// to [`REWIND_MAX_MS`](crate::lag_compensation::REWIND_MAX_MS). None if
    /// the player is not in the world, or before the first step.
    pub fn as_seen_by(&self, player: PlayerNumber) -> Option<AsSeen<'_>> {
        let space = Ref::map(self.state.borrow(), |state| &state.space);
        let viewer = Viewer::of(&space, player)?;
        Some(AsSeen { space, viewer })
    }
}

impl AsSeen<'_> {
    fn seen(&self) -> Seen<'_> {
        Seen {
            space: &self.space,
            viewer: self.viewer,
        }
    }

    /// The moment at which near entities were seen, in ticks.
    pub fn tick(&self) -> f64 {
        self.viewer.tick()
    }

    /// Where an entity was seen: a character's feet, another entity's centre.
    /// None if it no longer exists, or did not exist yet.
    pub fn position(&self, entity: u32) -> Option<Vec3> {
        self.seen().position(entity)
    }

    /// Characters of others, including dead ones.
    pub fn characters(&self) -> impl Iterator<Item = SeenCharacter> {
        let others: Vec<SeenCharacter> = self.seen().characters().collect();
        others.into_iter()
    }

    /// The first character or solid along a ray, ignoring `except` and the
    /// player's own character. It passes through dead characters and those that
    /// have respawned since.
    pub fn raycast(
        &self,
        origin: Vec3,
        direction: Vec3,
        distance_max: f32,
        except: &[u32],
    ) -> Option<RayHit> {
        let ray = Ray::new(origin, direction, distance_max)?;
        let seen = self.seen();
        seen.first_along(&ray, &seen.characters_along(&ray), except)
    }
}
