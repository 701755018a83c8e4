//! Replication: collects the changes of a tick, and writes a snapshot for each
//! client whose turn it is.

use frolic_protocol::EntityState;
use frolic_protocol::details::Details;
use frolic_protocol::json::JsonProjectile;

use super::World;
use crate::characters;
use crate::entities::Entity;
use crate::interest::cells::{Cells, Relevance};
use crate::interest::{ClientView, JsonView, Sender};
use crate::player::PlayerNumber;
use crate::policy::InterestPolicy;
use crate::state::WorldState;

/// Players times ticks per second up to which all clients are updated in the
/// same tick. An update takes about 12 µs to encode and send: together they
/// take at most a quarter of a tick.
const TOGETHER_TICKS_PER_S: u32 = 20_000;

impl World {
    /// Updates to each client per second.
    pub fn snapshot_hz(&self) -> u32 {
        self.snapshot_hz
    }

    /// Decides whether all updates are sent in the same ticks or spread over
    /// those between. Together they cost less: all clients have the same
    /// versions, so each change is encoded once, and the ticks between collect
    /// nothing. A crowd is spread, so that no tick is longer than others.
    pub(super) fn arrange_updates(&mut self) {
        let together_max = TOGETHER_TICKS_PER_S / self.tick_hz().max(1);
        // Hysteresis: a single join or leave must not rearrange all clients
        // each time.
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

    /// Collects the changes of this tick for replication; call it after the
    /// step, in each tick with snapshots, before those.
    pub fn collect_changes(&mut self) {
        let mut state = self.state.borrow_mut();
        let WorldState {
            space,
            npcs,
            structures,
            ..
        } = &mut *state;
        if self.cells.tick() == space.tick {
            return;
        }
        let cell_m = self.cells.size();
        let near_only = self.interest.radius.is_some();
        let cells = &mut self.cells;
        space.entities.drain_touched(|id, entity| {
            let Some(entity) = entity else {
                cells.remove(id);
                return;
            };
            if entity.player.is_some() {
                return;
            }
            let mut shown = entity.replicated();
            let is_npc = npcs.dress(id, &mut shown);
            let relevance = if entity.is_everywhere(cell_m) {
                Relevance::Everywhere
            } else if near_only && !is_npc && entity.is_of_scene() {
                Relevance::Part(entity.made_at)
            } else {
                Relevance::Near
            };
            if near_only {
                // An entity is replicated to its owner at any distance; without
                // a radius, to all.
                shown.owner = structures.present_owner(id).unwrap_or(0);
            }
            cells.update(&shown, entity.position, relevance);
        });
        for player in space.online() {
            let character = characters::replicated(space, player);
            let feet = player.character.feet;
            self.cells.update(&character, feet, Relevance::Near);
        }
        self.cells.commit(space.tick);
    }

    /// Prefetch: reads a little of a player; the result is meaningless. A
    /// caller that processes many players calls it ahead for the next ones,
    /// because memory loads overlap.
    pub fn glance(&self, player: PlayerNumber) -> u32 {
        let state = self.state.borrow();
        let player = state.space.players.get(&player);
        player.map_or(0, |player| player.glance())
    }

    /// Encodes a client's next snapshot from the state of
    /// [`World::collect_changes`] and passes its packets to `send`. Under
    /// `pressure` (0 to 3) distant entities are sent less often.
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

    /// A JSON client's next snapshot from the state of
    /// [`World::collect_changes`]; none if the last ones have used up its
    /// budget.
    pub fn json_snapshot(&self, view: &mut JsonView) -> Option<String> {
        view.next(self)
    }

    /// The replicated state of all entities, as of the last collection.
    pub fn replicated(&self) -> Vec<EntityState> {
        self.cells.everything()
    }

    /// The entities that should be replicated to a player at their current
    /// place, in order of ids: cells within the radius, and entities that are
    /// replicated to all.
    pub fn visible_from(&self, player: PlayerNumber) -> Vec<EntityState> {
        let mut view = JsonView::new(player);
        view.seen(self)
    }

    /// The replicated details of an entity that are not in its definition.
    pub fn details_of(&self, id: u32) -> Option<Details> {
        let state = self.state.borrow();
        state.space.entities.get(id).map(Entity::details)
    }

    pub(crate) fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Whether only entities within a radius are replicated to players.
    pub fn is_near_only(&self) -> bool {
        self.interest.radius.is_some()
    }

    pub(crate) fn interest(&self) -> &InterestPolicy {
        &self.interest
    }

    pub(crate) fn projectiles_for(&self, player: PlayerNumber) -> Vec<JsonProjectile> {
        let state = self.state.borrow();
        state.projectiles.json(&state.space, player)
    }

    pub(crate) fn ack_seq(&self, player: PlayerNumber) -> u32 {
        let state = self.state.borrow();
        state
            .space
            .players
            .get(&player)
            .map_or(0, |p| p.inputs.ack_seq())
    }
}
