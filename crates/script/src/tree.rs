//! The scripts of a game as a tree, and static analysis of what a source text
//! requires from it: clients receive at the start what they will need at once.
//! `builtin/common/tree.luau` is the same at run time.

mod scan;

use std::collections::{BTreeMap, BTreeSet};

use crate::service::Service;

use self::scan::{Step, Wanted};

/// Longest text that `require` takes.
const NAME_BYTES_MAX: usize = 200;

/// Scripts by their place in the tree, as in Rojo: a file is a node of its
/// name, a folder with `init.luau` is itself a module.
#[derive(Clone, Debug, Default)]
pub struct ModuleTree {
    /// Files by the path of their node, such as `ReplicatedStorage/Util`.
    files: BTreeMap<String, String>,
}

/// Modules that a script requires, as far as they can be determined statically.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requires {
    /// Files of modules.
    pub modules: BTreeSet<String>,
    /// It also requires something that is known only at run time.
    pub unknown: bool,
}

impl ModuleTree {
    /// The tree of files with these paths below `scripts/`.
    pub fn new<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let mut files = BTreeMap::new();
        for path in paths {
            let node = node_of(path).to_owned();
            files.entry(node).or_insert_with(|| path.to_owned());
        }
        Self { files }
    }

    /// Modules that the script at `path` requires.
    pub fn requires(&self, path: &str, source: &str) -> Requires {
        let mut found = Requires::default();
        for wanted in scan::requires(source) {
            let node = match wanted {
                Wanted::Text(text) => self.resolve(&text, path),
                Wanted::Chain(steps) => follow(path, &steps),
                Wanted::Unknown => {
                    found.unknown = true;
                    None
                }
            };
            let file = node.and_then(|node| self.files.get(&node));
            found.modules.extend(file.cloned());
        }
        found
    }

    /// The node that an argument of `require` refers to in a file.
    fn resolve(&self, text: &str, file: &str) -> Option<String> {
        if text.is_empty() || text.len() > NAME_BYTES_MAX {
            return None;
        }
        let text = without_ending(text);
        if let Some(inside) = text.strip_prefix("@self/") {
            return walk(node_of(file), inside);
        }
        let top = Service::ReplicatedStorage.name();
        if text.starts_with("./") || text.starts_with("../") {
            let near = parent_of(node_of(file)).and_then(|parent| walk(parent, text));
            let near = near.filter(|node| self.files.contains_key(node));
            return near.or_else(|| walk(top, text));
        }
        let text = text.strip_prefix("@game/").unwrap_or(text);
        let text = text.strip_prefix('@').unwrap_or(text);
        match text.split_once('/') {
            Some((service, rest)) if Service::of_path(text).is_some() => walk(service, rest),
            _ => walk(top, text),
        }
    }
}

/// The node that `script.Parent.Util` and the like refer to.
fn follow(file: &str, steps: &[Step]) -> Option<String> {
    let (first, rest) = steps.split_first()?;
    let mut node = match first {
        Step::Script => node_of(file).to_owned(),
        Step::Game => String::new(),
        Step::Child(_) => return None,
    };
    for step in rest {
        match step {
            Step::Child(name) if name == "Parent" => {
                node = parent_of(&node).unwrap_or_default().to_owned();
            }
            Step::Child(name) => add(&mut node, name),
            Step::Script | Step::Game => return None,
        }
    }
    Some(node)
}

fn walk(from: &str, rest: &str) -> Option<String> {
    let mut node = from.to_owned();
    for part in rest.split('/').filter(|part| !part.is_empty()) {
        match part {
            "." => {}
            ".." if node.is_empty() => return None,
            // Above the services is the game.
            ".." => node = parent_of(&node).unwrap_or_default().to_owned(),
            name => add(&mut node, name),
        }
    }
    Some(node)
}

/// Descends to a child; the game itself has no name.
fn add(node: &mut String, name: &str) {
    if !node.is_empty() {
        node.push('/');
    }
    node.push_str(name);
}

fn parent_of(node: &str) -> Option<&str> {
    node.rsplit_once('/').map(|(parent, _)| parent)
}

