//! What scripts ask of the replicated world: as of the last frame, so that the answers
//! agree with what the player sees.

use frolic_protocol::npc::Mood;
use frolic_protocol::{PlayerInfo, Value};
use frolic_scene::{Color, Pattern};
use frolic_sim::{RayHit, Rotation, Vec3, capsule};

use crate::drawn::{Drawn, DrawnKind};
use crate::joined::Joined;
use crate::parts::Resolved;
use crate::replica::Replica;

/// Entities without the tag that a ray passes through before it gives up; the server
/// has the same limit.
const PASSED_MAX: usize = 64;

/// A ray, and what stops it.
#[derive(Clone, Copy, Debug)]
pub struct RayQuery<'a> {
    /// Where it starts.
    pub origin: Vec3,
    /// Where it goes; of any length but zero.
    pub direction: Vec3,
    /// How far it goes, in metres.
    pub distance_max: f32,
    /// Only entities with this tag stop it.
    pub tag: Option<&'a str>,
    /// Entities that it passes through.
    pub ignore: &'a [u32],
    /// Whether characters stop it.
    pub characters: bool,
}

/// Name of a character whose player is not known yet.
const UNKNOWN_PLAYER: &str = "Player";
/// Name of an entity whose definition has not arrived yet.
const UNKNOWN_ENTITY: &str = "Entity";

/// An entity as scripts read it.
pub struct KnownEntity<'a> {
    world: Queries<'a>,
    id: u32,
    /// In the last frame.
    drawn: Option<&'a Drawn>,
    resolved: Option<Resolved<'a>>,
}

impl<'a> KnownEntity<'a> {
    /// Its position; of a character, its feet.
    pub fn position(&self) -> Vec3 {
        match (self.drawn, &self.resolved) {
            (Some(drawn), _) => drawn.position,
            (None, Some(resolved)) => resolved.transform.position.into(),
            (None, None) => Vec3::ZERO,
        }
    }

    /// Metres per second.
    pub fn velocity(&self) -> Vec3 {
        self.drawn.map_or(Vec3::ZERO, |drawn| drawn.velocity)
    }

    /// Its orientation.
    pub fn rotation(&self) -> Rotation {
        match (self.drawn, &self.resolved) {
            (Some(drawn), _) => drawn.rotation,
            (None, Some(resolved)) => Rotation::from_array(resolved.transform.rotation),
            (None, None) => Rotation::IDENTITY,
        }
    }

    /// Its name; of a player's character, that of the player.
    pub fn name(&self) -> &str {
        let is_player =
            |drawn: &&Drawn| drawn.kind == DrawnKind::Character && drawn.mood == Mood::default();
        if self.drawn.filter(is_player).is_some() {
            let player = self.world.player_of(self.id);
            return player.map_or(UNKNOWN_PLAYER, |player| &player.name);
        }
        self.resolved.as_ref().map_or(UNKNOWN_ENTITY, |it| it.name)
    }

    /// Its colour; none when nothing gives it one.
    pub fn color(&self) -> Option<Color> {
        match &self.resolved {
            Some(resolved) => resolved.color(),
            None => self
                .world
                .replica
                .details_of(self.id)?
                .looks
                .color
                .map(Color),
        }
    }

    /// The pattern of its surface.
    pub fn pattern(&self) -> Pattern {
        let resolved = self.resolved.as_ref();
        let material = resolved.and_then(|it| it.components.material.as_ref());
        material.map_or(Pattern::Plain, |material| material.pattern)
    }

    /// Its tags.
    pub fn tags(&self) -> &[String] {
        self.resolved.as_ref().map_or(&[], Resolved::tags)
    }

    /// An attribute, as last replicated or as in the scene.
    pub fn attribute(&self, name: &str) -> Option<Value> {
        if let Some(details) = self.world.replica.details_of(self.id) {
            return details.attributes.get(name).cloned();
        }
        let attributes = self.resolved.as_ref()?.components.attributes.as_ref()?;
        attributes.get(name).map(Value::from)
    }

    /// What an NPC is up to; zero for anything else.
    pub fn mood(&self) -> Mood {
        self.drawn.map(|drawn| drawn.mood).unwrap_or_default()
    }

    fn has_word(&self, word: &str) -> bool {
        self.name() == word || self.tags().iter().any(|tag| tag == word)
    }
}

/// The replicated world, as scripts ask for it.
#[derive(Clone, Copy)]
pub struct Queries<'a> {
    replica: &'a Replica,
    joined: Option<&'a Joined>,
}

impl<'a> Queries<'a> {
    pub(crate) fn new(replica: &'a Replica, joined: Option<&'a Joined>) -> Self {
        Self { replica, joined }
    }

