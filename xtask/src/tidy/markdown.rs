//! Paths in Markdown that no longer exist: links, and `code` that looks like a
//! path of this repository. Documentation rots there first.

use std::collections::BTreeSet;

/// The top folders that make a piece of code a path.
pub(super) const TOP_FOLDERS: [&str; 11] = [
    "crates/",
    "web/",
    "xtask/",
    "docs/",
    "games/",
    "bench/",
    "examples/",
    "fuzz/",
    "deploy/",
    ".ci/",
    ".cargo/",
];

/// Files of ours by the end of their names: where the text has said which
/// folder it is about, the rest of a path is enough (`fleet/queue.rs`).
const SOURCES: [&str; 6] = [".rs", ".ts", ".svelte", ".mjs", ".cpp", ".sql"];
/// Luau too, except in guides that describe a creator's own scripts.
const LUAU: &str = ".luau";
const FOR_US: &str = "ARCHITECTURE.md";

/// Built, and therefore not in a clone.
const BUILT: [&str; 3] = ["web/dist", "web/src/wasm", "web/node_modules"];

/// Complains about every path in `text` that is not a tracked file or folder.
pub fn dead_paths(name: &str, text: &str, files: &BTreeSet<String>, found: &mut Vec<String>) {
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        let links = links(line).filter_map(|target| resolve(name, target));
        let code: Vec<String> = code(line).flat_map(expand).collect();
        let (whole, others): (Vec<_>, Vec<_>) =
            code.into_iter().partition(|code| is_repository_path(code));
        for path in links.chain(whole) {
            let path = path.trim_end_matches('/');
            if !exists(path, files) && !BUILT.iter().any(|built| path.starts_with(built)) {
                found.push(format!(":{}: `{path}` does not exist", index + 1));
            }
        }
        for path in others.iter().filter(|code| is_short_path(name, code)) {
            let relative = path.starts_with("./") || path.starts_with("../");
            let lives = if relative {
                resolve(name, path).is_some_and(|path| exists(&path, files))
            } else {
                ends_a_path(path, files)
            };
            if !lives {
                found.push(format!(":{}: no path ends with `{path}`", index + 1));
            }
        }
    }
}

/// Targets of `[text](target)` and `![text](target)`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', ' ']).next())
}

/// The insides of `code` spans: every second piece between backticks.
fn code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// `a/{b,c}.rs` is `a/b.rs` and `a/c.rs`.
fn expand(code: &str) -> Vec<String> {
    let parts = code.split_once('{').and_then(|(before, rest)| {
        let (inside, after) = rest.split_once('}')?;
        Some((before, inside, after))
    });
    let Some((before, inside, after)) = parts else {
        return vec![code.to_owned()];
    };
    let names = inside.split(',').map(str::trim);
    names.map(|name| format!("{before}{name}{after}")).collect()
}

fn is_repository_path(code: &str) -> bool {
    TOP_FOLDERS.iter().any(|folder| code.starts_with(folder)) && code.chars().all(is_plain)
}

/// The end of a path: a file of ours without the folders before it.
fn is_short_path(name: &str, code: &str) -> bool {
    let is_source = SOURCES
        .iter()
        .any(|end| code.ends_with(end) && code != *end);
    let is_luau = name == FOR_US && code.ends_with(LUAU) && code != LUAU;
    (is_source || is_luau) && code.chars().all(is_plain)
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "._-/@".contains(letter)
}

fn ends_a_path(path: &str, files: &BTreeSet<String>) -> bool {
    let end = format!("/{path}");
    files
        .iter()
        .any(|file| file == path || file.ends_with(&end))
}

/// A relative link as a path from the root; `None` for other kinds of links.
fn resolve(name: &str, target: &str) -> Option<String> {
    let target = target.split('#').next()?;
    if target.is_empty() || target.contains(':') || target.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = name.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn exists(path: &str, files: &BTreeSet<String>) -> bool {
    let folder = format!("{path}/");
    path.is_empty()
        || files.contains(path)
        || files
            .range(folder.clone()..)
            .next()
            .is_some_and(|file| file.starts_with(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let files = ["docs/adr/0001-tick.md", "docs/glossary.md", "web/src/a.ts"];
        let files = files.map(str::to_owned).into();
        let mut found = Vec::new();
        dead_paths("docs/glossary.md", text, &files, &mut found);
        assert_eq!(found, expected);
    }

    #[test]
    fn living_paths_pass() {
        check("[adr](adr/0001-tick.md#why) and [all](../docs/)", &[]);
        check(
            "`web/src/a.ts`, `web/src`, `crates/<name>`, `web/dist`",
            &[],
        );
        check("[site](https://example.org) [here](#words)", &[]);
        check("```\n`web/gone.ts`\n```", &[]);
    }

    #[test]
    fn short_paths_are_ends_of_living_ones() {
        check("`src/a.ts`, `a.ts`, `*.ts`, `.rs`, `main.luau`", &[]);
        check("`web/src/{a}.ts`, `{a, a}.ts`", &[]);
        check("`../web/src/a.ts`", &[]);
        check("`../web/a.ts`", &[":1: no path ends with `../web/a.ts`"]);
        check("`rc/a.ts`", &[":1: no path ends with `rc/a.ts`"]);
        check(
            "`fleet/gone.rs`",
            &[":1: no path ends with `fleet/gone.rs`"],
        );
        check("`src/{a,b}.ts`", &[":1: no path ends with `src/b.ts`"]);
        check("`web/src/{a,b}.ts`", &[":1: `web/src/b.ts` does not exist"]);
    }

    #[test]
    fn every_top_folder_is_looked_after() {
        for folder in TOP_FOLDERS {
            let gone = format!("{folder}gone.md");
            check(
                &format!("`{gone}`"),
                &[&format!(":1: `{gone}` does not exist")],
            );
        }
    }

    #[test]
    fn luau_paths_are_checked_except_in_guides_for_creators() {
        let mut found = Vec::new();
        dead_paths(
            "ARCHITECTURE.md",
            "`a/gone.luau`",
            &BTreeSet::new(),
            &mut found,
        );
        assert_eq!(found, [":1: no path ends with `a/gone.luau`"]);
    }

    #[test]
    fn dead_paths_are_named_with_their_line() {
        check(
            "\n[adr](adr/0002.md)",
            &[":2: `docs/adr/0002.md` does not exist"],
        );
        check("see `web/src/b.ts`", &[":1: `web/src/b.ts` does not exist"]);
    }
}
