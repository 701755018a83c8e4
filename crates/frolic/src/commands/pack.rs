//! `frolic pack`: turns a game's folder into one .game file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use frolic_package::{Limits, pack};

use super::{check, soul};

/// Pack a game's folder into one .game file
#[derive(Args, Debug)]
pub struct PackArgs {
    /// The game's folder, the one with game.toml in it
    #[arg(default_value = ".")]
    pub folder: PathBuf,
    /// Where to write the package; <id>-<version>.game in the current folder when left out
    #[arg(short, long)]
    pub output: Option<PathBuf>,
}

/// Runs `frolic pack`. Scripts in plain language that changed are written out
/// first; a game with errors is not packed.
///
/// # Errors
/// When the game has errors, or cannot be read or written.
pub fn run(args: PackArgs) -> anyhow::Result<()> {
    if !args.folder.is_dir() {
        bail!("{} is not a folder", args.folder.display());
    }
    soul::bring_up_to_date(&args.folder)?;
    let package = match check::load(&args.folder, &Limits::default())? {
        Ok(package) => package,
        Err(report) => {
            check::print_report(&report);
            bail!("{} has errors and was not packed", args.folder.display());
        }
    };
    check::print_report(&package.warnings);
    let archive = pack(&package.files)?;
    let info = &package.manifest.game;
    let output = args
        .output
        .unwrap_or_else(|| PathBuf::from(format!("{}-{}.game", info.id, info.version)));
    write_whole(&output, &archive)?;
    println!(
        "{}: {} {}, {} files, {} bytes, sha256 {}",
        output.display(),
        info.name,
        info.version,
        package.files.len(),
        archive.len(),
        package.revision
    );
    Ok(())
}

/// Writes beside the target first and renames, so that the target is never half
/// a package.
fn write_whole(output: &Path, archive: &[u8]) -> anyhow::Result<()> {
    let partial = output.with_extension("game.partial");
    fs::write(&partial, archive).with_context(|| format!("cannot write {}", partial.display()))?;
    fs::rename(&partial, output).with_context(|| format!("cannot write {}", output.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use frolic_package::Package;

    #[test]
    fn packing_the_sample_game_twice_gives_the_same_bytes() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../games/obby");
        let out = std::env::temp_dir().join(format!("frolic-pack-{}", std::process::id()));
        fs::create_dir_all(&out).unwrap();
        let outputs = [out.join("a.game"), out.join("b.game")];
        for output in &outputs {
            let args = PackArgs {
                folder: folder.clone(),
                output: Some(output.clone()),
            };
            run(args).unwrap();
        }
        let [first, second] = outputs.map(|output| fs::read(output).unwrap());
        let left: Vec<_> = fs::read_dir(&out).unwrap().collect();
        assert_eq!(left.len(), 2, "no partial file is left behind");
        fs::remove_dir_all(&out).unwrap();
        assert!(first == second);
        let package = Package::read(&first, &Limits::default()).unwrap();
        assert_eq!(package.manifest.game.id, "obby");
    }
}
