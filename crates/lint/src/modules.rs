//! Which modules a package has, as far as `require` could mean them.

use std::collections::BTreeSet;

use crate::Files;

/// Names by which something in the package can be required.
pub struct Modules(BTreeSet<String>);

impl Modules {
    /// Every file and folder of scripts by its own name, whatever folder it is
    /// in: how a path is resolved is the engine's business, and a name that is
    /// nowhere is missing under all of its rules.
    pub fn of(files: &Files) -> Self {
        let mut names = BTreeSet::new();
        for path in files.keys() {
            for part in path.split('/') {
                let stem = part
                    .strip_suffix(".luau")
                    .or_else(|| part.strip_suffix(".lua"));
                names.insert(stem.unwrap_or(part).to_owned());
            }
        }
        Self(names)
    }

    /// Whether a path like `Util`, `./Util.luau` or `@game/Shared/Util` may lead
    /// to something here.
    pub fn may_have(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let last = path.rsplit('/').next().unwrap_or(path);
        let stem = last
            .strip_suffix(".luau")
            .or_else(|| last.strip_suffix(".lua"));
        let name = stem.unwrap_or(last);
        // `..`, `@self` and aliases are folders, which have no name of their own.
        name.is_empty() || name.starts_with(['.', '@']) || self.0.contains(name)
    }

    /// The name that was probably meant.
    pub fn closest(&self, path: &str) -> Option<&str> {
        let last = path.rsplit('/').next().unwrap_or(path);
        crate::closest(last, self.0.iter().map(String::as_str))
    }
}
