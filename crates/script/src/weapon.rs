//! Weapons and shots as scripts define them, and hit reports.

use frolic_protocol::projectile::ShotLook;
use mlua::{IntoLuaMulti, Lua, MultiValue, Vector};

use crate::ids::{EntityId, PlayerId};

/// One `Projectile.Define`.
#[derive(Clone, Debug, PartialEq)]
pub struct WeaponSpec {
    /// Metres per second at the muzzle.
    pub speed: f32,
    /// Metres per second squared, downwards.
    pub gravity: f32,
    /// Metres.
    pub radius: f32,
    /// Fraction of the speed that remains after a bounce.
    pub bounce: f32,
    /// Bounces of a shot.
    pub ricochets: u8,
    /// Lifetime of a shot in seconds.
    pub life_s: f32,
    /// Damage of a hit.
    pub damage: f64,
    /// Shots per second while fire is held.
    pub fire_rate: f32,
    /// Whether it hurts players of the shooter's own team.
    pub friendly_fire: bool,
    /// Red, green, blue.
    pub color: [u8; 3],
    /// Appearance of shots.
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
    /// Start position.
    pub origin: [f32; 3],
    /// Unit length.
    pub direction: [f32; 3],
    /// Metres per second; none: the weapon's.
    pub speed: Option<f32>,
    /// The shooter: the shot never hits them, and their view is used for lag
    /// compensation.
    pub shooter: Option<PlayerId>,
}

/// A shot hit something.
#[derive(Clone, Debug, PartialEq)]
pub struct HitReport {
    /// Number of the shot.
    pub id: u32,
    /// Name of the weapon.
    pub weapon: String,
    /// The player who fired.
    pub shooter: Option<PlayerId>,
    /// The entity that was hit; none for terrain and removed entities.
    pub entity: Option<EntityId>,
    /// The player whose character was hit.
    pub player: Option<PlayerId>,
    /// The point of contact.
    pub position: [f32; 3],
    /// The surface normal there.
    pub normal: [f32; 3],
    /// Damage applied.
    pub damage: f64,
    /// Whether it killed.
    pub killed: bool,
}

impl HitReport {
    /// As arguments of `builtin/server/projectile.luau`.
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
