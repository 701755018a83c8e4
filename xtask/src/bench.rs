//! `cargo xtask bench`: builds the release binary, runs the crowd benchmark
//! and keeps its figures in bench/results.json, so that a change shows in a diff.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::dist;
use crate::progress::Progress;
use crate::workspace::Workspace;

/// Measures and prints a table.
pub fn run(workspace: &Workspace, progress: &Progress, args: &[String]) -> Result<()> {
    let frolic = dist::build(workspace, progress)?;
    let results = progress.step("bench crowd", |step| {
        let mut bench = Command::new(&frolic);
        bench.current_dir(&workspace.root);
        let output = step.run(bench.args(["bench", "crowd", "--json"]).args(args))?;
        last_json(&output).context("`frolic bench crowd --json` printed no JSON")
    })?;
    let file = workspace.root.join("bench/results.json");
    fs::create_dir_all(workspace.root.join("bench"))?;
    fs::write(&file, format!("{results:#}\n"))
        .with_context(|| format!("cannot write {}", file.display()))?;
    print_table("", &results);
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

/// One line per figure; nested objects become dotted names.
fn print_table(prefix: &str, value: &Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let name = match prefix {
                    "" => name.clone(),
                    _ => format!("{prefix}.{name}"),
                };
                print_table(&name, member);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                print_table(&format!("{prefix}[{index}]"), item);
            }
        }
        figure => println!("{prefix:<48} {figure}"),
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
