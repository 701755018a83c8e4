//! The terrain of a world: who may change it where, what changed, and what
//! clients have of it.
//!
//! An operation is checked, executed at once, added to the world's history, and
//! replicated once it is stored. [`view`] selects what each client receives.

mod rules;
mod saved;
pub(crate) mod scripts;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use frolic_fleet_api::ops::WorldOp;
use frolic_protocol::ServerMessage;
use frolic_protocol::terrain::{ChunkVersion, TerraformApplied, TerrainOp};
use frolic_script::ScriptEvent;
use frolic_terrain::{ChunkPos, Op, codec};

use crate::history::{History, Publication};
use crate::outbox::Outgoing;
use crate::player::PlayerNumber;
use crate::space::Space;

pub use rules::TerraformError;
pub(crate) use rules::{check_brush, check_place};
pub(crate) use saved::{SavedGround, version_in};
pub use view::TerrainView;
pub(crate) use view::VersionsView;

/// Changed places since the last tick; above this they are reported as one.
const CHANGES_MAX: usize = 256;
/// Encoded chunks that are cached for further requests, besides changed ones.
const PACKED_MAX: usize = 512;
/// Chunks encoded in one tick: each takes about a tenth of a millisecond.
const PACKS_PER_TICK: u32 = 12;

/// Larger than any terrain.
const EVERYWHERE_M: f32 = 100_000.0;

/// A box in metres: its lowest and its highest corner.
pub type Place = [[f32; 3]; 2];

/// Terrain state besides the blocks.
#[derive(Default)]
pub(crate) struct Ground {
    /// Rate limits of players.
    allowances: BTreeMap<PlayerNumber, rules::Allowance>,
    /// Use by scripts in this tick.
    script_use: rules::ScriptUse,
    /// Where terrain changed since the end of [`Stage::Npcs`] in the last tick:
    /// bodies wake up there and paths are recomputed.
    ///
    /// [`Stage::Npcs`]: crate::Stage::Npcs
    pub changes: Vec<Place>,
    /// The version of each chunk that may be replicated, and since which tick.
    replicable: BTreeMap<ChunkPos, (u32, u32)>,
    /// Incremented whenever there is something new to replicate.
    revision: u64,
    packed: BTreeMap<ChunkPos, (u32, Arc<[u8]>)>,
    /// The tick of the last encoding for a client, and how many in it.
    packs: (u32, u32),
    /// Chunks that changed since they were encoded.
    stale: BTreeSet<ChunkPos>,
    /// Chunks that were reset to their generated state, but are stored in
    /// another.
    cleared: Vec<ChunkPos>,
}

impl Ground {
    /// Executes a checked operation, records it, and replicates it once it is
    /// stored. Returns its number; none if it changed nothing.
    fn terraform(
        &mut self,
        space: &mut Space,
        history: &mut History,
        by: Option<PlayerNumber>,
        op: &Op,
    ) -> Option<u64> {
        let player = by.and_then(|number| space.players.get(&number));
        let by_id = player.map(|player| player.id.clone());
        self.apply(space, history, by, by_id, op)
    }

    /// The same for a user with this persistent id.
    pub fn apply(
        &mut self,
        space: &mut Space,
        history: &mut History,
        by: Option<PlayerNumber>,
        by_id: Option<String>,
        op: &Op,
    ) -> Option<u64> {
        let chunks = self.change(space, op);
        if chunks.is_empty() {
            return None;
        }
        let op = TerrainOp::from(op);
        let seq = history.log(by_id, WorldOp::Terrain(op.clone()));
        let applied = TerraformApplied {
            seq,
            op,
            chunks: chunks.clone(),
        };
        let message = Outgoing::reliable(None, ServerMessage::TerraformApplied(applied));
        history.publish_after(seq, Publication::Message(message));
        history.publish_after(seq, Publication::Chunks(chunks));
        if let Some([min, max]) = self.changes.last().copied() {
            let player = by;
            space
                .events
                .push(ScriptEvent::TerrainChanged { min, max, player });
        }
        Some(seq)
    }

    /// Resets every changed chunk to its generated state, in a version of its
    /// own: clients with another version receive the whole chunk.
    pub fn reset(space: &mut Space) -> Vec<ChunkVersion> {
        let cleared = space.collision.replace_terrain(|terrain| {
            let edited: Vec<ChunkVersion> = terrain.edited().collect();
            terrain.reset();
            let again = edited.into_iter().filter_map(|at| {
                let chunk = terrain.chunk(at.chunk)?.clone();
                let next = ChunkVersion {
                    chunk: at.chunk,
                    version: at.version + 1,
                };
                terrain.install(next, chunk).then_some(next)
            });
            again.collect()
        });
        cleared.unwrap_or_default()
    }

