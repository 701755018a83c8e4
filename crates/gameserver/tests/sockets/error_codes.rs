//! The list of error codes in `docs/protocol/websocket.md` is whole: what the sources
//! can answer is in it, and nothing else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Words where a code could stand, that are none.
const NO_CODES: [&str; 2] = ["t", "id"];

#[test]
fn every_code_that_a_client_can_get_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found: BTreeSet<String> = ["kick".to_owned()].into();
    for file in sources(&root) {
        let text = std::fs::read_to_string(&file).expect("readable");
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        // Joins calls that span several lines.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = text.replace("( ", "(");
        found.extend(codes_in(&text));
    }
    for no_code in NO_CODES {
        assert!(found.remove(no_code), "{no_code} need not be left out");
    }
    let documented = documented(&root);
    let missing: Vec<_> = found.difference(&documented).collect();
    assert!(
        missing.is_empty(),
        "not in docs/protocol/websocket.md: {missing:?}"
    );
    let invented: Vec<_> = documented.difference(&found).collect();
    assert!(invented.is_empty(), "no code path answers {invented:?}");
}

/// Where answers to clients are made.
fn sources(root: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = [
        "crates/gameserver/src/host.rs",
        "crates/gameserver/src/decoder.rs",
        "crates/protocol/src/json/command.rs",
        "crates/fleet-api/src/ticket.rs",
        "crates/world/src/spells.rs",
        "crates/world/src/terrain/rules.rs",
    ]
    .map(|path| root.join(path))
    .into();
    let host = std::fs::read_dir(root.join("crates/gameserver/src/host")).expect("a folder");
    let host = host.map(|entry| entry.expect("readable").path());
    // Remote commands are answered to the control plane.
    files.extend(host.filter(|path| !path.ends_with("outside.rs")));
    files
}

fn codes_in(text: &str) -> Vec<String> {
    let mut codes = Vec::new();
    for before in ["(\"", "code: \"", "=> \""] {
        for (at, _) in text.match_indices(before) {
            let rest = &text[at + before.len()..];
            let Some((word, rest)) = rest.split_once('"') else {
                continue;
            };
            // Two words beside each other are the name of a command.
            let second = rest
                .strip_prefix(", \"")
                .and_then(|rest| rest.split_once('"'));
            let is_name = second.is_some_and(|(second, _)| is_word(second));
            let stands_alone = before == "(\"" && !rest.starts_with(',');
            if is_word(word) && !is_name && !stands_alone {
                codes.push(word.to_owned());
            }
        }
    }
    codes
}

fn is_word(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c == '_';
    !text.is_empty() && text.chars().all(fits)
}

fn documented(root: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(root.join("docs/protocol/websocket.md")).expect("readable");
    let (_, list) = text.split_once("## All error codes").expect("a list");
    let list = list.split("\n## ").next().unwrap_or_default();
    let rows = list.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    let words = cells.flat_map(|cell| cell.split('`'));
    words
        .filter(|word| is_word(word))
        .map(str::to_owned)
        .collect()
}
