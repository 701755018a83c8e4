//! All state of a world except its scripts: the space that its systems share,
//! and the systems. Scripts reach it through [`frolic_script::Engine`],
//! implemented in `engine.rs`.

use std::rc::Rc;

use frolic_fleet_api::ops::WorldOp;
use frolic_fleet_api::persist::SavedWorld;
use frolic_package::Package;
use frolic_scene::{Components, Transform};

use crate::bodies::Bodies;
use crate::characters::{self, Characters};
use crate::definitions::Definitions;
use crate::entities::{Change, Place};
use crate::history::{History, Publication};
use crate::npcs::Npcs;
use crate::player::PlayerNumber;
use crate::projectiles::Projectiles;
use crate::remote_commands::Visitors;
use crate::saved::Squashed;
use crate::space::Space;
use crate::spells::Spells;
use crate::store::StoreQueue;
use crate::structures::Structures;
use crate::terrain::{Ground, TerraformError};

pub(crate) struct WorldState {
    pub space: Space,
    pub characters: Characters,
    /// Rigid bodies.
    pub bodies: Bodies,
    /// Weapons and shots.
    pub projectiles: Projectiles,
    pub npcs: Npcs,
    /// Terrain state besides its blocks.
    pub ground: Ground,
    /// Persistent structures.
    pub structures: Structures,
    /// Persistent operations on their way to storage.
    pub history: History,
    /// The available spells, and casts in progress.
    pub spells: Spells,
    /// Users who act without a character.
    pub visitors: Visitors,
    pub definitions: Definitions,
    pub store: StoreQueue,
    /// Incremented with every change of any script, from 1.
    pub script_version: u32,
    /// The wall-clock time in milliseconds, and the tick at which it was set.
    pub wall_clock: (u64, u32),
    /// A reused buffer; see [`WorldState::settle`].
    changes: Vec<Change>,
}

impl WorldState {
    pub fn load(package: &Package) -> Self {
        let mut state = Self {
            space: Space::load(package),
            characters: Characters::default(),
            bodies: Bodies::default(),
            projectiles: Projectiles::default(),
            npcs: Npcs::default(),
            ground: Ground::default(),
            structures: Structures::default(),
            history: History::default(),
            spells: Spells::new(package),
            visitors: Visitors::default(),
            definitions: Definitions::new(package),
            store: StoreQueue::default(),
            script_version: 1,
            wall_clock: (0, 0),
            changes: Vec::new(),
        };
        state.settle();
        state.bodies.build(&state.space, &state.definitions);
        state
    }

    /// Passes the journal of the entities to the systems with state of their
    /// own about entities. Every operation that may change entities ends with
    /// it, so that the next one finds all systems consistent.
    pub fn settle(&mut self) {
        let space = &mut self.space;
        let mut changes = std::mem::take(&mut self.changes);
        space.entities.take_changes(&mut changes);
        for change in changes.drain(..) {
            match change {
                Change::Added(id) => {
                    self.npcs.add(space, id);
                    self.bodies.watch_scripted(space, id);
                }
                Change::Rebuilt(id) => self.bodies.add(space, id),
                Change::Placed(id) => {
                    self.bodies.note_moved(id);
                    self.npcs.follow(space, id);
                }
                Change::Removing(id) => {
                    self.structures.note_removed(space, &mut self.history, id);
                }
                Change::Removed(id) => {
                    self.npcs.remove(id);
                    self.bodies.remove(id);
                }
                Change::Solid { low, high } => self.npcs.solid_changed(low, high),
            }
        }
        self.changes = changes;
    }

    /// Creates an entity from components. None if there are too many.
    pub fn spawn(
        &mut self,
        name: String,
        definition: u16,
        components: Rc<Components>,
        transform: &Transform,
    ) -> Option<u32> {
        let id = self.space.spawn(name, definition, components, transform);
        self.settle();
        id
    }

    /// Removes an entity and its children.
    pub fn destroy(&mut self, id: u32) {
        self.space.destroy(id);
        self.settle();
    }

    /// Adds a player at a spawn point.
    pub fn join(&mut self, number: PlayerNumber, id: String, name: String) -> u32 {
        let entity = self
            .characters
            .join(&mut self.space, number, id.clone(), name);
        self.structures.note_owner(&mut self.space, &id);
        self.settle();
        entity
    }

    /// Removes a player's character. The player's record stays until scripts
    /// have been notified.
    pub fn leave(&mut self, number: PlayerNumber) {
        let Ok(player) = self.space.player(number) else {
            return;
        };
        let (entity, id) = (player.entity, player.id.clone());
        self.characters.leave(&mut self.space, number);
        self.structures.note_owner(&mut self.space, &id);
        self.destroy(entity);
    }

