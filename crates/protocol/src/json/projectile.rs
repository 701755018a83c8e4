//! Projectiles for JSON clients: events as they begin and hit, and in each snapshot
//! the positions of nearby ones.

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::event::event;
use crate::projectile::{Launch, ProjectileHit, Weapon};

/// One shot of `projectile.flying` in a snapshot.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct JsonProjectile {
    /// Number of the shot.
    pub id: u32,
    /// The weapon's name.
    pub weapon: String,
    /// The shooter's character, or 0.
    pub shooter: u32,
    /// Position in metres.
    pub p: [f32; 3],
    /// Velocity in metres per second.
    pub v: [f32; 3],
}

pub(super) fn weapon(weapon: &Weapon) -> Json {
    let [r, g, b] = weapon.color;
    event(
        "projectile",
        json!({
            "action": "weapon", "index": weapon.index, "name": weapon.name, "speed": weapon.speed,
            "gravity": weapon.flight.gravity, "radius": weapon.flight.radius,
            "bounce": weapon.flight.bounce, "ricochets": weapon.ricochets,
            "lifeTicks": weapon.life_ticks, "intervalTicks": f64::from(weapon.interval) / 256.0,
            "color": format!("#{r:02x}{g:02x}{b:02x}"), "look": weapon.look, "sound": weapon.sound,
        }),
    )
}

pub(super) fn launches(launches: &[Launch]) -> Json {
    let launches: Vec<Json> = launches
        .iter()
        .map(|launch| {
            json!({
                "id": launch.id, "weapon": launch.weapon, "shooter": launch.shooter,
                "p": launch.position, "v": launch.velocity, "bounces": launch.bounces,
                "tick": launch.tick,
                "lastTick": launch.last_tick, "input": launch.input,
            })
        })
        .collect();
    event(
        "projectile",
        json!({ "action": "launch", "launches": launches }),
    )
}

pub(super) fn hits(hits: &[ProjectileHit]) -> Json {
    let hits: Vec<Json> = hits
        .iter()
        .map(|hit| {
            json!({
                "id": hit.id, "weapon": hit.weapon, "shooter": hit.shooter,
                "target": (hit.target != 0).then_some(hit.target), "met": hit.met,
                "point": hit.point, "normal": hit.normal, "tick": hit.tick,
            })
        })
        .collect();
    event("projectile", json!({ "action": "hit", "hits": hits }))
}
