//! Tells cargo when the files inside the binary change. The site's folder is
//! made when it is missing, because cargo re-runs a build whose watched path
//! does not exist every time.

use std::fs;

fn main() {
    for folder in ["../../web/dist", "../../games"] {
        if let Err(error) = fs::create_dir_all(folder) {
            println!("cargo::warning=could not make {folder}: {error}");
        }
        println!("cargo::rerun-if-changed={folder}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
