//! `cargo xtask tidy`: the house rules that no compiler checks. Each rule is a
//! function from a file to complaints; it also runs as an ordinary test. Rules
//! that count something have ceilings in `tidy-exceptions.toml`.

mod architecture;
mod cycles;
mod exceptions;
mod markdown;
mod pure;
mod sizes;
mod sources;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use self::cycles::Graph;
use self::exceptions::{Exceptions, Rule, Verdict};
use self::sizes::Size;
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

/// Databases store the checksums of these files, so their texts never change.
const MIGRATIONS: &str = "crates/platform/migrations/";

/// Other text files that are searched for things that must not be there.
const TEXT: [&str; 7] = ["md", "toml", "json", "s", "yml", "yaml", "sh"];

/// Checks the checkout and prints the verdict, with each dialect word of an
/// area if one is named.
pub fn run(workspace: &Workspace, area: Option<&str>) -> Result<()> {
    if let Some(area) = area {
        return print_words(&workspace.root, area);
    }
    for note in check(&workspace.root)? {
        println!("note: {note}");
    }
    println!("tidy");
    Ok(())
}

/// Fails with one line per complaint; returns notes on ceilings to lower.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let files = tracked_files(root)?;
    let exceptions = Exceptions::load(root)?;
    let mut verdict = Verdict::default();
    let mut words: BTreeMap<String, Vec<words::Occurrence>> = BTreeMap::new();
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
            if !name.starts_with(MIGRATIONS) {
                requirement_ids(&text, &mut found);
            }
        }
        match extension {
            "md" => {
                markdown::dead_paths(name, &text, &files, &mut found);
                architecture::length(name, &text, &mut found);
            }
            "rs" => pure::outside(name, &text, &mut found),
            "toml" if name.ends_with("Cargo.toml") => lints(&text, &mut found),
            "json" if name.ends_with("package-lock.json") => lock(&text, &mut found),
            _ => {}
        }
        let found = found.into_iter().map(|what| format!("{name}{what}"));
        verdict.complaints.extend(found);
        let area = words.entry(words::area(name)).or_default();
        area.extend(words::occurrences(name, &text));
    }
    verdict.complaints.extend(undeclared_tests(root, &files));
    count_words(&exceptions, &words, &mut verdict);
    structure(root, &files, &exceptions, &mut verdict)?;
    if verdict.complaints.is_empty() {
        return Ok(verdict.notes);
    }
    bail!("{}", verdict.complaints.join("\n"));
}

/// Dialect words, per area.
fn count_words(
    exceptions: &Exceptions,
    words: &BTreeMap<String, Vec<words::Occurrence>>,
    verdict: &mut Verdict,
) {
    let counts = words
        .iter()
        .map(|(area, found)| (area.clone(), found.len()));
    let rule = Rule {
        section: "words",
        limit: 0,
        unit: "dialect words",
        advice: "`cargo xtask tidy --words AREA` lists them",
    };
    let before = verdict.complaints.len();
    exceptions.judge(&rule, &counts.collect(), verdict);
    for complaint in &mut verdict.complaints[before..] {
        let area = complaint.split(':').next().unwrap_or_default();
        if let Some(found) = words.get(area) {
            *complaint = format!("{complaint} ({})", words::summary(found));
        }
    }
}

/// Lists the dialect words of an area with their places.
fn print_words(root: &Path, area: &str) -> Result<()> {
    for name in tracked_files(root)? {
        if words::area(&name) != area {
            continue;
        }
        let text = fs::read_to_string(root.join(&name)).unwrap_or_default();
        for (line, word, advice) in words::occurrences(&name, &text) {
            println!("{name}:{line}: `{word}`: {advice}");
        }
    }
    Ok(())
}

/// Import cycles and sizes of types, per crate.
fn structure(
    root: &Path,
    files: &BTreeSet<String>,
    exceptions: &Exceptions,
    verdict: &mut Verdict,
) -> Result<()> {
    let crates = sources::for_each_crate(root, files, |sources| {
        (Graph::of(sources), sizes::measure(sources))
    })?;
    let mut in_cycles = BTreeMap::new();
    let mut fields = BTreeMap::new();
    let mut methods = BTreeMap::new();
    for (folder, (graph, sizes)) in &crates {
        in_cycles.insert(folder.clone(), graph.cycles().iter().map(Vec::len).sum());
        let short = folder.trim_start_matches("crates/");
        for (
            name,
            Size {
                fields: count,
                methods: inherent,
            },
        ) in sizes
        {
            fields.insert(format!("{short}::{name}"), *count);
            methods.insert(format!("{short}::{name}"), *inherent);
        }
    }
    let cycles = Rule {
        section: "cycles",
        limit: 0,
        unit: "modules in import cycles",
        advice: "move what both sides need into a module below them",
    };
    let before = verdict.complaints.len();
    exceptions.judge(&cycles, &in_cycles, verdict);
    for complaint in &mut verdict.complaints[before..] {
        let folder = complaint.split(':').next().unwrap_or_default();
        if let Some((graph, _)) = crates.get(folder) {
            for cycle in graph.cycles() {
                complaint.push_str(&format!("\n  {}", cycle.join(", ")));
            }
        }
    }
    let rule = Rule {
        section: "fields",
        limit: sizes::FIELDS_MAX,
        unit: "fields",
        advice: "group them by what changes together",
    };
    exceptions.judge(&rule, &fields, verdict);
    let rule = Rule {
        section: "methods",
        limit: sizes::METHODS_MAX,
        unit: "inherent methods",
        advice: "move those of one task to a type of their own",
    };
    exceptions.judge(&rule, &methods, verdict);
    Ok(())
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
