//! `frolic bench compute`: pure Luau on this machine, and its bytecode, to run
//! the same code elsewhere (`web/bench/vm.mjs`).

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use mlua::Lua;
use mlua::chunk::ChunkMode;
use serde::Serialize;

/// Work of several kinds, without any library of the engine.
const WORK: [(&str, &str); 4] = [
    (
        "arithmetic in a loop",
        "local x = 0 for i = 1, 3000000 do x = (x * 31 + i) % 1000003 end return x",
    ),
    (
        "calls (fib 25)",
        "local function fib(n) return if n < 2 then n else fib(n - 1) + fib(n - 2) end return fib(25)",
    ),
    (
        "tables (sieve)",
        "local sieve, count = {}, 0 for i = 2, 300000 do sieve[i] = true end \
         for i = 2, 300000 do if sieve[i] then count += 1 for k = i * i, 300000, i do sieve[k] = false end end end return count",
    ),
    (
        "vectors",
        "local p, v = vector.create(0, 1, 2), vector.create(1, 0.5, 0.25) \
         for i = 1, 1000000 do p += v * 0.016 v -= p * 0.001 end return vector.magnitude(p)",
    ),
];

/// Rounds of one run; the best counts.
const ROUNDS: u32 = 3;

/// Measure pure Luau on this machine
#[derive(Args, Debug)]
pub struct ComputeArgs {
    /// Print one JSON array, with the bytecode
    #[arg(long)]
    json: bool,
    /// Run this script instead, and print what it returns and its bytecode
    #[arg(long, value_name = "FILE")]
    run: Option<PathBuf>,
}

#[derive(Serialize)]
struct Row {
    scene: &'static str,
    ms: f64,
    bytecode: String,
}

/// Runs every kind of work and prints a table, or JSON.
pub fn run(args: ComputeArgs) -> Result<()> {
    if let Some(file) = args.run {
        return run_file(&file);
    }
    let rows = WORK.iter().map(measure).collect::<Result<Vec<_>>>()?;
    if args.json {
        println!("{}", serde_json::to_string(&rows)?);
        return Ok(());
    }
    for row in rows {
        println!("{:<24} {:>8.2} ms", row.scene, row.ms);
    }
    Ok(())
}

/// The result of a script, as JSON together with its bytecode.
fn run_file(file: &Path) -> Result<()> {
    let source =
        std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let script = frolic_script::compile("ReplicatedStorage/Work.luau", &source)?;
    let lua = Lua::new();
    let chunk = lua.load(script.bytecode()).set_mode(ChunkMode::Binary);
    let result: String = chunk.call(()).map_err(|error| anyhow!("{error}"))?;
    let output = serde_json::json!({ "result": result, "bytecode": hex(script.bytecode()) });
    println!("{output}");
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn measure((scene, source): &(&'static str, &str)) -> Result<Row> {
    let script = frolic_script::compile("ReplicatedStorage/Work.luau", source)?;
    let lua = Lua::new();
    let timed = || -> mlua::Result<f64> {
        lua.sandbox(true)?;
        let work = lua
            .load(script.bytecode())
            .set_mode(ChunkMode::Binary)
            .into_function()?;
        let mut best = f64::MAX;
        for _ in 0..ROUNDS {
            let began = Instant::now();
            work.call::<mlua::Value>(())?;
            best = best.min(began.elapsed().as_secs_f64() * 1e3);
        }
        Ok(best)
    };
    Ok(Row {
        scene,
        ms: timed().map_err(|error| anyhow!("{error}"))?,
        bytecode: hex(script.bytecode()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_work_runs() {
        for work in &WORK {
            let row = measure(work).expect(work.0);
            assert!(row.ms > 0.0 && row.bytecode.len() > 100);
        }
    }
}
