//! The web site: its npm packages, and the Vite build into `web/dist` that
//! ends up inside the `frolic` binary.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::progress::{Progress, Step};
use crate::stamp::{self, Stamp};
use crate::tools;
use crate::workspace::Workspace;

/// Installs the site's npm packages when the lock file has changed.
pub fn packages(workspace: &Workspace, progress: &Progress) -> Result<()> {
    progress.step("npm packages", |step| {
        install(workspace, step, &workspace.web())
    })
}

/// The same for the example client in JavaScript.
pub fn example_packages(workspace: &Workspace, step: &Step) -> Result<()> {
    install(workspace, step, &workspace.root.join("examples/javascript"))
}

fn install(workspace: &Workspace, step: &Step, folder: &Path) -> Result<()> {
    let node = tools::first_line("node", &["--version"]).unwrap_or_default();
    let inputs = ["package.json", "package-lock.json"].map(|name| folder.join(name));
    let inputs = stamp::hash(&inputs, &[&node])?;
    // Inside node_modules, because it describes that folder's contents:
    // deleting the folder deletes the stamp.
    let stamp = folder.join("node_modules/.frolic-stamp");
    if fs::read_to_string(&stamp).is_ok_and(|recorded| recorded == inputs) {
        step.note("unchanged");
        return Ok(());
    }
    let mut npm = workspace.npm();
    step.run(npm.current_dir(folder).args(["ci", "--include=dev"]))
        .context("npm ci failed; check the network and try again")?;
    fs::write(&stamp, inputs).with_context(|| format!("cannot write {}", stamp.display()))
}

/// Builds the site when one of its files has changed. The wasm modules and
/// the packages must be there.
pub fn site(workspace: &Workspace, progress: &Progress) -> Result<()> {
    progress.step("web site", |step| {
        let web = workspace.web();
        let names = ["src", "public", "index.html", "package-lock.json"];
        let mut inputs: Vec<_> = names.map(|name| web.join(name)).to_vec();
        inputs.extend(configuration(workspace)?);
        let inputs = stamp::hash(&inputs, &[])?;
        let stamp = Stamp::new(workspace, "web", vec![web.join("dist")])?;
        if stamp.is_current(&inputs) {
            step.note("unchanged");
            return Ok(());
        }
        step.run(workspace.npm().args(["run", "build"]))?;
        stamp.set(&inputs)
    })
}

/// `vite.config.ts`, `svelte.config.js`, `tsconfig.json`, `package.json` and
/// whatever else steers the build from the top folder.
fn configuration(workspace: &Workspace) -> Result<Vec<std::path::PathBuf>> {
    let web = workspace.web();
    let mut files = Vec::new();
    for entry in fs::read_dir(&web).with_context(|| format!("cannot list {}", web.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_configuration =
            name.contains(".config.") || name.starts_with("tsconfig") || name == "package.json";
        if path.is_file() && is_configuration {
            files.push(path.clone());
        }
    }
    files.sort();
    Ok(files)
}
