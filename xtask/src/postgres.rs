//! The programs of a Postgres for the tests: what `$FROLIC_POSTGRES_BIN` says,
//! what Debian installed, what is on the PATH, or a new one from apt. Only the
//! programs are used; a server of the system is never touched.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::progress::Step;
use crate::tools;

/// Where Debian puts each version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// The oldest whose `initdb` knows what the tests ask of it.
const VERSION_MIN: u32 = 15;

/// The folder of `initdb` and `postgres`, installing them when there are none.
pub fn ensure(step: &Step) -> Result<PathBuf> {
    if let Some(found) = find() {
        step.note(found.display().to_string());
        return Ok(found);
    }
    let installed = if tools::can_apt_install() {
        apt_install(step)
    } else {
        Ok(())
    };
    match (find(), installed) {
        (Some(found), _) => {
            step.note(found.display().to_string());
            Ok(found)
        }
        (None, Err(error)) => Err(error.context(MISSING)),
        (None, Ok(())) => bail!(MISSING),
    }
}

const MISSING: &str = "Postgres 15 or newer is missing (the control plane's tests run on it too): \
     install it with your package manager, for example `sudo apt-get install postgresql`, or set \
     FROLIC_POSTGRES_BIN to the folder of its programs";

fn apt_install(step: &Step) -> Result<()> {
    let mut update = Command::new("apt-get");
    step.run(update.args(["update", "--quiet"]))?;
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--no-install-recommends", "postgresql"]);
    step.run(install.env("DEBIAN_FRONTEND", "noninteractive"))
        .map(drop)
}

fn find() -> Option<PathBuf> {
    let chosen = env::var_os("FROLIC_POSTGRES_BIN").map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let mut candidates: Vec<PathBuf> = chosen.into_iter().collect();
    candidates.extend(debian(Path::new(DEBIAN)));
    candidates.extend(env::split_paths(&path));
    candidates.into_iter().find(|folder| {
        let version = version(&folder.join("postgres"));
        folder.join("initdb").is_file() && version.is_some_and(|version| version >= VERSION_MIN)
    })
}

/// The newest version first.
fn debian(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, bin)| bin).collect()
}

fn version(postgres: &Path) -> Option<u32> {
    let line = tools::first_line(postgres.to_str()?, &["--version"])?;
    major(&line)
}

/// Reads `postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)`.
fn major(line: &str) -> Option<u32> {
    let (_, after) = line.split_once("(PostgreSQL) ")?;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        let debian = "postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)";
        assert_eq!(major(debian), Some(15));
        assert_eq!(major("postgres (PostgreSQL) 17beta1"), Some(17));
        assert_eq!(major("postgres: not found"), None);
    }
}
