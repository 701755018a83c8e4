//! `cargo xtask test --changed`: which tests depend on the files that differ
//! from a commit.
//!
//! - Crates: those with a changed file, and what depends on them in cargo's
//!   graph. A crate that needs another for its tests only runs with it, but
//!   what depends on that crate does not.
//! - Tests of processes (`crates/frolic/tests`) and of browsers (`web/e2e`) run
//!   the whole product, so each names the folders it covers in a line
//!   `// Covers: `. A test of a process without such a line always runs with
//!   its crate, and all of them do when that crate itself changed.
//!
//! The rest runs in `cargo xtask test`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::workspace::Workspace;

/// The comment by which a test names what it covers, in its first lines.
const COVERS: &str = "// Covers: ";
/// Files that every crate depends on.
const BUILD_FILES: [&str; 4] = [
    "Cargo.toml",
    "Cargo.lock",
    "clippy.toml",
    ".cargo/config.toml",
];

/// The tests to run again.
pub struct Changed {
    /// Folders of the crates that depend on a changed file.
    pub crates: BTreeSet<PathBuf>,
    /// Whether the site's unit tests, types and lints can have changed.
    pub web: bool,
    /// Whether the build program itself changed.
    pub xtask: bool,
    /// Browser tests by file name.
    pub browser: Vec<String>,
    /// Modules of test programs that cover none of the changes, by the folder
    /// of their crate.
    pub skipped: BTreeMap<PathBuf, Vec<String>>,
}

/// A module of a test program.
struct Module {
    /// The folder of its crate.
    folder: String,
    name: String,
    /// The folders that it covers; none named means all of them.
    covers: Vec<String>,
}

impl Changed {
    /// Compares the working tree with a commit.
    pub fn since(workspace: &Workspace, revision: &str, browser: &[String]) -> Result<Self> {
        let files = changed_files(&workspace.root, revision)?;
        let graph = Graph::read(&workspace.graph()?, &workspace.root)?;
        let mut covered = Vec::new();
        for name in browser {
            let path = workspace.web().join(name);
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            covered.push((name.clone(), covers(&text)));
        }
        let modules = modules(&graph, &workspace.root)?;
        Ok(Self::of(
            &files,
            &graph,
            &covered,
            &modules,
            &workspace.root,
        ))
    }

    fn of(
        files: &[String],
        graph: &Graph,
        browser: &[(String, Vec<String>)],
        modules: &[Module],
        root: &Path,
    ) -> Self {
        let everything = files
            .iter()
            .any(|file| BUILD_FILES.contains(&file.as_str()));
        let crates = graph.dependants(files, everything);
        let is_covered = |covers: &[String], file: &str| {
            let inside = |folder: &String| is_inside(file, folder);
            covers.is_empty() || covers.iter().any(inside)
        };
        let browser = browser.iter().filter(|(name, covers)| {
            let own = format!("web/{name}");
            let product = files.iter().filter(|file| is_product(file));
            everything
                || files.contains(&own)
                || product.into_iter().any(|file| is_covered(covers, file))
        });
        let (running, idle): (Vec<&Module>, Vec<&Module>) = modules.iter().partition(|module| {
            let concerns = |file: &String| {
                is_read_by(file, &module.folder) || is_covered(&module.covers, file)
            };
            everything || files.iter().any(concerns)
        });
        let mut skipped: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
        for module in idle {
            // libtest matches substrings: `--skip store::` also skips `killed_store::`.
            let hides = |other: &&Module| {
                other.folder == module.folder && other.name.ends_with(&module.name)
            };
            if !running.iter().any(hides) {
                let folder = skipped.entry(root.join(&module.folder)).or_default();
                folder.push(module.name.clone());
            }
        }
        Self {
            skipped,
            crates: crates.iter().map(|folder| root.join(folder)).collect(),
            web: files.iter().any(|file| is_inside(file, "web")),
            xtask: files.iter().any(|file| is_inside(file, "xtask")),
            browser: browser.map(|(name, _)| name.clone()).collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.crates.is_empty() && !self.web && !self.xtask && self.browser.is_empty()
    }
}

/// The modules of test programs, with what they cover.
fn modules(graph: &Graph, root: &Path) -> Result<Vec<Module>> {
    let mut modules = Vec::new();
    for folder in graph.dependants.keys() {
        // Not every crate has tests beside its sources.
        let Ok(entries) = fs::read_dir(root.join(folder).join("tests")) else {
            continue;
        };
        for entry in entries {
            let path = entry?.path();
            let is_rust = path.extension().is_some_and(|extension| extension == "rs");
            let Some(name) = path.file_stem().filter(|_| is_rust) else {
                continue;
            };
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            modules.push(Module {
                folder: folder.clone(),
                name: name.to_string_lossy().into_owned(),
                covers: covers(&text),
            });
        }
    }
    Ok(modules)
}

/// The folders that a test covers; none named means all of them.
pub fn covers(text: &str) -> Vec<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(COVERS));
    let folders = line.into_iter().flat_map(|line| line.split(','));
    let folders = folders.map(str::trim).filter(|folder| !folder.is_empty());
    folders.map(str::to_owned).collect()
}

