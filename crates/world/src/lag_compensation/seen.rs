//! The world as one player saw it.

use frolic_sim::{RayHit, Vec3, capsule};

use super::target::lived_at;
use crate::entities::{Entity, Place};
use crate::moment::{Moment, REWIND_MAX_MS};
use crate::player::{Player, PlayerNumber};
use crate::space::Space;

/// A character at the place where a player saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeenCharacter {
    /// Its entity.
    pub entity: u32,
    /// Its player; 0 for an NPC.
    pub player: PlayerNumber,
    /// The lowest point of its capsule.
    pub feet: Vec3,
}

/// Limit of entities that a client predicts: one that the character rides, and
/// as many as our client tracks of those that it walks against.
const PREDICTED_MAX: usize = 5;

/// The viewer, and the moment of the view.
#[derive(Clone, Copy)]
pub(crate) struct Viewer {
    player: PlayerNumber,
    entity: u32,
    eye: Vec3,
    at: Moment,
    /// The earliest moment that can be queried.
    oldest: Moment,
    /// Entities that the client predicts besides its character.
    predicted: [Option<u32>; PREDICTED_MAX],
}

/// Where a ray goes.
#[derive(Clone, Copy)]
pub(crate) struct Ray {
    origin: Vec3,
    /// Of length one.
    direction: Vec3,
    distance_max: f32,
}

impl Ray {
    /// None for a direction of length zero.
    pub fn new(origin: Vec3, direction: Vec3, distance_max: f32) -> Option<Self> {
        let direction = direction.try_normalize()?;
        (origin.is_finite() && distance_max.is_finite()).then_some(Self {
            origin,
            direction,
            distance_max,
        })
    }

    /// Whether it passes within `near` of a place.
    fn passes(&self, place: Vec3, near: f32) -> bool {
        let there = place - self.origin;
        let along = there.dot(self.direction).min(self.distance_max).max(0.0);
        (there - self.direction * along).length_squared() <= near * near
    }
}

/// The world as one player saw it. The player's own character is where it is
/// now, and so are the entities that it stands on or walks against, because
/// clients predict these. Rays hit solids at their current poses.
pub(crate) struct Seen<'space> {
    pub space: &'space Space,
    pub viewer: Viewer,
}

impl<'space> Seen<'space> {
    /// What a player saw when they sent the message that arrived last. None if
    /// the player is not in the world, or before the first step.
    pub fn by(space: &'space Space, player: PlayerNumber) -> Option<Self> {
        let viewer = Viewer::of(space, player)?;
        Some(Self { space, viewer })
    }
}

impl Viewer {
    /// The moment at which near entities were seen, in ticks.
    pub fn tick(&self) -> f64 {
        f64::from(self.at.tick()) + f64::from(self.at.fraction())
    }

    pub fn of(space: &Space, player: PlayerNumber) -> Option<Self> {
        let player = space.players.get(&player)?;
        let now = space.entities.past().now()?;
        Some(Self {
            player: player.number,
            entity: player.entity,
            eye: space.feet_of(player),
            at: player.shown.moment(now, space.tick_hz),
            oldest: now.before(REWIND_MAX_MS, space.tick_hz),
            predicted: predicted_by(player),
        })
    }

    fn predicts(&self, entity: u32) -> bool {
        entity == self.entity || self.predicted.contains(&Some(entity))
    }
}

/// The entities that a player's client predicts: what the character stands on,
/// and what it walks against. A client that does not report what it draws is
/// assumed to draw all of them late.
fn predicted_by(player: &Player) -> [Option<u32>; PREDICTED_MAX] {
    let mut predicted = [None; PREDICTED_MAX];
    if player.shown.said.is_some() {
        let touches = player.contact.cache.touches().iter();
        let moved = touches.filter(|touch| touch.stands || touch.speed > 0.0);
        let ground = player.gait.ground.into_iter();
        let all = ground.chain(moved.map(|touch| touch.entity));
        for (place, entity) in predicted.iter_mut().zip(all) {
            *place = Some(entity);
        }
    }
    predicted
}

