//! `cargo xtask dist`: the release binary, with the site and the sample games
//! inside it. It needs no other file.

use std::path::PathBuf;

use anyhow::Result;

use crate::assemble;
use crate::progress::Progress;
use crate::workspace::Workspace;

/// Builds the binary and says where it is.
pub fn run(workspace: &Workspace, progress: &Progress) -> Result<()> {
    let frolic = build(workspace, progress)?;
    println!("{}", frolic.display());
    Ok(())
}

/// Builds the site and the release binary, and returns the binary's path.
pub fn build(workspace: &Workspace, progress: &Progress) -> Result<PathBuf> {
    assemble::site(workspace, progress)?;
    progress.step("frolic (release)", |step| {
        let build = ["build", "--package=frolic", "--release"];
        step.run(workspace.cargo().args(build))
    })?;
    Ok(workspace.frolic("release"))
}
