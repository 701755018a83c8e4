//! The ground of a world: who may change it where, what changed, and
//! what clients have of it.
//!
//! An operation is checked, done at once, noted in the world's history, and
//! told when it is kept. [`view`] says what each client is told.

mod rules;
mod saved;
mod scripts;
mod view;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use frolic_protocol::ServerMessage;
use frolic_protocol::ops::WorldOp;
use frolic_protocol::terrain::{ChunkVersion, TerraformApplied, TerrainOp};
use frolic_script::ScriptEvent;
use frolic_terrain::{ChunkPos, Op, Terrain, codec};

use crate::player::PlayerNumber;
use crate::replay::Record;
use crate::state::{Outgoing, WorldState};
use crate::world::World;

pub use rules::TerraformError;
pub(crate) use saved::{SavedGround, version_in};
pub use view::TerrainView;
pub(crate) use view::VersionsView;

/// Places that changed since the last tick; more are told as one.
const CHANGES_MAX: usize = 256;
/// Chunks that are kept packed for the next who asks, besides changed ones.
const PACKED_MAX: usize = 512;
/// Chunks packed in one tick: each takes about a tenth of a millisecond.
const PACKS_PER_TICK: u32 = 12;

/// A box in metres: its lowest and its highest corner.
pub type Place = [[f32; 3]; 2];

/// What a world keeps besides the blocks.
#[derive(Default)]
pub(crate) struct Ground {
    /// What players may still do.
    allowances: BTreeMap<PlayerNumber, rules::Allowance>,
    /// What scripts did in this tick.
    script_use: rules::ScriptUse,
    /// Where the ground changed since the last tick's end of [`Stage::Npcs`]:
    /// bodies wake up there and ways are looked for again.
    ///
    /// [`Stage::Npcs`]: crate::Stage::Npcs
    pub changes: Vec<Place>,
    /// Chunks of operations that are not kept yet.
    waiting: VecDeque<(u64, Vec<ChunkVersion>)>,
    /// The version of each chunk that may be told, and since which tick.
    told: BTreeMap<ChunkPos, (u32, u32)>,
    /// Rises whenever there is something new to tell.
    news: u64,
    packed: BTreeMap<ChunkPos, (u32, Arc<[u8]>)>,
    /// The tick of the last packing for a client, and how many in it.
    packs: (u32, u32),
    /// Chunks that changed since they were packed.
    stale: BTreeSet<ChunkPos>,
    /// Chunks that are as they were made again, and stored otherwise.
    cleared: Vec<ChunkPos>,
}

impl WorldState {
    /// Does an operation that was found good, notes it, and has it told once
    /// it is kept. Gives its number; none when it changed nothing.
    fn terraform(&mut self, by: Option<PlayerNumber>, op: &Op) -> Option<u64> {
        let player = by.and_then(|number| self.players.get(&number));
        let by_id = player.map(|player| player.id.clone());
        self.terraform_for(by, by_id, op)
    }

    /// The same for somebody with this lasting id.
    pub(crate) fn terraform_for(
        &mut self,
        by: Option<PlayerNumber>,
        by_id: Option<String>,
        op: &Op,
    ) -> Option<u64> {
        let chunks = self.change_ground(op);
        if chunks.is_empty() {
            return None;
        }
        let wire = TerrainOp::from(op);
        let message = wire.clone();
        let told = chunks.clone();
        let seq = self.log_op(by_id, WorldOp::Terrain(wire), |seq| {
            vec![Outgoing {
                to: None,
                message: ServerMessage::TerraformApplied(TerraformApplied {
                    seq,
                    op: message,
                    chunks: told,
                }),
                reliable: true,
            }]
        });
        self.ground.waiting.push_back((seq, chunks));
        if let Some([min, max]) = self.ground.changes.last().copied() {
            let player = by;
            self.events
                .push(ScriptEvent::TerrainChanged { min, max, player });
        }
        Some(seq)
    }

    /// The ground was cleared by the operation of this number.
    pub(crate) fn ground_cleared(&mut self, seq: u64, chunks: Vec<ChunkVersion>) {
        if chunks.is_empty() {
            return;
        }
        let far = crate::remote_commands::EVERYWHERE_M;
        self.ground.changed([[-far; 3], [far; 3]]);
        self.ground.stale.extend(chunks.iter().map(|at| at.chunk));
        self.ground.waiting.push_back((seq, chunks));
        self.events.push(crate::remote_commands::everywhere());
    }

    /// Changes the blocks, and nothing else.
    fn change_ground(&mut self, op: &Op) -> Vec<ChunkVersion> {
        let chunks = self
            .collision
            .change_terrain(op, |terrain| terrain.apply(op));
        let chunks = chunks.unwrap_or_default();
        if let Some(terrain) = self.collision.terrain()
            && !chunks.is_empty()
        {
            let range = op.blocks(terrain.grid());
            let block_m = terrain.grid().block_m();
            let place = [
                range.min.map(|at| at as f32 * block_m),
                range.max.map(|at| (at + 1) as f32 * block_m),
            ];
            self.ground.changed(place);
            self.ground.stale.extend(chunks.iter().map(|at| at.chunk));
        }
        chunks
    }

