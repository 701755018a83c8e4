//! `cargo xtask codegen`: the TypeScript types of messages and REST, exported
//! from the Rust types by ts-rs into web/src/generated, and the definition of the
//! script API as JSON. They are committed, and
//! `--check` fails when they no longer say what Rust says.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::progress::{Progress, Step};
use crate::workspace::Workspace;

/// Crates whose types the web reads. ts-rs exports them from a test each.
const PACKAGES: [&str; 5] = [
    "--package=frolic-protocol",
    "--package=frolic-client",
    "--package=frolic-client-wasm",
    "--package=frolic-platform",
    "--package=frolic-script",
];

/// Writes the types, or compares them.
pub fn run(workspace: &Workspace, progress: &Progress, check_only: bool) -> Result<()> {
    progress.step("generated types", |step| {
        if check_only {
            return check(workspace, step);
        }
        let exported = export(workspace, step)?;
        let folder = generated(workspace);
        for stale in read_folder(&folder)?.keys() {
            if !exported.contains_key(stale) {
                fs::remove_file(folder.join(stale))?;
            }
        }
        for (name, text) in &exported {
            let file = folder.join(name);
            let parent = file.parent().context("a generated file has no folder")?;
            fs::create_dir_all(parent)?;
            fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        }
        step.note(format!("{} files", exported.len()));
        Ok(())
    })
}

/// Exports once more and fails with the names of the files that differ.
pub fn check(workspace: &Workspace, step: &Step) -> Result<()> {
    let exported = export(workspace, step)?;
    compare(workspace, step, &exported)
}

/// Makes an empty folder for a test run to export into: with this variable in
/// its environment, `cargo test` writes there and not into the checkout.
pub fn export_folder(workspace: &Workspace) -> Result<(&'static str, PathBuf)> {
    let folder = workspace.tools().join("codegen");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(("TS_RS_EXPORT_DIR", folder))
}

/// Like [`check`], for a folder that a whole test run has just exported into.
pub fn check_exported(workspace: &Workspace, step: &Step, folder: &Path) -> Result<()> {
    compare(workspace, step, &read_folder(folder)?)
}

fn compare(workspace: &Workspace, step: &Step, exported: &BTreeMap<String, String>) -> Result<()> {
    let committed = read_folder(&generated(workspace))?;
    let mut stale: Vec<&String> = exported
        .iter()
        .filter(|(name, text)| committed.get(*name) != Some(text))
        .map(|(name, _)| name)
        .collect();
    stale.extend(
        committed
            .keys()
            .filter(|name| !exported.contains_key(*name)),
    );
    if stale.is_empty() {
        step.note(format!("{} files", exported.len()));
        return Ok(());
    }
    bail!("web/src/generated is out of date ({stale:?}): run `cargo xtask codegen` and commit it");
}

fn generated(workspace: &Workspace) -> PathBuf {
    workspace.web().join("src/generated")
}

/// Runs the exporting tests into an empty folder and reads what they wrote.
fn export(workspace: &Workspace, step: &Step) -> Result<BTreeMap<String, String>> {
    let (variable, folder) = export_folder(workspace)?;
    let mut cargo = workspace.cargo();
    cargo.arg("test").args(PACKAGES);
    cargo.args(["--lib", "export_bindings"]);
    step.run(cargo.env(variable, &folder))?;
    read_folder(&folder)
}

/// All files under a folder by their path in it; an absent folder is empty.
fn read_folder(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(current) = folders.pop() {
        if !current.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&current)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap_or(&path);
            let name = name.to_string_lossy().replace('\\', "/");
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            files.insert(name, text.trim_end().to_owned() + "\n");
        }
    }
    Ok(files)
}
