//! Projectiles: weapons, shots in flight, and hits.
//!
//! The server simulates firing, flight and hits; clients receive where a shot
//! began and what it hit, and simulate the flight between with the same
//! function ([`frolic_sim::flight`]). A shot hits solids where they are, and
//! characters where its shooter saw them (`lag_compensation/target.rs`).

mod fire;
mod hits;
mod replication;
mod weapons;

use std::collections::BTreeMap;

use frolic_sim::{Flight, FlightParams, Sweeper, Vec3, flight};

use crate::characters::Characters;
use crate::player::PlayerNumber;
use crate::space::Space;

use hits::Targets;
use replication::Pending;
use weapons::Armoury;

/// Shots in flight in a world; further ones are refused.
pub(crate) const FLYING_MAX: usize = 4_096;
/// Shots in flight of one player.
const FLYING_PER_PLAYER_MAX: u32 = 256;
/// A shot ends at this distance from the origin of the world.
const REACH_MAX_M: f32 = 20_000.0;

/// All shots and weapons of a world.
#[derive(Default)]
pub(crate) struct Projectiles {
    pub armoury: Armoury,
    /// In order of ids.
    pub flying: Vec<Shot>,
    pub next_id: u32,
    /// What to send to each player about this tick.
    pending: BTreeMap<PlayerNumber, Pending>,
    /// Shots that were refused because too many are in flight.
    pub refused: u64,
}

/// One shot in flight.
#[derive(Clone, Debug)]
pub(crate) struct Shot {
    pub id: u32,
    pub weapon: u16,
    pub shooter: Option<PlayerNumber>,
    /// The shooter's character, or 0.
    pub shooter_entity: u32,
    /// The parameters of its weapon at the time of firing.
    pub params: FlightParams,
    pub flight: Flight,
    pub born_tick: u32,
    /// The tick at whose end it expires.
    pub last_tick: u32,
    /// How long ago its shooter saw the others, in 1/256 of a tick.
    pub delay: u32,
    /// Number of the input that fired it, or 0.
    pub input: u32,
    /// Players to whom it was replicated, in order.
    known_to: Vec<PlayerNumber>,
    /// Players that it may come into view of before the next look.
    coming: Vec<PlayerNumber>,
    /// The tick of the next look at which players it flies towards.
    next_look: u32,
}

impl Projectiles {
    fn of_player(&self, player: PlayerNumber) -> u32 {
        let own = self.flying.iter().filter(|s| s.shooter == Some(player));
        own.count() as u32
    }

    /// Resets what was sent to a player who reconnected.
    pub fn forget_sent(&mut self, player: PlayerNumber) {
        for shot in &mut self.flying {
            if let Ok(at) = shot.known_to.binary_search(&player) {
                shot.known_to.remove(at);
            }
        }
    }

    /// Fires for players who hold the button, moves every shot, and applies
    /// hits.
    pub fn step(&mut self, space: &mut Space, characters: &Characters) {
        self.fly(space, characters);
        self.fire_of_players(space);
        self.send(space);
    }

    fn fly(&mut self, space: &mut Space, characters: &Characters) {
        if self.flying.is_empty() {
            return;
        }
        let dt = space.dt();
        let mut flying = std::mem::take(&mut self.flying);
        let mut ended = Vec::new();
        let targets = Targets::of(space);
        let mut sweeper = Sweeper::new(&space.collision);
        flying.retain_mut(|shot| {
            let mut after = shot.flight;
            let legs = flight::step_flight(&mut sweeper, &shot.params, &mut after, &[], dt);
            let hit = targets.first_hit(space, shot, &legs, &mut sweeper);
            let hit = hit.or_else(|| {
                let solid = flight::is_over(&after, &legs)?;
                Some(hits::Met {
                    entity: Some(solid.entity),
                    victim: None,
                    point: after.position,
                    normal: solid.normal,
                })
            });
            if after.bounces != shot.flight.bounces {
                // After a bounce it flies where no player was looked for.
                shot.next_look = space.tick;
            }
            shot.flight = after;
            if let Some(met) = hit {
                ended.push((shot.clone(), Some(met)));
                return false;
            }
            // Clients know when a shot expires and need no message.
            let far = after.position.abs().max_element() > REACH_MAX_M;
            shot.last_tick > space.tick && !far
        });
        // Hit handlers may fire again; these shots came first.
        flying.append(&mut self.flying);
        self.flying = flying;
        for (shot, met) in ended {
            self.end_shot(space, characters, &shot, met);
        }
    }
}

/// The origin of a player's shots.
fn eye_of(feet: Vec3) -> Vec3 {
    feet + Vec3::Y * flight::EYE_HEIGHT_M
}