    /// An entity of the world as far as it is known: drawn in the last frame, or a
    /// part.
    pub fn entity(&self, id: u32) -> Option<KnownEntity<'a>> {
        let (drawn, resolved) = (self.drawn_of(id), self.replica.resolve(id));
        (drawn.is_some() || resolved.is_some()).then_some(KnownEntity {
            world: *self,
            id,
            drawn,
            resolved,
        })
    }

    /// Entities with this name or tag, in order of ids.
    pub fn find(&self, word: &str) -> Vec<u32> {
        self.matching(|entity| entity.has_word(word))
    }

    /// Entities whose position is within a sphere, in order of ids.
    pub fn in_radius(&self, center: Vec3, radius: f32) -> Vec<u32> {
        let near = |place: Vec3| (place - center).length_squared() <= radius * radius;
        self.matching(|entity| near(entity.position()))
    }

    /// NPCs in view, in order of ids.
    pub fn npcs(&self) -> Vec<u32> {
        let drawn = self.drawn().iter();
        let npcs = drawn.filter(|drawn| drawn.mood.state().is_some());
        npcs.map(|drawn| drawn.id).collect()
    }

    /// The players in the world, disconnected ones among them, in order of numbers.
    pub fn players(&self) -> &'a [PlayerInfo] {
        self.joined.map_or(&[], |joined| joined.players().present())
    }

    /// A player by number, also one who left not long ago.
    pub fn player(&self, number: u32) -> Option<&'a PlayerInfo> {
        self.joined?.players().find(number)
    }

    /// The player whose character this is.
    pub fn player_of(&self, entity: u32) -> Option<&'a PlayerInfo> {
        self.joined?.players().of_character(entity)
    }

    fn matching(&self, is_wanted: impl Fn(&KnownEntity<'_>) -> bool) -> Vec<u32> {
        let mut ids: Vec<u32> = self.replica.scene.ids().collect();
        ids.extend(self.replica.entities().map(|state| state.id));
        ids.extend(self.drawn().last().map(|own| own.id));
        ids.sort_unstable();
        ids.dedup();
        ids.retain(|id| self.entity(*id).is_some_and(|entity| is_wanted(&entity)));
        ids
    }

    /// Everything in the last frame.
    fn drawn(&self) -> &'a [Drawn] {
        self.joined.map_or(&[], Joined::drawn)
    }

    /// The own character in the last frame.
    pub(crate) fn own(&self) -> Option<&'a Drawn> {
        self.drawn().last()
    }

    /// Frames list entities in order of ids, and the own character last.
    fn drawn_of(&self, id: u32) -> Option<&'a Drawn> {
        let (own, others) = self.drawn().split_last()?;
        if own.id == id {
            return Some(own);
        }
        let at = others.binary_search_by_key(&id, |drawn| drawn.id).ok()?;
        others.get(at)
    }

    /// The first entity that stops a ray. Solids are those that the prediction
    /// collides with, terrain has the entity [`frolic_sim::TERRAIN`], and characters
    /// are where the last frame showed them. The own character and dead ones never
    /// stop it.
    pub fn raycast(&self, query: &RayQuery<'_>) -> Option<RayHit> {
        let direction = query.direction.try_normalize()?;
        if !query.origin.is_finite() || !query.distance_max.is_finite() {
            return None;
        }
        let mut ignore = query.ignore.to_vec();
        // Bounded: each round passes through one more entity without the tag.
        for _ in 0..PASSED_MAX {
            let hit = self.first_along(query, direction, &ignore)?;
            if query.tag.is_none_or(|tag| self.has_tag(hit.entity, tag)) {
                return Some(hit);
            }
            ignore.push(hit.entity);
        }
        None
    }

    fn first_along(&self, query: &RayQuery<'_>, direction: Vec3, ignore: &[u32]) -> Option<RayHit> {
        let RayQuery {
            origin,
            distance_max,
            ..
        } = *query;
        let solids = &self.replica.scene.collision;
        let mut nearest = solids.raycast(origin, direction, distance_max, ignore);
        let Some(joined) = self.joined.filter(|_| query.characters) else {
            return nearest;
        };
        let params = &joined.welcome().character;
        let can_be_hit = |drawn: &&Drawn| {
            let living = drawn.kind == DrawnKind::Character && !drawn.own && !drawn.dead;
            living && !ignore.contains(&drawn.id)
        };
        for character in self.drawn().iter().filter(can_be_hit) {
            let (feet, reach) = (
                character.position,
                nearest.map_or(distance_max, |hit| hit.distance),
            );
            let hit = capsule::cast(origin, direction, feet, params.radius, params.height);
            if let Some((distance, normal)) = hit.filter(|(distance, _)| *distance < reach) {
                nearest = Some(RayHit {
                    entity: character.id,
                    distance,
                    point: origin + direction * distance,
                    normal,
                });
            }
        }
        nearest
    }

    fn has_tag(&self, id: u32, tag: &str) -> bool {
        let resolved = self.replica.resolve(id);
        resolved.is_some_and(|entity| entity.tags().iter().any(|known| known == tag))
    }
}
