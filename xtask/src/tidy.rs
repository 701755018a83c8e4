//! `cargo xtask tidy`: the house rules that no compiler checks. Each rule is a
//! function from a file to complaints; it also runs as an ordinary test.

mod markdown;
mod pure;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// Past this, a file holds more than one idea.
const LINES_MAX: usize = 700;

/// Source files, and how the comment at their top begins.
const HEADERS: [(&str, &[&str]); 11] = [
    ("rs", &["//"]),
    ("ts", &["//", "/*"]),
    ("mjs", &["//", "/*"]),
    ("js", &["//", "/*"]),
    ("svelte", &["<!--"]),
    ("html", &["<!--"]),
    ("luau", &["--"]),
    ("css", &["/*"]),
    ("cpp", &["//"]),
    ("sql", &["--"]),
    ("py", &["#"]),
];

/// Other text files that are searched for things that must not be there.
const TEXT: [&str; 7] = ["md", "toml", "json", "s", "yml", "yaml", "sh"];

/// Checks the checkout and prints the verdict.
pub fn run(workspace: &Workspace) -> Result<()> {
    check(&workspace.root)?;
    println!("tidy");
    Ok(())
}

/// Fails with one line per complaint.
pub fn check(root: &Path) -> Result<()> {
    let files = tracked_files(root)?;
    let mut complaints = Vec::new();
    for name in &files {
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        let source = HEADERS.iter().find(|(known, _)| *known == extension);
        if source.is_none() && !TEXT.contains(&extension) {
            continue;
        }
        // Deleted but not committed yet, or not text after all: not ours.
        let Ok(text) = fs::read_to_string(root.join(name)) else {
            continue;
        };
        let mut found = Vec::new();
        if let Some((_, comments)) = source {
            header(&text, comments, &mut found);
            // Generated files are not read from start to end.
            if !name.contains("/generated/") {
                size(&text, &mut found);
            }
        }
        if name != "xtask/src/tidy.rs" {
            forbidden(&text, &mut found);
            requirement_ids(&text, &mut found);
        }
        match extension {
            "md" => markdown::dead_paths(name, &text, &files, &mut found),
            "rs" => pure::outside(name, &text, &mut found),
            "toml" if name.ends_with("Cargo.toml") => lints(&text, &mut found),
            "json" if name.ends_with("package-lock.json") => lock(&text, &mut found),
            _ => {}
        }
        complaints.extend(found.into_iter().map(|what| format!("{name}{what}")));
    }
    complaints.extend(undeclared_tests(root, &files));
    if complaints.is_empty() {
        return Ok(());
    }
    bail!("{}", complaints.join("\n"));
}

/// A crate whose integration tests are one program lists them in `tests/main.rs`:
/// a file that is not listed would never run.
fn undeclared_tests(root: &Path, files: &BTreeSet<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    for name in files {
        let Some((folder, file)) = name.rsplit_once('/') else {
            continue;
        };
        let main = format!("{folder}/main.rs");
        let Some(module) = file.strip_suffix(".rs").filter(|module| *module != "main") else {
            continue;
        };
        if !folder.ends_with("/tests") || !files.contains(&main) {
            continue;
        }
        let declared = fs::read_to_string(root.join(&main)).unwrap_or_default();
        if !declared
            .lines()
            .any(|line| line == format!("mod {module};"))
        {
            complaints.push(format!("{name}: never runs; declare it in {main}"));
        }
    }
    complaints
}

