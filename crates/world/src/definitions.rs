//! Definitions of spawned entities by number, so that a snapshot can refer to
//! one in a few bits.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use frolic_package::Package;
use frolic_protocol::ServerMessage;
use frolic_scene::{Components, PrefabPart};

/// Prefabs in the order of their names, numbered from 1, then the components
/// that scripts spawned.
pub(crate) struct Definitions {
    names: BTreeMap<String, u16>,
    components: Vec<Rc<Components>>,
    /// What is below the root of each prefab that has children.
    parts: BTreeMap<String, Rc<[PrefabPart]>>,
    prefab_count: usize,
    /// Definitions that clients do not know from the scene, by their JSON.
    extra: BTreeMap<String, u16>,
    /// Their JSON as sent to clients, in order.
    sent: Vec<String>,
    /// Paths of the package's assets.
    assets: BTreeSet<String>,
}

/// Why components of a script got no number.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MakeError {
    /// Scripts can produce an unlimited number of definitions.
    #[error("too many different sets of components")]
    TooMany,
    /// One of their numbers is not finite.
    #[error(transparent)]
    NotJson(#[from] serde_json::Error),
}

/// Distinct component sets that scripts may define in one world.
const EXTRA_MAX: usize = 4096;

impl Definitions {
    pub fn new(package: &Package) -> Self {
        let scene = &package.scene;
        let assets = package.files.keys();
        let assets = assets.filter(|path| path.starts_with("assets/"));
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
            parts: scene
                .prefabs
                .iter()
                .filter(|(_, prefab)| !prefab.children.is_empty())
                .map(|(name, _)| (name.clone(), scene.prefab_parts(name).into()))
                .collect(),
            components,
            extra: BTreeMap::new(),
            sent: Vec::new(),
            assets: assets.cloned().collect(),
        }
    }

    pub fn prefab(&self, name: &str) -> Option<(u16, Rc<Components>)> {
        let index = *self.names.get(name)?;
        Some((index, self.components[usize::from(index) - 1].clone()))
    }

    /// Whether the package has an asset.
    pub fn has_asset(&self, path: &str) -> bool {
        self.assets.contains(path)
    }

    /// What is below the root of a prefab.
    pub fn parts(&self, prefab: &str) -> Rc<[PrefabPart]> {
        self.parts.get(prefab).cloned().unwrap_or_default()
    }

    /// The number of a component set that came from a script.
    ///
    /// # Errors
    /// If there are too many.
    pub fn of_components(&mut self, components: Components) -> Result<u16, MakeError> {
        let json = serde_json::to_string(&components)?;
        if let Some(index) = self.extra.get(&json) {
            return Ok(*index);
        }
        if self.extra.len() >= EXTRA_MAX {
            return Err(MakeError::TooMany);
        }
        let sent = serde_json::to_string(&components.clone().for_clients())?;
        self.components.push(Rc::new(components));
        let index = u16::try_from(self.components.len()).map_err(|_| MakeError::TooMany)?;
        self.extra.insert(json, index);
        self.sent.push(sent);
        Ok(index)
    }

    pub fn components(&self, index: u16) -> Option<Rc<Components>> {
        self.components
            .get(usize::from(index).checked_sub(1)?)
            .cloned()
    }

    /// Whether any definition satisfies `is`.
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

    /// How many definitions came from scripts.
    pub fn extra_count(&self) -> usize {
        self.sent.len()
    }

    /// The number of the first definition that came from a script.
    pub fn first_extra(&self) -> u16 {
        u16::try_from(self.prefab_count + 1).unwrap_or(u16::MAX)
    }

    /// The message that introduces a script's definition to clients, counted
    /// from 0.
    pub fn introduction(&self, number: usize) -> Option<ServerMessage> {
        let components = self.sent.get(number)?.clone();
        let index = u16::try_from(self.prefab_count + 1 + number).ok()?;
        Some(ServerMessage::Definition { index, components })
    }
}