    /// Records that the operation with this number reset the terrain.
    pub fn cleared(
        &mut self,
        space: &mut Space,
        history: &mut History,
        seq: u64,
        chunks: Vec<ChunkVersion>,
    ) {
        if chunks.is_empty() {
            return;
        }
        let [min, max] = [[-EVERYWHERE_M; 3], [EVERYWHERE_M; 3]];
        self.changed([min, max]);
        self.stale.extend(chunks.iter().map(|at| at.chunk));
        history.publish_after(seq, Publication::Chunks(chunks));
        let player = None;
        space
            .events
            .push(ScriptEvent::TerrainChanged { min, max, player });
    }

    /// Changes the blocks, and nothing else.
    fn change(&mut self, space: &mut Space, op: &Op) -> Vec<ChunkVersion> {
        let chunks = space
            .collision
            .change_terrain(op, |terrain| terrain.apply(op));
        let chunks = chunks.unwrap_or_default();
        if let Some(terrain) = space.collision.terrain()
            && !chunks.is_empty()
        {
            let range = op.blocks(terrain.grid());
            let block_m = terrain.grid().block_m();
            let place = [
                range.min.map(|at| at as f32 * block_m),
                range.max.map(|at| (at + 1) as f32 * block_m),
            ];
            self.changed(place);
            self.stale.extend(chunks.iter().map(|at| at.chunk));
        }
        chunks
    }

    /// Repeats a stored operation of an earlier process of this world, without
    /// checks or replication.
    fn redo(&mut self, space: &mut Space, op: &TerrainOp) {
        if let Ok(op) = op.resolve() {
            let chunks = self.change(space, &op);
            self.publish(&chunks, space.tick);
        }
    }

    /// Restores a chunk from a checkpoint; false if it is damaged.
    fn restore_chunk(&mut self, space: &mut Space, at: ChunkVersion, packed: &[u8]) -> bool {
        let Ok(chunk) = codec::unpack(packed) else {
            return false;
        };
        let restored = space
            .collision
            .replace_terrain(|terrain| terrain.install(at, chunk));
        // If the game's terrain is smaller now, there is nothing to restore.
        if restored == Some(true) {
            self.publish(&[at], space.tick);
            self.packed.insert(at.chunk, (at.version, packed.into()));
        }
        true
    }

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

    /// From a tick on, chunks may be replicated in these versions.
    pub fn publish(&mut self, chunks: &[ChunkVersion], tick: u32) {
        for at in chunks {
            self.replicable.insert(at.chunk, (at.version, tick));
        }
        self.revision += 1;
    }

    /// The version of every changed chunk that may be replicated, or only those
    /// that changed after a tick.
    pub fn versions_after(&self, tick: Option<u32>) -> Vec<ChunkVersion> {
        let replicable = self.replicable.iter();
        let newer = replicable.filter(|(_, (_, since))| tick.is_none_or(|tick| *since > tick));
        let version = |(chunk, (version, _)): (&ChunkPos, &(u32, u32))| ChunkVersion {
            chunk: *chunk,
            version: *version,
        };
        newer.map(version).collect()
    }

    /// An encoded chunk. None outside of the terrain, while its newest change
    /// is not stored, and when this tick's encoding budget is used up.
    fn packed_chunk(&mut self, space: &Space, at: ChunkPos) -> Option<(u32, Arc<[u8]>)> {
        let terrain = space.collision.terrain()?;
        let version = terrain.version(at);
        let replicable = self.replicable.get(&at).map_or(0, |(version, _)| *version);
        if replicable != version {
            return None;
        }
        if let Some((known, packed)) = self.packed.get(&at)
            && *known == version
        {
            return Some((version, packed.clone()));
        }
        if self.packs.0 != space.tick {
            self.packs = (space.tick, 0);
        }
        if self.packs.1 >= PACKS_PER_TICK {
            return None;
        }
        self.packs.1 += 1;
        let packed: Arc<[u8]> = codec::pack(terrain.chunk(at)?).into();
        if version > 0 || self.packed.len() < self.replicable.len() + PACKED_MAX {
            self.packed.insert(at, (version, packed.clone()));
        }
        self.stale.remove(&at);
        Some((version, packed))
    }

    /// All state here that determines the future, as numbers.
    pub fn words(&self) -> impl Iterator<Item = u64> + '_ {
        let replicable = self
            .replicable
            .values()
            .map(|(version, _)| u64::from(*version));
        let allowances = self.allowances.iter();
        let allowances = allowances.flat_map(|(number, left)| [u64::from(*number), left.word()]);
        replicable.chain(allowances)
    }
}
