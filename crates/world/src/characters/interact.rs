//! The interact button: notifies scripts of the entity in front of the player.

use frolic_protocol::Value;
use frolic_script::ScriptEvent;
use frolic_sim::{Buttons, Vec3};

use crate::player::PlayerNumber;
use crate::space::Space;

/// Reach of an arm, including a step.
const REACH_M: f32 = 4.0;
/// Cosine of the largest angle to an entity that the player does not aim at.
const ASIDE_COS: f32 = 0.5;
/// The attribute with the prompt that players see in front of an entity they
/// can use. Empty: it cannot be used now.
const PROMPT: &str = "Prompt";

/// Notifies scripts of all players who have just pressed interact.
pub(crate) fn note_interactions(space: &mut Space) {
    let mut pressed = Vec::new();
    for player in space.players.values_mut().filter(|player| player.online) {
        let held = player.input.buttons.contains(Buttons::INTERACT);
        let before = std::mem::replace(&mut player.contact.interacting, held);
        if held && !before && player.vitality.health > 0.0 {
            pressed.push(player.number);
        }
    }
    for player in pressed {
        if let Some(entity) = within_reach(space, player) {
            space.events.push(ScriptEvent::Interact { entity, player });
        }
    }
}

/// The usable entity that the player looks at, or else the nearest usable
/// one in front: players do not aim precisely at a lever. Entities with a
/// prompt come first, because that is what clients show
/// (`crates/client/src/interaction.rs`).
fn within_reach(space: &Space, number: PlayerNumber) -> Option<u32> {
    let player = space.players.get(&number)?;
    let (eyes, ahead) = player.aim(space.feet_of(player), &space.params);
    let own = player.entity;
    let hit = space.collision.raycast(eyes, ahead, REACH_M, &[own]);
    let looked_at = hit
        .map(|hit| hit.entity)
        .filter(|id| space.alive(*id).is_some());
    let level = Vec3::new(ahead.x, 0.0, ahead.z).try_normalize()?;
    let near = space.entities.index().around(eyes, REACH_M).into_iter();
    let near = near.filter(|id| *id != own).filter_map(|id| {
        let offer = offer(space, id)?;
        let way = space.alive(id)?.position - eyes;
        let aside = Vec3::new(way.x, 0.0, way.z);
        let in_front = aside.dot(level) >= aside.length() * ASIDE_COS;
        (in_front && way.length() <= REACH_M).then(|| (offer, way.length_squared(), id))
    });
    let aimed = looked_at.and_then(|id| Some((offer(space, id)?, 0.0, id)));
    let best = near.chain(aimed).min_by(|a, b| {
        let nearer = a.1.total_cmp(&b.1).then(a.2.cmp(&b.2));
        a.0.cmp(&b.0).then(nearer)
    });
    best.map(|(_, _, id)| id).or(looked_at)
}

/// Why an entity can be used, if it can.
fn offer(space: &Space, id: u32) -> Option<Offer> {
    let entity = space.alive(id)?;
    match entity.attributes.get(PROMPT) {
        Some(Value::String(text)) => (!text.is_empty()).then_some(Offer::Prompt),
        _ => entity.components.script.is_some().then_some(Offer::Script),
    }
}

/// Reason why an entity may be used, strongest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Offer {
    /// It shows a prompt.
    Prompt,
    /// Its script may handle the interaction without a prompt.
    Script,
}
