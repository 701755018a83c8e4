//! `cargo xtask fuzz`: libFuzzer on every decoder of untrusted bytes. The
//! targets' code is in crates/fuzzing, the programs around it in fuzz/; the
//! corpus and findings are in the target directory.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::progress::{Progress, Step};
use crate::workspace::Workspace;

/// libFuzzer's own limits: memory, one input, and the length of inputs.
const LIMITS: [&str; 3] = ["-rss_limit_mb=2048", "-timeout=20", "-max_len=8192"];

/// Runs one target, or all, for a number of seconds each.
pub fn run(
    workspace: &Workspace,
    progress: &Progress,
    target: Option<&str>,
    seconds: u32,
) -> Result<()> {
    progress.step("fuzz tools", ensure_tools)?;
    let mut seeds = progress.step("seeds", |step| build_seeds(workspace, step))?;
    let known = String::from_utf8_lossy(&seeds.output()?.stdout).into_owned();
    let targets: Vec<&str> = match target {
        Some(target) if known.lines().any(|name| name == target) => vec![target],
        Some(target) => bail!("there is no target `{target}`; choose one of:\n{known}"),
        None => known.lines().collect(),
    };
    let mut found = Vec::new();
    for target in targets {
        let outcome = progress.step(&format!("fuzz {target}"), |step| {
            one(workspace, step, target, seconds)
        });
        if let Err(error) = outcome {
            found.push(format!("── {target} ──\n{error:#}"));
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    bail!("{}", found.join("\n"));
}

/// A nightly compiler has to be there; cargo-fuzz is added without asking.
fn ensure_tools(step: &Step) -> Result<()> {
    let nightly = Command::new("cargo")
        .args(["+nightly", "--version"])
        .output();
    if !nightly.is_ok_and(|output| output.status.success()) {
        bail!(
            "fuzzing needs a nightly compiler, for its sanitizers; type\n  rustup toolchain install nightly"
        );
    }
    let fuzz = Command::new("cargo").args(["fuzz", "--version"]).output();
    if !fuzz.is_ok_and(|output| output.status.success()) {
        step.run(Command::new("cargo").args(["install", "cargo-fuzz", "--locked"]))
            .context("cargo-fuzz could not be installed")?;
    }
    Ok(())
}

/// The program that lists targets and writes their seeds.
fn build_seeds(workspace: &Workspace, step: &Step) -> Result<Command> {
    let build = ["build", "--package=frolic-fuzzing", "--example=seeds"];
    step.run(workspace.cargo().args(build))?;
    Ok(Command::new(workspace.example("seeds")))
}

fn one(workspace: &Workspace, step: &Step, target: &str, seconds: u32) -> Result<()> {
    let folder = workspace.target.join("fuzz");
    let (corpus, artifacts) = (folder.join("corpus"), folder.join("artifacts"));
    let (corpus, artifacts) = (corpus.join(target), artifacts.join(target));
    for made in [&corpus, &artifacts] {
        fs::create_dir_all(made).with_context(|| format!("cannot create {}", made.display()))?;
    }
    let mut seeds = Command::new(workspace.example("seeds"));
    step.run(seeds.arg(target).arg(&corpus))?;
    let mut fuzz = Command::new("cargo");
    fuzz.current_dir(&workspace.root)
        .env("CARGO_TARGET_DIR", &folder)
        .args(["+nightly", "fuzz", "run", "--fuzz-dir", "fuzz", target])
        .arg(&corpus)
        .arg("--")
        .args(LIMITS)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()));
    let output = step.run(&mut fuzz)?;
    step.note(summary(&output, &corpus));
    Ok(())
}

/// libFuzzer's last line of figures, and how many inputs are worth keeping.
fn summary(output: &str, corpus: &Path) -> String {
    let done = output.lines().rev().find(|line| line.starts_with("Done "));
    let count = fs::read_dir(corpus).map_or(0, Iterator::count);
    format!("{}, {count} inputs stored", done.unwrap_or("stopped"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_says_how_much_was_tried() {
        let output = "INFO: Seed: 1\nDone 5003 runs in 11 second(s)\n";
        let said = summary(output, Path::new("no such folder"));
        assert_eq!(said, "Done 5003 runs in 11 second(s), 0 inputs stored");
    }
}
