//! Is everything here that the build needs? What can be added without asking
//! (the wasm target) is added; for the rest one sentence per missing tool
//! says what to type.

pub mod python;

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use self::python::Version;
use crate::progress::{Progress, Step};
use crate::workspace::Workspace;

/// The minimum for Vite and its plugins; the same as in web/package.json.
const NODE_MIN: (u32, u32) = (20, 19);
const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// A tool that a person has to install.
struct Tool {
    name: &'static str,
    why: &'static str,
    /// The commands where apt or Homebrew is at hand.
    apt: &'static str,
    brew: &'static str,
    otherwise: &'static str,
}

const NODE: Tool = Tool {
    name: "Node.js 20.19 or newer",
    why: "builds the web site",
    // Debian's own may be older than we need.
    apt: "curl -fsSL https://deb.nodesource.com/setup_22.x | sudo bash - && sudo apt-get install -y nodejs",
    brew: "brew install node",
    otherwise: "install it from https://nodejs.org",
};

const NPM: Tool = Tool {
    name: "npm",
    why: "installs the web site's packages",
    apt: "sudo apt-get install -y npm",
    brew: "brew install node",
    otherwise: "install it with Node.js from https://nodejs.org",
};

/// The minimum for the build: enough to unpack a wheel.
pub const PYTHON_MIN: Version = (3, 8);
/// The minimum for the tests: the example client has `match`, and the newest S3
/// server and schemathesis run on nothing older.
pub const PYTHON_FOR_TESTS_MIN: Version = (3, 10);

const PYTHON: Tool = Tool {
    name: "Python 3.8 or newer",
    why: "installs the C++ compiler for the browser's Luau VM",
    apt: "sudo apt-get install -y python3",
    brew: "brew install python3",
    otherwise: "install it from https://www.python.org",
};

const PYTHON_FOR_TESTS: Tool = Tool {
    name: "Python 3.10 or newer",
    why: "runs the example client and programs that the tests talk to",
    // Debian's own may be older than we need; this one stands beside it.
    apt: "sudo apt-get install -y python3 python3-venv` or, where that is older, \
          `curl -LsSf https://astral.sh/uv/install.sh | sh && ~/.local/bin/uv python install 3.12",
    brew: "brew install python3",
    otherwise: "install it from https://www.python.org",
};

const VENV: Tool = Tool {
    name: "Python's venv",
    why: "installs programs that the tests talk to",
    apt: "sudo apt-get install -y python3-venv",
    brew: "brew install python3",
    otherwise: "install Python's venv or pip with your package manager",
};

const CXX: Tool = Tool {
    name: "A C++ compiler",
    why: "compiles the server's Luau VM",
    apt: "sudo apt-get install -y build-essential",
    brew: "xcode-select --install",
    otherwise: "install the C++ build tools of your platform",
};

/// Looks for every tool of the build and lists all missing ones at once.
pub fn check(progress: &Progress) -> Result<()> {
    look(progress, PYTHON_MIN)
}

/// The same for the tests, which ask for more of Python. Said before anything
/// is compiled, not when the step that needs it has its turn.
pub fn check_for_tests(progress: &Progress) -> Result<()> {
    look(progress, PYTHON_FOR_TESTS_MIN)
}

fn look(progress: &Progress, python_min: Version) -> Result<()> {
    progress.step("tools", |step| {
        let mut missing = Vec::new();
        let mut found = Vec::new();
        match first_line("node", &["--version"]) {
            Some(version) if is_new_enough(&version) => found.push(format!("node {version}")),
            Some(version) => {
                missing.push(format!("Node.js {version} is too old. {}", NODE.sentence()));
            }
            None => missing.push(NODE.sentence()),
        }
        let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
        if first_line(npm, &["--version"]).is_none() {
            missing.push(NPM.sentence());
        }
        match python::system(python_min) {
            Some(program) => {
                found.push(program.to_owned());
                let has_venv = python_min < PYTHON_FOR_TESTS_MIN || python::has_installer(program);
                if !has_venv && !can_apt_install() {
                    missing.push(venv_missing());
                }
            }
            None => missing.push(python_missing(python_min)),
        }
        if !has_cxx() {
            missing.push(CXX.sentence());
        }
        if !missing.is_empty() {
            bail!("{}", missing.join("\n"));
        }
        step.note(found.join(", "));
        Ok(())
    })
}

