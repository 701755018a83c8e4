//! Which files of a creator's folder are the game. Tools of other people may keep
//! their files there: what is not the game's is left out, and where a Rojo project
//! says that a folder belongs to a service, its scripts are taken from there.

use std::collections::BTreeMap;

use crate::package::DOCUMENTS;

/// The file that says where Rojo takes scripts from.
pub const PROJECT_FILE: &str = "default.project.json";
/// Larger files are not project files.
const PROJECT_BYTES_MAX: usize = 1 << 20;
/// Folders of a project inside each other.
const PROJECT_DEPTH_MAX: usize = 16;

/// Where Wally puts packages, for projects that do not say.
const PACKAGES: [(&str, &str); 2] = [
    ("Packages", "scripts/ReplicatedStorage/Packages"),
    ("ServerPackages", "scripts/ServerStorage/Packages"),
];
/// Folders of a game.
const FOLDERS: [&str; 4] = ["assets", "scripts", "spells", "terrain"];
/// Files of tools, which are left out without a warning.
const TOOL_FILES: [&str; 15] = [
    "aftman.toml",
    "default.project.json",
    "foreman.toml",
    "frolic.d.luau",
    "globalTypes.d.lua",
    "globalTypes.d.luau",
    "package-lock.json",
    "package.json",
    "rokit.toml",
    "selene.toml",
    "sourcemap.json",
    "stylua.toml",
    "tsconfig.json",
    "wally.lock",
    "wally.toml",
];
const TOOL_FOLDERS: [&str; 4] = ["DevPackages", "Packages", "ServerPackages", "node_modules"];

/// How a file of the folder is treated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// It is in the package under this path.
    Part(String),
    /// It belongs to a tool or an editor.
    Tool,
    /// It is not part of a game, although its creator may expect so: a warning names it.
    LeftOut,
}

/// The rules for one folder.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Folders and files, and where they are in the package; the longest first.
    mounts: Vec<(String, String)>,
    /// Content folders of the projects of packages, by folder.
    nested: BTreeMap<String, String>,
}

impl Layout {
    /// With the bytes of the folder's `default.project.json`, if it has one.
    pub fn new(project: Option<&[u8]>) -> Self {
        let mut mounts = Vec::new();
        if let Some(tree) = project.and_then(tree_of) {
            find_mounts(&tree, "scripts", 0, &mut mounts);
        }
        for (from, to) in PACKAGES {
            if !mounts.iter().any(|(known, _)| known == from) {
                mounts.push((from.to_owned(), to.to_owned()));
            }
        }
        mounts.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
        Self {
            mounts,
            nested: BTreeMap::new(),
        }
    }

    /// A package below `folder` has a project of its own: Rojo takes what it
    /// names for the folder.
    pub fn add_project(&mut self, folder: &str, project: &[u8]) {
        let path = tree_of(project).and_then(|tree| path_of(&tree));
        if let Some(path) = path.filter(|path| !path.is_empty() && path != ".") {
            self.nested.insert(folder.to_owned(), path);
        }
    }

    /// Whether anything of the game can be in a folder beside game.toml.
    pub fn has_folder(&self, name: &str) -> bool {
        let is_mounted = |from: &str| from.split('/').next() == Some(name);
        FOLDERS.contains(&name) || self.mounts.iter().any(|(from, _)| is_mounted(from))
    }

    /// How the file at a path below the folder is treated.
    pub fn place(&self, path: &str) -> Placement {
        let name = path.rsplit('/').next().unwrap_or(path);
        if is_backup(name) {
            return Placement::Tool;
        }
        let (top, _) = path.split_once('/').unwrap_or(("", path));
        let Some(path) = self.unwrapped(path).map(|path| self.mounted(&path)) else {
            return Placement::Tool;
        };
        let (folder, rest) = path.split_once('/').unwrap_or(("", &path));
        let is_part = match folder {
            "" => is_own_file(rest),
            "scripts" => is_script(rest),
            _ => FOLDERS.contains(&folder),
        };
        if is_part {
            return Placement::Part(path);
        }
        let is_tool = TOOL_FILES.contains(&name)
            || TOOL_FOLDERS.contains(&top)
            || name.ends_with(".meta.json")
            || path.contains("/_Index/");
        match is_tool {
            true => Placement::Tool,
            false => Placement::LeftOut,
        }
    }

