//! `cargo xtask wasm`: the client core for the browser. Cargo builds
//! `crates/client-wasm`, then wasm-bindgen (as a library, so that its version
//! cannot differ from the crate's) writes the module and its TypeScript face.

use std::fs;

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

use crate::progress::{Progress, Step};
use crate::stamp::{self, Stamp};
use crate::tools;
use crate::workspace::Workspace;

const MODULE: &str = "frolic_client_wasm";
/// Where the loader begins in the interface that wasm-bindgen writes.
const LOADER: &str = "export type InitInput";

/// Builds the client core into `web/src/wasm`.
pub fn run(workspace: &Workspace, progress: &Progress) -> Result<()> {
    progress.step("client core (wasm)", |step| build(workspace, step))
}

fn build(workspace: &Workspace, step: &Step) -> Result<()> {
    tools::ensure_wasm_target(workspace, step)?;
    step.run(workspace.cargo().args([
        "build",
        "--package=frolic-client-wasm",
        "--profile=wasm",
        "--target=wasm32-unknown-unknown",
    ]))?;
    let module = workspace
        .target
        .join("wasm32-unknown-unknown/wasm")
        .join(format!("{MODULE}.wasm"));

    let out = workspace.web_wasm();
    let outputs = ["_bg.wasm", "_bg.wasm.d.ts", ".js", ".d.ts"];
    let outputs = outputs.map(|suffix| out.join(format!("{MODULE}{suffix}")));
    let stamp = Stamp::new(workspace, "wasm", outputs.to_vec())?;
    let inputs = stamp::hash(std::slice::from_ref(&module), &[])?;
    if stamp.is_current(&inputs) {
        step.note("unchanged");
        return Ok(());
    }
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let mut bindgen = Bindgen::new();
    bindgen
        .input_path(&module)
        .typescript(true)
        .remove_name_section(true)
        .remove_producers_section(true);
    bindgen.web(true)?;
    bindgen
        .generate(&out)
        .context("wasm-bindgen cannot read the client core")?;
    let size = fs::metadata(&outputs[0]).map_or(0, |file| file.len());
    step.note(format!("{} KB", size / 1000));
    stamp.set(&inputs)
}

/// The TypeScript interface of the built module, without what only its loader
/// needs. Committed, so that the site is type-checked without the module.
pub fn interface(workspace: &Workspace) -> Result<String> {
    let file = workspace.web_wasm().join(format!("{MODULE}.d.ts"));
    let text = fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}: run `cargo xtask wasm`", file.display()))?;
    let (interface, _) = text
        .split_once(LOADER)
        .context("wasm-bindgen writes another interface than before")?;
    Ok(interface.trim_end().to_owned() + "\n")
}
