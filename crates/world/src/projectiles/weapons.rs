//! The weapons of a world, and which player holds which.

use frolic_protocol::ServerMessage;
use frolic_protocol::projectile::Weapon;
use frolic_script::{EngineError, WeaponSpec};
use frolic_sim::FlightParams;

use crate::player::PlayerNumber;
use crate::space::Space;

use super::Projectiles;

/// Weapons of one world.
const WEAPONS_MAX: usize = 256;
/// Fractions of a tick in which rates are counted.
pub(super) const PER_TICK: u64 = 256;

/// A weapon with its server-only data.
#[derive(Clone, Debug)]
pub(crate) struct Arm {
    pub weapon: Weapon,
    pub damage: f64,
    pub friendly_fire: bool,
}

/// All weapons, by number.
#[derive(Default)]
pub(crate) struct Armoury {
    arms: Vec<Arm>,
}

impl Armoury {
    pub fn get(&self, index: u16) -> Option<&Arm> {
        self.arms.get(usize::from(index))
    }

    pub fn named(&self, name: &str) -> Option<&Arm> {
        self.arms.iter().find(|arm| arm.weapon.name == name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arm> {
        self.arms.iter()
    }
}

impl Projectiles {
    /// `Projectile.Define`.
    pub fn define(
        &mut self,
        space: &mut Space,
        name: &str,
        spec: &WeaponSpec,
    ) -> Result<(), EngineError> {
        let tick_hz = space.tick_hz as f32;
        let arms = &mut self.armoury.arms;
        let known = arms.iter().position(|arm| arm.weapon.name == name);
        let index = known.unwrap_or(arms.len());
        if index >= WEAPONS_MAX {
            let message = format!("{WEAPONS_MAX} weapons; define each one once");
            return Err(EngineError::Limit(message));
        }
        let arm = Arm {
            weapon: Weapon {
                index: index as u16,
                name: name.to_owned(),
                speed: spec.speed,
                flight: FlightParams {
                    gravity: spec.gravity,
                    radius: spec.radius,
                    bounce: spec.bounce,
                },
                ricochets: spec.ricochets,
                life_ticks: ((spec.life_s * tick_hz).ceil() as u32).max(1),
                interval: (tick_hz * PER_TICK as f32 / spec.fire_rate).ceil() as u32,
                color: spec.color,
                look: spec.look,
                sound: spec.sound.clone(),
            },
            damage: spec.damage,
            friendly_fire: spec.friendly_fire,
        };
        let message = ServerMessage::Weapon(arm.weapon.clone());
        space.outbox.broadcast(message);
        match arms.get_mut(index) {
            Some(place) => *place = arm,
            None => arms.push(arm),
        }
        Ok(())
    }

    /// `Projectile.Arm`.
    pub fn arm(
        &self,
        space: &mut Space,
        number: PlayerNumber,
        weapon: Option<&str>,
    ) -> Result<(), EngineError> {
        let index = match weapon {
            None => None,
            Some(name) => {
                let arm = self.armoury.named(name).ok_or_else(|| {
                    EngineError::Refused(format!(
                        "there is no weapon \"{name}\"; make it with Projectile.Define first"
                    ))
                })?;
                Some(arm.weapon.index)
            }
        };
        let player = space.player_mut(number)?;
        if std::mem::replace(&mut player.arms.weapon, index) != index {
            // With a radius, other players receive it when they see the holder.
            let near_only = space.updates.policy.radius.is_some();
            let message = ServerMessage::Armed {
                player: number,
                weapon: index,
            };
            let to = near_only.then_some(number);
            space.outbox.send(to, message);
        }
        Ok(())
    }

    /// The name of the weapon that a player holds.
    pub fn weapon_of(&self, space: &Space, number: PlayerNumber) -> Option<String> {
        let index = space.players.get(&number)?.arms.weapon?;
        Some(self.armoury.get(index)?.weapon.name.clone())
    }

    /// Whether scripts have defined any weapon.
    pub fn has_weapons(&self) -> bool {
        !self.armoury.arms.is_empty()
    }

    /// The messages about weapons for the client of a joining player.
    pub fn messages(&self, space: &Space, player: PlayerNumber) -> Vec<ServerMessage> {
        let weapons = self.armoury.iter();
        let mut messages: Vec<ServerMessage> = weapons
            .map(|arm| ServerMessage::Weapon(arm.weapon.clone()))
            .collect();
        let near_only = space.updates.policy.radius.is_some();
        let online = space
            .online()
            .filter(|other| other.number == player || !near_only);
        messages.extend(online.filter_map(|player| {
            player.arms.weapon.map(|weapon| ServerMessage::Armed {
                player: player.number,
                weapon: Some(weapon),
            })
        }));
        messages
    }
}
