//! What a shot hits within a tick, and the consequences.

use frolic_protocol::projectile::ProjectileHit;
use frolic_script::{HitReport, ScriptEvent};
use frolic_sim::flight::{Leg, Legs};
use frolic_sim::{Sweeper, Vec3, capsule};

use super::{Projectiles, Shot};
use crate::characters::Characters;
use crate::lag_compensation::{delay_left, extra_delay, stand_before};
use crate::player::{Life, PlayerNumber};
use crate::space::Space;

/// How far characters move within the longest rewind. A character that was
/// teleported from further away is not hit where it was before.
const REWIND_WAY_M: f32 = 20.0;

/// What a shot hit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    pub entity: Option<u32>,
    pub victim: Option<Victim>,
    pub point: Vec3,
    pub normal: Vec3,
}

/// The player whose character was hit, and in which life.
#[derive(Clone, Copy, Debug)]
pub(super) struct Victim {
    player: PlayerNumber,
    life: Life,
}

/// The characters that can be hit in this tick, sorted from west to east, so
/// that a shot tests only those near its path.
pub(super) struct Targets {
    by_x: Vec<Target>,
}

/// A character at its current place.
#[derive(Clone, Copy)]
struct Target {
    feet: Vec3,
    entity: u32,
    /// None for an NPC.
    victim: Option<Victim>,
}

impl Targets {
    pub fn of(space: &Space) -> Self {
        let living = space.players.values().filter(|player| player.is_living());
        let players = living.map(|player| Target {
            feet: space.feet_of(player),
            entity: player.entity,
            victim: Some(Victim {
                player: player.number,
                life: player.vitality.life,
            }),
        });
        let npcs = space.entities.npcs().iter();
        let npcs = npcs.filter_map(|id| space.alive(*id)).map(|npc| Target {
            feet: npc.position,
            entity: npc.id,
            victim: None,
        });
        let mut by_x: Vec<Target> = players.chain(npcs).collect();
        by_x.sort_unstable_by(|a, b| {
            let order = a.feet.x.total_cmp(&b.feet.x);
            order.then(a.entity.cmp(&b.entity))
        });
        Self { by_x }
    }

    /// The first character on a shot's path.
    pub(super) fn first_hit(
        &self,
        space: &Space,
        shot: &Shot,
        legs: &Legs,
        sweeper: &mut Sweeper,
    ) -> Option<Met> {
        let age = space.tick.saturating_sub(shot.born_tick);
        let shooter = shot.shooter.and_then(|number| space.players.get(&number));
        let shooter = shooter.map(|shooter| (shooter, space.feet_of(shooter)));
        let wide = space.params.radius + shot.params.radius;
        for leg in legs.iter() {
            let mut first: Option<(f32, Met)> = None;
            for target in self.about(leg, wide) {
                if target.entity == shot.shooter_entity {
                    continue;
                }
                let extra = shooter.map_or(0, |shooter| extra_delay(space, target.entity, shooter));
                let delay = |age| delay_left(shot.delay + extra, age, space.tick_hz);
                // At the end of this tick, and at its beginning.
                let Some(after) = stand_before(space, target.entity, delay(age)) else {
                    continue;
                };
                if (after.feet - target.feet).length_squared() > REWIND_WAY_M * REWIND_WAY_M {
                    continue;
                }
                let earlier = delay(age.saturating_sub(1)) + 256;
                let before = stand_before(space, target.entity, earlier);
                let before = before.filter(|before| before.jumps == after.jumps);
                let before = before.unwrap_or(after).feet;
                let feet = |share: f32| before + (after.feet - before) * share;
                let feet = (feet(leg.share.0), feet(leg.share.1));
                let met = meets(space, shot, leg, feet, sweeper);
                if let Some((distance, point, normal)) = met
                    && first.is_none_or(|(known, _)| distance < known)
                {
                    let met = Met {
                        entity: Some(target.entity),
                        victim: target.victim,
                        point,
                        normal,
                    };
                    first = Some((distance, met));
                }
            }
            if let Some((_, met)) = first {
                return Some(met);
            }
        }
        None
    }

    /// All characters that may have been this near to a leg, in a fixed order.
    fn about(&self, leg: &Leg, near: f32) -> impl Iterator<Item = Target> {
        let west = leg.from.x.min(leg.to.x) - near - REWIND_WAY_M;
        let east = leg.from.x.max(leg.to.x) + near + REWIND_WAY_M;
        let begin = self.by_x.partition_point(|target| target.feet.x < west);
        let rest = self.by_x[begin..].iter().copied();
        rest.take_while(move |target| target.feet.x <= east)
    }
}

