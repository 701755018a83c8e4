//! Which limit applies to a file of a package.

use crate::Limits;

/// Size of a text for people, such as README.md, and of anything else that is no asset.
pub(crate) const TEXT_BYTES_MAX: usize = 256 << 10;

/// How big the file at this path may be, by what it is for.
pub(crate) fn file_bytes_max_at(limits: &Limits, path: &str) -> u64 {
    let folder = path.split_once('/').map_or("", |(folder, _)| folder);
    let max = match (folder, path) {
        ("assets", _) => return limits.file_bytes_max,
        ("", "scene.json") => limits.scene_bytes_max,
        ("", "game.toml" | "remotes.toml") => limits.manifest_bytes_max,
        ("scripts" | "spells", _) => limits.script_bytes_max,
        _ => TEXT_BYTES_MAX,
    };
    limits.file_bytes_max.min(max as u64)
}

/// Whether the file at this path counts towards [`Limits::scripts_bytes_max`].
pub(crate) fn counts_as_script(path: &str) -> bool {
    !path.starts_with("assets/") && !matches!(path, "scene.json" | "game.toml")
}
