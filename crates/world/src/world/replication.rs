//! Replication: collects the changes of a tick, and writes a snapshot for each
//! client whose turn it is.

use frolic_protocol::EntityState;
use frolic_protocol::details::Details;

use super::World;
use crate::entity::Entity;
use crate::interest::cells::{Cells, Relevance};
use crate::interest::{ClientView, InterestPolicy, JsonView, Sender};
use crate::player::PlayerNumber;

/// Players of a world with so many ticks, times those ticks, who are all
/// updated in the same one. An update takes some 12 µs, made and sent: together
/// they take a quarter of a tick at most.
const TOGETHER_TICKS_PER_S: u32 = 20_000;

impl World {
    /// Updates to each client per second.
    pub fn snapshot_hz(&self) -> u32 {
        self.snapshot_hz
    }

    /// Decides whether all updates fall on the same ticks or are spread over
    /// those between. Together they cost less: everybody has the same versions,
    /// so each change is encoded once, and there is nothing to look at in the
    /// ticks between. A crowd is spread, so that no tick is longer than others.
    pub(super) fn arrange_updates(&mut self) {
        let together_max = TOGETHER_TICKS_PER_S / self.tick_hz().max(1);
        // Who comes and goes at the border does not move everybody each time.
        let most = match self.updates_are_spread {
            true => together_max * 4 / 5,
            false => together_max,
        };
        self.updates_are_spread = self.player_count() > most as usize;
    }

    /// Whether a player's update falls on this tick.
    pub fn update_is_due(&self, player: PlayerNumber) -> bool {
        let (tick, tick_hz) = (u64::from(self.tick()), u64::from(self.tick_hz()));
        let turn = if self.updates_are_spread {
            // Multiples of the golden ratio fill an interval evenly.
            let share = u64::from(player.wrapping_mul(0x9e37_79b9));
            (share * tick_hz) >> 32
        } else {
            0
        };
        let sent_by = |tick: u64| (tick * u64::from(self.snapshot_hz) + turn) / tick_hz;
        tick > 0 && sent_by(tick) != sent_by(tick - 1)
    }

    /// Takes in what clients may be told of this tick; after the step, in each
    /// tick in which there are snapshots to make, before those.
    pub fn collect_changes(&mut self) {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        if self.cells.tick() == state.tick {
            return;
        }
        let square_m = self.cells.size();
        let near_only = self.interest.radius.is_some();
        for id in state.touched.drain(..) {
            let Some(entity) = state.entities.get_mut(&id) else {
                self.cells.remove(id);
                continue;
            };
            entity.touched = false;
            if entity.player.is_some() {
                continue;
            }
            let npc = state.npcs.all.get(&id);
            let is_part = near_only && npc.is_none() && entity.is_of_scene();
            let relevance = if entity.is_everywhere(square_m) {
                Relevance::Everywhere
            } else if is_part {
                Relevance::Part(entity.made_at)
            } else {
                Relevance::Near
            };
            let mut told = entity.replicated();
            if near_only {
                // Owners are told of it wherever they are; without a radius
                // everybody is.
                told.owner = state.structures.present_owner(id).unwrap_or(0);
            }
            if let Some(npc) = npc {
                npc.dress(&mut told);
            }
            self.cells.update(&told, entity.position, relevance);
        }
        for player in state.players.values().filter(|player| player.online) {
            let character = state.replicated_character(player);
            let feet = player.character.feet;
            self.cells.update(&character, feet, Relevance::Near);
        }
        self.cells.commit(state.tick);
    }

    /// Reads a little of a player, and says anything of it: whoever handles many
    /// of them in a row asks for the next ones before, because memory brings
    /// many places nearly as soon as one.
    pub fn glance(&self, player: PlayerNumber) -> u32 {
        let state = self.state.borrow();
        let player = state.players.get(&player);
        player.map_or(0, |player| player.glance())
    }

    /// Makes a client's next snapshot of what [`World::look`] saw and hands
    /// its packets to `send`. Under `pressure` (0 to 3) far things are told
    /// of less often.
    pub fn snapshot(&mut self, view: &mut ClientView, pressure: u8, send: &mut dyn FnMut(&[u8])) {
        let turn = self.turn();
        let state = self.state.borrow();
        let mut sender = Sender {
            cells: &mut self.cells,
            state: &state,
            policy: self.interest,
            snapshot_hz: self.snapshot_hz,
            turn,
            pressure,
            scratch: &mut self.scratch,
        };
        view.send(&mut sender, send);
    }

    /// Counts updates: the same for all clients.
    pub(crate) fn turn(&self) -> u16 {
        let ticks = u64::from(self.tick()) * u64::from(self.snapshot_hz);
        (ticks / u64::from(self.tick_hz().max(1))) as u16
    }

    /// A JSON client's next snapshot of what [`World::look`] saw; none when
    /// the last ones have used up its budget.
    pub fn json_snapshot(&self, view: &mut JsonView) -> Option<String> {
        view.next(self)
    }

    /// Everything that clients may be told of, as of the last look.
    pub fn replicated(&self) -> Vec<EntityState> {
        self.cells.everything()
    }

    /// What a client with this interest should know from here, in order of
    /// ids: squares within the radius, and what everybody is told.
    pub fn visible_from(&self, player: PlayerNumber) -> Vec<EntityState> {
        let mut view = JsonView::new(player);
        view.seen(self)
    }

    /// What clients are told of an entity that its definition does not say.
    pub fn details_of(&self, id: u32) -> Option<Details> {
        let state = self.state.borrow();
        state.entities.get(&id).map(Entity::details)
    }

    pub(crate) fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Whether players are told only of what is within a radius.
    pub fn is_near_only(&self) -> bool {
        self.interest.radius.is_some()
    }

    pub(crate) fn interest(&self) -> &InterestPolicy {
        &self.interest
    }

    pub(crate) fn ack_seq(&self, player: PlayerNumber) -> u32 {
        let state = self.state.borrow();
        state.players.get(&player).map_or(0, |p| p.inputs.ack_seq())
    }
}
