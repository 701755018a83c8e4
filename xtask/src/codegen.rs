//! `cargo xtask codegen`: the TypeScript types of messages, exported from the
//! Rust types by ts-rs into web/src/generated, those of REST calls, which
//! openapi-typescript makes from the OpenAPI document, the definition of the
//! script API as JSON, the JSON Schema and types of scenes, generated pages of
//! docs/, and the interface of the client core as wasm-bindgen writes it. They
//! are committed, and `--check` fails when they differ from what Rust defines.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::progress::{Progress, Step};
use crate::rust_tests::{self, Built, Run};
use crate::workspace::Workspace;
use crate::{wasm, web};

/// The folder that ts-rs exports into, and how it writes 64-bit integers: as
/// `.cargo/config.toml` says for tests that cargo runs.
const EXPORT_DIR: &str = "TS_RS_EXPORT_DIR";
/// The folder that pages of docs/ are exported into: `docs` in the other one.
const DOCS_DIR: &str = "DOCS_EXPORT_DIR";
/// The file that the OpenAPI document is exported to.
const OPENAPI: (&str, &str) = ("OPENAPI_EXPORT_FILE", "openapi.json");
/// The file that limits are exported to.
const LIMITS: (&str, &str) = ("LIMITS_EXPORT_FILE", "limits.ts");
const LARGE_INT: (&str, &str) = ("TS_RS_LARGE_INT", "number");

/// The types of REST calls.
const REST: &str = "rest.ts";
/// The interface of the client core.
const CORE: &str = "core.d.ts";

/// Writes the types, or compares them.
pub fn run(workspace: &Workspace, progress: &Progress, check_only: bool) -> Result<()> {
    wasm::run(workspace, progress)?;
    web::packages(workspace, progress)?;
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
            let file = target(workspace, name);
            let parent = file.parent().context("a generated file has no folder")?;
            fs::create_dir_all(parent)?;
            fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        }
        step.note(format!("{} files", exported.len()));
        Ok(())
    })
}

/// Exports with tests that are built already, and fails when a file differs.
pub fn check_built(workspace: &Workspace, step: &Step, built: &Built) -> Result<()> {
    compare(workspace, step, &export_from(workspace, step, built)?)
}

/// Exports once more and fails with the names of the files that differ.
pub fn check(workspace: &Workspace, step: &Step) -> Result<()> {
    let exported = export(workspace, step)?;
    compare(workspace, step, &exported)
}

/// An empty folder for a test run to export into, instead of the checkout.
pub struct Export {
    folder: PathBuf,
}

impl Export {
    pub fn prepare(workspace: &Workspace) -> Result<Self> {
        let folder = workspace.tools().join("codegen");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    fn document(&self) -> PathBuf {
        self.folder.join(OPENAPI.1)
    }

    /// The environment variables of the tests that export.
    pub fn variables(&self) -> [(String, OsString); 5] {
        let (name, value) = LARGE_INT;
        [
            (EXPORT_DIR.to_owned(), self.folder.clone().into()),
            (DOCS_DIR.to_owned(), self.folder.join("docs").into()),
            (LIMITS.0.to_owned(), self.folder.join(LIMITS.1).into()),
            (OPENAPI.0.to_owned(), self.document().into()),
            (name.to_owned(), value.into()),
        ]
    }
}

fn compare(workspace: &Workspace, step: &Step, exported: &BTreeMap<String, String>) -> Result<()> {
    let mut committed = read_folder(&generated(workspace))?;
    for name in exported.keys().filter(|name| name.starts_with("docs/")) {
        if let Ok(text) = fs::read_to_string(target(workspace, name)) {
            committed.insert(name.clone(), text);
        }
    }
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
    bail!("generated files are out of date ({stale:?}): run `cargo xtask codegen` and commit it");
}

/// Where an exported file belongs in the checkout.
fn target(workspace: &Workspace, name: &str) -> PathBuf {
    match name.starts_with("docs/") {
        true => workspace.root.join(name),
        false => generated(workspace).join(name),
    }
}

fn generated(workspace: &Workspace) -> PathBuf {
    workspace.web().join("src/generated")
}

/// Runs the exporting tests into an empty folder and reads what they wrote.
fn export(workspace: &Workspace, step: &Step) -> Result<BTreeMap<String, String>> {
    let built = rust_tests::build(workspace, step, rust_tests::PRODUCT)?;
    export_from(workspace, step, &built)
}

/// The same for tests that are built already.
fn export_from(
    workspace: &Workspace,
    step: &Step,
    built: &Built,
) -> Result<BTreeMap<String, String>> {
    let export = Export::prepare(workspace)?;
    let run = Run {
        variables: export.variables().to_vec(),
        arguments: vec!["export_bindings"],
        in_turn: true,
    };
    let (_, result) = rust_tests::run(step, &built.all(), &run);
    result?;
    rest_types(workspace, step, &export)?;
    let mut exported = read_folder(&export.folder)?;
    exported.insert(CORE.to_owned(), wasm::interface(workspace)?);
    Ok(exported)
}

/// Replaces the exported OpenAPI document by TypeScript types.
fn rest_types(workspace: &Workspace, step: &Step, export: &Export) -> Result<()> {
    let document = export.document();
    let mut npm = workspace.npm();
    npm.args(["exec", "--", "openapi-typescript"])
        .arg(&document)
        .arg("--output")
        .arg(export.folder.join(REST))
        .args(["--root-types", "--root-types-no-schema-prefix"])
        .args(["--root-types-keep-casing", "--default-non-nullable=false"]);
    step.run(&mut npm)?;
    fs::remove_file(&document).context("the OpenAPI document cannot be removed")
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
