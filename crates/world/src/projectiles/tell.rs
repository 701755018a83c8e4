//! Who is told of which shot. Everybody near where it begins, once; whoever
//! comes near on the way, then; and all of them when it hits.

use frolic_protocol::ServerMessage;
use frolic_protocol::json::JsonProjectile;
use frolic_protocol::projectile::{Launch, ProjectileHit};
use frolic_sim::Vec3;

use super::{Projectiles, Shot};
use crate::player::PlayerNumber;
use crate::state::{Outgoing, WorldState};

/// How far shots are seen where the game does not say how far anything is.
const SIGHT_M: f32 = 250.0;
/// Each shot looks this often who has come near, in ticks.
const LOOK_EVERY_TICKS: u32 = 12;
/// Shots in one snapshot of a JSON client.
const JSON_SHOTS_MAX: usize = 64;

/// What a player has to be told of one tick.
#[derive(Default)]
pub(crate) struct News {
    launches: Vec<Launch>,
    hits: Vec<ProjectileHit>,
}

impl Shot {
    fn launch(&self, tick: u32, to: PlayerNumber) -> Launch {
        Launch {
            id: self.id,
            weapon: self.weapon,
            shooter: self.shooter_entity,
            position: self.flight.position.to_array(),
            velocity: self.flight.velocity.to_array(),
            bounces: self.flight.bounces,
            tick,
            last_tick: self.last_tick,
            input: if self.shooter == Some(to) {
                self.input
            } else {
                0
            },
        }
    }
}

impl Projectiles {
    /// Notes a hit for everybody who knows of the shot.
    pub(super) fn tell_hit(&mut self, shot: &Shot, hit: ProjectileHit) {
        for player in &shot.told {
            self.news.entry(*player).or_default().hits.push(hit);
        }
    }
}

impl WorldState {
    /// Passes on what happened to shots in this tick.
    pub(super) fn tell_projectiles(&mut self) {
        let sight = self.sight();
        let tick = self.tick;
        let projectiles = &mut self.projectiles;
        let players: Vec<(PlayerNumber, Vec3)> = self
            .players
            .values()
            .filter(|player| player.online)
            .map(|player| (player.number, player.character.feet))
            .collect();
        for shot in &mut projectiles.flying {
            let age = tick.wrapping_sub(shot.born_tick);
            if age % LOOK_EVERY_TICKS != 0 {
                continue;
            }
            // What comes towards somebody is in sight before the next look.
            let ahead = shot.flight.velocity.length() * 0.25;
            let reach = sight + ahead;
            for (number, feet) in &players {
                let away = (*feet - shot.flight.position).length_squared();
                let own = shot.shooter == Some(*number);
                if away > reach * reach && !own {
                    continue;
                }
                if let Err(place) = shot.told.binary_search(number) {
                    shot.told.insert(place, *number);
                    let news = projectiles.news.entry(*number).or_default();
                    news.launches.push(shot.launch(tick, *number));
                }
            }
        }
        for (player, news) in std::mem::take(&mut projectiles.news) {
            let launches = (!news.launches.is_empty())
                .then_some(ServerMessage::ProjectileLaunch(news.launches));
            let hits = (!news.hits.is_empty()).then_some(ServerMessage::ProjectileHit(news.hits));
            self.outbox
                .extend(launches.into_iter().chain(hits).map(|message| Outgoing {
                    to: Some(player),
                    message,
                    // A client that is behind has better things to catch up with.
                    reliable: false,
                }));
        }
    }

    fn sight(&self) -> f32 {
        let radius = self.updates.policy.radius;
        radius.map_or(SIGHT_M, |radius| radius.min(SIGHT_M))
    }

    /// `Projectile.Remove`.
    pub fn remove_projectile(&mut self, id: u32) -> bool {
        let flying = &mut self.projectiles.flying;
        let Some(at) = flying.iter().position(|shot| shot.id == id) else {
            return false;
        };
        let shot = flying.remove(at);
        self.end_shot(&shot, None);
        true
    }

    /// The nearest shots that a player may know of, for a JSON snapshot.
    pub fn json_projectiles(&self, player: PlayerNumber) -> Vec<JsonProjectile> {
        let known = |shot: &&Shot| shot.told.binary_search(&player).is_ok();
        let mut near: Vec<&Shot> = self.projectiles.flying.iter().filter(known).collect();
        if near.len() > JSON_SHOTS_MAX {
            let feet = self.players.get(&player).map(|p| p.character.feet);
            let feet = feet.unwrap_or(Vec3::ZERO);
            let away = |shot: &Shot| (shot.flight.position - feet).length_squared();
            near.sort_by(|a, b| away(a).total_cmp(&away(b)));
            near.truncate(JSON_SHOTS_MAX);
        }
        near.iter()
            .map(|shot| JsonProjectile {
                id: shot.id,
                weapon: self
                    .projectiles
                    .armoury
                    .get(shot.weapon)
                    .map_or_else(String::new, |arm| arm.weapon.name.clone()),
                shooter: shot.shooter_entity,
                p: shot.flight.position.to_array(),
                v: shot.flight.velocity.to_array(),
            })
            .collect()
    }
}