/// Whether a shot on a leg hits a character that moves from `before` to
/// `after`: how far along, where, and the surface normal.
fn meets(
    space: &Space,
    shot: &Shot,
    leg: &Leg,
    (before, after): (Vec3, Vec3),
    sweeper: &mut Sweeper,
) -> Option<(f32, Vec3, Vec3)> {
    let (radius, height) = (space.params.radius, space.params.height);
    // In the character's frame of reference, in which it rests at `after`.
    let from = leg.from + (after - before);
    let way = leg.to - from;
    let length = way.length();
    let reach = length + height + shot.params.radius;
    if (after - from).length_squared() > (reach + radius) * (reach + radius) {
        return None;
    }
    let (wide, tall) = (
        radius + shot.params.radius,
        height + 2.0 * shot.params.radius,
    );
    let lowest = after - Vec3::Y * shot.params.radius;
    let (distance, normal) = match way.try_normalize() {
        Some(direction) => capsule::cast(from, direction, lowest, wide, tall)?,
        None => capsule::cast(from, Vec3::X, lowest, wide, tall).filter(|(d, _)| *d == 0.0)?,
    };
    if distance > length {
        return None;
    }
    let share = if length > 0.0 { distance / length } else { 0.0 };
    let centre = leg.from + (leg.to - leg.from) * share;
    // The projectile's sphere reaches further than its centre: it must not hit
    // through a wall.
    let core = {
        let feet = before + (after - before) * share;
        let low = feet.y + radius;
        let high = (feet.y + height - radius).max(low);
        Vec3::new(feet.x, centre.y.clamp(low, high), feet.z)
    };
    let inwards = (core - centre).clamp_length_max(shot.params.radius);
    let point = centre + inwards;
    if shot.params.radius > 0.0 && sweeper.meet(centre, point, &[]).is_some() {
        return None;
    }
    Some((distance, point, normal))
}

impl Projectiles {
    /// Ends a shot: applies damage, and notifies the clients concerned.
    pub(super) fn end_shot(
        &mut self,
        space: &mut Space,
        characters: &Characters,
        shot: &Shot,
        met: Option<Met>,
    ) {
        let met = met.map(|met| after_others(space, met));
        let victim = met.and_then(|met| Some(met.victim?.player));
        let position = shot.flight.position;
        let hit = ProjectileHit {
            id: shot.id,
            weapon: shot.weapon,
            shooter: shot.shooter_entity,
            target: met.and_then(|met| met.entity).unwrap_or(0),
            met: met.is_some(),
            point: met.map_or(position, |met| met.point).to_array(),
            normal: met.map_or(Vec3::Y, |met| met.normal).to_array(),
            tick: space.tick,
        };
        self.queue_hit(space, shot, hit, victim);
        let Some(met) = met else {
            return;
        };
        let Some(arm) = self.armoury.get(shot.weapon) else {
            return;
        };
        let (weapon, damage, friendly) = (arm.weapon.name.clone(), arm.damage, arm.friendly_fire);
        let damage = match victim {
            Some(player) if friendly || !same_team(space, shot.shooter, player) => damage,
            _ => 0.0,
        };
        let killed = victim.is_some_and(|player| {
            damage > 0.0 && characters.hurt(space, player, damage, shot.shooter, &weapon)
        });
        space.events.push(ScriptEvent::ProjectileHit(HitReport {
            id: shot.id,
            weapon,
            shooter: shot.shooter.filter(|n| space.players.contains_key(n)),
            // Terrain is not an entity.
            entity: met.entity.filter(|id| space.alive(*id).is_some()),
            player: victim,
            position: met.point.to_array(),
            normal: met.normal.to_array(),
            damage,
            killed,
        }));
    }
}

/// Adjusts a hit after earlier shots of the same tick were applied: a
/// character that they killed is not hit again, neither dead nor respawned.
fn after_others(space: &Space, met: Met) -> Met {
    let is_over = |victim: Victim| {
        let player = space.players.get(&victim.player);
        !player.is_some_and(|player| player.lives(victim.life))
    };
    if met.victim.is_some_and(is_over) {
        return Met {
            entity: None,
            victim: None,
            ..met
        };
    }
    met
}

fn same_team(space: &Space, a: Option<PlayerNumber>, b: PlayerNumber) -> bool {
    let team = |number: PlayerNumber| space.players.get(&number)?.style.team.as_deref();
    let own = a.and_then(team);
    own.is_some() && own == team(b)
}
