//! Pressing interact: what is in front of a player hears of it (SCR-5).

use frolic_script::ScriptEvent;
use frolic_sim::{Buttons, Vec3};

use crate::player::PlayerNumber;
use crate::state::WorldState;

/// How far a hand reaches, with a step.
const REACH_M: f32 = 4.0;
/// Cosine of how far aside something without a look at it may be.
const ASIDE_COS: f32 = 0.5;

impl WorldState {
    /// Tells scripts of everybody who has just pressed interact.
    pub fn note_interactions(&mut self) {
        let mut pressed = Vec::new();
        for player in self.players.values_mut().filter(|player| player.online) {
            let held = player.input.buttons.contains(Buttons::INTERACT);
            let before = std::mem::replace(&mut player.interacting, held);
            if held && !before && player.health > 0.0 {
                pressed.push(player.number);
            }
        }
        for player in pressed {
            if let Some(entity) = self.within_reach(player) {
                self.events.push(ScriptEvent::Interact { entity, player });
            }
        }
    }

    /// What the player looks at; or, unless that has a script, the nearest
    /// thing in front that has one: nobody aims at a lever like at a target.
    fn within_reach(&self, number: PlayerNumber) -> Option<u32> {
        let (eyes, ahead) = self.aim(number)?;
        let own = self.players.get(&number)?.entity;
        let hit = self.collision.raycast(eyes, ahead, REACH_M, &[own]);
        let looked_at = hit
            .map(|hit| hit.entity)
            .filter(|id| self.alive(*id).is_some());
        if looked_at.is_some_and(|id| self.has_script(id)) {
            return looked_at;
        }
        let level = Vec3::new(ahead.x, 0.0, ahead.z).try_normalize()?;
        let near = self.registry.around(eyes, REACH_M).into_iter();
        let near = near.filter(|id| *id != own && self.has_script(*id));
        let near = near.filter_map(|id| {
            let way = self.alive(id)?.position - eyes;
            let aside = Vec3::new(way.x, 0.0, way.z);
            let in_front = aside.dot(level) >= aside.length() * ASIDE_COS;
            (in_front && way.length() <= REACH_M).then(|| (way.length_squared(), id))
        });
        let nearest = near.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        nearest.map(|(_, id)| id).or(looked_at)
    }

    fn has_script(&self, id: u32) -> bool {
        self.alive(id)
            .is_some_and(|entity| entity.components.script.is_some())
    }
}
