//! `cargo xtask …`: every build step of Frolic, in Rust, with no other build
//! tool to learn. One file per command; `progress` shows what is going on,
//! `stamp` lets an unchanged step cost nothing.

#![forbid(unsafe_code)]

mod assemble;
mod bench;
mod browser;
mod codegen;
mod counts;
mod dependencies;
mod dist;
mod format;
mod fuzz;
mod luau;
mod postgres;
mod progress;
mod rust_tests;
mod serve;
mod stamp;
mod test;
mod tidy;
mod tools;
mod wasm;
mod web;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::progress::Progress;
use crate::workspace::Workspace;

/// Build, run, test and measure Frolic.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build everything and start the platform on http://127.0.0.1:5000
    Serve {
        /// Passed on to `frolic serve`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Run every check and every test; the last line is `N passed, N failed`
    Test {
        /// Run only the tests whose name contains this (and skip the checks)
        filter: Option<String>,
        /// Run only the tests that depend on files changed since a revision (HEAD unless one is named)
        #[arg(long, value_name = "REVISION", num_args = 0..=1, default_missing_value = "HEAD", require_equals = true)]
        changed: Option<String>,
    },
    /// Measure a release build and write bench/results.json
    Bench {
        /// What: `crowds`, `growth`, `density`, a name of `frolic bench` (`join`, `package`, …), `vm`
        /// or a scenario's id, or flags for `frolic bench crowd`; everything if nothing is said
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Write the TypeScript types that come from the Rust types
    Codegen {
        /// Change nothing; fail when the committed types are out of date
        #[arg(long)]
        check: bool,
    },
    /// Check the house rules: headers, sizes, dead paths, import cycles, words
    Tidy {
        /// List the dialect words of an area (`crates/world`, `web`, …) instead
        #[arg(long, value_name = "AREA")]
        words: Option<String>,
    },
    /// Format Rust, the web site and Luau
    Format {
        /// Change nothing; fail when a file is not formatted or a word is misspelled
        #[arg(long)]
        check: bool,
    },
    /// Search every decoder for inputs that break it (needs a nightly compiler)
    Fuzz {
        /// Only this one; see crates/fuzzing
        target: Option<String>,
        /// How long each is run
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
    /// Build the release binary with everything inside
    Dist,
    /// Build the client core for the browser into web/src/wasm
    Wasm,
    /// Build the browser's Luau VM into web/src/wasm
    Luau,
    /// Build the web site into web/dist
    Web,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        // Printed by hand: a backtrace of the build helps no one.
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    let workspace = Workspace::locate()?;
    let progress = Progress::new();
    match command {
        Command::Serve { args } => serve::run(&workspace, &progress, &args),
        Command::Test { filter, changed } => {
            test::run(&workspace, &progress, test::Selection { filter, changed })
        }
        Command::Bench { args } => bench::run(&workspace, &progress, &args),
        Command::Codegen { check } => codegen::run(&workspace, &progress, check),
        Command::Tidy { words } => tidy::run(&workspace, words.as_deref()),
        Command::Format { check } => format::run(&workspace, &progress, check),
        Command::Fuzz { target, seconds } => {
            fuzz::run(&workspace, &progress, target.as_deref(), seconds)
        }
        Command::Dist => dist::run(&workspace, &progress),
        Command::Wasm => wasm::run(&workspace, &progress),
        Command::Luau => luau::run(&workspace, &progress),
        Command::Web => assemble::site(&workspace, &progress),
    }
}
