//! Places beside a friend.

use frolic_sim::Vec3;

use crate::player::PlayerNumber;
use crate::state::WorldState;

/// Distances from the friend in metres; the first that fits is used.
const DISTANCES: [f32; 3] = [1.4, 2.2, 3.2];
/// Number of directions tried around the friend.
const DIRECTIONS: u32 = 8;

impl WorldState {
    /// Finds a place for `player` near `friend`: on a floor at about the same
    /// height, not behind a wall, with headroom, and not inside another
    /// character.
    pub fn place_beside(&self, player: PlayerNumber, friend: PlayerNumber) -> Option<Vec3> {
        let friend = self.players.get(&friend).filter(|friend| friend.online)?;
        let feet = friend.character.feet;
        if !feet.is_finite() || feet.y <= self.kill_height {
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
            let place = self.standing_room(feet, aside);
            let free = place.filter(|place| self.is_unoccupied(*place, player));
            if free.is_some() {
                return free;
            }
        }
        // Players do not collide with each other, so the friend's own place is
        // always valid.
        friend.character.grounded().then_some(feet)
    }
}
