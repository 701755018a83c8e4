//! Where a player's character appears: near a spawn point, on a floor, and
//! never inside another player while there is a free place.

use core::f32::consts::TAU;

use frolic_sim::{Angle, Vec3};

use crate::character::yaw_towards;
use crate::player::PlayerNumber;
use crate::state::WorldState;

/// Distance between the rings of candidates around a spawn point, in metres.
const RING_M: f32 = 0.9;
/// Rings around each spawn point; beyond them it would be a different place.
const RINGS: u32 = 5;
/// Preferred distance between spawned players, so that a first-person camera
/// does not start inside another character's head.
const COMFORTABLE_M: f32 = 1.25;
/// Candidates in the first ring; each further ring has as many more.
const PLACES_IN_FIRST_RING: u32 = 8;
/// How far the floor may be above or below a spawn point.
const STEP_UP_M: f32 = 1.2;
const STEP_DOWN_M: f32 = 1.5;

impl WorldState {
    /// Where the player with this number appears: spawn points in turn, and in
    /// rings around each, at the first free place. If all are occupied, at the
    /// one with the most space. Players face the direction of their spawn
    /// point.
    pub fn spawn_place(&self, number: PlayerNumber) -> (Vec3, Angle) {
        let points = self.spawn_points.len();
        let first = number as usize % points.max(1);
        let turn = number / points.max(1) as u32;
        let others = self.feet_of_others(number);
        let mut best: Option<(f32, Vec3, Angle)> = None;
        for at in (first..points).chain(0..first) {
            let Some(point) = self.alive(self.spawn_points[at]) else {
                continue;
            };
            let facing = yaw_towards(point.rotation * -Vec3::Z);
            for place in self.places_around(point.position, turn) {
                let room = room_at(place, &others, self.params.height);
                if room >= COMFORTABLE_M {
                    return (place, facing);
                }
                if best.is_none_or(|(most, ..)| room > most) {
                    best = Some((room, place, facing));
                }
            }
        }
        best.map_or((Vec3::Y * 5.0, Angle::default()), |(_, place, facing)| {
            (place, facing)
        })
    }

    /// Whether there is space for a character here, considering all players
    /// except the one with this number.
    pub fn is_unoccupied(&self, feet: Vec3, number: PlayerNumber) -> bool {
        room_at(feet, &self.feet_of_others(number), self.params.height) >= COMFORTABLE_M
    }

    /// A place to stand at `feet + aside`: on a floor at about the same height,
    /// not behind a wall, with headroom.
    pub fn standing_room(&self, feet: Vec3, aside: Vec3) -> Option<Vec3> {
        let (radius, height) = (self.params.radius, self.params.height);
        let chest = feet + Vec3::Y * (height * 0.6);
        let reach = aside.length() + radius;
        if self.collision.raycast(chest, aside, reach, &[]).is_some() {
            return None;
        }
        let from = feet + aside + Vec3::Y * STEP_UP_M;
        let down = STEP_UP_M + STEP_DOWN_M;
        let ground = self.collision.raycast(from, -Vec3::Y, down, &[])?.point;
        let up = ground + Vec3::Y * 0.1;
        let headroom = self.collision.raycast(up, Vec3::Y, height, &[]);
        (headroom.is_none() && ground.y > self.kill_height).then_some(ground + Vec3::Y * 0.05)
    }

    /// Candidates around a spawn point, nearest first. The first one depends on
    /// `turn`, so that players who join one after the other spread out.
    fn places_around(&self, point: Vec3, turn: u32) -> impl Iterator<Item = Vec3> {
        let above = point + Vec3::Y * 0.2;
        // On top of what is there: pads have a shape, bare points do not.
        let ground = |aside: Vec3| {
            let from = above + aside + Vec3::Y * 2.0;
            let hit = self.collision.raycast(from, -Vec3::Y, 4.0, &[]);
            hit.map(|hit| hit.point)
        };
        let usual = ground(aside(1, turn)).map_or(above, |ground| ground + Vec3::Y * 0.05);
        let middle = ground(Vec3::ZERO).unwrap_or(point);
        let ring = move |ring: u32| {
            (0..PLACES_IN_FIRST_RING * ring).map(move |at| aside(ring, turn.wrapping_add(at)))
        };
        // The centre of a pad may be its only place.
        let others = ring(1)
            .chain([Vec3::ZERO])
            .chain((2..=RINGS).flat_map(ring));
        let standing = others.filter_map(move |aside| self.standing_room(middle, aside));
        core::iter::once(usual).chain(standing)
    }

    /// Includes disconnected players: their characters are still visible.
    fn feet_of_others(&self, number: PlayerNumber) -> Vec<Vec3> {
        let others = self.players.values();
        let others = others.filter(|other| other.number != number);
        others.map(|other| other.character.feet).collect()
    }
}

/// A place of a ring, relative to its centre.
fn aside(ring: u32, at: u32) -> Vec3 {
    let places = PLACES_IN_FIRST_RING * ring;
    let angle = (at % places) as f32 * (TAU / places as f32);
    Vec3::new(libm::cosf(angle), 0.0, libm::sinf(angle)) * (RING_M * ring as f32)
}

/// The horizontal distance of the nearest character at about this height.
fn room_at(feet: Vec3, others: &[Vec3], height: f32) -> f32 {
    let beside = others
        .iter()
        .filter(|other| (other.y - feet.y).abs() < height);
    beside
        .map(|other| {
            let (x, z) = (other.x - feet.x, other.z - feet.z);
            (x * x + z * z).sqrt()
        })
        .fold(f32::INFINITY, f32::min)
}
