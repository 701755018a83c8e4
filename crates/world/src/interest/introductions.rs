//! Sends what snapshots refer to: definitions by scripts, before an entity that
//! has one, and the weapons of other players, within a second. Without a radius
//! every client sees everything.

use std::collections::BTreeMap;

use frolic_protocol::{EntityKind, ServerMessage};

use super::cells::Cells;
use super::replication::Source;
use super::visible_cells::{Watch, Watched};
use crate::definitions::Definitions;
use crate::player::PlayerNumber;

/// What one client has received.
#[derive(Default)]
pub(crate) struct Introductions {
    /// How many script definitions were sent: without a radius the first ones,
    /// else those in `looks`.
    looks_sent: usize,
    /// Bit set by number.
    looks: Vec<u64>,
    /// State at the last search for definitions: changes of the view, and
    /// arrivals of entities that have one.
    searched: Option<(u32, u32)>,
    /// The weapons of other players, as last sent.
    arms: BTreeMap<PlayerNumber, u16>,
    /// The tick of the last check of weapons.
    arms_at: Option<u32>,
}

impl Introductions {
    /// Whether there may be something to send; usually there is not.
    pub fn may_lack(&self, source: Source) -> bool {
        let state = source.state;
        self.looks_sent < state.definitions.extra_count()
            || source.is_near_only() && state.projectiles.has_weapons()
    }

    /// Sends what is new to the player who watches these cells.
    pub fn send(
        &mut self,
        source: Source,
        (player, watch): (PlayerNumber, &Watch),
        send: &mut dyn FnMut(&ServerMessage),
    ) {
        let definitions = &source.state.definitions;
        let made_up = definitions.extra_count();
        if !source.is_near_only() {
            for number in self.looks_sent..made_up {
                definitions.introduction(number).iter().for_each(&mut *send);
            }
            self.looks_sent = made_up;
            return;
        }
        if self.looks_sent < made_up {
            self.send_looks(definitions, source.cells(), watch, send);
        }
        self.send_arms(source, (player, watch), send);
    }

    fn send_looks(
        &mut self,
        definitions: &Definitions,
        cells: &Cells,
        watch: &Watch,
        send: &mut dyn FnMut(&ServerMessage),
    ) {
        self.looks.resize(definitions.extra_count().div_ceil(64), 0);
        let now = (watch.changes, cells.made_up_arrivals());
        let before = self.searched.replace(now);
        if before == Some(now) {
            return;
        }
        // The view is usually unchanged.
        let same_view = before.filter(|(changes, _)| *changes == watch.changes);
        let arrived = same_view.and_then(|(_, arrivals)| cells.made_up_since(arrivals));
        match arrived {
            Some(slots) => {
                for slot in slots.filter(|slot| watch.sees(*slot)) {
                    self.send_looks_in(definitions, cells, slot, send);
                }
            }
            None => {
                for watched in in_view(watch) {
                    self.send_looks_in(definitions, cells, watched.slot, send);
                }
            }
        }
    }

    fn send_looks_in(
        &mut self,
        definitions: &Definitions,
        cells: &Cells,
        slot: u32,
        send: &mut dyn FnMut(&ServerMessage),
    ) {
        for seen in cells.made_up(slot) {
            let number = usize::from(seen.definition - definitions.first_extra());
            let bit = 1 << (number % 64);
            let Some(word) = self.looks.get_mut(number / 64) else {
                continue;
            };
            if *word & bit == 0 {
                *word |= bit;
                self.looks_sent += 1;
                definitions.introduction(number).iter().for_each(&mut *send);
            }
        }
    }

    /// Checks weapons once a second: nothing but a player's appearance depends
    /// on it.
    fn send_arms(
        &mut self,
        source: Source,
        (player, watch): (PlayerNumber, &Watch),
        send: &mut dyn FnMut(&ServerMessage),
    ) {
        let state = source.state;
        let (tick, tick_hz) = state.space.time();
        let since = self.arms_at.map(|at| tick.saturating_sub(at));
        if !state.projectiles.has_weapons() || since.is_some_and(|since| since < tick_hz) {
            return;
        }
        // Each client at a different moment of the second, independent of when
        // weapons were defined.
        let early = match self.arms_at {
            None => player % tick_hz.max(1),
            Some(_) => 0,
        };
        self.arms_at = Some(tick.saturating_sub(early));
        self.arms
            .retain(|number, _| state.space.players.contains_key(number));
        let members = in_view(watch).flat_map(|watched| source.cells().members(watched.slot));
        for seen in members.filter(|seen| seen.kind == EntityKind::Character) {
            let number = seen.owner;
            if number == player {
                continue;
            }
            let holds = state.space.players.get(&number).and_then(|p| p.arms.weapon);
            if self.arms.get(&number).copied() == holds {
                continue;
            }
            match holds {
                Some(weapon) => self.arms.insert(number, weapon),
                None => self.arms.remove(&number),
            };
            send(&ServerMessage::Armed {
                player: number,
                weapon: holds,
            });
        }
    }
}

fn in_view(watch: &Watch) -> impl Iterator<Item = &Watched> {
    watch.cells.iter().filter(|watched| !watched.leaving)
}
