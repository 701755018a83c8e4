//! Perception: which players and sounds an NPC notices, and how certain it is.
//!
//! Each looks around ten times a second, in turn. The cheap tests come first:
//! distance, then the angle, then, for the nearest two at most, a ray.

use frolic_protocol::npc::NpcState;
use frolic_scene::Hostility;
use frolic_sim::{CollisionWorld, Vec3};
use smallvec::SmallVec;

use super::Npc;
use super::mind::LOSES_AFTER_S;

/// Heights above the feet: of the eyes, and of the points that are looked for.
const EYES_M: f32 = 1.6;
const SEEN_AT_M: [f32; 2] = [1.15, 1.65];
/// Characters for which one look casts rays.
const LOOKED_FOR_MAX: usize = 2;
/// Rays of one look, at most.
pub const RAYS_PER_LOOK_MAX: u32 = (LOOKED_FOR_MAX * SEEN_AT_M.len()) as u32;
/// Distance at which a hidden character is found, and the same during a chase.
const FINDS_HIDDEN_M: f32 = 1.2;
const CHASES_HIDDEN_M: f32 = 4.0;
/// The highest suspicion that sound alone causes.
const HEARD_MAX: f32 = 0.8;
/// Minimum seconds between two catches.
const CATCHES_AGAIN_S: f32 = 1.0;

/// Characters with this tag are not seen.
pub const HIDDEN_TAG: &str = "Hidden";

/// A player's character, as input of perception.
pub struct Person<'a> {
    pub entity: u32,
    pub feet: Vec3,
    /// Whether it runs or has just landed.
    pub loud: bool,
    pub hidden: bool,
    pub team: Option<&'a str>,
}

/// What an NPC has perceived.
#[derive(Clone, Debug, Default)]
pub struct Senses {
    /// From 0 to 1.
    pub suspicion: f32,
    /// The character it pays attention to.
    pub target: Option<u32>,
    /// Where the target was last noticed.
    pub last_known: Option<Vec3>,
    /// Whether the target is visible now.
    pub sees: bool,
    pub unseen_s: f32,
    /// Whether scripts were notified that it is in sight.
    pub in_sight: bool,
    /// Time until which no character is caught again.
    pub catches_after_s: f32,
}

/// An event for scripts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noticed {
    Saw(u32),
    Lost(u32),
    Caught(u32),
}

impl Npc {
    /// Whether it pays attention to a character at all.
    fn minds(&self, person: &Person) -> bool {
        match self.settings.hostile {
            Hostility::Players => true,
            Hostility::OtherTeams => {
                self.settings.team.is_none() || person.team != self.settings.team.as_deref()
            }
            Hostility::Nobody => false,
        }
    }

