//! The data folder that an earlier version made; see `fixtures/bea8b59/README.md`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::scratch;

/// Where the fixture is.
pub fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/bea8b59")
}

/// Unpacks the folder for one test.
pub fn unpack(name: &str) -> PathBuf {
    let data = scratch(name);
    let unpacked = Command::new("tar")
        .arg("-xzf")
        .arg(fixture().join("data.tar.gz"))
        .arg("-C")
        .arg(&data)
        .status();
    assert!(unpacked.is_ok_and(|status| status.success()));
    data
}
