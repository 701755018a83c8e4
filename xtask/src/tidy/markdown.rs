//! Paths in Markdown that no longer exist: links, and `code` that looks like a
//! path of this repository. Documentation rots there first.

use std::collections::BTreeSet;

/// The top folders that make a piece of code a path.
const TOP_FOLDERS: [&str; 8] = [
    "crates/", "web/", "xtask/", "docs/", "games/", "bench/", ".ci/", ".cargo/",
];

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
        let code = code(line).filter(|code| is_repository_path(code));
        for path in links.chain(code.map(str::to_owned)) {
            let path = path.trim_end_matches('/');
            if !exists(path, files) && !BUILT.iter().any(|built| path.starts_with(built)) {
                found.push(format!(":{}: `{path}` does not exist", index + 1));
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

fn is_repository_path(code: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-/@".contains(letter);
    TOP_FOLDERS.iter().any(|folder| code.starts_with(folder)) && code.chars().all(plain)
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
    fn dead_paths_are_named_with_their_line() {
        check(
            "\n[adr](adr/0002.md)",
            &[":2: `docs/adr/0002.md` does not exist"],
        );
        check("see `web/src/b.ts`", &[":1: `web/src/b.ts` does not exist"]);
    }
}
