//! A Chromium for the browser tests: the one in `$CHROMIUM`, one that is
//! installed, or a new one from apt or Playwright.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

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

/// Starts a browser as the tests do and opens a page in it.
const START: &str = "import('./e2e/browser.mjs')\
    .then(async ({ launchBrowser }) => {\
        const browser = await launchBrowser();\
        await (await browser.newPage()).goto('about:blank');\
        await browser.close();\
    })";

/// Playwright's program in `web/`, and what it does for a browser.
const PLAYWRIGHT: &str = "node_modules/playwright-core/cli.js";

/// The path of a browser, installing one when there is none; `None` means
/// that Playwright brought its own and knows where it is.
pub fn ensure(workspace: &Workspace, step: &Step) -> Result<Option<PathBuf>> {
    let found = find().or_else(|| {
        let installed = tools::can_apt_install() && tools::apt_install(step, "chromium").is_ok();
        installed.then(find).flatten()
    });
    if found.is_none() {
        step.run(playwright(workspace).args(["install", "chromium"]))
            .context(
                "Chromium is missing (the browser tests need it): install it with your package \
                 manager, for example `sudo apt-get install -y chromium`, or set CHROMIUM to its path",
            )?;
    }
    let starts = start(workspace, step, found.as_deref());
    if starts.is_err() && tools::can_apt_install() {
        step.run(playwright(workspace).args(["install-deps", "chromium"]))?;
        start(workspace, step, found.as_deref()).context(cannot_start(found.as_deref()))?;
    } else {
        starts.context(cannot_start(found.as_deref()))?;
    }
    let name = found.as_ref().map(|found| found.display().to_string());
    step.note(name.unwrap_or_else(|| "Playwright's own".to_owned()));
    Ok(found)
}

fn playwright(workspace: &Workspace) -> Command {
    let mut playwright = Command::new("node");
    playwright.current_dir(workspace.web()).arg(PLAYWRIGHT);
    playwright
}

/// A browser that is there may still miss libraries of the system, and then
/// every test would say so in its own way.
fn start(workspace: &Workspace, step: &Step, browser: Option<&Path>) -> Result<()> {
    step.say("start it once");
    let mut node = Command::new("node");
    node.current_dir(workspace.web()).args(["-e", START]);
    match browser {
        Some(browser) => node.env("CHROMIUM", browser),
        None => node.env_remove("CHROMIUM"),
    };
    step.run(&mut node).map(drop)
}

fn cannot_start(browser: Option<&Path>) -> String {
    let which = browser.map_or("Playwright's Chromium".to_owned(), |browser| {
        browser.display().to_string()
    });
    let how = if tools::has_apt() {
        format!("run `cd web && sudo env PATH=\"$PATH\" node {PLAYWRIGHT} install-deps chromium`")
    } else {
        "install the libraries named below with your package manager, or set CHROMIUM to a browser \
         that starts"
            .to_owned()
    };
    format!("{which} does not start, mostly because libraries of the system are missing: {how}")
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Progress;

    #[test]
    fn a_browser_that_does_not_start_is_reported_in_one_sentence() {
        // A program that is there and is no browser, as one without its libraries.
        let workspace = Workspace::locate().unwrap();
        let browser = env::current_exe().unwrap();
        let failure = Progress::new().step("test", |step| start(&workspace, step, Some(&browser)));
        assert!(failure.is_err());
        let said = cannot_start(None);
        assert!(said.starts_with("Playwright's Chromium does not start"));
        assert_eq!(said.lines().count(), 1);
    }
}
