//! `cargo xtask bench`: builds the release binary, runs the crowd benchmarks
//! and keeps their figures in bench/results.json, so that a change shows in a diff.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::dist;
use crate::progress::Progress;
use crate::workspace::Workspace;

/// What is measured when nothing else is asked for: a name, and the arguments
/// of `frolic bench crowd`.
const SCENARIOS: [(&str, &str); 4] = [
    ("sample game, 100 players", "--players 100"),
    (
        "all see all, 200 players, 30 Hz",
        "--players 200 --area 200 --tick-hz 30",
    ),
    (
        "all see all, 400 players, 30 Hz",
        "--players 400 --area 200 --tick-hz 30",
    ),
    (
        "50 m radius, 400 players, 30 Hz",
        "--players 400 --area 200 --radius 50 --tick-hz 30",
    ),
];

/// The columns of the table: a figure's name in the JSON, and its heading.
const COLUMNS: [(&str, &str); 8] = [
    ("tick_ms_p50", "tick p50 ms"),
    ("tick_ms_p99", "tick p99 ms"),
    ("update_hz_p50", "updates Hz"),
    ("update_interval_ms_p99", "gap p99 ms"),
    ("server_cpu_s_per_s", "CPU s/s"),
    ("floor_cpu_s_per_s", "floor CPU s/s"),
    ("ratio_to_floor", "x floor"),
    ("bytes_per_client_entity_update", "bytes/entity/update"),
];

/// Measures and prints a table; with arguments only the crowd they describe.
pub fn run(workspace: &Workspace, progress: &Progress, args: &[String]) -> Result<()> {
    let frolic = dist::build(workspace, progress)?;
    let scenarios: Vec<(String, Vec<String>)> = if args.is_empty() {
        let named = SCENARIOS.iter();
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        named
            .map(|(name, text)| ((*name).to_owned(), words(text)))
            .collect()
    } else {
        vec![(args.join(" "), args.to_vec())]
    };
    let mut results = Vec::new();
    for (name, args) in scenarios {
        let figures = progress.step(&name, |step| {
            let mut bench = Command::new(&frolic);
            bench.current_dir(&workspace.root);
            let output = step.run(bench.args(["bench", "crowd", "--json"]).args(&args))?;
            last_json(&output).context("`frolic bench crowd --json` printed no JSON")
        })?;
        results.push(json!({ "name": name, "args": args.join(" "), "figures": figures }));
    }
    let file = workspace.root.join("bench/results.json");
    fs::write(&file, format!("{:#}\n", Value::Array(results.clone())))
        .with_context(|| format!("cannot write {}", file.display()))?;
    print_table(&results);
    println!("\nwritten to bench/results.json");
    Ok(())
}

/// The JSON at the end of the output: log lines may come before it.
fn last_json(output: &str) -> Option<Value> {
    let starts = output.match_indices('{').map(|(index, _)| index);
    let lines = starts.filter(|&index| index == 0 || output.as_bytes()[index - 1] == b'\n');
    let mut candidates = lines.filter_map(|index| serde_json::from_str(&output[index..]).ok());
    candidates.next()
}

/// A Markdown table, to be pasted into bench/RESULTS.md.
fn print_table(results: &[Value]) {
    let headings: Vec<&str> = COLUMNS.iter().map(|(_, heading)| *heading).collect();
    println!("| crowd | {} |", headings.join(" | "));
    println!("|---|{}", "---|".repeat(COLUMNS.len()));
    for result in results {
        let cell = |name: &str| {
            let figure = result["figures"][name].as_f64().unwrap_or(f64::NAN);
            format!("{figure:.2}")
        };
        let cells: Vec<String> = COLUMNS.iter().map(|(name, _)| cell(name)).collect();
        let name = result["name"].as_str().unwrap_or_default();
        println!("| {name} | {} |", cells.join(" | "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_found_behind_log_lines() {
        let output = "starting {odd}\n{\n  \"players\": 100\n}\n";
        assert_eq!(last_json(output).unwrap()["players"], 100);
        assert_eq!(last_json("no figures"), None);
    }
}
