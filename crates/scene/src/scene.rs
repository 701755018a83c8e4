//! scene.json: the entities that a world starts with, and the prefabs they come from.

use std::collections::BTreeMap;

use crate::components::Components;
use crate::overrides::Overrides;

/// The `terrain` of a scene.
pub type Terrain = frolic_terrain::Settings;

/// The newest version of the scene format. Older ones are read and written too: a scene stays in
/// its format.
pub const SCENE_FORMAT: u32 = 2;

/// The content of scene.json.
///
/// Get one with [`Scene::parse`], which has checked everything that can be checked without the
/// rest of the package: ids, parents and prefabs exist, numbers are finite and in range.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// 1 to [`SCENE_FORMAT`].
    pub format: u32,
    /// Templates that scripts spawn and entities start from, by name.
    pub prefabs: BTreeMap<String, Prefab>,
    /// The entities at the start of the world, in the order of the file.
    pub entities: Vec<SceneEntity>,
    /// The ground, where it is made of blocks.
    pub terrain: Option<Terrain>,
}

/// A named tree of components to make entities from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prefab {
    /// The initial components of each entity made from it.
    pub components: Components,
    /// The children of each entity made from it. Format 1 has none.
    pub children: Vec<PrefabChild>,
}

/// A node below the root of a prefab.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrefabChild {
    /// The name of the entity; no sibling has the same.
    pub name: String,
    /// Name of the prefab that it starts from; what is below that prefab is below it too.
    pub prefab: Option<String>,
    /// Its own components, and those that combine with the prefab's by value.
    pub components: Components,
    /// Fields of that prefab's components that it overrides.
    pub overrides: Overrides,
    /// Its children.
    pub children: Vec<PrefabChild>,
}

/// An entity's record of a child of its prefab.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InstanceChild {
    /// The id of the entity that the child makes: unique like [`SceneEntity::id`], and the same
    /// for as long as the instance exists.
    pub id: u32,
    /// Components that the child of the prefab does not have, and those that combine by value.
    pub components: Components,
    /// Fields of the child's components that the instance overrides.
    pub overrides: Overrides,
}

/// One entity of the scene.
#[derive(Clone, Debug, PartialEq)]
pub struct SceneEntity {
    /// Unique in the scene, 1 to [`SceneEntity::ID_MAX`]; also the net id of the entity.
    pub id: u32,
    /// Its name for scripts; several entities may share one.
    pub name: String,
    /// Id of the entity whose Transform this one's is relative to.
    pub parent: Option<u32>,
    /// Name of the prefab that it starts from.
    pub prefab: Option<String>,
    /// Its own components; see [`Scene::resolved`] for how they combine with the prefab's.
    pub components: Components,
    /// Fields of its prefab's components that it overrides. Format 1 has none.
    pub overrides: Overrides,
    /// Its records of the children of its prefab, by their path of names, such as
    /// `Crown/Lamp`. Format 1 has none.
    pub children: BTreeMap<String, InstanceChild>,
}

impl SceneEntity {
    /// The highest id in a scene. Entities spawned later get ids above it.
    pub const ID_MAX: u32 = 1_000_000;
}

impl Scene {
    /// The components of an entity together with those of its prefab.
    ///
    /// Tags are those of both, and attributes combine by name, the entity's winning. Of another
    /// component, the entity changes single fields; in format 1, it replaces the component as a
    /// whole.
    pub fn resolved(&self, entity: &SceneEntity) -> Components {
        let prefab = entity.prefab.as_ref().and_then(|p| self.prefabs.get(p));
        let mut components = match prefab {
            Some(prefab) => entity.components.clone().over(&prefab.components),
            None => entity.components.clone(),
        };
        entity.overrides.apply(&mut components);
        components
    }
}
