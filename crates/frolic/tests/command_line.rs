//! The `frolic` binary from outside: what a creator types, and what comes back.
//! (Being an integration test it also makes `cargo test` build the binary that
//! the browser tests run, with the very features the other tests use.)

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn frolic(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_frolic"));
    command.args(args).output().expect("cargo built it")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn sample_game() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../games/obby");
    folder.to_string_lossy().into_owned()
}

/// A folder of its own for one test.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the scratch folder is ours");
    folder
}

#[test]
fn packing_twice_gives_the_same_bytes_and_the_package_checks() {
    let folder = scratch("pack");
    let packages = ["first.game", "second.game"].map(|name| folder.join(name));
    for package in &packages {
        let output = frolic(&["pack", &sample_game(), "-o", &package.to_string_lossy()]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let [first, second] = packages;
    assert_eq!(fs::read(&first).unwrap(), fs::read(second).unwrap());
    let checked = frolic(&["check", &first.to_string_lossy()]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
}

#[test]
fn what_is_no_game_is_refused_with_the_name_of_what_is_missing() {
    let folder = scratch("empty");
    for command in ["check", "pack"] {
        let output = frolic(&[command, &folder.to_string_lossy()]);
        assert!(!output.status.success());
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(said.contains("game.toml"), "{command}: {said}");
    }
}

#[test]
fn a_file_that_is_not_a_package_is_refused() {
    let file = scratch("noise").join("noise.game");
    fs::write(&file, b"PK\x03\x04 and then nothing that makes sense").unwrap();
    let output = frolic(&["check", &file.to_string_lossy()]);
    assert!(!output.status.success());
    assert!(!text(&output.stderr).contains("panicked"));
}
