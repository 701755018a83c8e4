//! The Rust sources of the crates as syntax trees, for the rules about their
//! structure. Tests are left out: modules and items behind `#[cfg(test)]`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result};
use proc_macro2::TokenStream;
use syn::{Attribute, File, Item, Meta};

/// One source file of a crate.
pub struct Source {
    /// The modules from the crate's root to this file; empty for `lib.rs`.
    pub path: Vec<String>,
    pub tokens: TokenStream,
    pub tree: File,
}

impl Source {
    pub fn parse(path: &[&str], text: &str) -> Result<Self> {
        let tokens: TokenStream = text.parse().map_err(|error| anyhow::anyhow!("{error}"))?;
        Ok(Self {
            path: path.iter().map(|&name| name.to_owned()).collect(),
            tree: syn::parse2(tokens.clone())?,
            tokens,
        })
    }
}

/// Calls `work` with the sources of each crate, by the crate's folder, and
/// returns the results.
pub fn for_each_crate<T: Send>(
    root: &Path,
    files: &BTreeSet<String>,
    work: impl Fn(&[Source]) -> T + Sync,
) -> Result<BTreeMap<String, T>> {
    let mut crates: BTreeMap<String, Vec<(&str, Vec<&str>)>> = BTreeMap::new();
    for name in files {
        if let Some((folder, path)) = module_path(name) {
            crates
                .entry(folder.to_owned())
                .or_default()
                .push((name, path));
        }
    }
    // Syntax trees stay on their thread: they are not `Send`.
    thread::scope(|scope| {
        let work = &work;
        let threads = crates.into_iter().map(|(folder, files)| {
            let thread = scope.spawn(move || parse_all(root, &files).map(|sources| work(&sources)));
            (folder, thread)
        });
        let threads: Vec<_> = threads.collect();
        let results = threads.into_iter().map(|(folder, thread)| {
            let result = thread.join().expect("parsing does not panic")?;
            Ok((folder, result))
        });
        results.collect()
    })
}

fn parse_all(root: &Path, files: &[(&str, Vec<&str>)]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for (name, path) in files {
        // Deleted but not committed yet.
        let Ok(text) = fs::read_to_string(root.join(name)) else {
            continue;
        };
        sources.push(Source::parse(path, &text).with_context(|| format!("{name} is not Rust"))?);
    }
    Ok(without_tests(sources))
}

/// The crate's folder and the module path of a source file:
/// `crates/world/src/a/b.rs` is `["a", "b"]` of `crates/world`.
fn module_path(name: &str) -> Option<(&str, Vec<&str>)> {
    let (folder, path) = name.split_once("/src/")?;
    let is_crate = folder == "xtask"
        || folder
            .strip_prefix("crates/")
            .is_some_and(|name| !name.contains('/'));
    let path = path.strip_suffix(".rs").filter(|_| is_crate)?;
    let path = if matches!(path, "lib" | "main") {
        Vec::new()
    } else {
        path.split('/').collect()
    };
    Some((folder, path))
}

/// Drops the files of modules that are declared behind `#[cfg(test)]`.
fn without_tests(sources: Vec<Source>) -> Vec<Source> {
    let mut tests = BTreeSet::new();
    for source in &sources {
        for item in &source.tree.items {
            if let Item::Mod(module) = item
                && module.content.is_none()
                && is_test(&module.attrs)
            {
                let mut path = source.path.clone();
                path.push(module.ident.to_string());
                tests.insert(path);
            }
        }
    }
    let mut sources = sources;
    sources
        .retain(|source| !(1..=source.path.len()).any(|end| tests.contains(&source.path[..end])));
    sources
}

/// Whether an item exists only in tests.
pub fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => {
            list.path.is_ident("cfg") && is_test_condition(&list.tokens.to_string())
        }
        _ => false,
    })
}

/// Whether the condition of a `cfg` is about tests: `test`, `all(test, unix)`.
pub fn is_test_condition(condition: &str) -> bool {
    let mut words = condition.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words.clone().any(|word| word == "test") && !words.any(|word| word == "not")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_modules_of_crates() {
        let module = |name| module_path(name);
        assert_eq!(
            module("crates/world/src/lib.rs"),
            Some(("crates/world", vec![]))
        );
        assert_eq!(
            module("crates/world/src/a/b.rs"),
            Some(("crates/world", vec!["a", "b"]))
        );
        assert_eq!(module("xtask/src/main.rs"), Some(("xtask", vec![])));
        assert_eq!(module("crates/world/tests/a.rs"), None);
        assert_eq!(module("crates/world/tests/src/a.rs"), None);
    }

    #[test]
    fn modules_of_tests_are_dropped() {
        let sources = vec![
            Source::parse(&["a"], "#[cfg(test)] mod tests; mod b;").unwrap(),
            Source::parse(&["a", "b"], "").unwrap(),
            Source::parse(&["a", "tests"], "").unwrap(),
            Source::parse(&["a", "tests", "c"], "").unwrap(),
        ];
        let left: Vec<_> = without_tests(sources)
            .into_iter()
            .map(|source| source.path)
            .collect();
        assert_eq!(left, [vec!["a"], vec!["a", "b"]]);
    }

    #[test]
    fn conditions_about_tests_are_recognized() {
        for condition in ["test", "all (test , unix)", "any(test, feature = \"a\")"] {
            assert!(is_test_condition(condition), "{condition}");
        }
        for condition in ["not (test)", "unix", "feature = \"testing\""] {
            assert!(!is_test_condition(condition), "{condition}");
        }
    }
}
