//! The world as one player saw it.

use std::cell::Ref;

use frolic_sim::{RayHit, Vec3, capsule};

use super::frames::Place;
use super::{Moment, REWIND_MAX_MS};
use crate::entity::Entity;
use crate::player::{Player, PlayerNumber};
use crate::state::WorldState;
use crate::world::World;

/// A character where a player saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeenCharacter {
    /// Its entity.
    pub entity: u32,
    /// Whose it is; 0 for an NPC.
    pub player: PlayerNumber,
    /// The lowest point of its capsule.
    pub feet: Vec3,
}

/// The world as one player saw it. The own character is where it is now, and
/// so is what it stands on or walks against: clients predict these. Solids that
/// rays meet are those of now.
pub struct AsSeen<'world> {
    state: Ref<'world, WorldState>,
    viewer: Viewer,
}

/// Things that a client draws in its own time, at most: one that it rides, and
/// as many as our client keeps of those that it walks against.
const PREDICTED_MAX: usize = 5;

/// Who looks, and at which moment.
#[derive(Clone, Copy)]
struct Viewer {
    player: PlayerNumber,
    entity: u32,
    at: Moment,
    /// The earliest that is ever looked at.
    oldest: Moment,
    /// What their client draws in its own time besides its character.
    predicted: [Option<u32>; PREDICTED_MAX],
}

/// Where a ray goes.
#[derive(Clone, Copy)]
pub(crate) struct Ray {
    origin: Vec3,
    /// As long as one metre.
    direction: Vec3,
    distance_max: f32,
}

impl Ray {
    /// None for one that leads nowhere.
    pub fn new(origin: Vec3, direction: Vec3, distance_max: f32) -> Option<Self> {
        let direction = direction.try_normalize()?;
        (origin.is_finite() && distance_max.is_finite()).then_some(Self {
            origin,
            direction,
            distance_max,
        })
    }

    /// Whether it comes this near to a place.
    fn passes(&self, place: Vec3, near: f32) -> bool {
        let there = place - self.origin;
        let along = there.dot(self.direction).min(self.distance_max).max(0.0);
        (there - self.direction * along).length_squared() <= near * near
    }
}

/// The same while scripts have the world.
pub(crate) struct Seen<'state> {
    state: &'state WorldState,
    viewer: Viewer,
}

impl World {
    /// What a player saw when they sent what has arrived last, never longer
    /// ago than [`REWIND_MAX_MS`](super::REWIND_MAX_MS). None when they are
    /// not here, or before the first step.
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

/// What a player's client draws in its own time: what their character stands
/// on, and what it walks against. Who does not say what they draw is taken to
/// draw all of it late.
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

    /// The moment at which what is near was seen, in ticks.
    pub fn tick(&self) -> f64 {
        let at = self.viewer.at;
        f64::from(at.tick()) + f64::from(at.fraction())
    }

    /// Where an entity was seen: a character's feet, a thing's centre. None
    /// when it is gone by now, or was not there yet.
    pub fn position(&self, entity: u32) -> Option<Vec3> {
        self.seen().position(entity)
    }

    /// The others' characters, the dead among them.
    pub fn characters(&self) -> impl Iterator<Item = SeenCharacter> {
        let others: Vec<SeenCharacter> = self.seen().characters().collect();
        others.into_iter()
    }

    /// The first character or solid along a ray, ignoring `except` and the
    /// player's own character. It passes over the dead, and over who has been
    /// born again since.
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
    /// The earliest moment at which anything is looked at.
    fn earliest(&self) -> Moment {
        let player = self.state.players.get(&self.viewer.player);
        match player.is_some_and(|player| player.shown.said.is_some()) {
            true => self.viewer.oldest,
            // To them nothing is later than what is near.
            false => self.viewer.at,
        }
    }

    /// The moment at which an entity is looked at.
    fn moment_of(&self, entity: &Entity) -> Option<Moment> {
        let viewer = &self.viewer;
        let player = self.state.players.get(&viewer.player)?;
        let lag = self.state.updates.lag_ticks(entity, player);
        Some(viewer.at.ticks_before(lag).max(viewer.oldest))
    }

    /// Entities whose place was within a ball, in order of ids.
    pub fn near(&self, center: Vec3, radius: f32) -> Vec<u32> {
        let within = |place: Vec3, reach: f32| (place - center).length_squared() <= reach * reach;
        // Those that lie there, and those that have moved of late.
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
            // As the scene file says: it has never been anywhere else.
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

    /// The others' characters that a ray may meet: the living, in the life in
    /// which they were seen. It passes over the dead, as shots do. Every one is
    /// noted in every tick, so nobody is missed.
    pub fn characters_along(&self, ray: &Ray) -> Vec<SeenCharacter> {
        let reach = self.state.params.radius + self.state.params.height;
        let passes = |place: Vec3, off: f32| ray.passes(place, reach + off);
        let noted = self.state.past.noted_since(self.earliest(), passes);
        let others = noted.into_iter().filter(|id| *id != self.viewer.entity);
        others.filter_map(|id| self.character(id)).collect()
    }

    /// The character of an entity that is one and can be hit.
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