impl Seen<'_> {
    /// The earliest moment that any entity is queried at.
    fn earliest(&self) -> Moment {
        let player = self.space.players.get(&self.viewer.player);
        match player.is_some_and(|player| player.shown.said.is_some()) {
            true => self.viewer.oldest,
            // To these clients distant entities are not drawn later than near
            // ones.
            false => self.viewer.at,
        }
    }

    /// The moment at which an entity is queried.
    fn moment_of(&self, entity: &Entity) -> Option<Moment> {
        let viewer = &self.viewer;
        let player = self.space.players.get(&viewer.player)?;
        let lag = self.space.updates.lag_ticks(entity, player, viewer.eye);
        Some(viewer.at.ticks_before(lag).max(viewer.oldest))
    }

    /// Entities whose place was within a sphere, in order of ids.
    pub fn near(&self, center: Vec3, radius: f32) -> Vec<u32> {
        let within = |place: Vec3, reach: f32| (place - center).length_squared() <= reach * reach;
        // Those at rest there, and those that moved recently.
        let mut found = self.space.entities.index().around(center, radius);
        let noted = |place: Vec3, off: f32| within(place, radius + off);
        found.extend(
            self.space
                .entities
                .past()
                .noted_since(self.earliest(), noted),
        );
        found.sort_unstable();
        found.dedup();
        let seen_there = |id: &u32| self.position(*id).is_some_and(|at| within(at, radius));
        found.retain(seen_there);
        found
    }

    /// See [`crate::world::AsSeen::position`].
    pub fn position(&self, entity: u32) -> Option<Vec3> {
        let now = self.space.alive(entity)?;
        if self.viewer.predicts(entity) {
            return Some(now.position);
        }
        if now.is_of_scene() && !now.replicated.differs {
            // As in the scene file: it has never moved.
            return Some(now.position);
        }
        let at = self.moment_of(now)?;
        let entities = &self.space.entities;
        let (past, next_entity) = (entities.past(), entities.next_id());
        Some(past.place(Place::of(now), at, next_entity)?.position)
    }

    /// See [`crate::world::AsSeen::characters`].
    pub fn characters(&self) -> impl Iterator<Item = SeenCharacter> {
        let players = self.space.players.values();
        let players = players.map(|player| (player.entity, player.number));
        let npcs = self.space.entities.npcs().iter().map(|id| (*id, 0));
        let others = players.chain(npcs);
        others
            .filter(|(entity, _)| *entity != self.viewer.entity)
            .filter_map(|(entity, player)| {
                Some(SeenCharacter {
                    entity,
                    player,
                    feet: self.position(entity)?,
                })
            })
    }

    /// Characters of others that a ray may hit: living ones, in the life in
    /// which they were seen. Dead ones are passed through, as by shots. Every
    /// character is recorded in every tick, so none is missed.
    pub fn characters_along(&self, ray: &Ray) -> Vec<SeenCharacter> {
        let reach = self.space.params.radius + self.space.params.height;
        let passes = |place: Vec3, off: f32| ray.passes(place, reach + off);
        let noted = self
            .space
            .entities
            .past()
            .noted_since(self.earliest(), passes);
        let others = noted.into_iter().filter(|id| *id != self.viewer.entity);
        others.filter_map(|id| self.character(id)).collect()
    }

    /// The character of an entity, if it is one and can be hit.
    fn character(&self, entity: u32) -> Option<SeenCharacter> {
        let now = self.space.alive(entity)?;
        let can_be_hit = match now.player {
            Some(player) => {
                self.space.is_living(player) && lived_at(self.space, now, self.moment_of(now)?)
            }
            None => self.space.entities.npcs().contains(&entity),
        };
        if !can_be_hit {
            return None;
        }
        Some(SeenCharacter {
            entity,
            player: now.player.unwrap_or(0),
            feet: self.position(entity)?,
        })
    }

    /// The first of these characters or a solid along a ray.
    pub fn first_along(
        &self,
        ray: &Ray,
        characters: &[SeenCharacter],
        except: &[u32],
    ) -> Option<RayHit> {
        let Ray {
            origin,
            direction,
            distance_max,
        } = *ray;
        let solids = &self.space.collision;
        let mut nearest = solids.raycast(origin, direction, distance_max, except);
        let (radius, height) = (self.space.params.radius, self.space.params.height);
        for character in characters {
            if except.contains(&character.entity) {
                continue;
            }
            let reach = nearest.map_or(distance_max, |hit| hit.distance);
            let hit = capsule::cast(origin, direction, character.feet, radius, height);
            if let Some((distance, normal)) = hit.filter(|(distance, _)| *distance < reach) {
                nearest = Some(RayHit {
                    entity: character.entity,
                    distance,
                    point: origin + direction * distance,
                    normal,
                });
            }
        }
        nearest
    }
}
