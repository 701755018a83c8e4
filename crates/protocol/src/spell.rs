//! Casts of spells, as replicated to clients of the world.

use serde::{Deserialize, Serialize};

use crate::value::Args;

/// A cast that happened. A client with the spell's code reproduces it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CastEvent {
    /// Which spell.
    pub spell_id: String,
    /// SHA-256 of its code, in hex.
    pub revision_id: String,
    /// The caster's character.
    pub caster: u32,
    /// Its target.
    pub target: [f32; 3],
    /// One value: the caster's parameters.
    pub params: Args,
    /// Random seed; below 2^53.
    pub seed: u64,
    /// How many random numbers the server drew before the spell's first wait.
    pub draws: u32,
    /// The answers to the spell's queries on the server, in order.
    pub answers: Args,
    /// The tick.
    pub tick: u32,
}
