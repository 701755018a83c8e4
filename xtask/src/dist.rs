//! `cargo xtask dist`: the binary to ship, stripped, with the site and the sample
//! games inside it. It needs no other file. Measurements use `release`, which
//! keeps line tables for profilers.

use std::path::PathBuf;

use anyhow::Result;

use crate::assemble;
use crate::progress::Progress;
use crate::workspace::Workspace;

/// Builds the binary and says where it is.
pub fn run(workspace: &Workspace, progress: &Progress) -> Result<()> {
    let frolic = build(workspace, progress, "dist")?;
    println!("{}", frolic.display());
    Ok(())
}

/// Builds the site and the binary with a profile, and returns the binary's path.
pub fn build(workspace: &Workspace, progress: &Progress, profile: &str) -> Result<PathBuf> {
    assemble::site(workspace, progress)?;
    progress.step(&format!("frolic ({profile})"), |step| {
        let profile = format!("--profile={profile}");
        let build = ["build", "--package=frolic", "--locked", &profile];
        step.run(workspace.cargo().args(build))
    })?;
    Ok(workspace.frolic(profile))
}
