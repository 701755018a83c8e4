//! How big a package may be. The defaults are those of the specification; an operator
//! may lower or raise them.

use serde::{Deserialize, Serialize};

/// Default size of a packed package.
pub const PACKAGE_BYTES_MAX: usize = 100_000_000;

/// Bounds that a package must stay within to be loaded.
///
/// Every size is checked before memory of that size is used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Size of the packed archive.
    pub packed_bytes_max: u64,
    /// Sum of the sizes of all files once unpacked.
    pub unpacked_bytes_max: u64,
    /// Number of entries in the archive, folders included.
    pub entries_max: usize,
    /// Size of one file once unpacked.
    pub file_bytes_max: u64,
    /// How many times bigger than its packed form a file over 1 MiB may become.
    pub ratio_max: u64,
    /// Size of game.toml.
    pub manifest_bytes_max: usize,
    /// Size of scene.json.
    pub scene_bytes_max: usize,
    /// Number of entities in the scene.
    pub entities_max: usize,
    /// Number of prefabs in the scene.
    pub prefabs_max: usize,
    /// How deep arrays and objects may nest in scene.json.
    pub json_depth_max: usize,
    /// How many parents an entity may have above it.
    pub parent_depth_max: usize,
    /// Size of one script.
    pub script_bytes_max: usize,
    /// Size of all scripts, spells and other texts together: a world compiles them when it starts.
    pub scripts_bytes_max: usize,
    /// How many problems a report lists before it only counts them.
    pub problems_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            packed_bytes_max: PACKAGE_BYTES_MAX as _,
            unpacked_bytes_max: 500_000_000,
            entries_max: 10_000,
            file_bytes_max: 100_000_000,
            ratio_max: 200,
            manifest_bytes_max: 64 << 10,
            scene_bytes_max: 64 << 20,
            entities_max: 200_000,
            prefabs_max: 10_000,
            json_depth_max: 32,
            parent_depth_max: 64,
            script_bytes_max: 256 << 10,
            scripts_bytes_max: 16 << 20,
            problems_max: 100,
        }
    }
}
