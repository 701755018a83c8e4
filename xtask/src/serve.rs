//! `cargo xtask serve`: from a clone to a running platform. Builds what has
//! changed, then becomes `frolic serve`.

use std::process::Command;

use anyhow::{Context, Result};

use crate::assemble;
use crate::progress::Progress;
use crate::workspace::Workspace;

/// Builds everything and runs `frolic serve` with the given arguments.
pub fn run(workspace: &Workspace, progress: &Progress, args: &[String]) -> Result<()> {
    progress.say("Building Frolic (the first time takes some minutes):");
    assemble::product(workspace, progress)?;
    let mut frolic = Command::new(workspace.frolic("debug"));
    // In the checkout, whatever folder cargo was called from: `./data` is there.
    frolic.current_dir(&workspace.root).arg("serve").args(args);
    become_process(frolic)
}

/// Replaces this process, so that signals reach the server itself.
#[cfg(unix)]
fn become_process(mut command: Command) -> Result<()> {
    use std::os::unix::process::CommandExt;
    Err(command.exec()).context("cannot start the frolic binary")
}

#[cfg(not(unix))]
fn become_process(mut command: Command) -> Result<()> {
    let status = command.status().context("cannot start the frolic binary")?;
    std::process::exit(status.code().unwrap_or(1));
}
