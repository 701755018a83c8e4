//! The programs of a Postgres for the tests: what `$FROLIC_POSTGRES_BIN` says,
//! what Debian installed, what is on the PATH, or a new one from apt. Only the
//! programs are used; a server of the system is never touched.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::progress::Step;
use crate::tools;

/// Where Debian puts each version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// The oldest whose `initdb` knows what the tests ask of it.
const VERSION_MIN: u32 = 15;

/// The apt packages where the distribution's own is new enough …
const OWN: &[&str] = &["apt-get install -y postgresql"];
/// … and where it is older: from Postgres's own archive, which Debian and
/// Ubuntu have a program for.
const ARCHIVE: &[&str] = &[
    "apt-get install -y postgresql-common ca-certificates",
    "/usr/share/postgresql-common/pgdg/apt.postgresql.org.sh -y",
    "apt-get install -y postgresql-17",
];

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
        (None, Err(error)) => Err(error.context(missing())),
        (None, Ok(())) => bail!(missing()),
    }
}

fn missing() -> String {
    let how = if tools::has_apt() {
        advice(candidate())
    } else if tools::has_brew() {
        "run `brew install postgresql@17 && export FROLIC_POSTGRES_BIN=$(brew --prefix postgresql@17)/bin`".to_owned()
    } else {
        "install it (https://www.postgresql.org/download) and set FROLIC_POSTGRES_BIN to the \
         folder of its `initdb` and `postgres`"
            .to_owned()
    };
    format!(
        "Postgres {VERSION_MIN} or newer is missing (the control plane's tests run on it too): {how}."
    )
}

/// The commands for a user who is not root, by the version that apt would
/// install.
fn advice(candidate: Option<u32>) -> String {
    let typed = |commands: &[&str]| {
        let commands: Vec<String> = commands.iter().map(|one| format!("sudo {one}")).collect();
        format!("`{}`", commands.join(" && "))
    };
    match candidate {
        Some(version) if version >= VERSION_MIN => format!("run {}", typed(OWN)),
        Some(version) => format!("your distribution has {version}, so run {}", typed(ARCHIVE)),
        None => format!(
            "run {}, or where that is older {}",
            typed(OWN),
            typed(ARCHIVE)
        ),
    }
}

fn apt_install(step: &Step) -> Result<()> {
    step.run(Command::new("apt-get").args(["update", "--quiet"]))?;
    let old = candidate().is_some_and(|version| version < VERSION_MIN);
    for command in if old { ARCHIVE } else { OWN } {
        let mut words = command.split(' ');
        let mut command = Command::new(words.next().context("a command has a name")?);
        step.run(command.args(words).env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    Ok(())
}

/// The version of Postgres that apt would install.
fn candidate() -> Option<u32> {
    let mut policy = Command::new("apt-cache");
    policy.args(["policy", "postgresql"]).env("LC_ALL", "C");
    let output = policy.output().ok()?;
    policy_candidate(&String::from_utf8_lossy(&output.stdout))
}

/// Reads `  Candidate: 14+238`.
fn policy_candidate(policy: &str) -> Option<u32> {
    let mut lines = policy.lines().map(str::trim_start);
    let candidate = lines.find_map(|line| line.strip_prefix("Candidate: "))?;
    leading_number(candidate)
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
    leading_number(after)
}

fn leading_number(text: &str) -> Option<u32> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
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

    #[test]
    fn what_apt_would_install_is_read() {
        let policy = "postgresql:\n  Installed: (none)\n  Candidate: 14+238\n  Version table:\n";
        assert_eq!(policy_candidate(policy), Some(14));
        assert_eq!(policy_candidate("  Candidate: 16+257build1.1\n"), Some(16));
        assert_eq!(policy_candidate("  Candidate: (none)\n"), None);
        assert_eq!(policy_candidate(""), None);
    }

    #[test]
    fn the_advice_leads_to_a_version_that_is_new_enough() {
        let new = advice(Some(VERSION_MIN));
        assert_eq!(new, "run `sudo apt-get install -y postgresql`");
        for unsure in [Some(VERSION_MIN - 1), None] {
            let said = advice(unsure);
            assert!(
                said.contains("&& sudo apt-get install -y postgresql-17"),
                "{said}"
            );
        }
        assert!(!advice(Some(14)).contains("postgresql`"));
    }
}