/// Whether a file is part of what runs, rather than documentation or a Rust test.
fn is_product(file: &str) -> bool {
    let is_test = file.contains("/tests/") || file.starts_with("web/e2e/");
    !is_test && !file.ends_with(".md") && !is_inside(file, "docs") && !is_inside(file, "xtask")
}

fn is_inside(file: &str, folder: &str) -> bool {
    let rest = file.strip_prefix(folder);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || folder.ends_with('/'))
}

fn changed_files(root: &Path, revision: &str) -> Result<Vec<String>> {
    let lists: [&[&str]; 2] = [
        &["diff", "--name-only", "-z", revision],
        &["ls-files", "--others", "--exclude-standard", "-z"],
    ];
    let mut files = Vec::new();
    for arguments in lists {
        let mut git = Command::new("git");
        let output = git.current_dir(root).args(arguments).output();
        let output = output.context("cannot run git")?;
        if !output.status.success() {
            bail!("git: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let names = String::from_utf8_lossy(&output.stdout).into_owned();
        let names = names.split('\0').filter(|name| !name.is_empty());
        files.extend(names.map(str::to_owned));
    }
    Ok(files)
}

/// The workspace's crates: each folder with the folders that depend on it.
struct Graph {
    dependants: BTreeMap<String, BTreeSet<String>>,
    /// The same for dependencies of tests only.
    tested_with: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    /// Reads `cargo metadata --no-deps`.
    fn read(metadata: &Value, root: &Path) -> Result<Self> {
        let relative = |path: &str| {
            let folder = Path::new(path).strip_prefix(root).ok()?;
            Some(folder.to_string_lossy().replace('\\', "/"))
        };
        let packages = metadata["packages"].as_array();
        let packages = packages.context("cargo metadata lists no packages")?;
        let mut dependants: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut tested_with: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for package in packages {
            let manifest = package["manifest_path"].as_str().unwrap_or_default();
            let folder = Path::new(manifest).parent().and_then(Path::to_str);
            let Some(folder) = folder.and_then(relative) else {
                continue;
            };
            dependants.entry(folder.clone()).or_default();
            let dependencies = package["dependencies"].as_array();
            for dependency in dependencies.into_iter().flatten() {
                let graph = match dependency["kind"].as_str() {
                    Some("dev") => &mut tested_with,
                    _ => &mut dependants,
                };
                if let Some(path) = dependency["path"].as_str().and_then(relative) {
                    graph.entry(path).or_default().insert(folder.clone());
                }
            }
        }
        Ok(Self {
            dependants,
            tested_with,
        })
    }

    /// The crates that contain one of these files, and all that depend on them.
    fn dependants(&self, files: &[String], everything: bool) -> BTreeSet<String> {
        let folders = self.dependants.keys();
        let mut found = BTreeSet::new();
        let mut open: Vec<&String> = folders
            .filter(|folder| everything || files.iter().any(|file| is_read_by(file, folder)))
            .collect();
        while let Some(folder) = open.pop() {
            if found.insert(folder.clone()) {
                open.extend(self.dependants.get(folder).into_iter().flatten());
            }
        }
        let tested = found
            .iter()
            .filter_map(|folder| self.tested_with.get(folder));
        let tested: Vec<String> = tested.flatten().cloned().collect();
        found.extend(tested);
        found
    }
}

/// Whether a crate's build or its tests read a file.
fn is_read_by(file: &str, folder: &str) -> bool {
    // The binary embeds the sample games, and its tests play them and deploy it.
    let of_binary = ["games", "deploy"];
    let is_extra = folder == "crates/frolic" && of_binary.iter().any(|at| is_inside(file, at));
    is_extra || (is_inside(file, folder) && !file.ends_with(".md"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(files: &[&str]) -> Changed {
        let crates = [
            ("sim", ""),
            ("world", "sim"),
            ("platform", ""),
            ("frolic", "world"),
            ("client", ""),
        ];
        let packages = crates.map(|(name, on)| {
            let on = if on.is_empty() {
                "/elsewhere".to_owned()
            } else {
                format!("/w/crates/{on}")
            };
            let mut dependencies = vec![serde_json::json!({"path": on, "kind": null})];
            if name == "world" {
                let client = serde_json::json!({"path": "/w/crates/client", "kind": "dev"});
                dependencies.push(client);
            }
            serde_json::json!({
                "manifest_path": format!("/w/crates/{name}/Cargo.toml"),
                "dependencies": dependencies,
            })
        });
        let metadata = serde_json::json!({ "packages": packages });
        let graph = Graph::read(&metadata, Path::new("/w")).unwrap();
        let files: Vec<String> = files.iter().map(|&file| file.to_owned()).collect();
        let browser = [
            (
                "e2e/play.test.mjs".to_owned(),
                covers("// Play.\n// Covers: crates/world, web/src/player\n"),
            ),
            (
                "e2e/store.test.mjs".to_owned(),
                covers("// Covers: crates/platform/src/catalog\n"),
            ),
        ];
        let modules = [
            ("deploy", "// Covers: deploy\n"),
            ("store", "// Covers: crates/platform\n"),
            ("killed_store", "// Covers: crates/platform, crates/sim\n"),
            ("soak", "//! Always runs.\n// Covers: \n"),
        ];
        let modules = modules.map(|(name, text)| Module {
            folder: "crates/frolic".to_owned(),
            name: name.to_owned(),
            covers: covers(text),
        });
        Changed::of(&files, &graph, &browser, &modules, Path::new("/w"))
    }

    #[test]
    fn a_crate_runs_with_all_that_depend_on_it() {
        let changed = changed(&["crates/world/src/lib.rs"]);
        let crates = ["crates/frolic", "crates/world"].map(|name| Path::new("/w").join(name));
        assert_eq!(changed.crates, BTreeSet::from(crates));
        assert_eq!(changed.browser, ["e2e/play.test.mjs"]);
        assert!(!changed.web && !changed.xtask);
    }

    #[test]
    fn what_a_crate_needs_for_its_tests_runs_with_that_crate_alone() {
        let changed = changed(&["crates/client/src/lib.rs"]);
        let crates = ["crates/client", "crates/world"].map(|name| Path::new("/w").join(name));
        assert_eq!(changed.crates, BTreeSet::from(crates));
    }

    #[test]
    fn a_module_of_tests_is_skipped_unless_it_covers_a_change() {
        let folder = Path::new("/w/crates/frolic");
        let skipped = |file: &str| changed(&[file]).skipped.remove(folder).unwrap_or_default();
        let all = ["deploy", "store", "killed_store"];
        assert_eq!(skipped("crates/world/src/lib.rs"), all);
        assert_eq!(skipped("deploy/Dockerfile").len(), 0);
        assert_eq!(skipped("crates/platform/src/lib.rs"), ["deploy"]);
        assert_eq!(skipped("crates/frolic/src/main.rs").len(), 0);
        assert_eq!(skipped("crates/frolic/tests/deploy.rs").len(), 0);
        assert_eq!(skipped("Cargo.lock").len(), 0);
    }

    /// libtest would skip a module together with those whose names end with its name.
    #[test]
    fn a_module_runs_when_skipping_it_would_skip_another() {
        let skipped = changed(&["crates/sim/src/lib.rs"]).skipped;
        assert_eq!(skipped[Path::new("/w/crates/frolic")], ["deploy"]);
    }

    #[test]
    fn tests_and_documentation_need_no_browser() {
        let changed_test = changed(&["crates/world/tests/simulation/main.rs"]);
        assert!(changed_test.browser.is_empty() && changed_test.crates.len() == 2);
        assert!(changed(&["docs/terrain.md", "crates/world/README.md"]).is_empty());
    }

    #[test]
    fn build_files_run_everything() {
        let changed = changed(&["Cargo.lock"]);
        assert_eq!(changed.crates.len(), 5);
        assert_eq!(changed.browser.len(), 2);
    }

    #[test]
    fn a_browser_test_runs_when_it_changes_itself() {
        let changed = changed(&["web/e2e/store.test.mjs"]);
        assert_eq!(changed.browser, ["e2e/store.test.mjs"]);
        assert!(changed.web);
    }

    /// Modules of test programs name folders that exist.
    #[test]
    fn modules_name_folders_that_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let graph = Graph {
            dependants: BTreeMap::from([("crates/frolic".to_owned(), BTreeSet::new())]),
            tested_with: BTreeMap::new(),
        };
        let modules = modules(&graph, root).unwrap();
        assert!(!modules.is_empty());
        for module in modules {
            for folder in module.covers {
                assert!(root.join(&folder).exists(), "{}: {folder}", module.name);
            }
        }
    }

    /// Every browser test says what it covers, in folders that exist.
    #[test]
    fn browser_tests_name_folders_that_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for entry in fs::read_dir(root.join("web/e2e")).unwrap() {
            let path = entry.unwrap().path();
            if !path.to_string_lossy().ends_with(".test.mjs") {
                continue;
            }
            let folders = covers(&fs::read_to_string(&path).unwrap());
            assert!(
                !folders.is_empty(),
                "{} has no line `{COVERS}…`",
                path.display()
            );
            for folder in folders {
                assert!(root.join(&folder).exists(), "{}: {folder}", path.display());
            }
        }
    }
}
