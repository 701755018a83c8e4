//! The world as one player saw it.

use std::cell::Ref;

use frolic_sim::{RayHit, Vec3, capsule};

use super::frames::Place;
use super::{Moment, REWIND_MAX_MS};
use crate::entity::Entity;
use crate::player::{Player, PlayerNumber};
use crate::state::WorldState;
use crate::world::World;

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

/// The world as one player saw it. The player's own character is where it is
/// now, and so are the entities that it stands on or walks against, because
/// clients predict these. Rays hit solids at their current poses.
pub struct AsSeen<'world> {
    state: Ref<'world, WorldState>,
    viewer: Viewer,
}

/// Limit of entities that a client predicts: one that the character rides, and
/// as many as our client tracks of those that it walks against.
const PREDICTED_MAX: usize = 5;

/// The viewer, and the moment of the view.
#[derive(Clone, Copy)]
struct Viewer {
    player: PlayerNumber,
    entity: u32,
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

/// The same while scripts run.
pub(crate) struct Seen<'state> {
    state: &'state WorldState,
    viewer: Viewer,
}

impl World {
    /// What a player saw when they sent the message that arrived last, limited
    /// to [`REWIND_MAX_MS`](super::REWIND_MAX_MS). None if the player is not in
    /// the world, or before the first step.
    pub fn as_seen_by(&self, player: PlayerNumber) -> Option<AsSeen<'_>> {
        let state = self.borrow_state();
        let viewer = Viewer::of(&state, player)?;
        Some(AsSeen { state, viewer })
    }
}

impl WorldState {
    /// What a player saw; see [`World::as_seen_by`].
    pub fn seen_by(&self, player: PlayerNumber) -> Option<Seen<'_>> {
        let viewer = Viewer::of(self, player)?;
        Some(Seen {
            state: self,
            viewer,
        })
    }
}

impl Viewer {
    fn of(state: &WorldState, player: PlayerNumber) -> Option<Self> {
        let player = state.players.get(&player)?;
        let now = state.past.now()?;
        Some(Self {
            player: player.number,
            entity: player.entity,
            at: player.shown.moment(now, state.tick_hz),
            oldest: now.before(REWIND_MAX_MS, state.tick_hz),
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
        let touches = player.step_cache.touches().iter();
        let moved = touches.filter(|touch| touch.stands || touch.speed > 0.0);
        let ground = player.character.ground.into_iter();
        let all = ground.chain(moved.map(|touch| touch.entity));
        for (place, entity) in predicted.iter_mut().zip(all) {
            *place = Some(entity);
        }
    }
    predicted
}

impl AsSeen<'_> {
    fn seen(&self) -> Seen<'_> {
        Seen {
            state: &self.state,
            viewer: self.viewer,
        }
    }

    /// The moment at which near entities were seen, in ticks.
    pub fn tick(&self) -> f64 {
        let at = self.viewer.at;
        f64::from(at.tick()) + f64::from(at.fraction())
    }

    /// Where an entity was seen: a character's feet, another entity's centre.
    /// None if it no longer exists, or did not exist yet.
    pub fn position(&self, entity: u32) -> Option<Vec3> {
        self.seen().position(entity)
    }

    /// Characters of others, including dead ones.
    pub fn characters(&self) -> impl Iterator<Item = SeenCharacter> {
        let others: Vec<SeenCharacter> = self.seen().characters().collect();
        others.into_iter()
    }

    /// The first character or solid along a ray, ignoring `except` and the
    /// player's own character. It passes through dead characters and those that
    /// have respawned since.
    pub fn raycast(
        &self,
        origin: Vec3,
        direction: Vec3,
        distance_max: f32,
        except: &[u32],
    ) -> Option<RayHit> {
        let ray = Ray::new(origin, direction, distance_max)?;
        let seen = self.seen();
        seen.first_along(&ray, &seen.characters_along(&ray), except)
    }
}

impl Seen<'_> {
    /// The earliest moment that any entity is queried at.
    fn earliest(&self) -> Moment {
        let player = self.state.players.get(&self.viewer.player);
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
        let player = self.state.players.get(&viewer.player)?;
        let lag = self.state.updates.lag_ticks(entity, player);
        Some(viewer.at.ticks_before(lag).max(viewer.oldest))
    }

    /// Entities whose place was within a sphere, in order of ids.
    pub fn near(&self, center: Vec3, radius: f32) -> Vec<u32> {
        let within = |place: Vec3, reach: f32| (place - center).length_squared() <= reach * reach;
        // Those at rest there, and those that moved recently.
        let mut found = self.state.registry.around(center, radius);
        let noted = |place: Vec3, off: f32| within(place, radius + off);
        found.extend(self.state.past.noted_since(self.earliest(), noted));
        found.sort_unstable();
        found.dedup();
        let seen_there = |id: &u32| self.position(*id).is_some_and(|at| within(at, radius));
        found.retain(seen_there);
        found
    }

    /// See [`AsSeen::position`].
    pub fn position(&self, entity: u32) -> Option<Vec3> {
        let now = self.state.alive(entity)?;
        if self.viewer.predicts(entity) {
            return Some(now.position);
        }
        if now.is_of_scene() && !now.replicated {
            // As in the scene file: it has never moved.
            return Some(now.position);
        }
        let at = self.moment_of(now)?;
        let (past, next_entity) = (&self.state.past, self.state.next_entity());
        Some(past.place(Place::of(now), at, next_entity)?.position)
    }

    /// See [`AsSeen::characters`].
    pub fn characters(&self) -> impl Iterator<Item = SeenCharacter> {
        let players = self.state.players.values();
        let players = players.map(|player| (player.entity, player.number));
        let npcs = self.state.npcs.all.keys().map(|id| (*id, 0));
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
        let reach = self.state.params.radius + self.state.params.height;
        let passes = |place: Vec3, off: f32| ray.passes(place, reach + off);
        let noted = self.state.past.noted_since(self.earliest(), passes);
        let others = noted.into_iter().filter(|id| *id != self.viewer.entity);
        others.filter_map(|id| self.character(id)).collect()
    }

    /// The character of an entity, if it is one and can be hit.
    fn character(&self, entity: u32) -> Option<SeenCharacter> {
        let now = self.state.alive(entity)?;
        let can_be_hit = match now.player {
            Some(player) => {
                self.state.is_living(player) && self.state.lived_at(now, self.moment_of(now)?)
            }
            None => self.state.is_npc(entity),
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
        let solids = &self.state.collision;
        let mut nearest = solids.raycast(origin, direction, distance_max, except);
        let (radius, height) = (self.state.params.radius, self.state.params.height);
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
