//! The ground in checkpoints (DUR-3): each chunk that was changed is a part
//! of its own, so that only those that changed since are stored again.

use std::collections::BTreeMap;

use frolic_protocol::keep::Section;
use frolic_protocol::terrain::{ChunkVersion, TerrainOp};
use frolic_terrain::{ChunkPos, codec};

use crate::state::WorldState;

/// Parts are named by it and the chunk's place.
const NAME: &str = "terrain/";
const VERSION: u32 = 1;
/// Ticks between two chunks that are packed ahead of the next checkpoint.
const PACK_TICKS: u32 = 6;

/// What storage has of the ground.
#[derive(Default)]
pub(crate) struct SavedGround {
    chunks: BTreeMap<ChunkPos, Section>,
    /// Operations behind the chunks.
    pub ops: Vec<TerrainOp>,
    /// Chunks that were undone: their parts are to go.
    cleared: Vec<ChunkPos>,
}

impl SavedGround {
    /// Takes the parts of the ground out of a checkpoint.
    pub fn read(&mut self, sections: &BTreeMap<String, Section>, problems: &mut Vec<String>) {
        for (name, section) in sections {
            let Some(place) = name.strip_prefix(NAME) else {
                continue;
            };
            match place_of(place) {
                Some(at) if section.version == VERSION => {
                    self.chunks.insert(at, section.clone());
                }
                _ => problems.push(format!("the part \"{name}\" of the checkpoint is unknown")),
            }
        }
    }

    /// Everything was undone.
    pub fn clear(&mut self) {
        self.ops.clear();
        self.cleared.extend(self.chunks.keys());
        self.chunks.clear();
    }
}

fn place_of(text: &str) -> Option<ChunkPos> {
    let mut parts = text.split(',').map(|part| part.parse().ok());
    let place = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(place)
}

fn name_of([x, y, z]: ChunkPos) -> String {
    format!("{NAME}{x},{y},{z}")
}

impl WorldState {
    /// The parts of a checkpoint that are the ground.
    pub fn ground_sections(&self) -> impl Iterator<Item = (String, Section)> + '_ {
        let terrain = self.collision.terrain();
        let edited = terrain.into_iter().flat_map(move |terrain| {
            terrain.edited().filter_map(move |at| {
                let packed = match self.ground.packed.get(&at.chunk) {
                    Some((version, packed)) if *version == at.version => packed.to_vec(),
                    _ => codec::pack(terrain.chunk(at.chunk)?),
                };
                let mut bytes = at.version.to_le_bytes().to_vec();
                bytes.extend(packed);
                Some((
                    name_of(at.chunk),
                    Section {
                        version: VERSION,
                        bytes,
                    },
                ))
            })
        });
        let gone = self.ground.cleared.iter().map(|at| {
            let bytes = Vec::new();
            (
                name_of(*at),
                Section {
                    version: VERSION,
                    bytes,
                },
            )
        });
        // What was changed again is not gone: the later one counts.
        gone.chain(edited)
    }

    /// Makes the ground as an earlier process of this world left it.
    pub fn restore_ground(&mut self, saved: &SavedGround) {
        for (&chunk, section) in &saved.chunks {
            let Some((version, packed)) = section.bytes.split_first_chunk() else {
                continue;
            };
            let version = u32::from_le_bytes(*version);
            self.restore_chunk(ChunkVersion { chunk, version }, packed);
        }
        self.ground.cleared.extend(&saved.cleared);
        for op in &saved.ops {
            self.redo_terrain(op);
        }
        self.ground.changes.clear();
    }

    /// Packs a chunk that changed, now and then, so that a checkpoint finds
    /// most of them packed and takes no long tick.
    pub fn pack_ahead(&mut self) {
        if !self.tick.is_multiple_of(PACK_TICKS) {
            return;
        }
        let Some(at) = self.ground.stale.pop_first() else {
            return;
        };
        if let Some(terrain) = self.collision.terrain()
            && let Some(chunk) = terrain.chunk(at)
        {
            let packed = (terrain.version(at), codec::pack(chunk).into());
            self.ground.packed.insert(at, packed);
        }
    }
}
