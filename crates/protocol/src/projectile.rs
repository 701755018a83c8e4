//! Projectiles on the wire: how a weapon's shots fly, once; where each began; and
//! what it hit. Between the two nothing is sent: clients simulate them, with the
//! same function as the server.

use frolic_motion::{Flight, FlightParams};
use serde::{Deserialize, Serialize};

/// How shots of a weapon are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ShotLook {
    /// A streak of light.
    #[default]
    Tracer,
    /// A ball of the projectile's radius.
    Ball,
    /// Not at all; scripts draw it.
    Nothing,
}

impl ShotLook {
    /// As scripts write it.
    pub const NAMES: [(&'static str, ShotLook); 3] = [
        ("Tracer", ShotLook::Tracer),
        ("Ball", ShotLook::Ball),
        ("None", ShotLook::Nothing),
    ];
}

/// A weapon as clients know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Weapon {
    /// Its number in this world; a new definition of the same name keeps it.
    pub index: u16,
    /// Its name.
    pub name: String,
    /// Metres per second at the muzzle.
    pub speed: f32,
    /// How its shots fly.
    pub flight: FlightParams,
    /// Surfaces that a shot bounces off.
    pub ricochets: u8,
    /// Ticks until a shot ends by itself.
    pub life_ticks: u32,
    /// Between two shots of one player, in 1/256 of a tick.
    pub interval: u32,
    /// Red, green, blue.
    pub color: [u8; 3],
    /// How shots are drawn.
    pub look: ShotLook,
    /// The sound of a shot: one of the engine's; empty for none.
    pub sound: String,
}

/// A shot at one tick: as a rule the tick it was fired at, a later one for a client
/// that gets to see it in flight.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// Number of the shot, never used twice in a world.
    pub id: u32,
    /// Its weapon.
    pub weapon: u16,
    /// The shooter's character, or 0.
    pub shooter: u32,
    /// Where it is at the end of `tick`.
    pub position: [f32; 3],
    /// Metres per second.
    pub velocity: [f32; 3],
    /// How many more surfaces it bounces off.
    pub bounces: u8,
    /// The tick.
    pub tick: u32,
    /// The tick at whose end it is over at the latest.
    pub last_tick: u32,
    /// Number of the input that fired it, for the shooter's own client, which has
    /// shown it already; else 0.
    pub input: u32,
}

impl Launch {
    /// The state to simulate from.
    pub fn flight(&self) -> Flight {
        Flight {
            position: self.position.into(),
            velocity: self.velocity.into(),
            bounces: self.bounces,
        }
    }

    /// Whether its numbers are valid for simulation: it is untrusted.
    pub fn is_sound(&self) -> bool {
        let mut all = self.position.iter().chain(&self.velocity);
        all.all(|number| number.abs() < 1e6)
    }
}

/// PROJECTILE_HIT: a shot ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProjectileHit {
    /// Number of the shot.
    pub id: u32,
    /// Its weapon.
    pub weapon: u16,
    /// The shooter's character, or 0.
    pub shooter: u32,
    /// The entity that it hit; 0 when it ended by itself, or something that has no id.
    pub target: u32,
    /// Whether it hit anything at all.
    pub met: bool,
    /// Where.
    pub point: [f32; 3],
    /// The surface normal there.
    pub normal: [f32; 3],
    /// In which tick.
    pub tick: u32,
}

/// The vitals of the own character.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vitals {
    /// From 0.
    pub health: f32,
    /// Maximum health.
    pub health_max: f32,
    /// A dead character neither walks nor fires until it respawns.
    pub alive: bool,
}
