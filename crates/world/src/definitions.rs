//! What spawned entities look like, by number, so that a snapshot can say it in a few bits.

use std::collections::BTreeMap;
use std::rc::Rc;

use frolic_package::{Components, Scene};

/// Prefabs in the order of their names, counted from 1, then whatever scripts
/// spawned from components of their own.
pub(crate) struct Definitions {
    names: BTreeMap<String, u16>,
    components: Vec<Rc<Components>>,
    prefab_count: usize,
    /// Definitions that clients do not know from the scene, as JSON.
    extra: BTreeMap<String, u16>,
}

/// Different sets of components that scripts may make up in one world.
const EXTRA_MAX: usize = 4096;

impl Definitions {
    pub fn new(scene: &Scene) -> Self {
        let components: Vec<_> = scene
            .prefabs
            .values()
            .map(|prefab| Rc::new(prefab.components.clone()))
            .collect();
        Self {
            names: scene
                .prefabs
                .keys()
                .enumerate()
                .map(|(index, name)| (name.clone(), index as u16 + 1))
                .collect(),
            prefab_count: components.len(),
            components,
            extra: BTreeMap::new(),
        }
    }

    pub fn prefab(&self, name: &str) -> Option<(u16, Rc<Components>)> {
        let index = *self.names.get(name)?;
        Some((index, self.components[usize::from(index) - 1].clone()))
    }

    /// The number of components that came from a script; the flag is true the
    /// first time, when clients have to be told. None when there are too many.
    pub fn of_components(&mut self, components: Components, json: &str) -> Option<(u16, bool)> {
        if let Some(index) = self.extra.get(json) {
            return Some((*index, false));
        }
        if self.extra.len() >= EXTRA_MAX {
            return None;
        }
        self.components.push(Rc::new(components));
        let index = u16::try_from(self.components.len()).ok()?;
        self.extra.insert(json.to_owned(), index);
        Some((index, true))
    }

    pub fn components(&self, index: u16) -> Option<Rc<Components>> {
        self.components
            .get(usize::from(index).checked_sub(1)?)
            .cloned()
    }

    /// Whether any of them is like that.
    pub fn any(&self, is: impl Fn(&Components) -> bool) -> bool {
        self.components.iter().any(|components| is(components))
    }

    /// Name of a prefab's definition.
    pub fn name(&self, index: u16) -> Option<&str> {
        let index = usize::from(index).checked_sub(1)?;
        if index >= self.prefab_count {
            return None;
        }
        self.names.keys().nth(index).map(String::as_str)
    }

    /// What clients have to be told on joining: number and JSON.
    pub fn extra(&self) -> impl Iterator<Item = (u16, &str)> {
        self.extra
            .iter()
            .map(|(json, index)| (*index, json.as_str()))
    }
}
