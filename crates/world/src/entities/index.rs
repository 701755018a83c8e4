//! Indices of entities by name or tag, by type, and by place, for scripts and
//! NPCs. Replication has cells of its own (`interest/cells.rs`), because those
//! store history.

use std::collections::{BTreeMap, BTreeSet};

use frolic_scene::Components;
use frolic_sim::Vec3;
use rustc_hash::FxHashMap;

/// Side of a cell of the index.
const CELL_M: f32 = 16.0;
/// Places beyond this are in the outermost cells.
const CELL_MAX: f32 = 1_000_000.0;

/// The type of player characters; other entities are typed by their components.
pub(crate) const CHARACTER: &str = "Character";

type Cell = (i32, i32);

/// Indices over entities; the entities themselves are stored elsewhere.
#[derive(Default)]
pub(crate) struct Index {
    by_word: BTreeMap<String, BTreeSet<u32>>,
    by_type: BTreeMap<&'static str, BTreeSet<u32>>,
    cells: FxHashMap<Cell, Vec<u32>>,
    homes: FxHashMap<u32, Cell>,
}

impl Index {
    /// Adds an entity's types and place.
    pub fn insert(&mut self, id: u32, types: impl Iterator<Item = &'static str>, place: Vec3) {
        for kind in types {
            self.by_type.entry(kind).or_default().insert(id);
        }
        self.moved(id, place);
    }

    /// Removes an entity's types and place.
    pub fn remove(&mut self, id: u32) {
        for ids in self.by_type.values_mut() {
            ids.remove(&id);
        }
        if let Some(home) = self.homes.remove(&id) {
            self.leave(home, id);
        }
    }

    /// Updates an entity's place.
    pub fn moved(&mut self, id: u32, place: Vec3) {
        let cell = cell_of(place);
        // Most steps stay within a cell.
        if self.homes.get(&id) == Some(&cell) {
            return;
        }
        if let Some(before) = self.homes.insert(id, cell) {
            self.leave(before, id);
        }
        self.cells.entry(cell).or_default().push(id);
    }

    /// Updates the place of an entity that moved between two places; most moves
    /// stay within a cell.
    pub fn went(&mut self, id: u32, from: Vec3, to: Vec3) {
        if cell_of(from) != cell_of(to) {
            self.moved(id, to);
        }
    }

    fn leave(&mut self, cell: Cell, id: u32) {
        if let Some(ids) = self.cells.get_mut(&cell) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.cells.remove(&cell);
            }
        }
    }

    /// Entities that may be within a circle on the map, each once, in order of
    /// ids.
    pub fn around(&self, center: Vec3, radius: f32) -> Vec<u32> {
        let reach = Vec3::new(radius, 0.0, radius);
        let (low, high) = (cell_of(center - reach), cell_of(center + reach));
        let side = |low: i32, high: i32| (i64::from(high) - i64::from(low) + 1) as usize;
        let count = side(low.0, high.0).saturating_mul(side(low.1, high.1));
        let mut found: Vec<u32> = if count > self.cells.len() {
            let inside = |x: i32, (low, high): (i32, i32)| (low..=high).contains(&x);
            let cells = self
                .cells
                .iter()
                .filter(|((x, z), _)| inside(*x, (low.0, high.0)) && inside(*z, (low.1, high.1)));
            cells.flat_map(|(_, ids)| ids.iter().copied()).collect()
        } else {
            let cells = (low.0..=high.0).flat_map(|x| (low.1..=high.1).map(move |z| (x, z)));
            cells
                .filter_map(|cell| self.cells.get(&cell))
                .flatten()
                .copied()
                .collect()
        };
        found.sort_unstable();
        found
    }

    /// Entities of a type, in order of ids.
    pub fn of_type(&self, kind: &str) -> Vec<u32> {
        let ids = self.by_type.get(kind);
        ids.map(|ids| ids.iter().copied().collect())
            .unwrap_or_default()
    }

    /// Adds a name or tag.
    pub fn name(&mut self, id: u32, word: &str) {
        match self.by_word.get_mut(word) {
            Some(ids) => {
                ids.insert(id);
            }
            None => {
                self.by_word.insert(word.to_owned(), BTreeSet::from([id]));
            }
        }
    }

    /// Removes a name or tag.
    pub fn unname(&mut self, id: u32, word: &str) {
        if let Some(ids) = self.by_word.get_mut(word) {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_word.remove(word);
            }
        }
    }

    /// Entities with this name or tag, in order of ids.
    pub fn named(&self, word: &str) -> Vec<u32> {
        let ids = self.by_word.get(word);
        ids.map(|ids| ids.iter().copied().collect())
            .unwrap_or_default()
    }
}

fn cell_of(place: Vec3) -> Cell {
    let index = |x: f32| (x.clamp(-CELL_MAX, CELL_MAX) / CELL_M).floor() as i32;
    (index(place.x), index(place.z))
}

/// The types of an entity: the names of its active components.
pub(crate) fn types(components: &Components) -> impl Iterator<Item = &'static str> {
    let types = [
        ("Shape", components.shape.is_some()),
        ("Model", components.model.is_some()),
        ("Body", components.body.is_some()),
        ("Trigger", components.trigger.is_some()),
        ("Light", components.light.is_some()),
        ("Sound", components.sound.is_some()),
        ("SpawnPoint", components.spawn_point.is_some()),
        ("Npc", components.npc.is_some()),
        ("Script", components.script.is_some()),
    ];
    types
        .into_iter()
        .filter_map(|(name, has)| has.then_some(name))
}

#[cfg(test)]
mod tests {
    use frolic_sim::random::Random;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nothing_near_is_missed(seed in 0u64..1000, radius in 0.0f32..500.0) {
            let mut random = Random::new(seed);
            let mut place = || Vec3::new(random.range(-300.0, 300.0), 0.0, random.range(-300.0, 300.0));
            let mut index = Index::default();
            let mut places = BTreeMap::new();
            for id in 0..200 {
                let at = place();
                index.insert(id, std::iter::empty(), at);
                places.insert(id, at);
            }
            for id in (0..200).step_by(3) {
                let at = place();
                index.moved(id, at);
                places.insert(id, at);
            }
            for id in (0..200).step_by(7) {
                index.remove(id);
                places.remove(&id);
            }
            let center = place();
            let found = index.around(center, radius);
            for (id, at) in &places {
                let near = (*at - center).length() <= radius;
                prop_assert!(!near || found.contains(id));
            }
            prop_assert!(found.iter().all(|id| places.contains_key(id)));
            prop_assert!(found.is_sorted());
        }
    }
}
