//! Limits on the bodies that scripts may add to a world and to one place. The
//! cost of physics grows with the number of touching pairs: a hundred
//! overlapping bodies are five thousand pairs, and block a world's tick for a
//! tenth of a second.

use frolic_scene::{Components, Transform};
use frolic_script::{EngineError, EntityId};
use frolic_sim::Vec3;

use super::Bodies;
use super::build::is_dynamic;
use crate::space::Space;

/// Dynamic bodies in a world above which scripts cannot add one.
const BODIES_MAX: usize = 4_000;
/// Bodies whose centres may be inside the added one. In a heap there are two or
/// three.
const CROWD_MAX: usize = 8;
/// Touching or nearly touching pairs: five for each of two thousand bodies in a
/// heap.
const PAIRS_MAX: usize = 10_000;

impl Bodies {
    /// Checks whether a script may spawn these components at this place.
    pub fn check_room_for(
        &mut self,
        space: &Space,
        components: &Components,
        transform: &Transform,
    ) -> Result<(), EngineError> {
        if !is_dynamic(components) {
            return Ok(());
        }
        if self.dynamic >= BODIES_MAX {
            let message = format!("{BODIES_MAX} bodies that physics moves; destroy some first");
            return Err(EngineError::Limit(message));
        }
        let meshes = space.collision.meshes();
        let shape = frolic_sim::scene::solid_shape_with(components, transform, meshes);
        let reach = shape.map_or(0.0, |shape| shape.reach());
        self.check_crowd(space, Vec3::from(transform.position), reach, None)
    }

    /// Checks whether a script may move a body to this place.
    pub fn check_room_at(
        &mut self,
        space: &Space,
        id: EntityId,
        place: Vec3,
    ) -> Result<(), EngineError> {
        match space.alive(id).map(|entity| entity.reach) {
            Some(reach) if self.is_dynamic(id) => self.check_crowd(space, place, reach, Some(id)),
            _ => Ok(()),
        }
    }

    fn check_crowd(
        &mut self,
        space: &Space,
        place: Vec3,
        reach: f32,
        but: Option<EntityId>,
    ) -> Result<(), EngineError> {
        let near = space.entities.near(place, reach).into_iter();
        let bodies = near.filter(|id| Some(*id) != but && self.is_dynamic(*id));
        if bodies.count() >= CROWD_MAX {
            let message = format!("{CROWD_MAX} bodies in one place; put them beside each other");
            return Err(EngineError::Limit(message));
        }
        if self.pairs_in(space.tick) >= PAIRS_MAX {
            let message = format!("{PAIRS_MAX} pairs of bodies that touch; destroy some first");
            return Err(EngineError::Limit(message));
        }
        Ok(())
    }

    /// Pairs that touched in the last step, counted once per tick.
    fn pairs_in(&mut self, tick: u32) -> usize {
        if self.pairs.0 != tick {
            let pairs = self.physics.narrow_phase.contact_pairs().count();
            self.pairs = (tick, pairs);
        }
        self.pairs.1
    }
}
