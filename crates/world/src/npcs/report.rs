//! NPC states for tests and benchmarks.

use frolic_protocol::npc::NpcState;
use frolic_sim::Vec3;

use super::Npcs;
use crate::space::Space;

/// One NPC, at the end of a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NpcReport {
    /// Its entity.
    pub entity: u32,
    /// Its state.
    pub state: NpcState,
    /// From 0 to 1.
    pub suspicion: f32,
    /// The character it pays attention to.
    pub target: Option<u32>,
    /// Position of its feet.
    pub position: Vec3,
    /// Its yaw in radians.
    pub yaw: f32,
}

impl Npcs {
    /// All NPCs, in order of their ids.
    pub fn reports(&self, space: &Space) -> Vec<NpcReport> {
        let npcs = self.all.values();
        npcs.map(|npc| NpcReport {
            entity: npc.entity,
            state: npc.state,
            suspicion: npc.senses.suspicion,
            target: npc.senses.target,
            position: space.entities.feet(npc.entity),
            yaw: npc.yaw,
        })
        .collect()
    }
}
