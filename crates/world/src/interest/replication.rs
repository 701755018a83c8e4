//! The replicated form of a world: its changes collected into cells, and when
//! each client is updated from them.

use std::collections::BTreeMap;

use frolic_protocol::EntityState;
use frolic_protocol::PlayerInfo;
use frolic_protocol::details::Details;
use frolic_protocol::entity::SCENE_DEFINITION;
use frolic_protocol::json::JsonStructure;
use frolic_scene::Scene;
use frolic_sim::Vec3;

use super::cells::{Cells, Relevance};
use super::{ClientView, Scratch, Sender};
use crate::characters;
use crate::entities::Entity;
use crate::player::{Player, PlayerNumber};
use crate::policy::InterestPolicy;
use crate::space::Space;
use crate::state::WorldState;
use crate::terrain::Ground;

/// Players times ticks per second up to which all clients are updated in the
/// same tick. An update takes about 12 µs to encode and send: together they
/// take at most a quarter of a tick.
const TOGETHER_TICKS_PER_S: u32 = 20_000;

/// The replicated form of a world.
pub(crate) struct Replication {
    pub policy: InterestPolicy,
    /// Updates to each client per second.
    pub snapshot_hz: u32,
    /// Whether updates of different clients are spread over the ticks.
    spread: bool,
    pub cells: Cells,
    scratch: Scratch,
    /// The prefabs of the scene's entities.
    prefabs: BTreeMap<u32, String>,
}

impl Replication {
    pub fn new(
        policy: InterestPolicy,
        snapshot_hz: u32,
        tick_hz: u32,
        scene: &Scene,
        made_up_from: u16,
    ) -> Self {
        let entities = scene.entities.iter();
        let prefabs = entities.filter_map(|entity| Some((entity.id, entity.prefab.clone()?)));
        Self {
            policy,
            snapshot_hz,
            spread: false,
            cells: Cells::new(policy.cell_size(), tick_hz, made_up_from),
            scratch: Scratch::default(),
            prefabs: prefabs.collect(),
        }
    }

    /// Whether only entities within a radius are replicated to players.
    pub fn is_near_only(&self) -> bool {
        self.policy.radius.is_some()
    }

    /// Decides whether all updates are sent in the same ticks or spread over
    /// those between. Together they cost less: all clients have the same
    /// versions, so each change is encoded once, and the ticks between collect
    /// nothing. A crowd is spread, so that no tick is longer than others.
    pub fn arrange(&mut self, space: &Space) {
        let together_max = TOGETHER_TICKS_PER_S / space.tick_hz.max(1);
        // Hysteresis: a single join or leave must not rearrange all clients
        // each time.
        let most = match self.spread {
            true => together_max * 4 / 5,
            false => together_max,
        };
        self.spread = space.players.len() > most as usize;
    }

    /// Whether a player's update falls on this tick.
    pub fn is_due(&self, player: PlayerNumber, (tick, tick_hz): (u32, u32)) -> bool {
        let (tick, tick_hz) = (u64::from(tick), u64::from(tick_hz));
        let turn = if self.spread {
            // Multiples of the golden ratio fill an interval evenly.
            let share = u64::from(player.wrapping_mul(0x9e37_79b9));
            (share * tick_hz) >> 32
        } else {
            0
        };
        let sent_by = |tick: u64| (tick * u64::from(self.snapshot_hz) + turn) / tick_hz;
        tick > 0 && sent_by(tick) != sent_by(tick - 1)
    }

    /// Counts updates: the same for all clients.
    fn turn(&self, (tick, tick_hz): (u32, u32)) -> u16 {
        let ticks = u64::from(tick) * u64::from(self.snapshot_hz);
        (ticks / u64::from(tick_hz.max(1))) as u16
    }

    /// Collects the changes of this tick.
    pub fn collect(&mut self, state: &mut WorldState) {
        let WorldState {
            space,
            npcs,
            structures,
            ..
        } = state;
        if self.cells.tick() == space.tick {
            return;
        }
        let cell_m = self.cells.size();
        let near_only = self.is_near_only();
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
            let is_npc = npcs.dress(entity, &mut shown);
            let relevance = if entity.is_everywhere(cell_m) {
                Relevance::Everywhere
            } else if near_only && !is_npc && entity.is_of_scene() {
                Relevance::Part(entity.origin.place)
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
            if let Some(entity) = space.entities.get(player.entity) {
                let character = characters::replicated(player, entity);
                cells.update(&character, entity.position, Relevance::Near);
            }
        }
        self.cells.commit(space.tick);
    }

    /// Encodes a client's next snapshot from what was collected, and passes its
    /// packets to `send`.
    pub fn snapshot(
        &mut self,
        state: &WorldState,
        view: &mut ClientView,
        pressure: u8,
        send: &mut dyn FnMut(&[u8]),
    ) {
        let mut sender = Sender {
            turn: self.turn(state.space.time()),
            cells: &mut self.cells,
            state,
            policy: self.policy,
            snapshot_hz: self.snapshot_hz,
            pressure,
            scratch: &mut self.scratch,
        };
        view.send(&mut sender, send);
    }
}

/// What a client's view is made from.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub replication: &'a Replication,
    pub state: &'a WorldState,
}

impl<'a> Source<'a> {
    pub fn cells(self) -> &'a Cells {
        &self.replication.cells
    }

    pub fn policy(self) -> &'a InterestPolicy {
        &self.replication.policy
    }

    pub fn is_near_only(self) -> bool {
        self.replication.is_near_only()
    }

    pub fn turn(self) -> u16 {
        self.replication.turn(self.state.space.time())
    }

    fn player(self, number: PlayerNumber) -> Option<&'a Player> {
        self.state.space.players.get(&number)
    }

    pub fn feet_of(self, player: PlayerNumber) -> Option<Vec3> {
        Some(self.state.space.feet_of(self.player(player)?))
    }

    pub fn entity_of(self, player: PlayerNumber) -> Option<u32> {
        Some(self.player(player)?.entity)
    }

    pub fn ack_seq(self, player: PlayerNumber) -> u32 {
        self.player(player).map_or(0, |p| p.inputs.ack_seq())
    }

    pub fn players(self) -> Vec<PlayerInfo> {
        self.state
            .space
            .players
            .values()
            .map(Player::info)
            .collect()
    }

    pub fn terrain(self) -> (&'a Ground, &'a Space) {
        (&self.state.ground, &self.state.space)
    }

    pub fn prefab_of(self, entity: &EntityState) -> Option<String> {
        if entity.definition == SCENE_DEFINITION {
            return self.replication.prefabs.get(&entity.id).cloned();
        }
        let definitions = &self.state.definitions;
        definitions.name(entity.definition).map(str::to_owned)
    }

    pub fn details_of(self, id: u32) -> Option<Details> {
        self.state.space.entities.get(id).map(Entity::details)
    }

    /// The structure that an entity is, for JSON clients.
    pub fn structure_of(self, id: u32) -> Option<JsonStructure> {
        let structure = self.state.structures.of_entity(id)?;
        Some(JsonStructure {
            id,
            number: structure.number,
            prefab: structure.prefab.clone(),
            owner: structure.owner.clone(),
        })
    }
}
