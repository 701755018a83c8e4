//! Where a player's character appears: near a spawn point, on a floor, and
//! never inside another player while there is a free place.

use core::f32::consts::TAU;

use frolic_sim::{Angle, Vec3};

use super::yaw_towards;
use crate::player::PlayerNumber;
use crate::space::Space;

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

/// Distances from the friend in metres; the first that fits is used.
const DISTANCES: [f32; 3] = [1.4, 2.2, 3.2];
/// Number of directions tried around the friend.
const DIRECTIONS: u32 = 8;

/// Where the player with this number appears: spawn points in turn, and in
/// rings around each, at the first free place. If all are occupied, at the
/// one with the most space. Players face the direction of their spawn
/// point.
pub(super) fn spawn_place(space: &Space, number: PlayerNumber) -> (Vec3, Angle) {
    let points = space.entities.spawn_points().len();
    let first = number as usize % points.max(1);
    let turn = number / points.max(1) as u32;
    let others = feet_of_others(space, number);
    let mut best: Option<(f32, Vec3, Angle)> = None;
    for at in (first..points).chain(0..first) {
        let Some(point) = space.alive(space.entities.spawn_points()[at]) else {
            continue;
        };
        let facing = yaw_towards(point.rotation * -Vec3::Z);
        for place in places_around(space, point.position, turn) {
            let room = room_at(place, &others, space.params.height);
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
fn is_unoccupied(space: &Space, feet: Vec3, number: PlayerNumber) -> bool {
    room_at(feet, &feet_of_others(space, number), space.params.height) >= COMFORTABLE_M
}

/// A place to stand at `feet + aside`: on a floor at about the same height,
/// not behind a wall, with headroom.
fn standing_room(space: &Space, feet: Vec3, aside: Vec3) -> Option<Vec3> {
    let (radius, height) = (space.params.radius, space.params.height);
    let chest = feet + Vec3::Y * (height * 0.6);
    let reach = aside.length() + radius;
    if space.collision.raycast(chest, aside, reach, &[]).is_some() {
        return None;
    }
    let from = feet + aside + Vec3::Y * STEP_UP_M;
    let down = STEP_UP_M + STEP_DOWN_M;
    let ground = space.collision.raycast(from, -Vec3::Y, down, &[])?.point;
    let up = ground + Vec3::Y * 0.1;
    let headroom = space.collision.raycast(up, Vec3::Y, height, &[]);
    (headroom.is_none() && ground.y > space.kill_height).then_some(ground + Vec3::Y * 0.05)
}

/// Candidates around a spawn point, nearest first. The first one depends on
/// `turn`, so that players who join one after the other spread out.
fn places_around(space: &Space, point: Vec3, turn: u32) -> impl Iterator<Item = Vec3> {
    let above = point + Vec3::Y * 0.2;
    // On top of what is there: pads have a shape, bare points do not.
    let ground = |aside: Vec3| {
        let from = above + aside + Vec3::Y * 2.0;
        let hit = space.collision.raycast(from, -Vec3::Y, 4.0, &[]);
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
    let standing = others.filter_map(move |aside| standing_room(space, middle, aside));
    core::iter::once(usual).chain(standing)
}

/// Includes disconnected players: their characters are still visible.
fn feet_of_others(space: &Space, number: PlayerNumber) -> Vec<Vec3> {
    let others = space.players.values();
    let others = others.filter(|other| other.number != number);
    let feet = others.filter_map(|other| space.alive(other.entity));
    feet.map(|entity| entity.position).collect()
}

/// Finds a place for `player` near `friend`: on a floor at about the same
/// height, not behind a wall, with headroom, and not inside another
/// character.
pub(crate) fn place_beside(
    space: &Space,
    player: PlayerNumber,
    friend: PlayerNumber,
) -> Option<Vec3> {
    let friend = space.players.get(&friend).filter(|friend| friend.online)?;
    let feet = space.feet_of(friend);
    if !feet.is_finite() || feet.y <= space.kill_height {
        return None;
    }
    // Try the friend's right first, so that the friend sees the player
    // arrive.
    let yaw = friend.input.yaw.radians();
    let places = DISTANCES.iter().flat_map(|distance| {
        (0..DIRECTIONS).map(move |turn| {
            // Right, left, then the directions between.
            let turn = (turn * 4 + turn / 2) % DIRECTIONS;
            let angle = yaw + turn as f32 * core::f32::consts::FRAC_PI_4;
            Vec3::new(libm::cosf(angle), 0.0, -libm::sinf(angle)) * *distance
        })
    });
    for aside in places {
        let place = standing_room(space, feet, aside);
        let free = place.filter(|place| is_unoccupied(space, *place, player));
        if free.is_some() {
            return free;
        }
    }
    // Players do not collide with each other, so the friend's own place is
    // always valid.
    friend.gait.grounded().then_some(feet)
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
