//! A Chromium for the browser tests: the one in `$CHROMIUM`, one that is
//! installed, or a new one from apt or Playwright.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::progress::Step;
use crate::tools;
use crate::workspace::Workspace;

const PROGRAMS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

const APPLICATIONS: [&str; 2] = [
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
];

/// The path of a browser, installing one when there is none; `None` means
/// that Playwright brought its own and knows where it is.
pub fn ensure(workspace: &Workspace, step: &Step) -> Result<Option<PathBuf>> {
    if let Some(found) = find() {
        step.note(found.display().to_string());
        return Ok(Some(found));
    }
    if tools::can_apt_install()
        && apt_install(step).is_ok()
        && let Some(found) = find()
    {
        step.note(found.display().to_string());
        return Ok(Some(found));
    }
    let mut playwright = Command::new("node");
    playwright.current_dir(workspace.web());
    playwright.args(["node_modules/playwright-core/cli.js", "install", "chromium"]);
    if let Err(error) = step.run(&mut playwright) {
        bail!(
            "Chromium is missing (the browser tests need it): install it with your package \
             manager, for example `sudo apt-get install chromium`, or set CHROMIUM to its path.\n{error:#}"
        );
    }
    step.note("Playwright's own");
    Ok(None)
}

fn apt_install(step: &Step) -> Result<()> {
    let mut update = Command::new("apt-get");
    step.run(update.args(["update", "--quiet"]))?;
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--no-install-recommends", "chromium"]);
    step.run(install.env("DEBIAN_FRONTEND", "noninteractive"))
        .map(drop)
}

fn find() -> Option<PathBuf> {
    if let Some(chosen) = env::var_os("CHROMIUM").filter(|path| !path.is_empty()) {
        return Some(PathBuf::from(chosen));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let programs = PROGRAMS
        .iter()
        .flat_map(|program| folders.iter().map(move |folder| folder.join(program)));
    programs
        .chain(APPLICATIONS.iter().map(PathBuf::from))
        .find(|candidate| Path::is_file(candidate) && starts(candidate))
}

/// Some systems have a stub in its place that only says what to install.
fn starts(browser: &Path) -> bool {
    let version = Command::new(browser).arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}
