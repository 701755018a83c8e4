//! Terrain in checkpoints: each changed chunk is a section of its own, so that
//! only those that changed since are stored again.

use std::collections::BTreeMap;

use frolic_fleet_api::persist::Section;
use frolic_protocol::terrain::{ChunkVersion, TerrainOp};
use frolic_terrain::{ChunkPos, codec};

use super::Ground;
use crate::space::Space;

/// Prefix of section names, followed by the chunk's position.
const NAME: &str = "terrain/";
const VERSION: u32 = 1;
/// No chunk ever had as many changes: a section with more is damaged.
const CHANGES_MAX: u32 = u32::MAX / 2;
/// Ticks between two chunks that are encoded ahead of the next checkpoint.
const PACK_TICKS: u32 = 6;

/// The stored terrain.
#[derive(Default)]
pub(crate) struct SavedGround {
    chunks: BTreeMap<ChunkPos, Section>,
    /// Operations after the chunks.
    pub ops: Vec<TerrainOp>,
    /// Chunks that were reset: their sections must be removed.
    cleared: Vec<ChunkVersion>,
}

impl SavedGround {
    /// Reads the terrain sections of a checkpoint.
    pub fn read(&mut self, sections: &BTreeMap<String, Section>, problems: &mut Vec<String>) {
        for (name, section) in sections {
            let Some(place) = name.strip_prefix(NAME) else {
                continue;
            };
            match place_of(place) {
                Some(at) if section.version == VERSION => {
                    // Unchanged chunks are not stored.
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

    /// Drops everything, because it was reset.
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

/// The chunk version of a section, if it is a terrain section.
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

impl Ground {
    /// Adds the terrain sections of a checkpoint; `changed` decides which of
    /// them are new.
    pub fn sections(
        &self,
        space: &Space,
        changed: &mut dyn FnMut(&str, u64) -> bool,
        sections: &mut BTreeMap<String, Section>,
    ) {
        let Some(terrain) = space.collision.terrain() else {
            return;
        };
        for at in terrain.edited() {
            let name = name_of(at.chunk);
            if !changed(&name, u64::from(at.version)) {
                continue;
            }
            let mut bytes = at.version.to_le_bytes().to_vec();
            match self.packed.get(&at.chunk) {
                Some((version, packed)) if *version == at.version => bytes.extend(&packed[..]),
                _ => bytes.extend(terrain.chunk(at.chunk).map(codec::pack).unwrap_or_default()),
            }
            let version = VERSION;
            sections.insert(name, Section { version, bytes });
        }
    }

    /// Names of sections in an earlier checkpoint whose chunks were reset
    /// since.
    pub fn cleared_sections(&self) -> impl Iterator<Item = String> + '_ {
        self.cleared.iter().copied().map(name_of)
    }

    /// Restores the terrain of an earlier process of this world.
    pub fn restore(&mut self, space: &mut Space, saved: &SavedGround, problems: &mut Vec<String>) {
        let mut lost = saved.cleared.clone();
        for (&chunk, section) in &saved.chunks {
            let Some((version, packed)) = section.bytes.split_first_chunk() else {
                continue;
            };
            let version = u32::from_le_bytes(*version);
            let at = ChunkVersion { chunk, version };
            if !self.restore_chunk(space, at, packed) {
                problems.push(damaged(&name_of(chunk)));
                lost.push(at);
            }
        }
        let cleared = saved.cleared.iter().map(|at| at.chunk);
        self.cleared.extend(cleared);
        for op in &saved.ops {
            self.redo(space, op);
        }
        for at in &lost {
            self.count_on(space, at);
        }
        self.changes.clear();
    }

    /// A chunk that was reset, or lost, and changed again continues the change
    /// count of the stored one, so that the two versions differ.
    fn count_on(&mut self, space: &mut Space, stored: &ChunkVersion) {
        let again = space.collision.replace_terrain(|terrain| {
            let changes = terrain.version(stored.chunk);
            let chunk = terrain.chunk(stored.chunk).filter(|_| changes > 0)?;
            let (chunk, at) = (chunk.clone(), stored.chunk);
            let version = stored.version + changes;
            let next = ChunkVersion { chunk: at, version };
            terrain.install(next, chunk).then_some(next)
        });
        if let Some(next) = again.flatten() {
            self.publish(&[next], space.tick);
        }
    }

    /// Encodes changed chunks one at a time, so that a checkpoint finds most of
    /// them encoded and does not cause a long tick.
    pub fn pack_ahead(&mut self, space: &Space) {
        if !space.tick.is_multiple_of(PACK_TICKS) {
            return;
        }
        let Some(at) = self.stale.pop_first() else {
            return;
        };
        if let Some(terrain) = space.collision.terrain()
            && let Some(chunk) = terrain.chunk(at)
        {
            let packed = (terrain.version(at), codec::pack(chunk).into());
            self.packed.insert(at, packed);
        }
    }
}