    /// Perceives its surroundings, for the time since the last look.
    pub fn look_around(
        &mut self,
        feet: Vec3,
        people: &[Person],
        solids: &CollisionWorld,
        seconds: f32,
        rays: &mut u32,
    ) -> Vec<Noticed> {
        let seen = self.seen(feet, people, solids, rays);
        let heard = self.heard(feet, people);
        let mut noticed = Vec::new();
        let before = self.senses.target;
        let senses = &mut self.senses;
        senses.sees = seen.is_some();
        senses.catches_after_s = (senses.catches_after_s - seconds).max(0.0);
        match (seen, heard) {
            (Some((person, distance)), _) => {
                if before != Some(person.entity) || !senses.in_sight {
                    if let Some(other) = before.filter(|b| senses.in_sight && *b != person.entity) {
                        noticed.push(Noticed::Lost(other));
                    }
                    noticed.push(Noticed::Saw(person.entity));
                }
                senses.in_sight = true;
                senses.target = Some(person.entity);
                senses.last_known = Some(person.feet);
                senses.unseen_s = 0.0;
                let nearness = 1.0 - distance / self.settings.sight_distance.max(0.1);
                let rate = (0.4 + 1.2 * nearness) / self.settings.suspicion_rise;
                senses.suspicion = (senses.suspicion + rate * seconds).min(1.0);
                let up = (person.feet.y - feet.y).abs();
                if distance <= self.settings.reach
                    && up < 2.0
                    && self.state == NpcState::Chase
                    && senses.catches_after_s <= 0.0
                {
                    senses.catches_after_s = CATCHES_AGAIN_S;
                    noticed.push(Noticed::Caught(person.entity));
                }
            }
            (None, Some(person)) => {
                senses.unseen_s += seconds;
                senses.target = Some(person.entity);
                senses.last_known = Some(person.feet);
                if senses.suspicion < HEARD_MAX {
                    let risen = senses.suspicion + seconds / self.settings.suspicion_rise;
                    senses.suspicion = risen.min(HEARD_MAX);
                }
            }
            (None, None) => {
                senses.unseen_s += seconds;
                let held = matches!(self.state, NpcState::Alert | NpcState::Chase);
                if !held {
                    let fallen = senses.suspicion - seconds / self.settings.suspicion_fall;
                    senses.suspicion = fallen.max(0.0);
                }
            }
        }
        if senses.in_sight && senses.unseen_s >= LOSES_AFTER_S {
            senses.in_sight = false;
            noticed.extend(before.map(Noticed::Lost));
        }
        if senses.suspicion <= 0.0 && !senses.in_sight {
            senses.target = None;
        }
        noticed
    }

    /// The character that it sees: its current target, or else the nearest.
    fn seen<'a, 'p>(
        &self,
        feet: Vec3,
        people: &'a [Person<'p>],
        solids: &CollisionWorld,
        rays: &mut u32,
    ) -> Option<(&'a Person<'p>, f32)> {
        let sight = self.settings.sight_distance;
        let forward = self.forward();
        // With capacity for one more, which may be nearer than one of them.
        let mut nearest: SmallVec<[(f32, &Person, f32); LOOKED_FOR_MAX + 1]> = SmallVec::new();
        for person in people {
            let to = person.feet - feet;
            let distance = to.length();
            let level = Vec3::new(to.x, 0.0, to.z);
            let ahead = level.dot(forward) >= level.length() * self.sight_cos;
            let found_m = match self.state {
                NpcState::Chase => CHASES_HIDDEN_M,
                _ => FINDS_HIDDEN_M,
            };
            let hidden = person.hidden && distance > found_m;
            if distance > sight || !ahead || hidden || !self.minds(person) {
                continue;
            }
            // It does not switch to another target that is hardly nearer.
            let minded = self.senses.target == Some(person.entity);
            let rank = if minded { distance * 0.5 } else { distance };
            nearest.push((rank, person, distance));
            nearest.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.entity.cmp(&b.1.entity)));
            nearest.truncate(LOOKED_FOR_MAX);
        }
        nearest
            .into_iter()
            .find(|(_, person, _)| has_clear_view(feet, person.feet, solids, rays))
            .map(|(_, person, distance)| (person, distance))
    }

    fn heard<'a, 'p>(&self, feet: Vec3, people: &'a [Person<'p>]) -> Option<&'a Person<'p>> {
        let near = |person: &&Person| {
            let distance = (person.feet - feet).length();
            person.loud && distance <= self.settings.hearing_distance && self.minds(person)
        };
        let distance = |person: &Person| (person.feet - feet).length_squared();
        people
            .iter()
            .filter(near)
            .min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }
}

/// Whether an NPC at `from` can see a character at `to`.
fn has_clear_view(from: Vec3, to: Vec3, solids: &CollisionWorld, rays: &mut u32) -> bool {
    let eyes = from + Vec3::Y * EYES_M;
    SEEN_AT_M.iter().any(|height| {
        let way = to + Vec3::Y * height - eyes;
        *rays += 1;
        solids.raycast(eyes, way, way.length(), &[]).is_none()
    })
}