    /// The path without the folders that a package's own project leaves out;
    /// none for what it does not take.
    fn unwrapped(&self, path: &str) -> Option<String> {
        let inside = |folder: &str| {
            let rest = path.strip_prefix(folder)?;
            rest.strip_prefix('/')
        };
        let projects = self.nested.iter().rev();
        let found = projects.filter_map(|(folder, taken)| Some((folder, taken, inside(folder)?)));
        let Some((folder, taken, rest)) = found.max_by_key(|(folder, ..)| folder.len()) else {
            return Some(path.to_owned());
        };
        if rest == taken {
            return Some(format!("{folder}{}", ending(taken)));
        }
        let rest = rest.strip_prefix(taken.as_str())?.strip_prefix('/')?;
        Some(format!("{folder}/{rest}"))
    }

    fn mounted(&self, path: &str) -> String {
        for (from, to) in &self.mounts {
            if path == from {
                return format!("{to}{}", ending(from));
            }
            if let Some(rest) = path.strip_prefix(from.as_str())
                && rest.starts_with('/')
            {
                return format!("{to}{rest}");
            }
        }
        path.to_owned()
    }
}

fn tree_of(project: &[u8]) -> Option<serde_json::Value> {
    if project.len() > PROJECT_BYTES_MAX {
        return None;
    }
    let mut project: serde_json::Value = serde_json::from_slice(project).ok()?;
    Some(project.get_mut("tree")?.take())
}

/// `"$path": "src"` or `"$path": { "optional": "src" }`.
fn path_of(node: &serde_json::Value) -> Option<String> {
    let path = node.get("$path")?;
    let path = path.as_str().or_else(|| path.get("optional")?.as_str())?;
    let path = path.strip_prefix("./").unwrap_or(path);
    Some(path.trim_end_matches('/').to_owned())
}

fn find_mounts(
    node: &serde_json::Value,
    place: &str,
    depth: usize,
    mounts: &mut Vec<(String, String)>,
) {
    let Some(children) = node.as_object().filter(|_| depth < PROJECT_DEPTH_MAX) else {
        return;
    };
    // The tree itself is the game, and its children are services.
    if let Some(path) = path_of(node).filter(|path| depth > 0 && !path.is_empty()) {
        mounts.push((path, place.to_owned()));
    }
    for (name, child) in children.iter().filter(|(name, _)| !name.starts_with('$')) {
        find_mounts(child, &format!("{place}/{name}"), depth + 1, mounts);
    }
}

/// `.server.luau` of `src/Main.server.luau`.
fn ending(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    for ending in [
        ".server.luau",
        ".client.luau",
        ".server.lua",
        ".client.lua",
        ".luau",
        ".lua",
    ] {
        if name.ends_with(ending) {
            return &name[name.len() - ending.len()..];
        }
    }
    ""
}

/// Files that editors and operating systems create.
fn is_backup(name: &str) -> bool {
    let ends = [
        "~", ".swp", ".swo", ".swx", ".bak", ".orig", ".rej", ".tmp", ".crswap",
    ];
    ends.iter().any(|end| name.ends_with(end))
        || name.starts_with(['.', '#'])
        || matches!(name, "Thumbs.db" | "desktop.ini" | "Icon\r")
}

fn is_own_file(name: &str) -> bool {
    matches!(name, "game.toml" | "scene.json" | "remotes.toml") || DOCUMENTS.contains(&name)
}

