//! What scripts say of weapons and shots, and hear of hits.

use frolic_protocol::projectile::ShotLook;
use mlua::{IntoLuaMulti, Lua, MultiValue, Vector};

use crate::engine::{EntityId, PlayerId};

/// One `Projectile.Define`.
#[derive(Clone, Debug, PartialEq)]
pub struct WeaponSpec {
    /// Metres per second at the muzzle.
    pub speed: f32,
    /// Metres per second squared, downwards.
    pub gravity: f32,
    /// Metres.
    pub radius: f32,
    /// What is left of the speed after a bounce.
    pub bounce: f32,
    /// Surfaces that a shot bounces off.
    pub ricochets: u8,
    /// Until a shot ends by itself.
    pub life_s: f32,
    /// Health that a hit takes.
    pub damage: f64,
    /// Shots per second while fire is held.
    pub fire_rate: f32,
    /// Whether it hurts players of the shooter's own team.
    pub friendly_fire: bool,
    /// Red, green, blue.
    pub color: [u8; 3],
    /// How shots are drawn.
    pub look: ShotLook,
    /// The engine's sound of a shot; empty for none.
    pub sound: String,
}

impl Default for WeaponSpec {
    fn default() -> Self {
        Self {
            speed: 60.0,
            gravity: 0.0,
            radius: 0.05,
            bounce: 0.7,
            ricochets: 0,
            life_s: 3.0,
            damage: 0.0,
            fire_rate: 4.0,
            friendly_fire: false,
            color: [0xff, 0xc5, 0x3d],
            look: ShotLook::Tracer,
            sound: "shot".to_owned(),
        }
    }
}

/// One `Projectile.Fire`.
#[derive(Clone, Debug, PartialEq)]
pub struct FireRequest {
    /// Name of the weapon.
    pub weapon: String,
    /// Where it starts.
    pub origin: [f32; 3],
    /// Unit length.
    pub direction: [f32; 3],
    /// Metres per second; none: as the weapon says.
    pub speed: Option<f32>,
    /// Whose shot it is: it never hits them, and what they saw counts.
    pub shooter: Option<PlayerId>,
}

/// A shot hit something.
#[derive(Clone, Debug, PartialEq)]
pub struct HitReport {
    /// Number of the shot.
    pub id: u32,
    /// Name of the weapon.
    pub weapon: String,
    /// Who fired.
    pub shooter: Option<PlayerId>,
    /// What was hit; none for what has no entity.
    pub entity: Option<EntityId>,
    /// The player whose character was hit.
    pub player: Option<PlayerId>,
    /// Where.
    pub position: [f32; 3],
    /// Which way the surface faces there.
    pub normal: [f32; 3],
    /// Health that it took.
    pub damage: f64,
    /// Whether it killed.
    pub killed: bool,
}

impl HitReport {
    /// As `builtin/server/projectile.luau` takes it.
    pub(crate) fn into_arguments(self, lua: &Lua) -> mlua::Result<MultiValue> {
        let vector = |[x, y, z]: [f32; 3]| Vector::new(x, y, z);
        (
            "ProjectileHit",
            self.id,
            self.weapon,
            self.shooter,
            self.entity,
            self.player,
            vector(self.position),
            vector(self.normal),
            self.damage,
            self.killed,
        )
            .into_lua_multi(lua)
    }
}
