//! All parts of the product in the right order: what needs the network and
//! what needs the processor run side by side.

use std::fs;
use std::thread;

use anyhow::{Result, anyhow};

use crate::progress::Progress;
use crate::workspace::Workspace;
use crate::{luau, tools, wasm, web};

/// Checks the tools and builds the site with both wasm modules.
pub fn site(workspace: &Workspace, progress: &Progress) -> Result<()> {
    tools::check(progress)?;
    both(
        || {
            web::packages(workspace, progress)?;
            luau::run(workspace, progress)
        },
        || wasm::run(workspace, progress),
    )?;
    web::site(workspace, progress)
}

/// Builds everything, the `frolic` binary last because the site is inside it.
pub fn product(workspace: &Workspace, progress: &Progress) -> Result<()> {
    tools::check(progress)?;
    both(
        || {
            web::packages(workspace, progress)?;
            luau::run(workspace, progress)
        },
        || {
            wasm::run(workspace, progress)?;
            // Around whatever site is there: it compiles all dependencies
            // while npm and pip download. Only the binary itself is built
            // again when the site is ready.
            binary(workspace, progress, "server")
        },
    )?;
    web::site(workspace, progress)?;
    binary(workspace, progress, "frolic")
}

/// Builds `target/debug/frolic` around the site that is there.
pub fn binary(workspace: &Workspace, progress: &Progress, name: &str) -> Result<()> {
    // The embedding macro wants the folder, even an empty one.
    fs::create_dir_all(workspace.web().join("dist"))?;
    progress.step(name, |step| {
        step.run(workspace.cargo().args(["build", "--package=frolic"]))?;
        Ok(())
    })
}

/// Runs two lanes at the same time; when both fail, both errors are shown.
pub fn both<A: Send, B>(
    first: impl FnOnce() -> Result<A> + Send,
    second: impl FnOnce() -> Result<B>,
) -> Result<(A, B)> {
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(first);
        let second = second();
        let first = first.join();
        (
            first.unwrap_or_else(|_| Err(anyhow!("a build step panicked"))),
            second,
        )
    });
    match (first, second) {
        (Ok(first), Ok(second)) => Ok((first, second)),
        (Err(first), Err(second)) => Err(anyhow!("{first:#}\n\n{second:#}")),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}