    /// Does again what an earlier process of this world did and kept: no
    /// questions, nobody is told.
    fn redo_terrain(&mut self, op: &TerrainOp) {
        let Ok(op) = op.resolve() else {
            return;
        };
        let chunks = self.change_ground(&op);
        let tick = self.tick;
        self.ground.may_tell(&chunks, tick);
    }

    /// Puts a chunk back as a checkpoint has it; false when it is damaged.
    fn restore_chunk(&mut self, at: ChunkVersion, packed: &[u8]) -> bool {
        let Ok(chunk) = codec::unpack(packed) else {
            return false;
        };
        let restored = self
            .collision
            .replace_terrain(|terrain| terrain.install(at, chunk));
        // A game whose terrain is smaller now has nothing there.
        if restored == Some(true) {
            let tick = self.tick;
            self.ground.may_tell(&[at], tick);
            self.ground
                .packed
                .insert(at.chunk, (at.version, packed.into()));
        }
        true
    }

    /// Operations up to this number are kept: what they changed may be told.
    pub fn settle_ground(&mut self, kept: u64) {
        let tick = self.tick + 1;
        while let Some((seq, chunks)) = self.ground.waiting.pop_front() {
            if seq > kept {
                self.ground.waiting.push_front((seq, chunks));
                break;
            }
            self.ground.may_tell(&chunks, tick);
        }
    }
}

impl Ground {
    fn changed(&mut self, place: Place) {
        if self.changes.len() < CHANGES_MAX {
            self.changes.push(place);
        } else if let Some(last) = self.changes.last_mut() {
            for axis in 0..3 {
                last[0][axis] = last[0][axis].min(place[0][axis]);
                last[1][axis] = last[1][axis].max(place[1][axis]);
            }
        }
    }

    fn may_tell(&mut self, chunks: &[ChunkVersion], tick: u32) {
        for at in chunks {
            self.told.insert(at.chunk, (at.version, tick));
        }
        self.news += 1;
    }

    /// Everything here that decides what may happen next, as numbers.
    pub fn words(&self) -> impl Iterator<Item = u64> + '_ {
        let waiting = self.waiting.iter().map(|(seq, _)| *seq);
        let told = self.told.values().map(|(version, _)| u64::from(*version));
        let allowances = self.allowances.iter();
        let allowances = allowances.flat_map(|(number, left)| [u64::from(*number), left.word()]);
        waiting.chain(told).chain(allowances)
    }
}

impl World {
    /// A player wants to change the ground. Gives the number of the operation
    /// that did it; none when nothing is different for it.
    ///
    /// # Errors
    /// Why they may not.
    pub fn terraform(
        &mut self,
        player: PlayerNumber,
        op: &TerrainOp,
    ) -> Result<Option<u64>, TerraformError> {
        if self.entity_of(player).is_none() {
            return Err(TerraformError::NoTerrain);
        }
        self.note(&Record::Terraform {
            player,
            op: std::borrow::Cow::Borrowed(op),
        });
        self.state_mut().terraform_by(player, op)
    }

    /// Looks at the ground, if the world has one.
    pub fn with_terrain<T>(&self, look: impl FnOnce(&Terrain) -> T) -> Option<T> {
        self.borrow_state().collision.terrain().map(look)
    }

    /// The version of every changed chunk that may be told.
    pub fn terrain_versions(&self) -> Vec<ChunkVersion> {
        self.terrain_versions_after(None)
    }

    pub(crate) fn terrain_versions_after(&self, tick: Option<u32>) -> Vec<ChunkVersion> {
        let state = self.borrow_state();
        let told = state.ground.told.iter();
        let news = told.filter(|(_, (_, since))| tick.is_none_or(|tick| *since > tick));
        let version = |(chunk, (version, _)): (&ChunkPos, &(u32, u32))| ChunkVersion {
            chunk: *chunk,
            version: *version,
        };
        news.map(version).collect()
    }

    /// A chunk as it travels. None outside of the terrain, while its newest
    /// change is not kept, and when enough was packed in this tick.
    pub(crate) fn packed_chunk(&mut self, at: ChunkPos) -> Option<(u32, Arc<[u8]>)> {
        let mut state = self.state_mut();
        let state = &mut *state;
        let terrain = state.collision.terrain()?;
        let version = terrain.version(at);
        let told = state
            .ground
            .told
            .get(&at)
            .map_or(0, |(version, _)| *version);
        if told != version {
            return None;
        }
        if let Some((known, packed)) = state.ground.packed.get(&at)
            && *known == version
        {
            return Some((version, packed.clone()));
        }
        let ground = &mut state.ground;
        if ground.packs.0 != state.tick {
            ground.packs = (state.tick, 0);
        }
        if ground.packs.1 >= PACKS_PER_TICK {
            return None;
        }
        ground.packs.1 += 1;
        let packed: Arc<[u8]> = codec::pack(terrain.chunk(at)?).into();
        if version > 0 || ground.packed.len() < ground.told.len() + PACKED_MAX {
            ground.packed.insert(at, (version, packed.clone()));
        }
        ground.stale.remove(&at);
        Some((version, packed))
    }
}
