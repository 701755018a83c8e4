//! Checkpoints of a running world.

use std::collections::BTreeMap;

use frolic_fleet_api::persist::{
    Checkpoint, PlayerState, STRUCTURES, STRUCTURES_VERSION, Section, Structures,
};

use super::World;
use crate::player::PlayerNumber;
use crate::saved::Marks;

impl World {
    /// The persistent state of this world, as of its newest operation: to be
    /// stored together with pending operations, or after them.
    pub fn checkpoint(&self) -> Checkpoint {
        self.checkpoint_since(&mut Marks::new())
    }

    /// The same without the sections that are unchanged since the checkpoint
    /// with these marks; updates the marks.
    pub fn checkpoint_since(&self, marks: &mut Marks) -> Checkpoint {
        let state = self.state.borrow();
        let before = std::mem::take(marks);
        let mut sections = BTreeMap::new();
        let mut changed = |name: &str, mark: u64| {
            marks.insert(name.to_owned(), mark);
            before.get(name) != Some(&mark)
        };
        // Our own types always serialise.
        if changed(STRUCTURES, state.structures.changed()) {
            let structures = Structures {
                next: state.structures.next(),
                all: state.structures.all().cloned().collect(),
            };
            let section = Section {
                version: STRUCTURES_VERSION,
                bytes: postcard::to_allocvec(&structures).unwrap_or_default(),
            };
            sections.insert(STRUCTURES.to_owned(), section);
        }
        let ground = &state.ground;
        ground.sections(&state.space, &mut changed, &mut sections);
        // Sections that no longer exist.
        let gone = before.into_keys().chain(ground.cleared_sections());
        let gone = gone.filter(|name| !marks.contains_key(name));
        sections.extend(gone.map(|name| (name, Section::gone())));
        Checkpoint {
            seq: state.history.newest(),
            sections,
        }
    }

    /// Number of the newest persistent operation.
    pub fn newest_op(&self) -> u64 {
        self.state.borrow().history.newest()
    }

    /// The state that another process of this world needs to continue with a
    /// player.
    pub fn player_state(&self, player: PlayerNumber) -> Option<PlayerState> {
        let state = self.state.borrow();
        let player = state.space.players.get(&player)?;
        Some(player.saved(state.space.feet_of(player)))
    }
}
