//! `cargo xtask test`: every check and test, with one command. It installs what
//! it needs, continues after a failure, and ends with the line `N passed, N
//! failed`. Each Rust, web and browser test counts, and so does each check
//! (formatting, lints, types, …).

mod changed;
mod programs;

use std::env;
use std::fs;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, anyhow};

use self::changed::Changed;
use self::programs::{Browser, Programs, Servers};
use crate::counts::{self, Counts};
use crate::progress::{Finished, Progress, Step};
use crate::rust_tests::{self, Built, Run, TestProgram};
use crate::tools::python::Python;
use crate::workspace::Workspace;
use crate::{assemble, codegen, dependencies, format, luau, tidy, tools, wasm, web};

/// Where property tests read the seed of their cases.
const PROPERTY_SEED: &str = "PROPTEST_RNG_SEED";
/// How many files of browser tests run at once, each with its own platform.
const BROWSERS_AT_ONCE: usize = 2;
/// The control plane's crate, whose tests run on Postgres too.
const PLATFORM: &str = "crates/platform";

/// Which tests to run.
#[derive(Default)]
pub struct Selection {
    /// Only tests whose names contain this; no checks.
    pub filter: Option<String>,
    /// Only tests that depend on files changed since this revision.
    pub changed: Option<String>,
}

/// Runs all tests, or those selected.
pub fn run(workspace: &Workspace, progress: &Progress, selection: Selection) -> Result<()> {
    let files = browser_test_files(workspace)?;
    let changed = selection.changed.as_deref();
    let changed = changed
        .map(|revision| Changed::since(workspace, revision, &files))
        .transpose()?;
    let suite = Suite {
        workspace,
        progress,
        filter: selection.filter.as_deref(),
        changed,
        outcome: Mutex::new(Outcome::default()),
    };
    suite.everything();
    suite.report()
}

struct Suite<'run> {
    workspace: &'run Workspace,
    progress: &'run Progress,
    filter: Option<&'run str>,
    /// `None` runs all tests.
    changed: Option<Changed>,
    outcome: Mutex<Outcome>,
}

#[derive(Default)]
struct Outcome {
    counts: Counts,
    failures: Vec<String>,
}

