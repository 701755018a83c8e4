//! The ground in checkpoints: each chunk that was changed is a part
//! of its own, so that only those that changed since are stored again.

use std::collections::BTreeMap;

use frolic_protocol::keep::Section;
use frolic_protocol::terrain::{ChunkVersion, TerrainOp};
use frolic_terrain::{ChunkPos, codec};

use crate::state::WorldState;

/// Parts are named by it and the chunk's place.
const NAME: &str = "terrain/";
const VERSION: u32 = 1;
/// No chunk was ever changed as often: who says so is damaged.
const CHANGES_MAX: u32 = u32::MAX / 2;
/// Ticks between two chunks that are packed ahead of the next checkpoint.
const PACK_TICKS: u32 = 6;

/// What storage has of the ground.
#[derive(Default)]
pub(crate) struct SavedGround {
    chunks: BTreeMap<ChunkPos, Section>,
    /// Operations behind the chunks.
    pub ops: Vec<TerrainOp>,
    /// Chunks that were undone: their parts are to go.
    cleared: Vec<ChunkVersion>,
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
                    // What was never changed is not stored.
                    let changes = changes_in(section).unwrap_or_default();
                    if (1..=CHANGES_MAX).contains(&changes) {
                        self.chunks.insert(at, section.clone());
                    } else {
                        problems.push(damaged(name));
                    }
                }
                _ => problems.push(format!("the part \"{name}\" of the checkpoint is unknown")),
            }
        }
    }

    /// Everything was undone.
    pub fn clear(&mut self) {
        self.ops.clear();
        for (chunk, section) in std::mem::take(&mut self.chunks) {
            let version = changes_in(&section).unwrap_or_default();
            self.cleared.push(ChunkVersion { chunk, version });
        }
    }
}

fn place_of(text: &str) -> Option<ChunkPos> {
    let mut parts = text.split(',').map(|part| part.parse().ok());
    let place = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(place)
}

/// The version of the chunk that a part is, if it is one.
pub(crate) fn version_in(name: &str, section: &Section) -> Option<u32> {
    name.strip_prefix(NAME)?;
    changes_in(section)
}

fn changes_in(section: &Section) -> Option<u32> {
    let version = section.bytes.first_chunk()?;
    Some(u32::from_le_bytes(*version))
}

fn damaged(name: &str) -> String {
    format!("the part \"{name}\" of the checkpoint is damaged")
}

fn name_of([x, y, z]: ChunkPos) -> String {
    format!("{NAME}{x},{y},{z}")
}

impl WorldState {
    /// Adds the parts of a checkpoint that are the ground; `changed` says which
    /// of them are news.
    pub fn ground_sections(
        &self,
        changed: &mut dyn FnMut(&str, u64) -> bool,
        sections: &mut BTreeMap<String, Section>,
    ) {
        let Some(terrain) = self.collision.terrain() else {
            return;
        };
        for at in terrain.edited() {
            let name = name_of(at.chunk);
            if !changed(&name, u64::from(at.version)) {
                continue;
            }
            let mut bytes = at.version.to_le_bytes().to_vec();
            match self.ground.packed.get(&at.chunk) {
                Some((version, packed)) if *version == at.version => bytes.extend(&packed[..]),
                _ => bytes.extend(terrain.chunk(at.chunk).map(codec::pack).unwrap_or_default()),
            }
            let version = VERSION;
            sections.insert(name, Section { version, bytes });
        }
    }

    /// Names of parts that an earlier checkpoint had and that were undone since.
    pub fn cleared_sections(&self) -> impl Iterator<Item = String> + '_ {
        self.ground.cleared.iter().copied().map(name_of)
    }

    /// Makes the ground as an earlier process of this world left it.
    pub fn restore_ground(&mut self, saved: &SavedGround, problems: &mut Vec<String>) {
        let mut lost = saved.cleared.clone();
        for (&chunk, section) in &saved.chunks {
            let Some((version, packed)) = section.bytes.split_first_chunk() else {
                continue;
            };
            let version = u32::from_le_bytes(*version);
            let at = ChunkVersion { chunk, version };
            if !self.restore_chunk(at, packed) {
                problems.push(damaged(&name_of(chunk)));
                lost.push(at);
            }
        }
        let cleared = saved.cleared.iter().map(|at| at.chunk);
        self.ground.cleared.extend(cleared);
        for op in &saved.ops {
            self.redo_terrain(op);
        }
        for at in &lost {
            self.count_on(at);
        }
        self.ground.changes.clear();
    }

    /// A chunk that was undone, or lost, and changed anew counts its changes from where the
    /// stored one ends: by its version it is told from that one.
    fn count_on(&mut self, stored: &ChunkVersion) {
        let again = self.collision.replace_terrain(|terrain| {
            let changes = terrain.version(stored.chunk);
            let chunk = terrain.chunk(stored.chunk).filter(|_| changes > 0)?;
            let (chunk, at) = (chunk.clone(), stored.chunk);
            let version = stored.version + changes;
            let next = ChunkVersion { chunk: at, version };
            terrain.install(next, chunk).then_some(next)
        });
        if let Some(next) = again.flatten() {
            let tick = self.tick;
            self.ground.may_tell(&[next], tick);
        }
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
