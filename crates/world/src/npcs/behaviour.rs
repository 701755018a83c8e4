//! The behaviour of an NPC in each state: where it goes, and where it looks.

use frolic_protocol::npc::NpcState;
use frolic_scene::PatrolPoint;
use frolic_sim::Vec3;

use super::{Npc, Surroundings};

/// Seconds for which it only looks before it walks there.
const LOOKS_BEFORE_WALKING_S: f32 = 1.0;
/// Radius of a search around the last known place, and seconds at each spot.
const SEARCH_M: f32 = 6.0;
const SEARCH_SPOT_S: f32 = 1.5;
/// Distance from its post at which it returns.
const POST_M: f32 = 1.0;
/// Head sweep while standing: radians to each side, and seconds.
const SWEEP: (f32, f32) = (0.65, 4.0);
const SEARCH_SWEEP: (f32, f32) = (1.3, 2.4);

/// Its current goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wish {
    /// The destination, and whether it runs.
    pub goal: Option<(Vec3, bool)>,
    pub look: Gaze,
}

/// Where it looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gaze {
    /// Along its path; when standing, a sweep around a direction in radians,
    /// with its angle and duration.
    Around(f32, (f32, f32)),
    At(Vec3),
}

/// Progress of its patrol.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    /// Index of the next point.
    pub point: usize,
    /// The tick since which it waits at a point.
    pub waited: u32,
    /// Number of spots that it has searched.
    pub spots: u32,
    /// The spot that it searches now.
    pub spot: Option<Vec3>,
}

impl Npc {
    /// Chooses its goal in this tick, and records the outcome of the last one.
    pub fn wish(&mut self, feet: Vec3, world: &Surroundings) -> Wish {
        let looks_for = self.senses.last_known;
        let around = Gaze::Around(self.facing, SWEEP);
        let at = |place: Option<Vec3>| place.map_or(around, Gaze::At);
        let (goal, look) = match self.state {
            NpcState::Idle => (self.post(feet, world).map(|to| (to, false)), around),
            NpcState::Return => (Some((self.way_back(world), false)), around),
            NpcState::Suspicious => {
                let goes = self.state_seconds(world) >= LOOKS_BEFORE_WALKING_S;
                let goal = looks_for.filter(|_| goes).map(|to| (to, false));
                let look = match self.senses.sees || !goes {
                    true => at(looks_for),
                    false => around,
                };
                (goal, look)
            }
            NpcState::Alert => (None, at(looks_for)),
            NpcState::Chase => {
                let look = match self.senses.sees {
                    true => at(looks_for),
                    false => around,
                };
                (looks_for.map(|to| (to, true)), look)
            }
            NpcState::Search => {
                let look = Gaze::Around(self.facing, SEARCH_SWEEP);
                (self.search_spot(world), look)
            }
        };
        let look = self.orders.look.map_or(look, Gaze::At);
        if let Some(order) = self.orders.goal {
            return Wish { goal: order, look };
        }
        Wish { goal, look }
    }

    /// Its post in the calm state: the next point of its patrol.
    fn post(&mut self, feet: Vec3, world: &Surroundings) -> Option<Vec3> {
        if self.patrol.is_empty() {
            let away = (feet - self.home).length() > POST_M;
            let tired = self.journey.ended() == Some(false);
            // It stays where it arrived; if it could not arrive, it retries
            // later.
            if self.journey.ended().is_some() {
                self.rounds.waited += 1;
                if self.rounds.waited >= world.ticks(5.0) && (away || tired) {
                    self.rounds.waited = 0;
                    return None;
                }
            }
            if !away {
                self.facing = self.home_yaw;
            }
            return (away || self.journey.goal.is_some()).then_some(self.home);
        }
        if self.journey.ended().is_some() {
            self.rounds.waited += 1;
            if self.rounds.waited >= world.ticks(self.settings.patrol_wait).max(1) {
                self.rounds.waited = 0;
                self.rounds.point = (self.rounds.point + 1) % self.patrol.len();
                // With a single point, the same path is tried again.
                if self.patrol.len() == 1 {
                    return None;
                }
            }
        }
        Some(self.patrol_place(world, self.rounds.point))
    }

    fn way_back(&self, world: &Surroundings) -> Vec3 {
        match self.patrol.is_empty() {
            true => self.home,
            false => self.patrol_place(world, self.rounds.point),
        }
    }

    fn patrol_place(&self, world: &Surroundings, point: usize) -> Vec3 {
        match self.patrol.get(point) {
            Some(PatrolPoint::At(place)) => Vec3::from(*place),
            Some(PatrolPoint::Named(name)) => (world.place_of)(name).unwrap_or(self.home),
            None => self.home,
        }
    }

    /// First where it lost its target, then spots around that place.
    fn search_spot(&mut self, world: &Surroundings) -> Option<(Vec3, bool)> {
        let around = self.senses.last_known?;
        if self.rounds.spot.is_none() {
            self.rounds.spots = 0;
        }
        if self.journey.ended().is_some() {
            self.rounds.waited += 1;
            if self.rounds.waited >= world.ticks(SEARCH_SPOT_S) {
                self.rounds.waited = 0;
                self.rounds.spots += 1;
                self.rounds.spot = Some(around + spot(self.entity, self.rounds.spots));
            }
        }
        let first = self.rounds.spots == 0;
        let spot = *self.rounds.spot.get_or_insert(around);
        Some((spot, first))
    }
}

/// A pseudo-random place around, the same in every run.
fn spot(entity: u32, count: u32) -> Vec3 {
    let mut mixed = entity.wrapping_mul(0x9e37_79b9) ^ count.wrapping_mul(0x85eb_ca6b);
    mixed ^= mixed >> 15;
    mixed = mixed.wrapping_mul(0x2c1b_3c6d);
    mixed ^= mixed >> 12;
    let angle = (mixed & 0xffff) as f32 / 65_536.0 * core::f32::consts::TAU;
    let far = (mixed >> 16) as f32 / 65_536.0;
    let distance = SEARCH_M * (0.4 + 0.6 * far);
    Vec3::new(libm::cosf(angle), 0.0, libm::sinf(angle)) * distance
}
