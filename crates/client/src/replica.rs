//! The replicated world: the scene, definitions, and snapshots, which may arrive
//! before either: snapshots are datagrams, the rest is a stream, and datagrams
//! overtake it.

mod terrain;

use std::collections::BTreeSet;

use frolic_protocol::EntityState;
use frolic_protocol::details::Details;
use frolic_protocol::entity::flags;
use frolic_protocol::snapshot::{OwnState, SnapshotError};
use frolic_scene::{CORNERS_MAX, TRIANGLES_MAX, Triangles};
use frolic_sim::{Mesh, Meshes, Vec3};
use frolic_terrain::Settings;

use crate::event::ClientEvent;
use crate::output::Output;
use crate::parts::{Part, PartChanges, Resolved};
use crate::replication::{Applied, Replication};
use crate::scene::ClientScene;
use crate::scripts::{decompress, hash_of};

/// Largest scene file, unpacked.
const SCENE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Largest mesh, unpacked.
const MESH_BYTES_MAX: usize = 8 + 12 * (CORNERS_MAX + TRIANGLES_MAX);
/// Removed entities that the host has not taken: more than a world may have at a
/// time.
const REMOVED_MAX: usize = 32 * 1024;

/// The world as the server has replicated it so far.
#[derive(Default)]
pub struct Replica {
    pub(crate) scene: ClientScene,
    scene_arrived: bool,
    pub(crate) replication: Replication,
    /// Meshes that arrived and wait for the scene.
    meshes: Meshes,
    /// Entities removed since the host last asked; some may be back.
    removed: BTreeSet<u32>,
    /// Version of the scripts that the server runs, of the newest snapshot.
    pub(crate) script_version: u32,
}

/// A snapshot that was applied.
pub(crate) struct Update {
    pub tick: u32,
    /// The own character, unless a newer snapshot has arrived before.
    pub own: Option<OwnState>,
    pub applied: Applied,
}

impl Replica {
    /// Forgets all entities: a welcome restarts their replication.
    pub(crate) fn restart(&mut self, tick_hz: u32, snapshot_hz: u32) {
        self.replication = Replication::new(tick_hz, snapshot_hz);
    }

    /// Whether there is a scene, and a place in it.
    pub(crate) fn is_ready(&self) -> bool {
        self.scene_arrived && self.replication.newest_own().is_some()
    }

    /// A mesh that cannot be decoded is not solid; the server corrects the
    /// prediction.
    pub(crate) fn learn_mesh(&mut self, asset: String, zstd: &[u8], output: &mut Output) {
        let bytes = decompress(zstd, MESH_BYTES_MAX);
        match bytes.as_deref().map(Triangles::decode) {
            Ok(Some(triangles)) => self.meshes.add(&asset, &triangles),
            _ => output.trouble("bad_mesh", format!("{asset} cannot be read")),
        }
    }

    pub(crate) fn load_scene(
        &mut self,
        hash: &str,
        zstd: &[u8],
        tick_hz: u32,
        output: &mut Output,
    ) {
        let scene = decompress(zstd, SCENE_BYTES_MAX);
        let scene = scene.and_then(|bytes| {
            if hash_of(&bytes) != format!("sha256:{hash}") {
                return Err("the scene does not match its hash".to_owned());
            }
            ClientScene::load(&bytes, tick_hz, std::mem::take(&mut self.meshes))
        });
        match scene {
            Ok(mut scene) => {
                let states = self.replication.dated_states();
                scene.take_over(std::mem::take(&mut self.scene), states);
                for part in self.replication.missing_parts() {
                    scene.remove(part);
                    // A host that asked before it had this scene gets it again.
                    self.removed.insert(part);
                }
                self.scene = scene;
                self.scene_arrived = true;
                output.emit(ClientEvent::Scene);
            }
            Err(cause) => output.trouble("bad_scene", cause),
        }
    }

    pub(crate) fn define(&mut self, index: u16, components: &str, output: &mut Output) {
        let awaited = match self.scene.define(index, components) {
            Ok(awaited) => awaited,
            Err(cause) => return output.trouble("bad_definition", cause),
        };
        if awaited {
            let states = self.replication.dated_states();
            let of_its_kind = states.filter(|(_, state)| state.definition == index);
            self.scene.apply_states(of_its_kind);
        }
    }

    /// Updates entities and their solids from a snapshot. [`Self::settle`] does the
    /// rest, after the own character was predicted again.
    pub(crate) fn apply(&mut self, bytes: &[u8]) -> Result<Update, SnapshotError> {
        let newest = self.replication.newest_tick();
        let newest_own = self.replication.newest_own();
        let (header, applied) = self.replication.apply(bytes)?;
        self.scene.apply(header.tick, &applied);
        if newest < Some(header.tick) {
            self.script_version = header.scripts;
        }
        Ok(Update {
            tick: header.tick,
            own: header.own.filter(|_| newest_own < Some(header.tick)),
            applied,
        })
    }

    /// Records what a snapshot removed, and applies the details in it.
    pub(crate) fn settle(&mut self, applied: Applied, output: &mut Output) {
        self.removed.extend(applied.removed);
        while self.removed.len() > REMOVED_MAX {
            // The youngest: a host that has not asked for so long never drew it.
            self.removed.pop_last();
        }
        for (entity, details) in applied.details {
            if let Some(state) = self.replication.state_of(entity) {
                self.scene.learn_details(state, details.clone());
            }
            output.emit(ClientEvent::Details { entity, details });
        }
    }

    /// Entities removed since the last call that are not back, in order of ids.
    pub(crate) fn take_removed(&mut self) -> Vec<u32> {
        let removed = std::mem::take(&mut self.removed);
        let is_back = |id: u32| {
            let state = self.replication.state_of(id);
            state.is_some_and(|state| !state.has(flags::DESTROYED))
        };
        removed.into_iter().filter(|id| !is_back(*id)).collect()
    }

    /// The current states of all replicated entities, in order of ids.
    pub fn entities(&self) -> impl Iterator<Item = &EntityState> {
        self.replication.states()
    }

    /// The bounding box of an entity's solid, as predicted: its lowest and its
    /// highest corner. None for what is not solid.
    pub fn bounds_of(&self, entity: u32) -> Option<(Vec3, Vec3)> {
        self.scene.collision.bounds_of(entity)
    }

    /// The parts that appeared, changed or disappeared since the last call; at the
    /// first call after the scene arrived, all of them.
    pub(crate) fn take_part_changes(&mut self) -> PartChanges {
        let replication = &self.replication;
        self.scene.take_part_changes(
            |id| replication.state_of(id),
            replication.states().map(|state| state.id),
        )
    }

    /// An entity with everything resolved; none for a player's character.
    pub fn part(&self, id: u32) -> Option<Part> {
        Some(self.resolve(id)?.part(id))
    }

    pub(crate) fn resolve(&self, id: u32) -> Option<Resolved<'_>> {
        self.scene.resolve(id, self.replication.state_of(id))
    }

    /// Attributes and looks that scripts changed.
    pub(crate) fn details_of(&self, id: u32) -> Option<&Details> {
        self.scene.details_of(id)
    }

    /// Settings of the terrain, if the scene has one.
    pub fn terrain_settings(&self) -> Option<&Settings> {
        self.scene.terrain.as_ref()
    }

    /// The collision mesh of an asset that mesh shapes name, to be drawn.
    pub fn mesh(&self, asset: &str) -> Option<&Mesh> {
        let (_, mesh) = self.scene.collision.meshes().find(asset)?;
        Some(mesh)
    }
}

#[cfg(test)]
mod parts_tests;
#[cfg(test)]
pub(crate) mod tests;
