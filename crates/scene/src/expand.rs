//! The entities that prefabs with children make.

use std::collections::BTreeMap;

use crate::{Components, InstanceChild, Overrides, Prefab, PrefabChild, Scene, SceneEntity};

/// The most entities below the root of one prefab.
pub const PREFAB_PARTS_MAX: usize = 1_000;
/// How deep they nest at most.
pub(crate) const PREFAB_DEPTH_MAX: usize = 32;

/// An entity below the root of a prefab.
#[derive(Clone, Debug, PartialEq)]
pub struct PrefabPart {
    /// The names from below the root down to it, such as `Crown/Lamp`.
    pub path: String,
    /// Its own name.
    pub name: String,
    /// Where its parent is in the list; none for the root of the prefab.
    pub parent: Option<usize>,
    /// The prefab that it starts from.
    pub prefab: Option<String>,
    /// Its components, together with those of that prefab.
    pub components: Components,
}

impl Scene {
    /// The entities below the root of a prefab, parents first; none for an unknown name.
    pub fn prefab_parts(&self, prefab: &str) -> Vec<PrefabPart> {
        let mut parts = Vec::new();
        if let Some(prefab) = self.prefabs.get(prefab) {
            add(&self.prefabs, &prefab.children, None, 0, &mut parts);
        }
        parts
    }

    /// The scene that a world runs: every entity on its own, with all its components, those below
    /// the root of a prefab among them. Prefabs stay as they are, because scripts spawn them.
    #[must_use]
    pub fn expand(self) -> Scene {
        if self.format < 2 {
            return self;
        }
        let mut parts_of: BTreeMap<&str, Vec<PrefabPart>> = BTreeMap::new();
        let mut entities = Vec::with_capacity(self.entities.len());
        for entity in &self.entities {
            entities.push(SceneEntity {
                components: self.resolved(entity),
                overrides: Overrides::default(),
                children: BTreeMap::new(),
                name: entity.name.clone(),
                prefab: entity.prefab.clone(),
                ..*entity
            });
            let Some(prefab) = entity.prefab.as_deref() else {
                continue;
            };
            let parts = parts_of
                .entry(prefab)
                .or_insert_with(|| self.prefab_parts(prefab));
            let id_of = |path: &str| entity.children.get(path).map(|child| child.id);
            for part in parts.iter() {
                let Some(child) = entity.children.get(&part.path) else {
                    continue;
                };
                let parent = part.parent.and_then(|index| id_of(&parts.get(index)?.path));
                entities.push(SceneEntity {
                    id: child.id,
                    name: part.name.clone(),
                    parent: parent.or(Some(entity.id)),
                    prefab: part.prefab.clone(),
                    components: child.resolved(part),
                    overrides: Overrides::default(),
                    children: BTreeMap::new(),
                });
            }
        }
        Scene { entities, ..self }
    }

    /// An expanded scene as clients receive it: in format 1, without prefab children and without
    /// what players must not know. See [`Components::for_clients`].
    #[must_use]
    pub fn for_clients(&self) -> Scene {
        let mut scene = self.clone();
        scene.format = 1;
        for prefab in scene.prefabs.values_mut() {
            prefab.children.clear();
            prefab.components = std::mem::take(&mut prefab.components).for_clients();
        }
        for entity in &mut scene.entities {
            entity.components = std::mem::take(&mut entity.components).for_clients();
        }
        scene
    }

    /// The components of every prefab, prefab child and entity.
    pub fn all_components(&self) -> impl Iterator<Item = Components> {
        let of_prefabs = self.prefabs.iter().flat_map(|(name, prefab)| {
            let parts = self.prefab_parts(name).into_iter();
            let parts = parts.map(|part| part.components);
            parts.chain([prefab.components.clone()])
        });
        of_prefabs.chain(self.entities.iter().map(|entity| self.resolved(entity)))
    }

    /// Changes the path of every script that a component names.
    pub fn map_script_paths(&mut self, change: &dyn Fn(&str) -> String) {
        for prefab in self.prefabs.values_mut() {
            map_scripts(&mut prefab.components, &mut Overrides::default(), change);
            map_children(&mut prefab.children, change);
        }
        for entity in &mut self.entities {
            map_scripts(&mut entity.components, &mut entity.overrides, change);
            for child in entity.children.values_mut() {
                map_scripts(&mut child.components, &mut child.overrides, change);
            }
        }
    }
}

impl InstanceChild {
    /// The components of a prefab's part as this instance has them.
    pub fn resolved(&self, part: &PrefabPart) -> Components {
        let mut components = self.components.clone().over(&part.components);
        self.overrides.apply(&mut components);
        components
    }
}

impl PrefabChild {
    /// Its components together with those of the prefab that it starts from.
    pub fn resolved(&self, prefabs: &BTreeMap<String, Prefab>) -> Components {
        let prefab = self.prefab.as_ref().and_then(|name| prefabs.get(name));
        let mut components = match prefab {
            Some(prefab) => self.components.clone().over(&prefab.components),
            None => self.components.clone(),
        };
        self.overrides.apply(&mut components);
        components
    }
}

/// Adds children and what is below them. The reader of scenes refuses trees beyond the bounds;
/// here they end the walk, so that no hand-made scene runs away.
pub(crate) fn add(
    prefabs: &BTreeMap<String, Prefab>,
    children: &[PrefabChild],
    parent: Option<usize>,
    depth: usize,
    parts: &mut Vec<PrefabPart>,
) {
    if depth >= PREFAB_DEPTH_MAX {
        return;
    }
    for child in children {
        if parts.len() > PREFAB_PARTS_MAX {
            return;
        }
        let above = parent.and_then(|index| parts.get(index));
        let path = match above {
            Some(above) => format!("{}/{}", above.path, child.name),
            None => child.name.clone(),
        };
        let index = parts.len();
        parts.push(PrefabPart {
            path,
            name: child.name.clone(),
            parent,
            prefab: child.prefab.clone(),
            components: child.resolved(prefabs),
        });
        let prefab = child.prefab.as_ref().and_then(|name| prefabs.get(name));
        if let Some(prefab) = prefab {
            add(prefabs, &prefab.children, Some(index), depth + 1, parts);
        }
        add(prefabs, &child.children, Some(index), depth + 1, parts);
    }
}

fn map_children(children: &mut [PrefabChild], change: &dyn Fn(&str) -> String) {
    for child in children {
        map_scripts(&mut child.components, &mut child.overrides, change);
        map_children(&mut child.children, change);
    }
}

fn map_scripts(
    components: &mut Components,
    overrides: &mut Overrides,
    change: &dyn Fn(&str) -> String,
) {
    if let Some(script) = &mut components.script {
        script.path = change(&script.path);
    }
    let fields = overrides.get_mut(crate::ComponentKind::Script);
    if let Some(path) = fields.and_then(|fields| fields.get_mut("path"))
        && let Some(text) = path.as_str()
    {
        *path = change(text).into();
    }
}
