//! Starts shots, for a player who holds the fire button or for a script.

use frolic_script::{EngineError, FireRequest};
use frolic_sim::{Buttons, Flight, Vec3, flight};

use super::weapons::PER_TICK;
use super::{FLYING_MAX, FLYING_PER_PLAYER_MAX, Projectiles, Shot, eye_of};
use crate::lag_compensation::view_delay;
use crate::player::{Player, PlayerNumber};
use crate::space::Space;

/// One log message per this many refused shots.
const COMPLAIN_EVERY: u64 = 600;

/// The parameters of a shot before it is fired.
struct Aim {
    weapon: u16,
    shooter: Option<PlayerNumber>,
    origin: Vec3,
    direction: Vec3,
    speed: Option<f32>,
    /// Sequence number of the input that fires it; none for a script.
    input: Option<u32>,
}

impl Projectiles {
    /// Fires for all players who hold the button and may fire.
    pub(super) fn fire_of_players(&mut self, space: &mut Space) {
        let now = u64::from(space.tick) * PER_TICK;
        let wants = |player: &&Player| {
            player.arms.weapon.is_some()
                && player.input.buttons.contains(Buttons::FIRE)
                && player.online
                && player.vitality.dead_until.is_none()
                && player.arms.ready <= now
        };
        let shooters: Vec<Aim> = space
            .players
            .values()
            .filter(wants)
            .filter_map(|player| {
                Some(Aim {
                    weapon: player.arms.weapon?,
                    shooter: Some(player.number),
                    origin: eye_of(space.feet_of(player)),
                    direction: flight::direction(player.input.yaw, player.input.pitch),
                    speed: None,
                    input: Some(player.inputs.ack_seq()),
                })
            })
            .collect();
        for aim in shooters {
            self.fire_of_player(space, &aim, now);
        }
    }

    fn fire_of_player(&mut self, space: &mut Space, aim: &Aim, now: u64) {
        let Some(arm) = self.armoury.get(aim.weapon) else {
            return;
        };
        let interval = u64::from(arm.weapon.interval);
        if let Some(player) = aim.shooter.and_then(|n| space.players.get_mut(&n)) {
            // The remainder of a tick counts, or 7 shots a second would become
            // 6.
            player.arms.ready = player.arms.ready.max(now - (PER_TICK - 1)) + interval;
        }
        if let Err(reason) = self.launch(space, aim) {
            self.complain(space, &reason);
        }
    }

    /// `Projectile.Fire`.
    pub fn fire(&mut self, space: &Space, request: &FireRequest) -> Result<u32, EngineError> {
        let weapon = self.armoury.named(&request.weapon);
        let weapon = weapon.ok_or_else(|| {
            EngineError::Refused(format!(
                "there is no weapon \"{}\"; make it with Projectile.Define first",
                request.weapon
            ))
        })?;
        let aim = Aim {
            weapon: weapon.weapon.index,
            shooter: request.shooter,
            origin: Vec3::from(request.origin),
            direction: Vec3::from(request.direction),
            speed: request.speed,
            input: None,
        };
        self.launch(space, &aim)
    }

    fn launch(&mut self, space: &Space, aim: &Aim) -> Result<u32, EngineError> {
        let of_player = aim.shooter.map_or(0, |n| self.of_player(n));
        if self.flying.len() >= FLYING_MAX || of_player >= FLYING_PER_PLAYER_MAX {
            self.refused += 1;
            return Err(EngineError::Limit(format!(
                "{FLYING_MAX} shots in flight, {FLYING_PER_PLAYER_MAX} of one player; give \
                 weapons a shorter LifeSeconds or a lower FireRate"
            )));
        }
        let shooter = aim.shooter.and_then(|number| space.players.get(&number));
        if aim.shooter.is_some() && shooter.is_none() {
            return Err(EngineError::NoSuchPlayer(aim.shooter.unwrap_or_default()));
        }
        let Some(arm) = self.armoury.get(aim.weapon) else {
            return Err(EngineError::Refused("the weapon is gone".to_owned()));
        };
        let shot = Shot {
            id: self.next_id.wrapping_add(1),
            weapon: aim.weapon,
            shooter: aim.shooter,
            shooter_entity: shooter.map_or(0, |player| player.entity),
            params: arm.weapon.flight,
            flight: Flight {
                position: aim.origin,
                velocity: aim.direction * aim.speed.unwrap_or(arm.weapon.speed),
                bounces: arm.weapon.ricochets,
            },
            born_tick: space.tick,
            last_tick: space.tick.saturating_add(arm.weapon.life_ticks),
            delay: shooter.map_or(0, |player| view_delay(space, player, aim.input.is_some())),
            input: aim.input.unwrap_or(0),
            known_to: Vec::new(),
            coming: Vec::new(),
            next_look: space.tick,
        };
        let id = shot.id;
        self.next_id = id;
        self.flying.push(shot);
        Ok(id)
    }

    /// Occasionally logs to the creator that shots are refused.
    fn complain(&self, space: &mut Space, reason: &EngineError) {
        if self.refused % COMPLAIN_EVERY == 1 {
            let message = format!("a shot was refused: {reason}");
            space.console.warn("Projectile", message);
        }
    }
}
