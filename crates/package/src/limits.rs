//! How big a package may be. The defaults are those of the specification; an operator
//! may lower or raise them.

use serde::{Deserialize, Serialize};

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

/// Size of a text for people, such as README.md, and of anything else that is no asset.
pub(crate) const TEXT_BYTES_MAX: usize = 256 << 10;

impl Limits {
    /// How big the file at this path may be, by what it is for.
    #[cfg(feature = "archive")]
    pub(crate) fn file_bytes_max_at(&self, path: &str) -> u64 {
        let folder = path.split_once('/').map_or("", |(folder, _)| folder);
        let max = match (folder, path) {
            ("assets", _) => return self.file_bytes_max,
            ("", "scene.json") => self.scene_bytes_max,
            ("", "game.toml" | "remotes.toml") => self.manifest_bytes_max,
            ("scripts" | "spells", _) => self.script_bytes_max,
            _ => TEXT_BYTES_MAX,
        };
        self.file_bytes_max.min(max as u64)
    }

    /// Whether the file at this path counts towards [`Limits::scripts_bytes_max`].
    #[cfg(feature = "archive")]
    pub(crate) fn counts_as_script(path: &str) -> bool {
        !path.starts_with("assets/") && !matches!(path, "scene.json" | "game.toml")
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            packed_bytes_max: 100_000_000,
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