fn is_script(path: &str) -> bool {
    let endings = [".luau", ".lua", ".soul"];
    endings.iter().any(|ending| path.ends_with(ending)) && !path.ends_with(".d.luau")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(path: &str) -> Placement {
        Placement::Part(path.to_owned())
    }

    #[test]
    fn what_tools_and_editors_keep_is_left_out() {
        let layout = Layout::new(None);
        for own in [
            "game.toml",
            "scene.json",
            "remotes.toml",
            "README.md",
            "scripts/StarterGui/Hud.luau",
            "scripts/Workspace/Door.soul",
            "assets/a.png",
            "assets/typo.pgn",
            "spells/fire/spell.toml",
        ] {
            assert_eq!(layout.place(own), part(own));
        }
        for tool in [
            "default.project.json",
            "wally.toml",
            "wally.lock",
            "selene.toml",
            ".luaurc",
            "scripts/StarterGui/Hud.luau~",
            "scripts/StarterGui/.Hud.luau.swp",
            "scripts/StarterGui/#Hud.luau#",
            "assets/Thumbs.db",
            "scripts/ReplicatedStorage/init.meta.json",
            "Packages/_Index/a_b@1.0.0/b/README.md",
            "DevPackages/TestEZ.lua",
        ] {
            assert_eq!(layout.place(tool), Placement::Tool, "{tool}");
        }
        for other in [
            "notes.txt",
            "scripts/StarterGui/Hud.lau",
            "script/Main.luau",
            "docs/a.md",
        ] {
            assert_eq!(layout.place(other), Placement::LeftOut, "{other}");
        }
        assert!(layout.has_folder("Packages") && layout.has_folder("scripts"));
        assert!(!layout.has_folder("node_modules") && !layout.has_folder("src"));
    }

    #[test]
    fn a_rojo_project_says_where_scripts_are() {
        let project = br#"{ "name": "game", "tree": { "$className": "DataModel",
            "ReplicatedStorage": { "Shared": { "$path": "src/shared" }, "Packages": { "$path": "Packages" } },
            "ServerScriptService": { "$path": "src/server", "Boot": { "$path": "boot.server.luau" } },
            "StarterPlayer": { "StarterPlayerScripts": { "$path": { "optional": "./src/client/" } } },
            "Workspace": { "$properties": { "Gravity": 5 } } } }"#;
        let layout = Layout::new(Some(project));
        for (from, to) in [
            (
                "src/shared/Util.luau",
                "scripts/ReplicatedStorage/Shared/Util.luau",
            ),
            (
                "src/shared/Deep/init.lua",
                "scripts/ReplicatedStorage/Shared/Deep/init.lua",
            ),
            (
                "src/server/Main.server.luau",
                "scripts/ServerScriptService/Main.server.luau",
            ),
            (
                "boot.server.luau",
                "scripts/ServerScriptService/Boot.server.luau",
            ),
            (
                "src/client/Hud.client.luau",
                "scripts/StarterPlayer/StarterPlayerScripts/Hud.client.luau",
            ),
            (
                "Packages/Signal.lua",
                "scripts/ReplicatedStorage/Packages/Signal.lua",
            ),
            (
                "ServerPackages/Data.lua",
                "scripts/ServerStorage/Packages/Data.lua",
            ),
            ("scripts/Workspace/A.luau", "scripts/Workspace/A.luau"),
        ] {
            assert_eq!(layout.place(from), part(to), "{from}");
        }
        assert!(layout.has_folder("src"));
        assert_eq!(layout.place("src/other/A.luau"), Placement::LeftOut);
        // A file that is no project has no effect.
        for odd in [
            &b"{"[..],
            b"[]",
            b"{\"tree\":5}",
            b"{\"tree\":{\"a\":{\"$path\":\"\"}}}",
        ] {
            let layout = Layout::new(Some(odd));
            assert_eq!(layout.place("scripts/A/B.luau"), part("scripts/A/B.luau"));
        }
    }

    #[test]
    fn a_package_of_wally_is_what_its_own_project_takes() {
        let mut layout = Layout::new(None);
        let folder = "Packages/_Index/evaera_promise@4.0.0/promise";
        layout.add_project(
            folder,
            br#"{ "name": "promise", "tree": { "$path": "lib" } }"#,
        );
        let file = "Packages/_Index/x_one@1.0.0/one";
        layout.add_project(file, br#"{ "tree": { "$path": "src/One.lua" } }"#);
        let to = "scripts/ReplicatedStorage/Packages/_Index";
        assert_eq!(
            layout.place(&format!("{folder}/lib/init.lua")),
            part(&format!("{to}/evaera_promise@4.0.0/promise/init.lua"))
        );
        assert_eq!(layout.place(&format!("{folder}/lib.lua")), Placement::Tool);
        assert_eq!(
            layout.place(&format!("{folder}/tests/a.lua")),
            Placement::Tool
        );
        assert_eq!(
            layout.place(&format!("{file}/src/One.lua")),
            part(&format!("{to}/x_one@1.0.0/one.lua"))
        );
        assert_eq!(
            layout.place("Packages/Promise.lua"),
            part("scripts/ReplicatedStorage/Packages/Promise.lua")
        );
    }
}
