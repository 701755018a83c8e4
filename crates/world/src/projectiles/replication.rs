//! Replicates each shot once: to its shooter, and to every player it comes into
//! view of, when it does. Hits are sent to the shooter, to the player who was
//! hit, and to players who see the place.

use frolic_protocol::ServerMessage;
use frolic_protocol::json::JsonProjectile;
use frolic_protocol::projectile::{Launch, ProjectileHit};
use frolic_sim::Vec3;

use super::{Projectiles, Shot};
use crate::characters::Characters;
use crate::player::PlayerNumber;
use crate::space::Space;

/// Visibility of shots in a game without a radius of interest.
const SIGHT_M: f32 = 250.0;
/// Ticks between looks of a shot for players that it flies towards; it also
/// looks after each bounce. Only those players are tested in every tick.
const LOOK_EVERY_TICKS: u32 = 12;
/// Assumed speed of characters towards a shot between two looks, in metres per
/// second. Faster falling ones are found by the next look.
const APPROACH_M_PER_S: f32 = 20.0;
/// Shots in one snapshot of a JSON client.
const JSON_SHOTS_MAX: usize = 64;

/// What to send to a player about one tick.
#[derive(Default)]
pub(super) struct Pending {
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

    fn is_known_to(&self, player: PlayerNumber) -> bool {
        self.known_to.binary_search(&player).is_ok()
    }

    /// The smallest distance to a place within the next seconds, ignoring
    /// obstacles.
    fn nearest(&self, place: Vec3, seconds: f32) -> f32 {
        let fall = 0.5 * self.params.gravity * seconds * seconds;
        let way = self.flight.velocity * seconds - Vec3::Y * fall;
        let there = place - self.flight.position;
        let share = there.dot(way) / way.length_squared().max(f32::MIN_POSITIVE);
        // The largest deviation of the ballistic arc from a straight line.
        let bend = fall.abs() / 4.0;
        (there - way * share.clamp(0.0, 1.0)).length() - bend
    }

    /// Finds the players that it may come into view of before the next look. It
    /// is not sent to them yet, because most shots end earlier.
    fn look(&mut self, tick: u32, dt: f32, sight: f32, players: &[(PlayerNumber, Vec3)]) {
        self.next_look = tick + LOOK_EVERY_TICKS;
        let seconds = LOOK_EVERY_TICKS as f32 * dt;
        let reach = sight + APPROACH_M_PER_S * seconds;
        let mut coming = std::mem::take(&mut self.coming);
        coming.clear();
        let near = players.iter().filter(|(number, feet)| {
            let own = self.shooter == Some(*number);
            (own || self.nearest(*feet, seconds) <= reach) && !self.is_known_to(*number)
        });
        coming.extend(near.map(|(number, _)| *number));
        self.coming = coming;
    }

    /// Those of them that it comes into view of now. One tick ahead, or the
    /// fastest shots would be past before they are sent.
    fn arrivals(
        &mut self,
        dt: f32,
        sight: f32,
        players: &[(PlayerNumber, Vec3)],
    ) -> Vec<PlayerNumber> {
        let mut coming = std::mem::take(&mut self.coming);
        let is_seen_by = |number: &mut PlayerNumber| {
            let at = players.binary_search_by_key(number, |(number, _)| *number);
            let own = self.shooter == Some(*number);
            own || at.is_ok_and(|at| self.nearest(players[at].1, dt) <= sight)
        };
        let arrived = coming.extract_if(.., is_seen_by).collect();
        self.coming = coming;
        arrived
    }
}

impl Projectiles {
    /// Queues a hit for its shooter, for the player who was hit, and for
    /// players who see the place. Without a radius, for all who received the
    /// shot.
    pub(super) fn queue_hit(
        &mut self,
        space: &Space,
        shot: &Shot,
        hit: ProjectileHit,
        victim: Option<PlayerNumber>,
    ) {
        let sight = sight(space);
        let everywhere = space.updates.policy.radius.is_none();
        let point = Vec3::from(hit.point);
        for player in space.online() {
            let number = player.number;
            let concerned = [shot.shooter, victim].contains(&Some(number));
            let sees = || (space.feet_of(player) - point).length_squared() <= sight * sight;
            let knows = shot.is_known_to(number);
            // A shot that ended without a hit matters only to clients that
            // received it.
            if concerned || knows && everywhere || (knows || hit.met) && sees() {
                let pending = self.pending.entry(number).or_default();
                pending.hits.push(hit);
            }
        }
    }

    /// Sends what happened to shots in this tick.
    pub(super) fn send(&mut self, space: &mut Space) {
        if self.flying.is_empty() && self.pending.is_empty() {
            return;
        }
        let sight = sight(space);
        let (tick, dt) = (space.tick, space.dt());
        let players: Vec<(PlayerNumber, Vec3)> = space
            .online()
            .map(|player| (player.number, space.feet_of(player)))
            .collect();
        for shot in &mut self.flying {
            if tick >= shot.next_look {
                shot.look(tick, dt, sight, &players);
            }
            for number in shot.arrivals(dt, sight, &players) {
                if let Err(place) = shot.known_to.binary_search(&number) {
                    shot.known_to.insert(place, number);
                    let pending = self.pending.entry(number).or_default();
                    pending.launches.push(shot.launch(tick, number));
                }
            }
        }
        for (player, pending) in std::mem::take(&mut self.pending) {
            let launches = (!pending.launches.is_empty())
                .then_some(ServerMessage::ProjectileLaunch(pending.launches));
            let hits =
                (!pending.hits.is_empty()).then_some(ServerMessage::ProjectileHit(pending.hits));
            for message in launches.into_iter().chain(hits) {
                // A client that is behind must not be delayed further by this.
                space.outbox.send_unreliable(Some(player), message);
            }
        }
    }

    /// `Projectile.Remove`.
    pub fn remove(&mut self, space: &mut Space, characters: &Characters, id: u32) -> bool {
        let Some(at) = self.flying.iter().position(|shot| shot.id == id) else {
            return false;
        };
        let shot = self.flying.remove(at);
        self.end_shot(space, characters, &shot, None);
        true
    }

    /// The nearest shots visible to a player, for a JSON snapshot: their own
    /// and, where there is a radius, others within it.
    pub fn json(&self, space: &Space, player: PlayerNumber) -> Vec<JsonProjectile> {
        let player_feet = space.players.get(&player).map(|p| space.feet_of(p));
        let feet = player_feet.unwrap_or(Vec3::ZERO);
        let away = |shot: &Shot| (shot.flight.position - feet).length_squared();
        let everywhere = space.updates.policy.radius.is_none();
        let sight = sight(space);
        let known = |shot: &&Shot| {
            let seen = everywhere || shot.shooter == Some(player) || away(shot) <= sight * sight;
            seen && shot.is_known_to(player)
        };
        let mut near: Vec<&Shot> = self.flying.iter().filter(known).collect();
        if near.len() > JSON_SHOTS_MAX {
            near.sort_by(|a, b| away(a).total_cmp(&away(b)));
            near.truncate(JSON_SHOTS_MAX);
        }
        near.iter()
            .map(|shot| JsonProjectile {
                id: shot.id,
                weapon: self
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

fn sight(space: &Space) -> f32 {
    let radius = space.updates.policy.radius;
    radius.map_or(SIGHT_M, |radius| radius.min(SIGHT_M))
}
