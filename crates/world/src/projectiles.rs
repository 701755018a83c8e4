//! Projectiles: weapons, shots in flight, and what they hit.
//!
//! The server fires, flies and hits; clients are told where a shot began and
//! what it met, and fly it themselves in between with the same function
//! ([`frolic_sim::flight`]). A shot meets solids where they are, and
//! characters where its shooter saw them (`past/target.rs`).

mod fire;
mod hits;
mod tell;
mod weapons;

use std::collections::BTreeMap;

use frolic_sim::flight::{self, Flight, FlightParams};
use frolic_sim::{Sweeper, Vec3};

use crate::player::PlayerNumber;
use crate::state::WorldState;

pub(crate) use fire::Arms;
pub(crate) use hits::Targets;
pub(crate) use tell::News;
pub(crate) use weapons::Armoury;

/// Shots that may fly at a time; more are refused.
pub(crate) const FLYING_MAX: usize = 4_096;
/// Of one player.
const FLYING_PER_PLAYER_MAX: u32 = 256;
/// A shot is over when it is this far from the middle of the world.
const REACH_MAX_M: f32 = 20_000.0;

/// All shots and weapons of a world.
#[derive(Default)]
pub(crate) struct Projectiles {
    pub armoury: Armoury,
    /// In order of their numbers.
    pub flying: Vec<Shot>,
    pub next_id: u32,
    /// What each player has to be told of this tick.
    news: BTreeMap<PlayerNumber, News>,
    /// Shots that were refused because too many fly.
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
    /// As its weapon was when it was fired.
    pub params: FlightParams,
    pub flight: Flight,
    pub born_tick: u32,
    /// At whose end it is over at the latest.
    pub last_tick: u32,
    /// How long ago its shooter saw the others, in 1/256 of a tick.
    pub delay: u32,
    /// Number of the input that fired it, or 0.
    pub input: u32,
    /// Who knows of it, in order.
    told: Vec<PlayerNumber>,
    /// Whom it may come within sight of before the next look.
    coming: Vec<PlayerNumber>,
    /// The tick in which it looks again whom it flies towards.
    next_look: u32,
}

impl Projectiles {
    fn of_player(&self, player: PlayerNumber) -> u32 {
        let own = self.flying.iter().filter(|s| s.shooter == Some(player));
        own.count() as u32
    }

    /// A player connected anew and knows nothing.
    pub fn forget_told(&mut self, player: PlayerNumber) {
        for shot in &mut self.flying {
            if let Ok(at) = shot.told.binary_search(&player) {
                shot.told.remove(at);
            }
        }
    }
}

impl WorldState {
    /// Fires what players want to fire, moves every shot, and lets those that
    /// met something hit it.
    pub fn step_projectiles(&mut self) {
        self.fly();
        self.fire_of_players();
        self.tell_projectiles();
    }

    fn fly(&mut self) {
        if self.projectiles.flying.is_empty() {
            return;
        }
        let dt = self.dt();
        let mut flying = std::mem::take(&mut self.projectiles.flying);
        let mut ended = Vec::new();
        let targets = Targets::of(self);
        let mut sweeper = Sweeper::new(&self.collision);
        flying.retain_mut(|shot| {
            let mut after = shot.flight;
            let legs = flight::step_flight(&mut sweeper, &shot.params, &mut after, &[], dt);
            let hit = targets.first_hit(self, shot, &legs, &mut sweeper);
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
                // It flies where nobody was looked for.
                shot.next_look = self.tick;
            }
            shot.flight = after;
            if let Some(met) = hit {
                ended.push((shot.clone(), Some(met)));
                return false;
            }
            // Clients know when it ends by itself, and need no word.
            let far = after.position.abs().max_element() > REACH_MAX_M;
            shot.last_tick > self.tick && !far
        });
        // Handlers of hits may fire again; these came first.
        flying.append(&mut self.projectiles.flying);
        self.projectiles.flying = flying;
        for (shot, met) in ended {
            self.end_shot(&shot, met);
        }
    }

    /// Where a player's shots come from.
    pub(crate) fn eye_of(feet: Vec3) -> Vec3 {
        feet + Vec3::Y * flight::EYE_HEIGHT_M
    }
}