fn without_ending(path: &str) -> &str {
    let stem = path.strip_suffix(".luau");
    stem.or_else(|| path.strip_suffix(".lua")).unwrap_or(path)
}

/// The node of a file.
fn node_of(file: &str) -> &str {
    let path = without_ending(file);
    let stem = path.strip_suffix(".server");
    let path = stem
        .or_else(|| path.strip_suffix(".client"))
        .unwrap_or(path);
    match path.rsplit_once('/') {
        Some((folder, "init")) if folder.contains('/') => folder,
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [&str; 9] = [
        "ReplicatedStorage/Util.luau",
        "ReplicatedStorage/Pack/init.luau",
        "ReplicatedStorage/Pack/Part.lua",
        "ReplicatedStorage/Pack/Deep/init.luau",
        "ReplicatedStorage/Packages/_Index/a_b@1.2.0/b/init.luau",
        "ReplicatedStorage/Packages/b.luau",
        "ServerStorage/Secret.luau",
        "ServerScriptService/Main.server.luau",
        "ServerScriptService/Near.luau",
    ];

    fn found(path: &str, source: &str) -> Vec<String> {
        let requires = ModuleTree::new(FILES).requires(path, source);
        let unknown = requires.unknown.then(|| "?".to_owned());
        requires.modules.into_iter().chain(unknown).collect()
    }

    #[test]
    fn modules_are_found_however_they_are_written() {
        let main = "ServerScriptService/Main.server.luau";
        let init = "ReplicatedStorage/Pack/init.luau";
        for (path, source, expected) in [
            (main, "require('Util')", "ReplicatedStorage/Util.luau"),
            (
                main,
                "require \"Pack/Part.lua\"",
                "ReplicatedStorage/Pack/Part.lua",
            ),
            (
                main,
                "require(`@ReplicatedStorage/Util.luau`)",
                "ReplicatedStorage/Util.luau",
            ),
            (main, "require(\"./Near\")", "ServerScriptService/Near.luau"),
            (main, "require('./Util')", "ReplicatedStorage/Util.luau"),
            (
                main,
                "require('../ReplicatedStorage/Util')",
                "ReplicatedStorage/Util.luau",
            ),
            (
                main,
                "require('ServerStorage/Secret')",
                "ServerStorage/Secret.luau",
            ),
            (
                main,
                "require(script.Parent.Near)",
                "ServerScriptService/Near.luau",
            ),
            (
                main,
                "require(game.ServerStorage.Secret)",
                "ServerStorage/Secret.luau",
            ),
            (
                main,
                "local RS = game:GetService('ReplicatedStorage')\nlocal P = RS.Pack\nrequire(P:WaitForChild(\"Part\"))",
                "ReplicatedStorage/Pack/Part.lua",
            ),
            (
                init,
                "return require(script.Part)",
                "ReplicatedStorage/Pack/Part.lua",
            ),
            (
                init,
                "require('@self/Deep')",
                "ReplicatedStorage/Pack/Deep/init.luau",
            ),
            (init, "require('./Util')", "ReplicatedStorage/Util.luau"),
            (
                "ReplicatedStorage/Packages/b.luau",
                "return require(script.Parent._Index[\"a_b@1.2.0\"][\"b\"])",
                "ReplicatedStorage/Packages/_Index/a_b@1.2.0/b/init.luau",
            ),
            (main, "require(name)", "?"),
            (main, "pcall(require, 'Util')", "?"),
            (
                main,
                "-- require('Util')\nlocal s = \"require('Util')\" x.require(y) requires('Util')",
                "",
            ),
        ] {
            let list = found(path, source).join(" ");
            assert_eq!(list, expected, "{source}");
        }
    }

    #[test]
    fn odd_texts_do_not_panic() {
        for text in [
            "require",
            "require(",
            "require(\"",
            "require('ü",
            "require(\"\")",
            "ürequire\"a",
            "require(script.",
            "require(script[",
            "require(script:",
            "require(game:GetService(",
            "local x =",
            "local",
            "--[[",
            "--[==[ ]=]",
            "[[ require",
            "require(script.Parent.Parent.Parent.Parent)",
            "\\",
            "'\\",
        ] {
            found("ReplicatedStorage/Util.luau", text);
            found("x", text);
        }
    }
}
