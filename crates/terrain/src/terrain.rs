//! A terrain: chunks that are generated on first access, and their changes.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::chunk::Chunk;
use crate::generator;
use crate::grid::{self, BlockPos, ChunkPos, Grid};
use crate::material::Material;
use crate::op::Op;
use crate::settings::Settings;

/// A chunk and how often it was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ChunkVersion {
    /// The chunk.
    pub chunk: ChunkPos,
    /// 0 as generated; each operation that changes it adds one.
    pub version: u32,
}

/// The terrain of a world.
#[derive(Debug)]
pub struct Terrain {
    settings: Settings,
    grid: Grid,
    chunks: Box<[OnceLock<Chunk>]>,
    /// Chunks that are not as generated, by index.
    edited: BTreeMap<usize, Edited>,
}

#[derive(Clone, Debug, Default)]
struct Edited {
    version: u32,
    /// Digest of its blocks, computed on first use.
    digest: OnceLock<u64>,
}

impl Terrain {
    /// A terrain from its settings. Nothing is generated yet.
    pub fn new(settings: &Settings) -> Self {
        let grid = settings.grid();
        Self {
            chunks: (0..grid.chunk_count()).map(|_| OnceLock::new()).collect(),
            settings: settings.clone(),
            grid,
            edited: BTreeMap::new(),
        }
    }

    /// The settings it was created from.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Its extent.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The chunk with an index below the grid's `chunk_count`.
    fn chunk_of_number(&self, index: usize) -> &Chunk {
        self.chunks[index].get_or_init(|| self.made(self.grid.chunk_at(index)))
    }

    /// A chunk as the scene has it: stored, or generated.
    fn made(&self, at: ChunkPos) -> Chunk {
        if let Some(stored) = self.settings.edits.get(at) {
            return stored.clone();
        }
        let bottom = self.grid.blocks().min[1];
        let mut chunk = generator::generate(&self.settings.generator, at, bottom);
        for op in &self.settings.ops {
            op.apply_to(&mut chunk, at, &self.grid);
        }
        chunk
    }

    /// A chunk; none outside of the terrain.
    pub fn chunk(&self, at: ChunkPos) -> Option<&Chunk> {
        Some(self.chunk_of_number(self.grid.chunk_index(at)?))
    }

    /// The material of a block; air outside of the terrain.
    pub fn block(&self, at: BlockPos) -> Material {
        match self.chunk(grid::chunk_of(at)) {
            Some(chunk) => chunk.get(grid::index_in_chunk(at)),
            None => Material::AIR,
        }
    }

    /// Applies an operation. Returns the chunks that changed, with their new
    /// versions.
    pub fn apply(&mut self, op: &Op) -> Vec<ChunkVersion> {
        let mut changed = Vec::new();
        for at in op.blocks(&self.grid).chunks() {
            if self.apply_to_chunk(op, at) {
                let version = self.version(at);
                changed.push(ChunkVersion { chunk: at, version });
            }
        }
        changed
    }

    fn apply_to_chunk(&mut self, op: &Op, at: ChunkPos) -> bool {
        let Some(index) = self.grid.chunk_index(at) else {
            return false;
        };
        self.chunk_of_number(index);
        let Some(chunk) = self.chunks[index].get_mut() else {
            return false;
        };
        if !op.apply_to(chunk, at, &self.grid) {
            return false;
        }
        let edited = self.edited.entry(index).or_default();
        edited.version = edited.version.wrapping_add(1);
        edited.digest = OnceLock::new();
        true
    }

    /// Applies an operation that changed these chunks elsewhere to those of
    /// them that are exactly one version behind; the others are sent whole.
    /// Returns those that changed.
    pub fn follow(&mut self, op: &Op, changed: &[ChunkVersion]) -> Vec<ChunkPos> {
        let behind_by_one = changed
            .iter()
            .filter(|sent| self.version(sent.chunk).wrapping_add(1) == sent.version);
        let due: Vec<ChunkPos> = behind_by_one.map(|sent| sent.chunk).collect();
        due.into_iter()
            .filter(|&at| self.apply_to_chunk(op, at))
            .collect()
    }

    /// Replaces a chunk by one that was received whole; false outside of the
    /// terrain.
    pub fn install(&mut self, at: ChunkVersion, chunk: Chunk) -> bool {
        let Some(index) = self.grid.chunk_index(at.chunk) else {
            return false;
        };
        self.chunks[index] = OnceLock::from(chunk);
        if at.version == 0 {
            self.edited.remove(&index);
        } else {
            let version = at.version;
            let digest = OnceLock::new();
            self.edited.insert(index, Edited { version, digest });
        }
        true
    }

    /// How often a chunk was changed.
    pub fn version(&self, at: ChunkPos) -> u32 {
        let index = self.grid.chunk_index(at);
        let edited = index.and_then(|index| self.edited.get(&index));
        edited.map_or(0, |edited| edited.version)
    }

    /// Every chunk that is not as generated.
    pub fn edited(&self) -> impl Iterator<Item = ChunkVersion> {
        self.edited.iter().map(|(&index, edited)| ChunkVersion {
            chunk: self.grid.chunk_at(index),
            version: edited.version,
        })
    }

    /// Reverts all changes. Returns the chunks that were changed.
    pub fn reset(&mut self) -> Vec<ChunkPos> {
        let edited = std::mem::take(&mut self.edited);
        let numbers = edited.keys().copied();
        numbers
            .map(|index| {
                self.chunks[index] = OnceLock::new();
                self.grid.chunk_at(index)
            })
            .collect()
    }

    /// Generates every chunk now instead of on first access.
    pub fn make_all(&self) {
        (0..self.chunks.len()).for_each(|index| {
            self.chunk_of_number(index);
        });
    }

    /// Memory use in bytes.
    pub fn heap_bytes(&self) -> usize {
        let chunks = self.chunks.iter().filter_map(OnceLock::get);
        let blocks: usize = chunks.map(Chunk::heap_bytes).sum();
        blocks + size_of_val(&*self.chunks) + self.edited.len() * size_of::<(usize, Edited)>()
    }

    /// A fingerprint of all changes: two terrains with the same settings and
    /// fingerprint have the same blocks and versions.
    pub fn fingerprint(&self) -> u64 {
        let mut digest = Digest::default();
        for (&index, edited) in &self.edited {
            digest.word(index as u64);
            digest.word(u64::from(edited.version));
            digest.word(*edited.digest.get_or_init(|| {
                let mut digest = Digest::default();
                let (palette, words) = self.chunk_of_number(index).to_numbers();
                palette
                    .iter()
                    .for_each(|m| digest.word(u64::from(m.number())));
                words.iter().for_each(|&word| digest.word(word));
                digest.0
            }));
        }
        digest.0
    }
}

/// Two terrains are equal if all blocks and versions are.
impl PartialEq for Terrain {
    fn eq(&self, other: &Self) -> bool {
        self.settings == other.settings
            && self.edited().eq(other.edited())
            && self
                .edited
                .keys()
                .all(|&index| self.chunk_of_number(index) == other.chunk_of_number(index))
    }
}

struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn word(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }
}