impl Suite<'_> {
    fn everything(&self) {
        self.check("tidy", |step| {
            let notes = tidy::check(&self.workspace.root)?;
            if !notes.is_empty() {
                step.note(format!("{} ceilings can be lowered", notes.len()));
            }
            Ok(())
        });
        self.check("format", |step| format::check_rust(self.workspace, step));
        if self.changed.as_ref().is_some_and(Changed::is_empty) {
            self.progress.say("     no test depends on what changed");
            return;
        }
        if !self.part("tools", tools::check_for_tests(self.progress)) || !self.build_site() {
            return;
        }
        // Steps that wait for the network, and the web checks, run beside the
        // compiler.
        let (built, programs) = thread::scope(|scope| {
            let programs = scope.spawn(|| {
                let programs = programs::install(self.workspace, self.progress);
                self.web_checks();
                self.text_checks();
                programs
            });
            let built = self.progress.step("Rust build", |step| {
                rust_tests::build(self.workspace, step, rust_tests::PRODUCT)
            });
            (built, programs.join().expect("installing does not panic"))
        });
        let Programs {
            servers,
            examples,
            browser,
        } = programs;
        match built {
            Ok(built) => {
                self.check("lints", |_| built.check_lints());
                thread::scope(|scope| {
                    scope.spawn(|| self.rust_tests(&built));
                    self.with("Postgres tests", servers, |servers| {
                        self.postgres_tests(&built, servers);
                    });
                    self.web_tests();
                    self.build_tests();
                });
            }
            Err(error) => {
                self.part("Rust build", Err(error));
                self.web_tests();
                return;
            }
        }
        // Last: a browser that renders in software wants both cores.
        self.with("example tests", examples, |python| {
            self.example_tests(python);
        });
        self.with("browser tests", browser, |browser| {
            self.browser_tests(browser);
        });
    }

    /// Tests that need a program fail with the reason why it was not installed.
    fn with<P>(&self, name: &str, program: Result<P>, tests: impl FnOnce(&P)) {
        match program {
            Ok(program) => tests(&program),
            Err(error) => drop(self.part(name, Err(error))),
        }
    }

    /// The clients that strangers copy from, against a real server.
    fn example_tests(&self, python: &Python) {
        if self.changed.is_some() {
            return;
        }
        self.tests("example tests", |step| {
            let mut node = self.node_test();
            node.args(["../examples/walk.test.mjs"])
                .envs(python.variables());
            run_node(step, &mut node)
        });
    }

    /// Runs Node's test runner in `web/`, with the path of the server's binary.
    fn node_test(&self) -> Command {
        let mut node = Command::new("node");
        node.current_dir(self.workspace.web()).args([
            "--test",
            // Node 20 has a WebSocket client, but hides it.
            "--experimental-websocket",
            "--test-reporter=tap",
            "--test-timeout=300000",
        ]);
        if let Some(filter) = self.filter {
            node.arg(format!("--test-name-pattern={filter}"));
        }
        node.env("FROLIC_BIN", self.workspace.frolic("debug"));
        node
    }

    /// The site must exist before any crate compiles that embeds it.
    fn build_site(&self) -> bool {
        let built = assemble::both(
            || {
                web::packages(self.workspace, self.progress)?;
                luau::run(self.workspace, self.progress)
            },
            || wasm::run(self.workspace, self.progress),
        );
        let built = built.and_then(|_| web::site(self.workspace, self.progress));
        self.part("web site", built)
    }

    fn web_checks(&self) {
        if self.changed.as_ref().is_some_and(|changed| !changed.web) {
            return;
        }
        for (name, script) in [("web types", "check"), ("web lint", "lint")] {
            self.check(name, |step| {
                let run = ["run", script];
                step.run(self.workspace.npm().args(run)).map(drop)
            });
        }
    }

    /// Formats, spelling and dependencies: seconds, and no compiler.
    fn text_checks(&self) {
        self.check("web format", |step| format::check_web(self.workspace, step));
        self.check("Luau format", |step| {
            format::check_luau(self.workspace, step)
        });
        self.check("spelling", |step| {
            format::check_spelling(self.workspace, step)
        });
        self.check("dependencies", |_| dependencies::check(self.workspace));
    }

    fn web_tests(&self) {
        if self.changed.as_ref().is_some_and(|changed| !changed.web) {
            return;
        }
        self.tests("web tests", |step| {
            let report = self.workspace.tools().join("vitest.json");
            let _ = fs::remove_file(&report);
            let mut npm = self.workspace.npm();
            npm.args(["run", "test", "--", "--reporter=default", "--reporter=json"]);
            npm.arg(format!("--outputFile.json={}", report.display()));
            npm.env("LUAUC", self.workspace.example("luauc"));
            if let Some(filter) = self.filter {
                npm.args(["-t", filter]);
            }
            let finished = step.run_unchecked(&mut npm)?;
            let counts = fs::read_to_string(&report).unwrap_or_default();
            Ok((counts::vitest(&counts), finished))
        });
    }

    /// Everything but xtask, and the TypeScript types that tests export.
    fn rust_tests(&self, built: &Built) {
        let programs = match &self.changed {
            Some(changed) => built.only(&changed.crates, &changed.skipped),
            None => built.all(),
        };
        if programs.is_empty() {
            return;
        }
        self.programs("Rust tests", |step| {
            let export = codegen::Export::prepare(self.workspace)?;
            let mut run = self.rust_run();
            run.variables.extend(export.variables());
            Ok(rust_tests::run(step, &programs, &run))
        });
        // A part of the crates exports a part of the types.
        if self.changed.is_none() {
            self.check("generated types", |step| {
                codegen::check_built(self.workspace, step, built)
            });
        }
    }

    /// The control plane's tests once more, on a private Postgres that they
    /// start themselves, and with those that need programs of other people: an
    /// S3 server, and a client that compares the server with its document.
    fn postgres_tests(&self, built: &Built, servers: &Servers) {
        let folder = self.workspace.root.join(PLATFORM);
        let changed = self.changed.as_ref();
        if changed.is_some_and(|changed| !changed.crates.contains(&folder)) {
            return;
        }
        self.programs("Postgres tests", |step| {
            let program: TestProgram = built.named("platform")?;
            let mut run = self.rust_run();
            run.arguments.push("--include-ignored");
            run.variables
                .push(("FROLIC_TEST_DATABASE".to_owned(), "postgres".into()));
            let postgres = servers.postgres.clone().into();
            run.variables
                .push(("FROLIC_POSTGRES_BIN".to_owned(), postgres));
            let s3 = servers.s3.variables_for("FROLIC_S3_PYTHON");
            let conformance = &servers.schemathesis;
            let conformance = conformance.variables_for("FROLIC_SCHEMATHESIS_PYTHON");
            let others = s3.into_iter().chain(conformance);
            let others = others.map(|(name, path)| (name, path.into()));
            run.variables.extend(others);
            Ok(rust_tests::run(step, &[program], &run))
        });
    }

    /// The tests of the build program itself.
    fn build_tests(&self) {
        if self.changed.as_ref().is_some_and(|changed| !changed.xtask) {
            return;
        }
        self.programs("build tests", |step| {
            let built = rust_tests::build(self.workspace, step, rust_tests::XTASK)?;
            built.check_lints()?;
            Ok(rust_tests::run(step, &built.all(), &self.rust_run()))
        });
    }

    fn rust_run(&self) -> Run<'_> {
        let mut run = Run::default();
        // The same commit gives the same result: property tests try the same
        // cases each time, unless a variable selects others.
        if env::var_os(PROPERTY_SEED).is_none() {
            run.variables.push((PROPERTY_SEED.to_owned(), "1".into()));
        }
        run.arguments.extend(self.filter);
        run
    }

    /// Rust test programs, which count their tests themselves.
    fn programs(&self, name: &str, work: impl FnOnce(&Step) -> Result<(Counts, Result<()>)>) {
        let mut counted = Counts::default();
        let result = self.progress.step(name, |step| {
            let (counts, result) = work(step)?;
            counted = counts;
            step.note(counts.to_string());
            result
        });
        self.counted(name, counted, result);
    }

    fn browser_tests(&self, browser: &Browser) {
        if let Err(error) = &browser.socketio {
            self.part("python-socketio", Err(anyhow!("{error:#}")));
        }
        let files = match &self.changed {
            Some(changed) => changed.browser.clone(),
            None => browser_test_files(self.workspace).unwrap_or_default(),
        };
        if self.changed.is_some() && files.is_empty() {
            return;
        }
        self.tests("browser tests", |step| {
            let mut node = self.node_test();
            node.arg(format!("--test-concurrency={BROWSERS_AT_ONCE}"));
            node.args(&files);
            for (name, value) in browser.socketio.iter().flat_map(Python::variables) {
                let name = if name == "PYTHON" {
                    "PYTHON_SOCKETIO"
                } else {
                    name
                };
                node.env(name, value);
            }
            if let Some(program) = &browser.program {
                node.env("CHROMIUM", program);
            }
            run_node(step, &mut node)
        });
    }

    /// A check that counts as one test; skipped when only some tests are wanted.
    fn check(&self, name: &str, work: impl FnOnce(&Step) -> Result<()>) {
        if self.filter.is_none() {
            let result = self.progress.step(name, work);
            self.part(name, result);
        }
    }

    /// Tests that count themselves. A run that fails without a failed test
    /// (it did not compile, say) counts as one failure.
    fn tests(&self, name: &str, work: impl FnOnce(&Step) -> Result<(Counts, Finished)>) {
        let mut counted = Counts::default();
        let result = self.progress.step(name, |step| {
            let (counts, finished) = work(step)?;
            counted = counts;
            step.note(counts.to_string());
            if !finished.success {
                return Err(finished.into_error());
            }
            Ok(())
        });
        self.counted(name, counted, result);
    }

    fn counted(&self, name: &str, mut counted: Counts, result: Result<()>) {
        if result.is_err() && counted.failed == 0 {
            counted.failed = 1;
        }
        // A runner that finds nothing is content; we are not.
        let is_whole = self.filter.is_none() && self.changed.is_none();
        if result.is_ok() && is_whole && counted.is_empty() {
            let error = anyhow!("no test ran: is the pattern of file names still right?");
            counted.failed = 1;
            return self.record(name, counted, Some(error));
        }
        self.record(name, counted, result.err());
    }

    fn part(&self, name: &str, result: Result<()>) -> bool {
        let success = result.is_ok();
        let counts = Counts {
            passed: usize::from(success),
            failed: usize::from(!success),
        };
        self.record(name, counts, result.err());
        success
    }

    fn record(&self, name: &str, counts: Counts, error: Option<anyhow::Error>) {
        let mut outcome = self
            .outcome
            .lock()
            .expect("no step panics while it holds the outcome");
        outcome.counts += counts;
        if let Some(error) = error {
            outcome
                .failures
                .push(format!("── {name} failed ──\n{error:#}"));
        }
    }

    fn report(self) -> Result<()> {
        let outcome = self
            .outcome
            .into_inner()
            .map_err(|_| anyhow!("a step panicked"))?;
        for failure in &outcome.failures {
            println!("\n{failure}");
        }
        println!("\n{}", outcome.counts);
        if outcome.counts.failed > 0 {
            std::process::exit(1);
        }
        Ok(())
    }
}

/// Runs Node's tests; a failure shows the failed tests alone.
fn run_node(step: &Step, node: &mut Command) -> Result<(Counts, Finished)> {
    let mut finished = step.run_unchecked(node)?;
    let counts = counts::tap(&finished.output);
    if counts.failed > 0 {
        finished.output = counts::tap_failures(&finished.output);
    }
    Ok((counts, finished))
}

fn browser_test_files(workspace: &Workspace) -> Result<Vec<String>> {
    let folder = workspace.web().join("e2e");
    let entries = fs::read_dir(&folder).context("web/e2e is missing")?;
    let mut files = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".test.mjs") {
            files.push(format!("e2e/{name}"));
        }
    }
    files.sort();
    // One file by name, for work on that file: FROLIC_E2E=play.
    if let Ok(wanted) = env::var("FROLIC_E2E") {
        files.retain(|file| file.contains(&wanted));
    }
    Ok(files)
}
