//! The parts of events whose types other crates do not export to TypeScript.
//! Converted field by field: new fields of those crates do not compile here until
//! it is decided whether the page gets them.

use std::collections::BTreeMap;

use frolic_protocol::spell::CastEvent;
use frolic_protocol::{Args, Value, projectile};
use serde::Serialize;
use serde_json::Value as Json;

/// A value of scripts: plain JSON; a vector is `{"$v":[x,y,z]}`, an entity
/// `{"$e":id}`, a buffer `{"$b":"base64"}`.
#[derive(Serialize)]
#[cfg_attr(
    test,
    derive(ts_rs::TS),
    ts(
        export,
        type = "null | boolean | number | string | WireValue[] | { [key: string]: WireValue }"
    )
)]
pub(crate) struct WireValue(Json);

/// Values by name.
pub(crate) fn wire_map(map: &BTreeMap<String, Value>) -> BTreeMap<String, WireValue> {
    let wire = |(name, value): (&String, &Value)| (name.clone(), WireValue(value.to_json()));
    map.iter().map(wire).collect()
}

/// A cast of a spell that happened.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cast {
    /// Which spell.
    spell_id: String,
    /// SHA-256 of its code, in hex.
    revision_id: String,
    /// The caster's character, or 0.
    caster: u32,
    /// Its target.
    target: [f32; 3],
    /// One value: the caster's parameters.
    #[cfg_attr(test, ts(as = "Vec<WireValue>"))]
    params: Args,
    /// Random seed; below 2^53.
    seed: u64,
    /// How many random numbers the server drew before the spell's first wait.
    draws: u32,
    /// The answers to the spell's queries on the server, in order.
    #[cfg_attr(test, ts(as = "Vec<WireValue>"))]
    answers: Args,
    /// The tick.
    tick: u32,
}

impl From<CastEvent> for Cast {
    fn from(cast: CastEvent) -> Self {
        let CastEvent {
            spell_id,
            revision_id,
            caster,
            target,
            params,
            seed,
            draws,
            answers,
            tick,
        } = cast;
        Self {
            spell_id,
            revision_id,
            caster,
            target,
            params,
            seed,
            draws,
            answers,
            tick,
        }
    }
}

/// How shots of a weapon are drawn.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "camelCase")]
pub(crate) enum ShotLook {
    /// A streak of light.
    Tracer,
    /// A ball of the projectile's radius.
    Ball,
    /// Not at all; scripts draw it.
    Nothing,
}

impl From<projectile::ShotLook> for ShotLook {
    fn from(look: projectile::ShotLook) -> Self {
        match look {
            projectile::ShotLook::Tracer => Self::Tracer,
            projectile::ShotLook::Ball => Self::Ball,
            projectile::ShotLook::Nothing => Self::Nothing,
        }
    }
}
