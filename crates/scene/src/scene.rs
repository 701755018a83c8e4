//! scene.json: the entities that a world starts with, and the prefabs they come from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Components, Limits, Report, canonical, parse};

/// The `terrain` of a scene.
pub type Terrain = frolic_terrain::Settings;

/// The version of the scene format that this code reads and writes.
pub const SCENE_FORMAT: u32 = 1;

/// The content of scene.json.
///
/// Get one with [`Scene::parse`], which has checked everything that can be checked without the
/// rest of the package: ids, parents and prefabs exist, numbers are finite and in range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scene {
    /// Always [`SCENE_FORMAT`].
    pub format: u32,
    /// What scripts can spawn and entities can start from, by name.
    #[serde(default)]
    pub prefabs: BTreeMap<String, Prefab>,
    /// What is in the world at its start, in the order of the file.
    #[serde(default)]
    pub entities: Vec<SceneEntity>,
    /// The ground, where it is made of blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terrain: Option<Terrain>,
}

/// A named set of components to make entities from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefab {
    /// What each entity made from it starts with.
    #[serde(default)]
    pub components: Components,
}

/// One entity of the scene.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SceneEntity {
    /// Unique in the scene, 1 to [`SceneEntity::ID_MAX`]; also the net id of the entity.
    pub id: u32,
    /// What scripts find it by; several entities may share a name.
    pub name: String,
    /// Id of the entity whose Transform this one's is relative to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
    /// Name of the prefab that it starts from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefab: Option<String>,
    /// Its own components; see [`Scene::resolved`] for how they combine with the prefab's.
    #[serde(default)]
    pub components: Components,
}

impl SceneEntity {
    /// The highest id in a scene. Entities spawned later get ids above it.
    pub const ID_MAX: u32 = 1_000_000;
}

impl Scene {
    /// Reads and checks scene.json.
    ///
    /// # Errors
    /// All problems found, each with its line and column. Warnings alone are not an error and
    /// are dropped; [`Scene::parse_with_warnings`] gives them.
    pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Scene, Report> {
        Scene::parse_with_warnings(bytes, limits).map(|(scene, _)| scene)
    }

    /// Like [`Scene::parse`]; the second value lists what is allowed but probably not meant.
    ///
    /// # Errors
    /// As [`Scene::parse`].
    pub fn parse_with_warnings(bytes: &[u8], limits: &Limits) -> Result<(Scene, Report), Report> {
        parse::parse(bytes, limits, None)
    }

    /// Like [`Scene::parse_with_warnings`] for the scene of a package: scripts and assets that
    /// components name must be among its files, of which `is_file` knows the paths.
    ///
    /// # Errors
    /// As [`Scene::parse`].
    pub fn parse_in_package(
        bytes: &[u8],
        limits: &Limits,
        is_file: &dyn Fn(&str) -> bool,
    ) -> Result<(Scene, Report), Report> {
        parse::parse(bytes, limits, Some(is_file))
    }

    /// The one way this scene is written: two-space indent, one component per line, keys in a
    /// fixed order, defaults left out, a newline at the end. Reading a file written like this
    /// and writing it again gives the same bytes.
    pub fn to_canonical_json(&self) -> String {
        canonical::write(self)
    }

    /// The components of an entity together with those of its prefab.
    ///
    /// A component of the entity replaces the prefab's as a whole, with two exceptions: tags are
    /// those of both, and attributes combine by name, the entity's winning.
    pub fn resolved(&self, entity: &SceneEntity) -> Components {
        let prefab = entity.prefab.as_ref().and_then(|p| self.prefabs.get(p));
        match prefab {
            Some(prefab) => entity.components.clone().over(&prefab.components),
            None => entity.components.clone(),
        }
    }
}
