//! Packages from PyPI, each in a folder of its own among the build's tools. A
//! virtual environment where Python can make one, else pip into a plain
//! folder, else the wheel itself, if it needs no other package: Debian splits
//! venv and pip off Python, and asking people who only want to start the
//! platform to install them is one step more than needed.

use std::env;
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

    /// The environment of a program that starts this Python by itself.
    pub fn variables(&self) -> Vec<(&'static str, &Path)> {
        let mut variables = vec![("PYTHON", self.program.as_path())];
        variables.extend(self.path.as_deref().map(|path| ("PYTHONPATH", path)));
        variables
    }
}

/// A package that some step needs.
pub struct Package {
    /// `name==version`, with extras in brackets.
    pub requirement: &'static str,
    /// The importable modules after the installation, extras included.
    pub imports: &'static str,
    /// Whether its wheel is all of it: no extras, no other packages.
    pub alone: bool,
    /// The oldest Python that runs it.
    pub python_min: Version,
}

/// The first two numbers of a Python's version.
pub type Version = (u32, u32);

/// How a package can be installed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Installer {
    Venv,
    Pip,
    Wheel,
}

/// Newer versions can stand beside a system's old `python3`, with their number
/// in their names.
const PROGRAMS: [&str; 7] = [
    "python3",
    "python",
    "python3.14",
    "python3.13",
    "python3.12",
    "python3.11",
    "python3.10",
];

/// The system's Python, if there is one as new as this.
pub fn system(min: Version) -> Option<&'static str> {
    PROGRAMS
        .into_iter()
        .find(|program| is_at_least(Command::new(program), min))
}

/// Whether packages that need others can be installed with this Python.
pub fn has_installer(program: &str) -> bool {
    !installers(program).is_empty()
}

/// Installs a package unless it is there.
pub fn install(workspace: &Workspace, step: &Step, package: &Package) -> Result<Python> {
    let Some(program) = system(package.python_min) else {
        bail!(super::python_missing(package.python_min));
    };
    let folder = workspace.tools().join(folder_name(package.requirement));
    let python = installed(&folder, program);
    // Imported each time: a venv outlives the Python that it was made with.
    if folder.join(COMPLETE).is_file() && imports(&python, package) {
        return Ok(python);
    }
    if !package.alone && !has_installer(program) && super::can_apt_install() {
        super::apt_install(step, "python3-venv")?;
    }
    install_with(step, program, package, &folder)
}

/// Installs a package that brings a program, and returns the program.
pub fn program(
    workspace: &Workspace,
    step: &Step,
    package: &Package,
    name: &str,
) -> Result<PathBuf> {
    install(workspace, step, package)?;
    let folder = workspace.tools().join(folder_name(package.requirement));
    find_program(&folder, name)
        .with_context(|| format!("{} brings no program `{name}`", package.requirement))
}

/// Where pip puts programs, in an environment or a plain folder, and where they
/// are in a wheel that was only unpacked.
fn find_program(folder: &Path, name: &str) -> Option<PathBuf> {
    let file = format!("{name}{}", env::consts::EXE_SUFFIX);
    let mut places = vec![folder.join("bin"), folder.join("Scripts")];
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|end| end == "data") {
            places.push(entry.path().join("scripts"));
        }
    }
    let programs = places.into_iter().map(|place| place.join(&file));
    programs.into_iter().find(|program| program.is_file())
}

/// Written last, so that an interrupted installation is begun again.
const COMPLETE: &str = "complete";

fn install_with(step: &Step, program: &str, package: &Package, folder: &Path) -> Result<Python> {
    let requirement = package.requirement;
    let installers = installers_for(program, package);
    if installers.is_empty() {
        bail!(
            "{requirement} cannot be installed. {}",
            super::venv_missing()
        );
    }
    let mut failures = Vec::new();
    for installer in installers {
        if folder.exists() {
            fs::remove_dir_all(folder)
                .with_context(|| format!("cannot clear {}", folder.display()))?;
        }
        if let Err(error) = add(step, installer, program, requirement, folder) {
            failures.push(format!("{error:#}"));
            continue;
        }
        let python = installed(folder, program);
        if imports(&python, package) {
            fs::write(folder.join(COMPLETE), requirement)?;
            return Ok(python);
        }
        failures.push(format!("`import {}` fails after it", package.imports));
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

/// Best first. An installer that seems available may still fail. The last one needs
/// nothing but Python, and brings one package and nothing that this asks for.
fn installers_for(program: &str, package: &Package) -> Vec<Installer> {
    let mut installers = installers(program);
    if package.alone {
        installers.push(Installer::Wheel);
    }
    installers
}

/// The installers that bring the packages which a package needs.
fn installers(program: &str) -> Vec<Installer> {
    let open = [
        (Installer::Venv, "import venv, ensurepip"),
        (Installer::Pip, "import pip"),
    ];
    let open = open.into_iter();
    open.filter(|(_, code)| succeeds(Command::new(program), code))
        .map(|(installer, _)| installer)
        .collect()
}

fn add(
    step: &Step,
    installer: Installer,
    program: &str,
    requirement: &str,
    folder: &Path,
) -> Result<()> {
    let pip = ["-m", "pip", "install", "--quiet", "--no-input"];
    match installer {
        Installer::Venv => {
            step.say("python -m venv");
            let mut venv = Command::new(program);
            step.run(venv.args(["-m", "venv"]).arg(folder))?;
            step.say(&format!("pip install {requirement}"));
            let mut install = Command::new(venv_python(folder));
            step.run(install.args(pip).arg(requirement))?;
        }
        Installer::Pip => {
            step.say(&format!("pip install --target {requirement}"));
            let mut install = Command::new(program);
            let install = install.args(pip).arg("--target").arg(folder);
            step.run(install.arg(requirement))?;
        }
        Installer::Wheel => {
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
fn installed(folder: &Path, program: &str) -> Python {
    let python = venv_python(folder);
    if python.exists() {
        return Python {
            program: python,
            path: None,
        };
    }
    Python {
        program: program.into(),
        path: Some(folder.to_path_buf()),
    }
}

/// Whether the package is there, and its Python new enough.
fn imports(python: &Python, package: &Package) -> bool {
    is_at_least(python.command(), package.python_min)
        && succeeds(python.command(), &format!("import {}", package.imports))
}

fn is_at_least(python: Command, (major, minor): Version) -> bool {
    let code = format!("import sys; sys.exit(sys.version_info < ({major}, {minor}))");
    succeeds(python, &code)
}

fn venv_python(folder: &Path) -> PathBuf {
    if cfg!(windows) {
        folder.join("Scripts/python.exe")
    } else {
        folder.join("bin/python")
    }
}

fn succeeds(mut python: Command, code: &str) -> bool {
    let output = python.args(["-c", code]).output();
    output.is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests;
