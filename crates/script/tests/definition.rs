//! The definition of the API (`api/*.toml`) against what server scripts really
//! see, and against the script tests there are.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use frolic_script::api::{MemberKind, PageKind, Side, pages};

/// Globals of Luau itself, which every tool and every manual of Luau has.
const LUAU: [&str; 27] = [
    "_VERSION",
    "assert",
    "bit32",
    "buffer",
    "coroutine",
    "error",
    "getmetatable",
    "ipairs",
    "math",
    "next",
    "pairs",
    "pcall",
    "rawequal",
    "rawget",
    "rawlen",
    "rawset",
    "select",
    "setmetatable",
    "string",
    "table",
    "tonumber",
    "tostring",
    "type",
    "unpack",
    "utf8",
    "vector",
    "xpcall",
];

/// The names that a side must have: `World.Find`, `print`.
fn defined(side: Side) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for page in pages().iter().filter(|page| page.side.includes(side)) {
        if page.kind == PageKind::Record && page.name != "Moment" {
            continue;
        }
        let statics = page.members.iter().any(|member| member.is_static);
        if page.kind == PageKind::Library || statics {
            names.insert(page.name.clone());
            names.extend(page.aliases.iter().cloned());
        }
        for member in &page.members {
            if !page.side_of(member).includes(side) || member.kind == MemberKind::Callback {
                continue;
            }
            if page.kind == PageKind::Globals {
                names.insert(member.name.clone());
            } else {
                names.insert(format!("{}.{}", page.name, member.name));
            }
        }
    }
    names
}

fn compare(there: BTreeSet<String>, side: Side) {
    let wanted = defined(side);
    let missing: Vec<&String> = wanted.difference(&there).collect();
    let undefined: Vec<&String> = there.difference(&wanted).collect();
    assert!(
        missing.is_empty() && undefined.is_empty(),
        "{side:?}: defined in crates/script/api but not there: {missing:?}; \
         there but not defined: {undefined:?}"
    );
}

/// Aliases are the same table under another name.
fn without_luau(names: Vec<String>) -> BTreeSet<String> {
    let aliases: Vec<&String> = pages().iter().flat_map(|page| &page.aliases).collect();
    names
        .into_iter()
        .filter(|name| !LUAU.contains(&name.as_str()))
        .filter(|name| {
            let library = name.split_once('.').map(|(library, _)| library);
            library.is_none_or(|library| !aliases.iter().any(|alias| *alias == library))
        })
        .collect()
}

#[test]
fn server_scripts_have_exactly_what_is_defined() {
    let stage = crate::support::Stage::new();
    compare(
        without_luau(stage.vm.members().expect("the list can be made")),
        Side::Server,
    );
}

/// Every member is covered on each side where it exists: by a file of its name
/// or by one whose head says `-- covers: A, B`.
#[test]
fn every_member_has_a_script_test_on_each_side() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut missing = Vec::new();
    for page in pages() {
        let folder = root.join(page.name.to_lowercase());
        for (side, word) in [(Side::Server, "server"), (Side::Client, "client")] {
            let covered = covered_in(&folder, word);
            let members = page.members.iter();
            let members = members.filter(|member| page.side_of(member).includes(side));
            for member in members {
                if !covered.contains(&member.name.to_lowercase()) {
                    missing.push(format!("{}.{} ({word})", page.name, member.name));
                }
            }
        }
    }
    assert!(
        missing.is_empty(),
        "no file in tests/<library>/ covers {missing:?}"
    );
}

/// Names that the files of a folder for one side cover, in small letters.
fn covered_in(folder: &Path, side: &str) -> BTreeSet<String> {
    let mut covered = BTreeSet::new();
    let Ok(entries) = fs::read_dir(folder) else {
        return covered;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let text = fs::read_to_string(&path).unwrap_or_default();
        let first = text.lines().next().unwrap_or_default();
        if first != "--@test both" && first != format!("--@test {side}") {
            continue;
        }
        let name = path.file_stem().and_then(|stem| stem.to_str());
        covered.extend(name.map(str::to_lowercase));
        for line in text.lines().take_while(|line| line.starts_with("--")) {
            if let Some(names) = line.strip_prefix("-- covers:") {
                covered.extend(names.split(',').map(|name| name.trim().to_lowercase()));
            }
        }
    }
    covered
}
