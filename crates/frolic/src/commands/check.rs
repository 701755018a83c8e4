//! `frolic check`: says everything that is wrong with a game, for people or as JSON.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use frolic_package::{Limits, Manifest, Package, Report, Scene};

use crate::{folder, samples};

type Files = BTreeMap<String, Vec<u8>>;

/// Check a game's folder or package and list every problem
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// The game's folder or its .game file
    #[arg(default_value = ".")]
    pub game: PathBuf,
    /// Write the problems as JSON to standard output
    #[arg(long)]
    pub json: bool,
    /// Write scene.json in its canonical form (folders only)
    #[arg(long)]
    pub fix: bool,
}

/// Runs `frolic check`.
///
/// # Errors
/// When the game has errors, or cannot be read.
pub fn run(args: CheckArgs) -> anyhow::Result<()> {
    let limits = Limits::default();
    if args.fix {
        write_canonical_scene(&args.game, &limits)?;
    }
    let checked = load(&args.game, &limits)?;
    let report = match &checked {
        Ok(package) => &package.warnings,
        Err(report) => report,
    };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report.to_json())?);
    } else {
        print_report(report);
    }
    match &checked {
        Err(report) => bail!(
            "{} has {}",
            args.game.display(),
            counted(report.error_count(), "error")
        ),
        Ok(package) => {
            if !args.json {
                let info = &package.manifest.game;
                let entities = package.scene.entities.len();
                let scripts = package.scripts().count();
                println!(
                    "{} {}: {}, {}, no errors",
                    info.name,
                    info.version,
                    counted(entities, "entity"),
                    counted(scripts, "script")
                );
            }
            Ok(())
        }
    }
}

/// Reads a folder or a package and checks everything, the scripts included.
///
/// # Errors
/// The outer error is about reading; the inner one lists the problems of the game.
pub(super) fn load(game: &Path, limits: &Limits) -> anyhow::Result<Result<Package, Report>> {
    if game.is_dir() {
        let beside = folder::left_out(game, limits)?;
        if !beside.is_empty() {
            eprintln!("{}", left_out_note(&beside));
        }
        return Ok(check_files(folder::read(game, limits)?, limits));
    }
    let size = fs::metadata(game)
        .with_context(|| format!("cannot read {}", game.display()))?
        .len();
    if size > limits.packed_bytes_max {
        bail!(
            "{} has {size} bytes; a package has at most {}",
            game.display(),
            limits.packed_bytes_max
        );
    }
    let archive = fs::read(game).with_context(|| format!("cannot read {}", game.display()))?;
    Ok(Package::read(&archive, limits).and_then(|package| {
        let scripts = script_problems(&package.files, limits);
        with_problems(Ok(package), scripts)
    }))
}

/// Says what is in the folder and not in the game.
fn left_out_note(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(8).map(String::as_str).collect();
    let more = match names.len() - shown.len() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("note: not part of the game: {}{more}", shown.join(", "))
}

/// Lists a report on standard error.
pub(super) fn print_report(report: &Report) {
    if !report.problems.is_empty() {
        eprintln!("{report}");
    }
}

fn check_files(files: Files, limits: &Limits) -> Result<Package, Report> {
    let scripts = script_problems(&files, limits);
    with_problems(Package::from_files(files, limits), scripts)
}

/// Checks files as [`load`] does, and packs them.
///
/// # Errors
/// Every problem of the game.
pub(super) fn build(files: Files, limits: &Limits) -> Result<(Package, Vec<u8>), Report> {
    let scripts = script_problems(&files, limits);
    let (built, archive) = match Package::build(files, limits) {
        Ok((package, archive)) => (Ok(package), archive),
        Err(report) => (Err(report), Vec::new()),
    };
    with_problems(built, scripts).map(|package| (package, archive))
}

/// The package with all warnings, unless there is an error; then all problems
/// together.
fn with_problems(loaded: Result<Package, Report>, more: Report) -> Result<Package, Report> {
    match loaded {
        Ok(mut package) => {
            package.warnings.append(more);
            if package.warnings.has_errors() {
                return Err(package.warnings);
            }
            Ok(package)
        }
        Err(mut report) => {
            report.append(more);
            Err(report)
        }
    }
}

/// Problems of the scripts, and leftovers of a sample.
fn script_problems(files: &Files, limits: &Limits) -> Report {
    let mut report = frolic_lint::compile_errors(files, limits);
    let manifest = files.get("game.toml");
    let manifest = manifest.and_then(|bytes| Manifest::parse(bytes, limits).ok());
    report.append(frolic_lint::warnings(files, manifest.as_ref(), limits));
    if let Some(manifest) = &manifest {
        samples::warn_of_copies(files, manifest, &mut report);
    }
    report
}

fn write_canonical_scene(game: &Path, limits: &Limits) -> anyhow::Result<()> {
    if !game.is_dir() {
        bail!("--fix needs a folder, and {} is not one", game.display());
    }
    let path = game.join("scene.json");
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    // A scene with errors is left as it is; the check that follows lists them.
    if let Ok(scene) = Scene::parse(&bytes, limits) {
        let canonical = scene.to_canonical_json();
        if canonical.as_bytes() != bytes {
            fs::write(&path, canonical)
                .with_context(|| format!("cannot write {}", path.display()))?;
            println!("wrote {} in canonical form", path.display());
        }
    }
    Ok(())
}

fn counted(count: usize, what: &str) -> String {
    match (count, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        _ => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn obby() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../games/obby")
    }

    #[test]
    fn the_sample_game_and_its_scripts_pass() {
        let loaded = load(&obby(), &Limits::default()).unwrap();
        assert!(loaded.is_ok(), "{}", loaded.unwrap_err());
    }

    #[test]
    fn a_script_that_does_not_compile_is_reported_at_its_line() {
        let package = load(&obby(), &Limits::default()).unwrap().unwrap();
        let mut files = package.files;
        let broken = b"local a = 1\nlocal = 2\n".to_vec();
        files.insert("scripts/Workspace/Broken.luau".into(), broken);
        files.insert("notes.txt".into(), vec![]);
        let report = check_files(files, &Limits::default()).unwrap_err();
        let found: Vec<_> = report
            .problems
            .iter()
            .map(|problem| (problem.file.as_str(), problem.line))
            .collect();
        // Together with what else is wrong, not instead of it.
        let expected = [
            ("notes.txt", None),
            ("scripts/Workspace/Broken.luau", Some(2)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_not_there_is_said_with_its_name() {
        let error = load(Path::new("no-such-game"), &Limits::default()).unwrap_err();
        assert!(error.to_string().contains("no-such-game"));
    }

    #[test]
    fn counts_read_well() {
        assert_eq!(counted(1, "entity"), "1 entity");
        assert_eq!(counted(2, "entity"), "2 entities");
        assert_eq!(counted(0, "script"), "0 scripts");
    }
}
