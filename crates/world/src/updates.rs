//! How much later than its surroundings a client draws distant entities.
//!
//! An entity that is sent in every fourth update has moved for four updates
//! when the next one arrives; a client draws it late enough to always have two
//! states to interpolate between. The client derives the delay from what it
//! received, the server from the rule by which it sends. Records that a server
//! under pressure leaves out are not counted. JSON clients, which do not report
//! what they draw, receive everything in every update while their byte budget
//! lasts: to them distant entities are not later than near ones.

use frolic_sim::Vec3;

use crate::entities::Entity;
use crate::player::Player;
use crate::policy::{self, InterestPolicy};

/// How often entities are replicated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpdateRule {
    pub policy: InterestPolicy,
    pub ticks_per_update: f32,
}

impl Default for UpdateRule {
    fn default() -> Self {
        Self {
            policy: InterestPolicy::default(),
            ticks_per_update: 1.0,
        }
    }
}

impl UpdateRule {
    /// Ticks by which a player whose character is at `eye` sees an entity later
    /// than near ones.
    pub fn lag_ticks(&self, entity: &Entity, viewer: &Player, eye: Vec3) -> f32 {
        if viewer.shown.said.is_none() {
            return 0.0;
        }
        self.lag_from(entity, eye)
    }

    fn lag_from(&self, entity: &Entity, eye: Vec3) -> f32 {
        let cell_m = self.policy.cell_size();
        // A path is known from its start to its end.
        let everywhere = entity.player.is_none() && entity.is_everywhere(cell_m);
        if everywhere || entity.motion.is_some() {
            return 0.0;
        }
        let cell = policy::cell_of(cell_m, entity.position);
        let interval = self.policy.interval(policy::distance(cell_m, cell, eye));
        interval.saturating_sub(1) as f32 * self.ticks_per_update
    }
}
