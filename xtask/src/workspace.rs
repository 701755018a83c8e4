//! Paths of the build: the checkout, cargo's target directory, and the folder
//! inside it for the build's own tools and stamps.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The folders every step works with.
pub struct Workspace {
    /// The checkout.
    pub root: PathBuf,
    /// Cargo's target directory, which several checkouts may share.
    pub target: PathBuf,
}

impl Workspace {
    /// Finds the checkout this program was built from and asks cargo for its
    /// target directory, so that `CARGO_TARGET_DIR` and configuration files count.
    pub fn locate() -> Result<Self> {
        let manifest_dir = env::var_os("CARGO_MANIFEST_DIR")
            .unwrap_or_else(|| OsString::from(env!("CARGO_MANIFEST_DIR")));
        let root = Path::new(&manifest_dir)
            .parent()
            .context("xtask has no parent folder")?
            .to_path_buf();
        let metadata = metadata(&root, &["--no-deps"])?;
        let target = metadata["target_directory"]
            .as_str()
            .context("cargo metadata names no target directory")?;
        Ok(Self {
            target: PathBuf::from(target),
            root,
        })
    }

    /// The crates of the workspace and their dependencies, as cargo reports
    /// them.
    pub fn graph(&self) -> Result<Value> {
        metadata(&self.root, &["--no-deps"])
    }

    /// All packages that the workspace needs on some targets, with their licenses.
    pub fn resolved_graph(&self, targets: &[String]) -> Result<Value> {
        let filters = targets
            .iter()
            .flat_map(|target| ["--filter-platform", target]);
        let arguments: Vec<&str> = ["--locked"].into_iter().chain(filters).collect();
        metadata(&self.root, &arguments)
    }

    /// The Svelte and TypeScript project.
    pub fn web(&self) -> PathBuf {
        self.root.join("web")
    }

    /// Where the wasm modules go that the site imports.
    pub fn web_wasm(&self) -> PathBuf {
        self.web().join("src").join("wasm")
    }

    /// Tools and stamps of the build itself (never inside the checkout).
    pub fn tools(&self) -> PathBuf {
        self.target.join("frolic-tools")
    }

    /// The `frolic` program of a cargo profile folder (`debug`, `release`).
    pub fn frolic(&self, profile_dir: &str) -> PathBuf {
        let name = format!("frolic{}", env::consts::EXE_SUFFIX);
        self.target.join(profile_dir).join(name)
    }

    /// An example program, as `cargo test` builds it.
    pub fn example(&self, name: &str) -> PathBuf {
        let name = format!("{name}{}", env::consts::EXE_SUFFIX);
        self.target.join("debug").join("examples").join(name)
    }

    /// A cargo command in the checkout.
    pub fn cargo(&self) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root);
        command
    }

    /// An `npm` command in `web/`.
    pub fn npm(&self) -> Command {
        // On Windows npm is a batch file, which must be named in full.
        let program = if cfg!(windows) { "npm.cmd" } else { "npm" };
        let mut command = Command::new(program);
        command
            .current_dir(self.web())
            .args(["--no-fund", "--no-audit", "--no-update-notifier"]);
        command
    }

    /// The folder with the sources of a dependency, as cargo unpacked it.
    pub fn dependency_sources(&self, package: &str) -> Result<PathBuf> {
        let host = host_triple()?;
        let metadata = metadata(&self.root, &["--filter-platform", &host])?;
        let packages = metadata["packages"].as_array();
        let manifest = packages
            .into_iter()
            .flatten()
            .find(|candidate| candidate["name"] == package)
            .and_then(|found| found["manifest_path"].as_str())
            .with_context(|| format!("the workspace does not depend on {package} any more"))?;
        let folder = Path::new(manifest).parent();
        Ok(folder
            .context("a manifest has no parent folder")?
            .to_path_buf())
    }
}

/// Without what `cargo run` says of xtask's own package: ring's build script looks
/// at it, and would be run again, with all that builds on it, in every other
/// checkout and after every cargo that was typed by hand.
fn cargo() -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

fn metadata(root: &Path, args: &[&str]) -> Result<Value> {
    let output = cargo()
        .current_dir(root)
        .args(["metadata", "--format-version", "1"])
        .args(args)
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!(
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")
}

fn host_triple() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output();
    let text =
        String::from_utf8_lossy(&output.context("cannot run rustc -vV")?.stdout).into_owned();
    text.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .context("rustc -vV names no host")
}
