//! `cargo xtask test`: everything that can be checked, with one command. It
//! installs what it needs, goes on after a failure, and ends with the line
//! `N passed, N failed`. Each Rust, web and browser test counts, and so does
//! each check (formatting, lints, types, …).

mod counts;
mod programs;

use std::env;
use std::fs;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, anyhow, bail};

use self::counts::Counts;
use self::programs::{Browser, Programs, Servers};
use crate::progress::{Finished, Progress, Step};
use crate::tools::python::Python;
use crate::workspace::Workspace;
use crate::{assemble, codegen, luau, tidy, tools, wasm, web};

/// Where property tests read the seed of their cases.
const PROPERTY_SEED: &str = "PROPTEST_RNG_SEED";

/// Runs it all; with a filter only the tests whose names contain it.
pub fn run(workspace: &Workspace, progress: &Progress, filter: Option<&str>) -> Result<()> {
    let suite = Suite {
        workspace,
        progress,
        filter,
        outcome: Mutex::new(Outcome::default()),
    };
    suite.everything();
    suite.report()
}

struct Suite<'run> {
    workspace: &'run Workspace,
    progress: &'run Progress,
    filter: Option<&'run str>,
    outcome: Mutex<Outcome>,
}

#[derive(Default)]
struct Outcome {
    counts: Counts,
    failures: Vec<String>,
}

