//! Which paths a package may hold: only such that every system stores as the same file,
//! and that mean the same to every program.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Problem, Report, Rule};
use frolic_scene::text::shown;

const PATH_BYTES_MAX: usize = 200;
const PATH_PARTS_MAX: usize = 12;

/// Checks one path of a file. The problem names the path and the rule.
pub(crate) fn check_path(path: &str) -> Result<(), Problem> {
    let refuse = |rule, message: &str| Err(Problem::error(rule, shown(path), message));
    if path.is_empty() || path.len() > PATH_BYTES_MAX {
        let message = format!("a path has 1 to {PATH_BYTES_MAX} characters");
        return refuse(Rule::InvalidName, &message);
    }
    if path.contains('\\') {
        return refuse(Rule::Backslash, "paths are written with /, not \\");
    }
    let bytes = path.as_bytes();
    if bytes[0] == b'/' || (bytes.len() > 1 && bytes[1] == b':') {
        return refuse(Rule::AbsolutePath, "paths start inside the package");
    }
    let parts: Vec<&str> = path.split('/').collect();
    if parts.contains(&"..") {
        return refuse(Rule::PathTraversal, "paths may not go up with ..");
    }
    if parts.len() > PATH_PARTS_MAX {
        let message = format!("folders nest at most {PATH_PARTS_MAX} deep");
        return refuse(Rule::InvalidName, &message);
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b" ._-()+@/".contains(&b);
    if !bytes.iter().all(|byte| allowed(*byte)) {
        let message = "names use letters a-z, digits, space and . _ - ( ) + @";
        return refuse(Rule::InvalidName, message);
    }
    for part in parts {
        if part.is_empty() || part.starts_with(['.', '-', ' ']) || part.ends_with(['.', ' ']) {
            let message = "names do not start with . - or space, nor end with . or space";
            return refuse(Rule::InvalidName, message);
        }
        if is_device(part) {
            let message = format!("\"{part}\" is a device name on Windows");
            return refuse(Rule::ReservedName, &message);
        }
    }
    Ok(())
}

fn is_device(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or(part).trim_end();
    let stem = stem.to_ascii_uppercase();
    let numbered = |prefix| {
        let rest = stem.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.len() == 1 && rest.as_bytes()[0].is_ascii_digit())
    };
    let devices = ["CON", "PRN", "AUX", "NUL", "CLOCK$", "CONIN$", "CONOUT$"];
    devices.contains(&stem.as_str()) || numbered("COM") || numbered("LPT")
}

/// The paths of a package so far, to notice those that cannot be together.
#[derive(Default)]
pub(crate) struct PathSet {
    /// Lower-case path to the path as it was first written.
    files: BTreeMap<String, String>,
    /// Lower-case folders to the way they were first written.
    folders: BTreeMap<String, String>,
    reported: BTreeSet<String>,
}

impl PathSet {
    /// Adds the path of a file, checked by [`check_path`] before.
    pub(crate) fn add(&mut self, path: &str, report: &mut Report) {
        let folded = path.to_ascii_lowercase();
        if let Some(first) = self.files.insert(folded.clone(), path.to_owned()) {
            report.push(if first == path {
                Problem::error(Rule::DuplicateName, path, "appears twice in the package")
            } else {
                let message = format!("differs from {first} only in upper and lower case");
                Problem::error(Rule::CaseCollision, path, message)
            });
        }
        if self.folders.contains_key(&folded) {
            self.file_and_folder(&folded, path, report);
        }
        for (at, _) in path.match_indices('/') {
            let folder = &folded[..at];
            if self.files.contains_key(folder) {
                self.file_and_folder(folder, path, report);
            }
            match self.folders.get(folder) {
                Some(first) if *first == path[..at] => {}
                Some(first) => {
                    let message = format!("its folder is elsewhere written {first}/");
                    if self.reported.insert(folder.to_owned()) {
                        report.push(Problem::error(Rule::CaseCollision, path, message));
                    }
                }
                None => {
                    self.folders
                        .insert(folder.to_owned(), path[..at].to_owned());
                }
            }
        }
    }

    fn file_and_folder(&mut self, folder: &str, path: &str, report: &mut Report) {
        if self.reported.insert(folder.to_owned()) {
            let message = format!("{folder} is both a file and a folder");
            report.push(Problem::error(Rule::FileAndFolder, path, message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(path: &str) -> Option<Rule> {
        check_path(path).err().map(|problem| problem.rule)
    }

    #[test]
    fn ordinary_paths_pass() {
        for path in [
            "game.toml",
            "assets/Grass Tile (2).png",
            "scripts/A/b/c-d_e.luau",
        ] {
            assert_eq!(rule(path), None, "{path}");
        }
    }

    #[test]
    fn every_bad_path_is_refused_by_its_rule() {
        let long = "a".repeat(201);
        let deep = "a/".repeat(12) + "a";
        for (path, expected) in [
            ("", Rule::InvalidName),
            (long.as_str(), Rule::InvalidName),
            (deep.as_str(), Rule::InvalidName),
            ("../etc/passwd", Rule::PathTraversal),
            ("assets/../../x", Rule::PathTraversal),
            ("/etc/passwd", Rule::AbsolutePath),
            ("C:/x", Rule::AbsolutePath),
            ("c:x", Rule::AbsolutePath),
            ("..\\x", Rule::Backslash),
            ("a//b", Rule::InvalidName),
            ("./a", Rule::InvalidName),
            ("a/.git", Rule::InvalidName),
            ("-rf", Rule::InvalidName),
            ("a.", Rule::InvalidName),
            ("a ", Rule::InvalidName),
            ("a\0b", Rule::InvalidName),
            ("a\u{202e}b", Rule::InvalidName),
            ("é.png", Rule::InvalidName),
            ("a*b", Rule::InvalidName),
            ("assets/con", Rule::ReservedName),
            ("assets/Nul.png", Rule::ReservedName),
            ("COM1.txt", Rule::ReservedName),
            ("lpt9", Rule::ReservedName),
        ] {
            assert_eq!(rule(path), Some(expected), "{path:?}");
        }
    }

    #[test]
    fn paths_that_cannot_be_together_are_noticed() {
        for (paths, expected) in [
            (["a/b", "a/b"], Rule::DuplicateName),
            (["a/B", "a/b"], Rule::CaseCollision),
            (["A/x", "a/y"], Rule::CaseCollision),
            (["a", "a/b"], Rule::FileAndFolder),
            (["A/b", "a"], Rule::FileAndFolder),
        ] {
            let mut report = Report::default();
            let mut set = PathSet::default();
            paths.iter().for_each(|path| set.add(path, &mut report));
            assert!(report.broke(expected), "{paths:?}: {report}");
        }
    }
}
