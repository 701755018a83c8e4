//! Builds the workspace's test programs once, with Clippy's lints, and runs them.
//!
//! Clippy's driver is a complete compiler. Used as cargo's workspace wrapper it
//! lints our crates while it builds the tests, so nothing is compiled a second
//! time for `cargo clippy`. Lints are collected as warnings, not errors: a lint
//! fails its own check, and the tests still run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use crate::counts::{self, Counts};
use crate::progress::Step;
use crate::workspace::Workspace;

/// All crates of the product. Every command selects the same packages: another
/// selection has other features and compiles half of the dependencies again.
pub const PRODUCT: &[&str] = &["--workspace", "--exclude=xtask"];
/// xtask in its own profile: its dependencies are compiled already.
pub const XTASK: &[&str] = &["--package=xtask", "--profile=xtask"];

/// How many test programs run at once.
const PROGRAMS_AT_ONCE: usize = 2;
/// Most tests wait for sockets and processes rather than for a core.
const THREADS_PER_CORE: usize = 3;

/// The executables that cargo built.
pub struct Built {
    programs: Vec<TestProgram>,
    /// Warnings of the compiler and of Clippy, as cargo renders them.
    warnings: BTreeSet<String>,
}

/// One executable with tests inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestProgram {
    /// The crate's folder, in which its tests run.
    folder: PathBuf,
    /// `platform`, `frolic_world`, …
    target: String,
    executable: PathBuf,
    /// Whether it is a program of `tests/`, whose modules are its files.
    of_tests: bool,
    /// Modules that are not to run.
    skipped: Vec<String>,
}

/// Settings of one run of test programs.
#[derive(Default)]
pub struct Run<'run> {
    /// One program after the other: for tests that write to the same files.
    pub in_turn: bool,
    pub variables: Vec<(String, std::ffi::OsString)>,
    pub arguments: Vec<&'run str>,
}

/// Builds the tests of the selected packages.
///
/// # Errors
/// When something does not compile: the compiler's messages.
pub fn build(workspace: &Workspace, step: &Step, selection: &[&str]) -> Result<Built> {
    let mut cargo = workspace.cargo();
    cargo.arg("test").args(selection);
    cargo.args(["--no-run", "--message-format=json"]);
    cargo.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    let finished = step.run_unchecked(&mut cargo)?;
    let messages = Messages::read(&finished.output);
    if !finished.success {
        if messages.errors.is_empty() {
            return Err(finished.into_error());
        }
        bail!("{}", messages.errors.join("\n"));
    }
    step.note(format!("{} test programs", messages.built.programs.len()));
    Ok(messages.built)
}

impl Built {
    /// Fails with every warning of the compiler and of Clippy.
    pub fn check_lints(&self) -> Result<()> {
        if self.warnings.is_empty() {
            return Ok(());
        }
        let warnings: Vec<&str> = self.warnings.iter().map(String::as_str).collect();
        bail!("{}", warnings.join("\n"));
    }

    /// The programs of the crates in these folders, without some of their
    /// modules.
    pub fn only(
        &self,
        folders: &BTreeSet<PathBuf>,
        skipped: &BTreeMap<PathBuf, Vec<String>>,
    ) -> Vec<TestProgram> {
        let programs = self.programs.iter();
        let wanted = programs.filter(|program| folders.contains(&program.folder));
        wanted
            .map(|program| TestProgram {
                skipped: match skipped.get(&program.folder) {
                    Some(skipped) if program.of_tests => skipped.clone(),
                    _ => Vec::new(),
                },
                ..program.clone()
            })
            .collect()
    }

    pub fn all(&self) -> Vec<TestProgram> {
        self.programs.clone()
    }

    /// One program by the name of its target.
    pub fn named(&self, target: &str) -> Result<TestProgram> {
        let found = self.programs.iter().find(|one| one.target == target);
        found
            .cloned()
            .with_context(|| format!("no test program is called {target}"))
    }
}

/// Runs programs, some at a time, and adds up their tests. A program that fails
/// does not stop the others.
pub fn run(step: &Step, programs: &[TestProgram], run: &Run) -> (Counts, Result<()>) {
    let cores = thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let threads = (cores * THREADS_PER_CORE).to_string();
    let at_once = if run.in_turn { 1 } else { PROGRAMS_AT_ONCE };
    let queue = Mutex::new(programs.iter());
    let outcome = Mutex::new((Counts::default(), Vec::new()));
    thread::scope(|scope| {
        for _ in 0..at_once.min(programs.len()) {
            scope.spawn(|| {
                while let Some(program) = next(&queue) {
                    let mut command = program.command(run);
                    command.env("RUST_TEST_THREADS", &threads);
                    let (counts, error) = match step.run_unchecked(&mut command) {
                        Ok(finished) => {
                            let counts = counts::libtest(&finished.output);
                            (counts, (!finished.success).then(|| finished.into_error()))
                        }
                        Err(error) => (Counts::default(), Some(error)),
                    };
                    let mut outcome = outcome.lock().expect("no worker panics");
                    outcome.0 += counts;
                    if let Some(error) = error {
                        // A program that ends without a result counts as a failed test.
                        outcome.0.failed += usize::from(counts.failed == 0);
                        outcome.1.push(format!("{}: {error:#}", program.target));
                    }
                }
            });
        }
    });
    let (counts, errors) = outcome.into_inner().expect("no worker panics");
    let result = if errors.is_empty() {
        Ok(())
    } else {
        Err(anyhow!("{}", errors.join("\n\n")))
    };
    (counts, result)
}

