//! `cargo xtask bench`: builds the release binary, runs benchmarks and stores
//! their figures in bench/results.json, so that a change shows in a diff.

mod results;
mod scenarios;
mod table;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::progress::{Progress, Step};
use crate::workspace::Workspace;
use crate::{browser, dist};
use results::Results;
use scenarios::{DEBUG_BUILD, Program, Scenario, Selection};

/// Runs the requested benchmarks, prints tables, and stores the figures.
///
/// # Errors
/// Fails when a benchmark failed; the others are measured and stored
/// regardless.
pub fn run(workspace: &Workspace, progress: &Progress, args: &[String]) -> Result<()> {
    let selection = Selection::of(args)?;
    let frolic = dist::build(workspace, progress, "release")?;
    let mut results = Results::read(&workspace.root.join("bench/results.json"))?;
    let commit = commit(workspace);
    let mut failures = Vec::new();
    for scenario in &selection.scenarios {
        let measured = progress.step(&scenario.title, |step| {
            let output = step.run(&mut command(workspace, step, scenario, &frolic)?)?;
            let figures = last_json(&output).context("the benchmark printed no JSON")?;
            Ok(without_programs(figures))
        });
        match measured {
            Ok(figures) => {
                for warning in figures["warnings"].as_array().into_iter().flatten() {
                    progress.say(&format!("     {warning}"));
                }
                // Written at once: a later failure costs nothing that is known.
                results.store(scenario, &commit, figures)?;
            }
            Err(error) => failures.push(format!("{}: {error:#}", scenario.title)),
        }
    }
    for table in &selection.tables {
        println!("{}", table.markdown(&results));
    }
    println!("figures are in bench/results.json");
    if failures.is_empty() {
        Ok(())
    } else {
        bail!("{}", failures.join("\n"))
    }
}

fn command(
    workspace: &Workspace,
    step: &Step,
    scenario: &Scenario,
    frolic: &Path,
) -> Result<Command> {
    Ok(match scenario.program {
        Program::Frolic => {
            let mut bench = Command::new(frolic);
            bench.current_dir(&workspace.root).arg("bench");
            let debug = workspace.frolic("debug");
            for word in &scenario.words {
                if word == DEBUG_BUILD {
                    bench.arg(&debug);
                } else {
                    bench.arg(word);
                }
            }
            bench.arg("--json");
            bench
        }
        Program::Browser(script) => {
            let mut node = Command::new("node");
            node.current_dir(workspace.web()).arg(script).arg(frolic);
            if let Some(browser) = browser::ensure(workspace, step)? {
                node.env("CHROMIUM", browser);
            }
            node
        }
    })
}

/// Which state of the source was measured: results of different ones can
/// stand side by side.
fn commit(workspace: &Workspace) -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git")
            .current_dir(&workspace.root)
            .args(args)
            .output();
        let output = output.ok().filter(|output| output.status.success());
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let hash = git(&["rev-parse", "--short", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    // The results themselves change with every run.
    let changes = git(&["status", "--porcelain", "--", ".", ":!bench"]);
    if changes.is_some_and(|changes| !changes.is_empty()) {
        format!("{hash} and changes")
    } else {
        hash
    }
}

/// The JSON at the end of the output: log lines may come before it.
fn last_json(output: &str) -> Option<Value> {
    let starts = output.match_indices(['{', '[']).map(|(index, _)| index);
    let lines = starts.filter(|&index| index == 0 || output.as_bytes()[index - 1] == b'\n');
    let mut candidates = lines.filter_map(|index| serde_json::from_str(&output[index..]).ok());
    candidates.next()
}

/// Bytecode that a benchmark gives away for others to run is no figure.
fn without_programs(mut figures: Value) -> Value {
    for scene in figures.as_array_mut().into_iter().flatten() {
        if let Some(scene) = scene.as_object_mut() {
            scene.remove("bytecode");
        }
    }
    figures
}

/// An entry of the results file.
fn entry(scenario: &Scenario, commit: &str, figures: Value) -> Value {
    json!({
        "id": scenario.id,
        "name": scenario.title,
        "args": scenario.words.join(" "),
        "commit": commit,
        "figures": figures,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_not_stored() {
        let figures = json!([{ "scene": "fib", "ms": 2.5, "bytecode": "c0ffee" }]);
        let expected = json!([{ "scene": "fib", "ms": 2.5 }]);
        assert_eq!(without_programs(figures), expected);
        assert_eq!(without_programs(json!({ "a": 1 })), json!({ "a": 1 }));
    }

    #[test]
    fn json_is_found_behind_log_lines() {
        let output = "starting {odd}\n{\n  \"players\": 100\n}\n";
        assert_eq!(last_json(output).unwrap()["players"], 100);
        assert_eq!(last_json("[odd]\n[{\"a\": 1}]\n").unwrap()[0]["a"], 1);
        assert_eq!(last_json("no figures"), None);
    }
}