/// The sentence for a Python that is missing or older than this.
pub fn python_missing(min: Version) -> String {
    if min < PYTHON_FOR_TESTS_MIN {
        PYTHON.sentence()
    } else {
        PYTHON_FOR_TESTS.sentence()
    }
}

/// The sentence for a Python that can install nothing.
pub fn venv_missing() -> String {
    VENV.sentence()
}

/// Adds the wasm target to the toolchain unless it is there.
pub fn ensure_wasm_target(workspace: &Workspace, step: &Step) -> Result<()> {
    // Asking rustc, not rustup: distributions ship the target without rustup.
    let mut rustc = Command::new("rustc");
    rustc.current_dir(&workspace.root);
    rustc.args(["--print", "target-libdir", "--target", WASM_TARGET]);
    let libdir = rustc.output().ok();
    let libdir = libdir.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    if libdir.is_some_and(|dir| !dir.is_empty() && Path::new(&dir).is_dir()) {
        return Ok(());
    }
    step.say("rustup target add wasm32-unknown-unknown");
    let mut rustup = Command::new("rustup");
    rustup.current_dir(&workspace.root);
    rustup.args(["target", "add", WASM_TARGET]);
    if let Err(error) = step.run(&mut rustup) {
        bail!(
            "Rust's {WASM_TARGET} target is missing and could not be added; \
             run `rustup target add {WASM_TARGET}` (rustup: https://rustup.rs) and try again.\n{error:#}"
        );
    }
    Ok(())
}

/// Whether this user may install system packages with apt.
pub fn can_apt_install() -> bool {
    let root = first_line("id", &["-u"]).is_some_and(|id| id == "0");
    root && has_apt()
}

/// Whether system packages come from apt here.
pub fn has_apt() -> bool {
    first_line("apt-get", &["--version"]).is_some()
}

/// Whether they come from Homebrew.
pub fn has_brew() -> bool {
    first_line("brew", &["--version"]).is_some()
}

/// Installs a system package with apt, which asks nothing.
pub fn apt_install(step: &Step, package: &str) -> Result<()> {
    let mut update = Command::new("apt-get");
    step.run(update.args(["update", "--quiet"]))?;
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--no-install-recommends", package]);
    step.run(install.env("DEBIAN_FRONTEND", "noninteractive"))
        .map(drop)
}

/// The first line a program prints, or `None` when it cannot be run.
pub fn first_line(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Reads `v20.19.0`; what cannot be read is not new enough.
fn is_new_enough(node_version: &str) -> bool {
    let mut numbers = node_version.trim_start_matches('v').split('.');
    let mut number = || numbers.next()?.parse::<u32>().ok();
    match (number(), number()) {
        (Some(major), Some(minor)) => (major, minor) >= NODE_MIN,
        _ => false,
    }
}

fn has_cxx() -> bool {
    // MSVC is found through the registry by the `cc` crate, not on the PATH.
    if cfg!(windows) || std::env::var_os("CXX").is_some() {
        return true;
    }
    first_line("c++", &["--version"]).is_some()
}

impl Tool {
    fn sentence(&self) -> String {
        let how = if has_apt() {
            format!("run `{}`", self.apt)
        } else if has_brew() {
            format!("run `{}`", self.brew)
        } else {
            self.otherwise.to_owned()
        };
        format!("{} is missing ({}): {how}.", self.name, self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_versions_of_node_are_recognized() {
        for good in ["v20.19.0", "v20.20.2", "v22.0.0", "v100.1.0-nightly"] {
            assert!(is_new_enough(good), "{good}");
        }
        for bad in ["v20.18.3", "v18.20.0", "v9.99.0", "", "nonsense", "v20"] {
            assert!(!is_new_enough(bad), "{bad}");
        }
    }
}