fn next<'programs>(
    queue: &Mutex<std::slice::Iter<'programs, TestProgram>>,
) -> Option<&'programs TestProgram> {
    queue.lock().expect("no worker panics").next()
}

impl TestProgram {
    /// The program as `cargo test` starts it.
    fn command(&self, run: &Run) -> Command {
        let mut command = Command::new(&self.executable);
        command
            .current_dir(&self.folder)
            .args(&run.arguments)
            .args(self.skips())
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .envs(run.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn skips(&self) -> Vec<String> {
        let skips = self.skipped.iter();
        skips
            .flat_map(|name| ["--skip".to_owned(), format!("{name}::")])
            .collect()
    }
}

/// A message of cargo, one JSON object per line among the compiler's own
/// output.
struct Messages {
    built: Built,
    errors: Vec<String>,
}

impl Messages {
    fn read(output: &str) -> Self {
        let mut messages = Self {
            built: Built {
                programs: Vec::new(),
                warnings: BTreeSet::new(),
            },
            errors: Vec::new(),
        };
        let objects = output.lines().filter(|line| line.starts_with('{'));
        for message in objects.filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            match message["reason"].as_str() {
                Some("compiler-message") => messages.diagnostic(&message["message"]),
                Some("compiler-artifact") => {
                    messages.built.programs.extend(test_program(&message));
                }
                _ => {}
            }
        }
        messages
    }

    fn diagnostic(&mut self, message: &Value) {
        let rendered = message["rendered"].as_str().unwrap_or_default().to_owned();
        match message["level"].as_str() {
            // The summary "3 warnings emitted" has no place in the code.
            Some("warning")
                if message["spans"]
                    .as_array()
                    .is_some_and(|all| !all.is_empty()) =>
            {
                self.built.warnings.insert(rendered);
            }
            Some("error") => self.errors.push(rendered),
            _ => {}
        }
    }
}

fn test_program(artifact: &Value) -> Option<TestProgram> {
    if artifact["profile"]["test"] != true {
        return None;
    }
    let manifest = Path::new(artifact["manifest_path"].as_str()?);
    Some(TestProgram {
        folder: manifest.parent()?.to_path_buf(),
        target: artifact["target"]["name"].as_str()?.to_owned(),
        executable: PathBuf::from(artifact["executable"].as_str()?),
        of_tests: artifact["target"]["kind"][0] == "test",
        skipped: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_messages_become_programs_warnings_and_errors() {
        let output = r#"   Compiling world v0.1.0
{"reason":"compiler-artifact","manifest_path":"/w/crates/world/Cargo.toml","target":{"name":"simulation","kind":["test"]},"profile":{"test":true},"executable":"/t/simulation-1"}
{"reason":"compiler-artifact","manifest_path":"/w/crates/world/Cargo.toml","target":{"name":"world"},"profile":{"test":false},"executable":null}
{"reason":"compiler-message","message":{"level":"warning","rendered":"warning: unused","spans":[{}]}}
{"reason":"compiler-message","message":{"level":"warning","rendered":"1 warning emitted","spans":[]}}
{"reason":"compiler-message","message":{"level":"error","rendered":"error: broken","spans":[{}]}}
{not JSON
"#;
        let messages = Messages::read(output);
        let program = TestProgram {
            folder: PathBuf::from("/w/crates/world"),
            target: "simulation".to_owned(),
            executable: PathBuf::from("/t/simulation-1"),
            of_tests: true,
            skipped: Vec::new(),
        };
        assert_eq!(messages.built.all(), [program]);
        let error = messages.built.check_lints().unwrap_err().to_string();
        assert_eq!(error, "warning: unused");
        assert_eq!(messages.errors, ["error: broken"]);
        let elsewhere = BTreeSet::from([PathBuf::from("/w/crates/sim")]);
        let skipped = BTreeMap::from([(PathBuf::from("/w/crates/world"), vec!["soak".to_owned()])]);
        assert!(messages.built.only(&elsewhere, &skipped).is_empty());
        let here = BTreeSet::from([PathBuf::from("/w/crates/world")]);
        let only = messages.built.only(&here, &skipped);
        assert_eq!(only[0].skips(), ["--skip", "soak::"]);
    }
}
