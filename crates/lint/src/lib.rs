//! Checks a game's scripts without running them: whether they compile, and
//! whether the names they use exist where they run.
//!
//! [`compile_errors`] asks the Luau compiler and is for hostile input too;
//! [`warnings`] parses again and follows scopes, for a creator's own folder.
//! Only certain mistakes are reported: names that a script may hide behind a
//! condition, a local or a table of its own are not checked.
#![forbid(unsafe_code)]

mod assets;
mod judge;
mod known;
mod modules;
mod uses;

use std::collections::BTreeMap;

use frolic_package::Manifest;
use frolic_scene::{Limits, Problem, Report, Rule};
use frolic_script::{CompiledScript, Service, compile};

pub use known::{Known, closest};

/// The files of a package by their path.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Nesting is bounded by Luau's own parser, which has read the script before: a
/// thousand levels need far less than this.
const STACK_BYTES: usize = 256 << 20;

/// Compile errors, each with its line. Scripts in the wrong place are reported
/// by the package crate.
pub fn compile_errors(files: &Files, limits: &Limits) -> Report {
    let mut report = Report::new(limits);
    for (file, path, source) in scripts(files) {
        if let Err(problem) = compiled(file, path, source) {
            report.push(problem);
        }
    }
    report
}

/// Mistakes in scripts that compile. `manifest` declares what the game may use;
/// without one, permissions are not checked.
pub fn warnings(files: &Files, manifest: Option<&Manifest>, limits: &Limits) -> Report {
    std::thread::scope(|scope| {
        let work = || all_warnings(files, manifest, limits);
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        match thread.spawn_scoped(scope, work) {
            Ok(thread) => thread.join().unwrap_or_else(|_| Report::new(limits)),
            // Warnings are help; without memory for them there are none.
            Err(_) => Report::new(limits),
        }
    })
}

fn all_warnings(files: &Files, manifest: Option<&Manifest>, limits: &Limits) -> Report {
    let mut report = Report::new(limits);
    let modules = modules::Modules::of(files);
    for (file, path, source) in scripts(files) {
        let Ok(script) = compiled(file, path, source) else {
            continue;
        };
        // Spells see less than scripts do, and players may write them.
        if script.service == Some(Service::Spells) {
            continue;
        }
        // A newer syntax than this parser knows is no mistake.
        let Some(ast) = uses::parse(source) else {
            continue;
        };
        let uses = uses::of(&ast);
        let names = judge::judge(file, &script, &uses, &modules, manifest);
        let assets = assets::judge(file, &ast, &uses, files);
        for problem in names.into_iter().chain(assets) {
            report.push(problem);
        }
    }
    report
}

fn compiled(file: &str, path: &str, source: &str) -> Result<CompiledScript, Problem> {
    compile(path, source)
        .map_err(|error| Problem::error(Rule::Syntax, file, error.message).at((error.line, 1)))
}

/// Every script: its file, its path for the engine, and its text.
fn scripts(files: &Files) -> impl Iterator<Item = (&str, &str, &str)> {
    files.iter().filter_map(|(file, bytes)| {
        let path = match file.strip_prefix("scripts/") {
            Some(path) => path,
            None if file.starts_with("spells/") => file,
            None => return None,
        };
        // A .soul is plain language; the Luau made of it lies beside it.
        let is_luau = path.ends_with(".luau") || path.ends_with(".lua");
        let known = is_luau && Service::of_path(path).is_some();
        let source = std::str::from_utf8(bytes).ok()?;
        known.then_some((file.as_str(), path, source))
    })
}
