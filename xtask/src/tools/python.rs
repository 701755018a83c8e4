//! Packages from PyPI, each in a folder of its own among the build's tools. A
//! virtual environment where Python can make one, else pip into a plain
//! folder, else the wheel itself: Debian splits venv and pip off Python, and
//! asking people to install them is one step more than needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::progress::Step;
use crate::workspace::Workspace;

const FETCH_WHEEL: &str = include_str!("fetch_wheel.py");

/// A Python that can import one package.
pub struct Python {
    program: PathBuf,
    /// Where the package is when it is not in the program's own environment.
    path: Option<PathBuf>,
}

impl Python {
    /// A command of this Python.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(path) = &self.path {
            command.env("PYTHONPATH", path);
        }
        command
    }

    /// The same under a name of its own, for a program that starts several.
    pub fn variables_for(&self, name: &str) -> Vec<(String, PathBuf)> {
        let mut variables = vec![(name.to_owned(), self.program.clone())];
        variables.extend(self.path.clone().map(|path| (format!("{name}PATH"), path)));
        variables
    }

    /// What a program has to be told that starts this Python by itself.
    pub fn variables(&self) -> Vec<(&'static str, &Path)> {
        let mut variables = vec![("PYTHON", self.program.as_path())];
        variables.extend(self.path.as_deref().map(|path| ("PYTHONPATH", path)));
        variables
    }
}

/// How a package can be installed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Venv,
    Pip,
    Wheel,
}

/// The system's Python 3, if there is one.
pub fn system() -> Option<&'static str> {
    ["python3", "python"]
        .into_iter()
        .find(|program| succeeds(program, "import sys; sys.exit(sys.version_info < (3, 8))"))
}

/// Installs `name==version` unless it is there.
pub fn install(workspace: &Workspace, step: &Step, requirement: &str) -> Result<Python> {
    let folder = workspace.tools().join(folder_name(requirement));
    // Written last, so that an interrupted installation is begun again.
    let complete = folder.join("complete");
    if complete.is_file()
        && let Some(python) = installed(&folder)
    {
        return Ok(python);
    }
    let Some(program) = system() else {
        bail!(super::python_missing());
    };
    let mut failures = Vec::new();
    for way in ways(program) {
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot clear {}", folder.display()))?;
        }
        match add(step, way, program, requirement, &folder) {
            Ok(()) => {
                fs::write(&complete, requirement)?;
                return installed(&folder).context("the installed Python is gone");
            }
            Err(error) => failures.push(format!("{error:#}")),
        }
    }
    bail!(
        "{requirement} could not be installed; check the network and try again.\n{}",
        failures.join("\n")
    );
}

/// Extras are in brackets, which no folder should have.
fn folder_name(requirement: &str) -> String {
    requirement.replace("==", "-").replace(
        |c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c),
        "-",
    )
}

/// Best first. A way that looks open may still fail, so the last one, which
/// needs nothing, always follows.
fn ways(program: &str) -> Vec<Way> {
    let mut ways = Vec::new();
    if succeeds(program, "import venv, ensurepip") {
        ways.push(Way::Venv);
    }
    if succeeds(program, "import pip") {
        ways.push(Way::Pip);
    }
    ways.push(Way::Wheel);
    ways
}

fn add(step: &Step, way: Way, program: &str, requirement: &str, folder: &Path) -> Result<()> {
    let pip = ["-m", "pip", "install", "--quiet", "--no-input"];
    match way {
        Way::Venv => {
            step.say("python -m venv");
            let mut venv = Command::new(program);
            step.run(venv.args(["-m", "venv"]).arg(folder))?;
            step.say(&format!("pip install {requirement}"));
            let mut install = Command::new(venv_python(folder));
            step.run(install.args(pip).arg(requirement))?;
        }
        Way::Pip => {
            step.say(&format!("pip install --target {requirement}"));
            let mut install = Command::new(program);
            let install = install.args(pip).arg("--target").arg(folder);
            step.run(install.arg(requirement))?;
        }
        Way::Wheel => {
            step.say(&format!("fetch {requirement}"));
            let (name, version) = requirement
                .split_once("==")
                .context("a requirement names its version")?;
            fs::create_dir_all(folder)?;
            let mut fetch = Command::new(program);
            fetch.args(["-c", FETCH_WHEEL, name, version]).arg(folder);
            step.run(&mut fetch)?;
        }
    }
    Ok(())
}

/// The Python of a finished installation.
fn installed(folder: &Path) -> Option<Python> {
    let python = venv_python(folder);
    if python.exists() {
        return Some(Python {
            program: python,
            path: None,
        });
    }
    Some(Python {
        program: system()?.into(),
        path: Some(folder.to_path_buf()),
    })
}

fn venv_python(folder: &Path) -> PathBuf {
    if cfg!(windows) {
        folder.join("Scripts/python.exe")
    } else {
        folder.join("bin/python")
    }
}

fn succeeds(program: &str, code: &str) -> bool {
    let output = Command::new(program).args(["-c", code]).output();
    output.is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_names_a_folder() {
        assert_eq!(folder_name("websockets==13.1"), "websockets-13.1");
        assert_eq!(
            folder_name("moto[s3,server]==5.2.5"),
            "moto-s3-server--5.2.5"
        );
    }

    #[test]
    fn there_is_always_a_way_to_a_package() {
        // A program that fails at everything has neither venv nor pip.
        assert_eq!(ways("no-such-python"), [Way::Wheel]);
    }
}
