//! Pressing interact: what is in front of a player hears of it.

use frolic_protocol::Value;
use frolic_script::ScriptEvent;
use frolic_sim::{Buttons, Vec3};

use crate::player::PlayerNumber;
use crate::state::WorldState;

/// How far a hand reaches, with a step.
const REACH_M: f32 = 4.0;
/// Cosine of how far aside something without a look at it may be.
const ASIDE_COS: f32 = 0.5;
/// The attribute with the text that players see in front of something they can
/// use. Empty: it cannot be used now.
const PROMPT: &str = "Prompt";

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

    /// What the player looks at, if it can be used; or the nearest thing in
    /// front that can: nobody aims at a lever like at a target. What has a
    /// prompt comes first, because that is what clients show
    /// (`web/src/player/prompt.ts`).
    fn within_reach(&self, number: PlayerNumber) -> Option<u32> {
        let (eyes, ahead) = self.aim(number)?;
        let own = self.players.get(&number)?.entity;
        let hit = self.collision.raycast(eyes, ahead, REACH_M, &[own]);
        let looked_at = hit
            .map(|hit| hit.entity)
            .filter(|id| self.alive(*id).is_some());
        let level = Vec3::new(ahead.x, 0.0, ahead.z).try_normalize()?;
        let near = self.registry.around(eyes, REACH_M).into_iter();
        let near = near.filter(|id| *id != own).filter_map(|id| {
            let offer = self.offer(id)?;
            let way = self.alive(id)?.position - eyes;
            let aside = Vec3::new(way.x, 0.0, way.z);
            let in_front = aside.dot(level) >= aside.length() * ASIDE_COS;
            (in_front && way.length() <= REACH_M).then(|| (offer, way.length_squared(), id))
        });
        let aimed = looked_at.and_then(|id| Some((self.offer(id)?, 0.0, id)));
        let best = near.chain(aimed).min_by(|a, b| {
            let nearer = a.1.total_cmp(&b.1).then(a.2.cmp(&b.2));
            a.0.cmp(&b.0).then(nearer)
        });
        best.map(|(_, _, id)| id).or(looked_at)
    }

    /// What tells that it can be used, if anything does.
    fn offer(&self, id: u32) -> Option<Offer> {
        let entity = self.alive(id)?;
        match entity.attributes.get(PROMPT) {
            Some(Value::String(text)) => (!text.is_empty()).then_some(Offer::Prompt),
            _ => entity.components.script.is_some().then_some(Offer::Script),
        }
    }
}

/// Why something may be used, the stronger reason first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Offer {
    /// Players see that it can.
    Prompt,
    /// Its script may listen without a prompt.
    Script,
}