    /// Restores what earlier processes of this world left; called before its
    /// scripts start.
    pub fn restore(&mut self, saved: &SavedWorld) {
        let space = &mut self.space;
        let squashed = Squashed::of(saved);
        let structures = squashed.structures.into_values();
        let numbers = (squashed.next, saved.newest());
        let unknown = self
            .structures
            .restore(space, &self.definitions, numbers, structures);
        let mut problems = squashed.problems;
        self.ground.restore(space, &squashed.ground, &mut problems);
        self.history.resume_after(saved.newest());
        let unknown = unknown.into_iter().map(|prefab| {
            format!(
                "what was built from the prefab \"{prefab}\" is not shown: the game has no such prefab any more"
            )
        });
        for problem in unknown.chain(problems) {
            space.console.warn("world", problem);
        }
        self.settle();
    }

    /// Operations up to this number are stored: releases the messages and the
    /// replication that wait for them.
    pub fn ops_persisted(&mut self, up_to: u64) {
        let space = &mut self.space;
        for publication in self.history.persist(up_to) {
            match publication {
                Publication::Message(message) => space.outbox.release(message),
                Publication::Chunks(chunks) => self.ground.publish(&chunks, space.tick + 1),
                Publication::Structure(entity) => {
                    // Unless it was changed again.
                    let mut later = self.history.unpublished().map(|(_, later)| later);
                    if !later.any(|later| later.is_of(entity)) {
                        space.entities.release(entity);
                    }
                }
            }
        }
    }

    /// Reverts all changes ever made to this world, as one operation.
    pub fn clear(&mut self, by: &str) -> Result<u64, TerraformError> {
        if !self.history.has_room() {
            return Err(TerraformError::Busy);
        }
        let entities = self.structures.forget_all();
        let chunks = Ground::reset(&mut self.space);
        let by = Some(by.to_owned());
        let seq = self.history.log(by, WorldOp::Clear);
        for entity in entities {
            let (space, history) = (&mut self.space, &mut self.history);
            self.structures.hide(space, history, seq, entity);
            self.destroy(entity);
        }
        let (space, history) = (&mut self.space, &mut self.history);
        self.ground.cleared(space, history, seq, chunks);
        Ok(seq)
    }

    /// Begins a tick: takes the inputs of players.
    pub fn begin_tick(&mut self) {
        self.space.tick += 1;
        self.space.collision.begin_tick();
        self.characters.take_inputs(&mut self.space);
    }

    /// Moves entities on paths, then characters.
    pub fn step_characters(&mut self) {
        self.space.move_things();
        characters::step(&mut self.space);
        characters::note_interactions(&mut self.space);
        self.settle();
    }

    pub fn step_bodies(&mut self) {
        self.bodies.step(&mut self.space, &self.ground.changes);
        self.settle();
    }

    pub fn step_projectiles(&mut self) {
        self.projectiles.step(&mut self.space, &self.characters);
        self.settle();
    }

    pub fn step_npcs(&mut self) {
        self.npcs.step(&mut self.space, &self.ground.changes);
        self.settle();
        self.ground.changes.clear();
        self.ground.pack_ahead(&self.space);
    }

    /// Finds which entities entered and left triggers, and respawns characters.
    pub fn step_triggers(&mut self) {
        self.space.cross_triggers();
        self.characters.respawn_fallen(&mut self.space);
        self.characters.respawn_dead(&mut self.space);
    }

    /// Replicates changed teams and leaderstats.
    pub fn send_restyled(&mut self) {
        let time = self.space.time();
        let space = &mut self.space;
        space
            .presence
            .send_restyled(&space.players, &mut space.outbox, time);
    }

    /// Ends a tick, after scripts have received its events.
    pub fn end_tick(&mut self) {
        characters::send_vitals(&mut self.space);
        let time = self.space.time();
        let space = &mut self.space;
        let online = space.players.values().filter(|player| player.online);
        let bodies = self.bodies.awake().iter().map(|body| Place {
            entity: body.entity,
            jumps: body.jumps,
            position: body.position,
        });
        let characters = online.map(|player| player.entity);
        space.entities.remember(time, characters, bodies);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use frolic_scene::{Limits, SceneEntity};
    use frolic_sim::Vec3;

    use super::*;

    #[test]
    fn ids_wrap_around_without_reusing_live_ones() {
        let files = BTreeMap::from([
            (
                "game.toml".to_owned(),
                b"[game]\nid = \"test\"\nname = \"Test\"\n".to_vec(),
            ),
            (
                "scene.json".to_owned(),
                br#"{"format":1,"prefabs":{},"entities":[]}"#.to_vec(),
            ),
        ]);
        let package = Package::from_files(files, &Limits::default())
            .unwrap_or_else(|report| panic!("{report}"));
        let mut space = Space::load(&package);
        let first = space.spawn_character(1, "Ada", Vec3::ZERO);
        space.entities.set_next_id(u32::MAX);
        let ids = [2, 3, 4].map(|number| space.spawn_character(number, "Ben", Vec3::ZERO));
        assert_eq!(first, SceneEntity::ID_MAX + 1);
        assert_eq!(ids, [u32::MAX, first + 1, first + 2]);
    }
}
