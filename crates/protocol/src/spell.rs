//! Casts of spells, as clients of the world hear of them.

use serde::{Deserialize, Serialize};

use crate::value::Args;

/// A cast that happened. Whoever has the spell's code shows the same from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CastEvent {
    /// Which spell.
    pub spell_id: String,
    /// SHA-256 of its code, in hex.
    pub revision_id: String,
    /// The caster's character.
    pub caster: u32,
    /// Where it was aimed at.
    pub target: [f32; 3],
    /// One value: what the caster gave along.
    pub params: Args,
    /// Of everything random in it; below 2^53.
    pub seed: u64,
    /// How often it drew from that on the server before its first wait.
    pub draws: u32,
    /// What the server found when the spell looked around, in order.
    pub answers: Args,
    /// When.
    pub tick: u32,
}
