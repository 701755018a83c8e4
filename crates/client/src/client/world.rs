//! The replicated world: the scene, definitions, and snapshots, which may arrive
//! before either: snapshots are datagrams, the rest is a stream, and datagrams
//! overtake it.

use frolic_protocol::EntityState;
use frolic_protocol::details::Details;
use frolic_protocol::entity::flags;
use frolic_scene::{CORNERS_MAX, TRIANGLES_MAX, Triangles};
use frolic_sim::{Mesh, Vec3};
use frolic_terrain::Settings;

use super::Client;
use crate::event::ClientEvent;
use crate::parts::{Part, PartChanges, Resolved};
use crate::replication::Replication;
use crate::scene::ClientScene;
use crate::scripts::{decompress, hash_of};

/// Largest scene file, unpacked.
const SCENE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Largest mesh, unpacked.
const MESH_BYTES_MAX: usize = 8 + 12 * (CORNERS_MAX + TRIANGLES_MAX);
/// Removed entities that the host has not taken: more than a world may have at a
/// time.
const REMOVED_MAX: usize = 32 * 1024;

impl Client {
    /// A mesh that cannot be decoded is not solid; the server corrects the
    /// prediction.
    pub(super) fn learn_mesh(&mut self, asset: String, zstd: &[u8]) {
        let bytes = decompress(zstd, MESH_BYTES_MAX);
        match bytes.as_deref().map(Triangles::decode) {
            Ok(Some(triangles)) => self.meshes.add(&asset, &triangles),
            _ => self.trouble("bad_mesh", format!("{asset} cannot be read")),
        }
    }

    pub(super) fn load_scene(&mut self, hash: &str, zstd: &[u8]) {
        let tick_hz = self.joined.as_ref().map_or(60, |j| j.welcome.tick_hz);
        let scene = decompress(zstd, SCENE_BYTES_MAX);
        let scene = scene.and_then(|bytes| {
            if hash_of(&bytes) != format!("sha256:{hash}") {
                return Err("the scene does not match its hash".to_owned());
            }
            ClientScene::load(&bytes, tick_hz, std::mem::take(&mut self.meshes))
        });
        match scene {
            Ok(mut scene) => {
                let joined = self.joined.iter();
                let states = joined.flat_map(|joined| joined.replication.dated_states());
                scene.take_over(std::mem::take(&mut self.scene), states);
                let joined = self.joined.iter();
                let missing = joined.flat_map(|joined| joined.replication.missing_parts());
                for part in missing {
                    scene.remove(part);
                    // A host that asked before it had this scene gets it again.
                    self.removed.insert(part);
                }
                self.scene = scene;
                self.scene_ready = true;
                self.emit(ClientEvent::Scene);
            }
            Err(cause) => self.trouble("bad_scene", cause),
        }
    }

    pub(super) fn define(&mut self, index: u16, components: &str) {
        let awaited = match self.scene.define(index, components) {
            Ok(awaited) => awaited,
            Err(cause) => return self.trouble("bad_definition", cause),
        };
        if let Some(joined) = self.joined.as_ref().filter(|_| awaited) {
            let states = joined.replication.dated_states();
            let of_its_kind = states.filter(|(_, state)| state.definition == index);
            self.scene.apply_states(of_its_kind);
        }
    }

    pub(super) fn snapshot(&mut self, bytes: &[u8], now_ms: f64) {
        let Some(joined) = &mut self.joined else {
            return;
        };
        let newest = joined.replication.newest_tick();
        let newest_own = joined.replication.newest_own();
        let (header, applied) = match joined.replication.apply(bytes) {
            Ok(applied) => applied,
            Err(cause) => return self.trouble("bad_snapshot", cause.to_string()),
        };
        self.scene.apply(header.tick, &applied);
        if let Some(own) = header.own.filter(|_| newest_own < Some(header.tick)) {
            self.last_snapshot_ms = Some(now_ms);
            if self.silence.received_snapshot() {
                joined.prediction.forgive();
            }
            joined.playback.arrived(header.tick, now_ms);
            joined.pacing.observe(own.queued_inputs, own.late_ticks);
            joined
                .prediction
                .reconcile(&mut self.scene, header.tick, &own);
            self.shots.acknowledged(own.ack_seq);
        }
        if newest < Some(header.tick) {
            self.script_version = header.scripts;
        }
        self.drop_drawn(&applied.removed);
        self.removed.extend(applied.removed);
        while self.removed.len() > REMOVED_MAX {
            // The youngest: a host that has not asked for so long never drew it.
            self.removed.pop_last();
        }
        for (entity, details) in applied.details {
            self.details(entity, details);
        }
    }

    /// Removes entities from the last frame, so that queries do not find them until
    /// the next one. The own character stays.
    fn drop_drawn(&mut self, removed: &[u32]) {
        if removed.is_empty() {
            return;
        }
        let mut removed = removed.to_vec();
        removed.sort_unstable();
        self.drawn
            .retain(|drawn| drawn.own || removed.binary_search(&drawn.id).is_err());
    }

    fn details(&mut self, entity: u32, details: Details) {
        let joined = self.joined.as_ref();
        if let Some(state) = joined.and_then(|joined| joined.replication.state_of(entity)) {
            self.scene.learn_details(state, details.clone());
        }
        self.emit(ClientEvent::Details { entity, details });
    }

    /// Entities removed since the last call that are not back, in order of ids.
    pub fn take_removed(&mut self) -> Vec<u32> {
        let removed = std::mem::take(&mut self.removed);
        let joined = self.joined.as_ref();
        let is_back = |id: u32| {
            let state = joined.and_then(|joined| joined.replication.state_of(id));
            state.is_some_and(|state| !state.has(flags::DESTROYED))
        };
        removed.into_iter().filter(|id| !is_back(*id)).collect()
    }

    /// The current states of all replicated entities, in order of ids.
    pub fn entities(&self) -> impl Iterator<Item = &EntityState> {
        let joined = self.joined.iter();
        joined.flat_map(|joined| joined.replication.states())
    }

    /// The bounding box of an entity's solid, as predicted: its lowest and its
    /// highest corner. None for what is not solid.
    pub fn bounds_of(&self, entity: u32) -> Option<(Vec3, Vec3)> {
        self.scene.collision.bounds_of(entity)
    }

    /// The parts that appeared, changed or disappeared since the last call; at the
    /// first call after the scene arrived, all of them.
    pub fn take_part_changes(&mut self) -> PartChanges {
        let replication = self.joined.as_ref().map(|joined| &joined.replication);
        let replicated = replication.into_iter().flat_map(Replication::states);
        self.scene.take_part_changes(
            |id| replication?.state_of(id),
            replicated.map(|state| state.id),
        )
    }

    /// An entity with everything resolved; none for a player's character.
    pub fn part(&self, id: u32) -> Option<Part> {
        Some(self.resolve(id)?.part(id))
    }

    pub(super) fn resolve(&self, id: u32) -> Option<Resolved<'_>> {
        let replication = self.joined.as_ref().map(|joined| &joined.replication);
        let state = replication.and_then(|replication| replication.state_of(id));
        self.scene.resolve(id, state)
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
mod tests;