impl Suite<'_> {
    fn everything(&self) {
        self.check("tidy", |_| tidy::check(&self.workspace.root));
        self.check("format", |step| {
            let fmt = ["fmt", "--all", "--check"];
            step.run(self.workspace.cargo().args(fmt)).map(drop)
        });
        if !self.part("tools", tools::check_for_tests(self.progress)) || !self.build_site() {
            return;
        }
        // What waits for the network, and the web checks, beside the linter.
        let Programs {
            servers,
            examples,
            browser,
        } = thread::scope(|scope| {
            let programs = scope.spawn(|| {
                let programs = programs::install(self.workspace, self.progress);
                self.web_checks();
                programs
            });
            self.check("clippy", |step| self.clippy(step));
            programs.join().expect("installing does not panic")
        });
        self.rust_tests();
        self.with("Postgres tests", servers, |servers| {
            self.postgres_tests(servers);
        });
        // After the Rust tests: these built the compiler of test scripts.
        self.web_tests();
        self.build_tests();
        // Last and alone: a browser that renders in software wants both cores.
        if self.needed("frolic", |step| self.build_binary(step)) {
            self.with("example tests", examples, |python| {
                self.example_tests(python);
            });
            self.with("browser tests", browser, |browser| {
                self.browser_tests(browser);
            });
        }
    }

    /// Tests that need a program: what kept it from being installed is their
    /// failure.
    fn with<P>(&self, name: &str, program: Result<P>, tests: impl FnOnce(&P)) {
        match program {
            Ok(program) => tests(&program),
            Err(error) => drop(self.part(name, Err(error))),
        }
    }

    /// The clients that strangers copy from, against a real server.
    fn example_tests(&self, python: &Python) {
        self.tests("example tests", |step| {
            let mut node = self.node_test();
            node.args(["../examples/walk.test.mjs"])
                .envs(python.variables());
            let finished = step.run_unchecked(&mut node)?;
            Ok((counts::tap(&finished.output), finished))
        });
    }

    /// Node's own test runner in `web/`, told where the server's binary is.
    fn node_test(&self) -> Command {
        let mut node = Command::new("node");
        node.current_dir(self.workspace.web()).args([
            "--test",
            // Node 20 has a WebSocket client, but hides it.
            "--experimental-websocket",
            "--test-reporter=tap",
            "--test-concurrency=1",
            "--test-timeout=120000",
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
        for (name, script) in [("web types", "check"), ("web lint", "lint")] {
            self.check(name, |step| {
                let run = ["run", script];
                step.run(self.workspace.npm().args(run)).map(drop)
            });
        }
    }

    fn web_tests(&self) {
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

    fn clippy(&self, step: &Step) -> Result<()> {
        let clippy = ["clippy", "--workspace", "--all-targets", "--quiet"];
        let mut cargo = self.workspace.cargo();
        step.run(cargo.args(clippy).args(["--", "-D", "warnings"]))
            .map(drop)
    }

    /// Everything but xtask. The same run exports the TypeScript types.
    fn rust_tests(&self) {
        let mut exported = None;
        self.tests("Rust tests", |step| {
            let (variable, folder) = codegen::export_folder(self.workspace)?;
            let mut cargo = self.cargo_test(&["--workspace", "--exclude=xtask"]);
            cargo.env(variable, &folder);
            exported = Some(folder);
            let finished = step.run_unchecked(&mut cargo)?;
            Ok((counts::libtest(&finished.output), finished))
        });
        self.check("generated types", |step| {
            let folder = exported.context("the Rust tests did not run")?;
            codegen::check_exported(self.workspace, step, &folder)
        });
    }

    /// The control plane's tests once more, on a private Postgres that they
    /// start themselves, and with those that need programs of other people: an
    /// S3 server, and a client that compares the server with its document.
    fn postgres_tests(&self, servers: &Servers) {
        self.tests("Postgres tests", |step| {
            // The same features as before, or half of it is compiled again.
            let wanted = ["--workspace", "--exclude=xtask", "--test=platform"];
            let mut cargo = self.cargo_test(&wanted);
            cargo.env("FROLIC_TEST_DATABASE", "postgres");
            cargo.env("FROLIC_POSTGRES_BIN", &servers.postgres);
            cargo.envs(servers.s3.variables_for("FROLIC_S3_PYTHON"));
            let schemathesis = &servers.schemathesis;
            cargo.envs(schemathesis.variables_for("FROLIC_SCHEMATHESIS_PYTHON"));
            if self.filter.is_none() {
                cargo.arg("--");
            }
            cargo.arg("--include-ignored");
            let finished = step.run_unchecked(&mut cargo)?;
            Ok((counts::libtest(&finished.output), finished))
        });
    }

    /// xtask in its own profile: its dependencies are compiled already, and
    /// optimising wasm-bindgen to test a line counter is a waste.
    fn build_tests(&self) {
        self.tests("build tests", |step| {
            let mut cargo = self.cargo_test(&["--package=xtask", "--profile=xtask"]);
            let finished = step.run_unchecked(&mut cargo)?;
            Ok((counts::libtest(&finished.output), finished))
        });
    }

    /// The binary as `cargo test` builds it for crates/frolic/tests, which is
    /// there already unless something did not compile. `cargo build` would
    /// choose other features for half of the dependencies and compile them again.
    fn build_binary(&self, step: &Step) -> Result<()> {
        let mut cargo = self.workspace.cargo();
        cargo.args(["test", "--workspace", "--exclude=xtask", "--no-run"]);
        step.run(&mut cargo).map(drop)
    }

    fn cargo_test(&self, args: &[&str]) -> Command {
        let mut cargo = self.workspace.cargo();
        cargo.args(["test", "--no-fail-fast"]).args(args);
        // The same commit gives the same verdict: property tests try the same
        // cases each time, unless somebody asks for others.
        if env::var_os(PROPERTY_SEED).is_none() {
            cargo.env(PROPERTY_SEED, "1");
        }
        if let Some(filter) = self.filter {
            cargo.args(["--", filter]);
        }
        cargo
    }

    fn browser_tests(&self, browser: &Browser) {
        if let Err(error) = &browser.socketio {
            self.part("python-socketio", Err(anyhow!("{error:#}")));
        }
        self.tests("browser tests", |step| {
            let mut node = self.node_test();
            node.args(browser_test_files(self.workspace)?);
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
            let finished = step.run_unchecked(&mut node)?;
            Ok((counts::tap(&finished.output), finished))
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
            // A runner that finds nothing is content; we are not.
            if self.filter.is_none() && counts.is_empty() {
                bail!("no test ran: is the pattern of file names still right?");
            }
            Ok(())
        });
        if result.is_err() && counted.failed == 0 {
            counted.failed = 1;
        }
        self.record(name, counted, result.err());
    }

    /// A step that others need; it counts only when it fails.
    fn needed(&self, name: &str, work: impl FnOnce(&Step) -> Result<()>) -> bool {
        let result = self.progress.step(name, work);
        result.is_ok() || self.part(name, result)
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
    // One file by name, for whoever works on it: FROLIC_E2E=play.
    if let Ok(wanted) = env::var("FROLIC_E2E") {
        files.retain(|file| file.contains(&wanted));
    }
    Ok(files)
}
