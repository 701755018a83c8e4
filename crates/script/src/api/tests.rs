//! Checks the definition itself and its JSON form for the web.
//! `tests/definition.rs` and `web/src/player/luau/api.test.ts` compare it with
//! the implementations.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

#[test]
fn every_file_is_listed_under_its_own_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("api");
    let mut found: Vec<String> = fs::read_dir(folder)
        .expect("the folder can be read")
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            (path.extension()? == "toml").then(|| path.file_stem()?.to_str().map(str::to_owned))?
        })
        .collect();
    found.sort();
    let mut listed: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
    listed.sort_unstable();
    assert_eq!(found, listed, "list the files of api/ in src/api.rs");
    for ((name, _), page) in FILES.iter().zip(pages()) {
        assert_eq!(*name, page.name);
        let names: BTreeSet<&str> = page.members.iter().map(|m| m.name.as_str()).collect();
        assert_eq!(names.len(), page.members.len(), "{name} has a name twice");
        for member in &page.members {
            let callable = matches!(
                member.kind,
                MemberKind::Function | MemberKind::Method | MemberKind::Callback
            );
            assert_eq!(
                callable,
                member.luau_type.starts_with('('),
                "{name}.{}",
                member.name
            );
            assert!(
                page.side.includes(page.side_of(member)),
                "{name}.{}",
                member.name
            );
        }
    }
}

#[test]
fn every_example_compiles() {
    for page in pages() {
        for member in &page.members {
            if let Some(example) = &member.example {
                let path = format!("StarterPlayer/{}{}.luau", page.name, member.name);
                crate::compile(&path, example).expect("the example compiles");
            }
        }
    }
}

/// Read by the site's reference page and the editor; `cargo xtask codegen`
/// runs this test together with those of ts-rs, which it is named after.
#[test]
fn export_bindings_api_json() {
    let folder = std::env::var_os("TS_RS_EXPORT_DIR").map(PathBuf::from);
    let Some(folder) = folder else { return };
    fs::create_dir_all(&folder).expect("the folder can be made");
    let text = serde_json::to_string_pretty(pages()).expect("pages are plain data");
    fs::write(folder.join("api.json"), text + "\n").expect("the file can be written");
}