/// The files that a clone would contain. Files that git does not know (another
/// checkout's leftovers, an editor's backup) are ignored.
fn tracked_files(root: &Path) -> Result<BTreeSet<String>> {
    let output = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "-z"])
        .output()
        .context("cannot run git ls-files")?;
    if !output.status.success() {
        bail!(
            "git ls-files failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = names.split('\0').filter(|name| !name.is_empty());
    Ok(names.map(str::to_owned).collect())
}

fn header(text: &str, comments: &[&str], found: &mut Vec<String>) {
    let mut lines = text.lines().map(str::trim_start);
    let is_preamble = |line: &str| {
        line.is_empty()
            || line.starts_with("#!/")
            || line.starts_with("--!")
            || line.to_ascii_lowercase().starts_with("<!doctype")
    };
    let first = lines.find(|line| !is_preamble(line)).unwrap_or_default();
    if !comments.iter().any(|comment| first.starts_with(comment)) {
        found.push(":1: starts without a comment that says what the file is".to_owned());
    }
}

fn size(text: &str, found: &mut Vec<String>) {
    let lines = text.lines().count();
    if lines > LINES_MAX {
        found.push(format!(": {lines} lines; split it (at most {LINES_MAX})"));
    }
}

fn forbidden(text: &str, found: &mut Vec<String>) {
    const WORDS: [(&str, &str); 2] = [
        ("TODO", "do it, or write an issue"),
        ("FIXME", "fix it, or write an issue"),
    ];
    /// Folders that hold people's own files, on Linux, macOS and Windows.
    const HOMES: [&str; 3] = ["home", "Users", "root"];
    let homes = HOMES.map(|home| format!("/{home}/"));
    for (index, line) in text.lines().enumerate() {
        for (word, advice) in WORDS {
            if occurs(line, word) {
                found.push(format!(":{}: `{word}`: {advice}", index + 1));
            }
        }
        // Windows writes the same with backslashes after a drive letter.
        let slashed = line.replace('\\', "/").replace("C:/", "/");
        if let Some(home) = homes.iter().find(|home| occurs(&slashed, home)) {
            found.push(format!(":{}: `{home}`: a path of one machine", index + 1));
        }
    }
}

/// Ids of a requirements list that readers do not have: a family, a hyphen and a
/// number. Words say it.
fn requirement_ids(text: &str, found: &mut Vec<String>) {
    const FAMILIES: [&str; 17] = [
        "BEY", "CLI", "DIST", "DUR", "EDIT", "HOUSE", "LOOK", "NET", "PERF", "PKG", "PLAT", "RBX",
        "REL", "SCALE", "SCR", "SEC", "SIM",
    ];
    for (index, line) in text.lines().enumerate() {
        let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '-');
        let id = words.find(|word| {
            word.split_once('-').is_some_and(|(family, number)| {
                let is_number = number.starts_with(|digit: char| digit.is_ascii_digit());
                FAMILIES.contains(&family) && is_number
            })
        });
        if let Some(id) = id {
            found.push(format!(":{}: `{id}`: say it in words", index + 1));
        }
    }
}

/// Whether `word` stands in `line`; a path only where one could begin, so
/// that `routes/home/Home.svelte` is fine.
fn occurs(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(index, _)| {
        let before = line[..index].chars().next_back();
        let inside =
            before.is_some_and(|letter| letter.is_alphanumeric() || "._-~}".contains(letter));
        !(word.starts_with('/') && inside)
    })
}

fn lints(text: &str, found: &mut Vec<String>) {
    let is_package = text.contains("[package]");
    if is_package && !text.contains("[lints]\nworkspace = true") {
        found.push(": does not inherit the workspace's lints".to_owned());
    }
}

fn lock(text: &str, found: &mut Vec<String>) {
    if text.contains("\"resolved\": \"http") {
        let advice =
            "names a registry; write it with `npm install --omit-lockfile-registry-resolved`";
        found.push(format!(": {advice}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules hold for this very checkout.
    #[test]
    fn the_house_is_tidy() {
        let workspace = Workspace::locate().unwrap();
        check(&workspace.root).unwrap();
    }

    /// A folder that is not listed there is one whose paths may rot.
    #[test]
    fn no_top_folder_is_forgotten() {
        let workspace = Workspace::locate().unwrap();
        for file in tracked_files(&workspace.root).unwrap() {
            if let Some((top, _)) = file.split_once('/') {
                let top = format!("{top}/");
                assert!(markdown::TOP_FOLDERS.contains(&top.as_str()), "{top}");
            }
        }
    }

    #[test]
    fn each_rule_complains() {
        let complaints = |rule: &dyn Fn(&mut Vec<String>)| {
            let mut found = Vec::new();
            rule(&mut found);
            found.len()
        };
        assert_eq!(
            complaints(&|found| header("fn main() {}", &["//"], found)),
            1
        );
        assert_eq!(
            complaints(&|found| header("--!strict\n-- Moves.", &["--"], found)),
            0
        );
        assert_eq!(complaints(&|found| size(&"x\n".repeat(701), found)), 1);
        assert_eq!(complaints(&|found| forbidden("// TODO later", found)), 1);
        assert_eq!(complaints(&|found| forbidden("cd /home/ada", found)), 1);
        assert_eq!(complaints(&|found| forbidden("./routes/home/a", found)), 0);
        assert_eq!(
            complaints(&|found| requirement_ids(&format!("see {}-5", "NET"), found)),
            1
        );
        assert_eq!(complaints(&|found| requirement_ids("SHA-1", found)), 0);
        assert_eq!(
            complaints(&|found| lints("[package]\nname = \"a\"", found)),
            1
        );
        assert_eq!(
            complaints(&|found| lock(r#""resolved": "https://a""#, found)),
            1
        );
    }
}
