//! `cargo xtask format`: rustfmt, prettier and StyLua; the tests check that they
//! would change nothing. Prettier and StyLua are npm packages of `web/`. Also the
//! spelling check, which changes nothing by itself.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::dependencies;
use crate::progress::{Progress, Step};
use crate::tools::PYTHON_MIN;
use crate::tools::python::{self, Package};
use crate::web;
use crate::workspace::Workspace;

/// Pinned: a newer dictionary finds new words in unchanged files.
const TYPOS: Package = Package {
    requirement: "typos==1.51.1",
    // A program without a module.
    imports: "sys",
    alone: true,
    python_min: PYTHON_MIN,
};

/// Folders with Luau; .styluaignore names those that are left as they are.
const LUAU_FOLDERS: [&str; 2] = ["crates", "games"];

/// Formats the checkout, or checks what the tests check of its text.
pub fn run(workspace: &Workspace, progress: &Progress, check: bool) -> Result<()> {
    web::packages(workspace, progress)?;
    if check {
        progress.step("format", |step| check_rust(workspace, step))?;
        progress.step("web format", |step| check_web(workspace, step))?;
        progress.step("Luau format", |step| check_luau(workspace, step))?;
        progress.step("spelling", |step| check_spelling(workspace, step))?;
        return progress.step("dependencies", |_| dependencies::check(workspace));
    }
    progress.step("format", |step| {
        step.run(workspace.cargo().args(["fmt", "--all"]))?;
        step.run(workspace.npm().args(["run", "format"]))?;
        step.run(&mut stylua(workspace, &[])).map(drop)
    })
}

/// Fails if rustfmt would change a file.
pub fn check_rust(workspace: &Workspace, step: &Step) -> Result<()> {
    let fmt = ["fmt", "--all", "--check"];
    step.run(workspace.cargo().args(fmt)).map(drop)
}

/// Fails if prettier would change a file of the site or its browser tests.
pub fn check_web(workspace: &Workspace, step: &Step) -> Result<()> {
    let check = ["run", "format:check"];
    step.run(workspace.npm().args(check)).map(drop)
}

/// Fails if StyLua would change a script.
pub fn check_luau(workspace: &Workspace, step: &Step) -> Result<()> {
    step.run(&mut stylua(workspace, &["--check"])).map(drop)
}

fn stylua(workspace: &Workspace, arguments: &[&str]) -> Command {
    // The package's own launcher, which finds the binary for this machine.
    let launcher = "node_modules/@johnnymorganz/stylua-bin/run.js";
    let mut command = Command::new("node");
    command
        .current_dir(&workspace.root)
        .arg(workspace.web().join(launcher))
        .args(arguments)
        .args(["--glob", "**/*.luau", "--"])
        .args(LUAU_FOLDERS);
    command
}

/// Fails with each misspelled word; typos.toml lists exceptions.
pub fn check_spelling(workspace: &Workspace, step: &Step) -> Result<()> {
    let typos: PathBuf = python::program(workspace, step, &TYPOS, "typos")?;
    let mut typos = Command::new(typos);
    typos
        .current_dir(&workspace.root)
        .args(["--format", "brief"]);
    step.run(&mut typos).map(drop)
}
