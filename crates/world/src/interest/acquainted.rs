//! What a client is told of besides snapshots, once it sees something that
//! needs it: looks that scripts made up, and weapons in others' hands. Where
//! the game sets no radius everybody sees everything.

use std::collections::BTreeMap;

use frolic_protocol::{EntityKind, ServerMessage};

use super::watch::Watch;
use crate::player::PlayerNumber;
use crate::world::World;

/// What one client has heard.
#[derive(Default)]
pub(crate) struct Acquainted {
    /// Made-up looks by number, as bits.
    looks: Vec<u64>,
    looks_told: usize,
    /// When looks were last searched for: after how many changes of the view,
    /// and of who is where.
    searched: Option<(u32, u32)>,
    /// What others held when that was told.
    arms: BTreeMap<PlayerNumber, u16>,
    /// The tick of the last look at hands.
    arms_at: u32,
}

impl Acquainted {
    /// Tells what is news to the player who watches these cells.
    pub fn tell(
        &mut self,
        world: &World,
        (player, watch): (PlayerNumber, &Watch),
        tell: &mut dyn FnMut(&ServerMessage),
    ) {
        let made_up = world.borrow_state().definitions.extra_count();
        if self.looks_told < made_up {
            self.tell_looks(world, watch, made_up, tell);
        }
        if world.interest().radius.is_some() && world.borrow_state().has_weapons() {
            self.tell_arms(world, (player, watch), tell);
        }
    }

    fn tell_looks(
        &mut self,
        world: &World,
        watch: &Watch,
        made_up: usize,
        tell: &mut dyn FnMut(&ServerMessage),
    ) {
        self.looks.resize(made_up.div_ceil(64), 0);
        let state = world.borrow_state();
        if world.interest().radius.is_none() {
            // In their order, so they are the first so many.
            for number in self.looks_told..made_up {
                self.tell_look(&state.definitions.told(number), number, tell);
            }
            return;
        }
        let cells = world.cells();
        let now = (watch.changes, cells.made_up_arrivals());
        if self.searched.replace(now) == Some(now) {
            return;
        }
        let first = state.definitions.first_extra();
        for watched in watch.cells.iter().filter(|watched| !watched.leaving) {
            for state_told in cells.made_up(watched.slot) {
                let number = usize::from(state_told.definition - first);
                let (word, bit) = (number / 64, 1 << (number % 64));
                if self.looks.get(word).is_some_and(|word| word & bit == 0) {
                    self.tell_look(&state.definitions.told(number), number, tell);
                }
            }
        }
    }

    fn tell_look(
        &mut self,
        look: &Option<ServerMessage>,
        number: usize,
        tell: &mut dyn FnMut(&ServerMessage),
    ) {
        self.looks[number / 64] |= 1 << (number % 64);
        self.looks_told += 1;
        if let Some(look) = look {
            tell(look);
        }
    }

    /// Looks at hands once a second: nothing depends on it but how somebody
    /// looks.
    fn tell_arms(
        &mut self,
        world: &World,
        (player, watch): (PlayerNumber, &Watch),
        tell: &mut dyn FnMut(&ServerMessage),
    ) {
        let (tick, cells) = (world.tick(), world.cells());
        if self.arms_at > 0 && tick.saturating_sub(self.arms_at) < world.tick_hz() {
            return;
        }
        self.arms_at = tick;
        let state = world.borrow_state();
        self.arms
            .retain(|number, _| state.players.contains_key(number));
        for watched in watch.cells.iter().filter(|watched| !watched.leaving) {
            for seen in cells.members(watched.slot) {
                let number = seen.owner;
                if seen.kind != EntityKind::Character || number == player {
                    continue;
                }
                let holds = state.players.get(&number).and_then(|p| p.arms.weapon);
                let before = match holds {
                    Some(weapon) => self.arms.insert(number, weapon),
                    None => self.arms.remove(&number),
                };
                if before != holds {
                    tell(&ServerMessage::Armed {
                        player: number,
                        weapon: holds,
                    });
                }
            }
        }
    }
}
