//! Games to run: the sample game, and those made up on the spot.

use std::collections::BTreeMap;
use std::path::Path;

use frolic_package::Package;
use frolic_scene::Limits;

/// The sample game that most tests run.
pub fn obby() -> Package {
    game("obby")
}

/// A sample game from the repository.
pub fn game(name: &str) -> Package {
    let games = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../games");
    let root = games.join(name);
    let mut files = BTreeMap::new();
    read_folder(&root, &root, &mut files);
    Package::from_files(files, &Limits::default()).unwrap_or_else(|report| panic!("{report}"))
}

pub fn read_folder(root: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).expect("the sample game is there") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            read_folder(root, &path, files);
        } else {
            let name = path.strip_prefix(root).expect("below the root");
            let name = name.to_str().expect("plain names").to_owned();
            files.insert(name, std::fs::read(&path).expect("readable"));
        }
    }
}

/// A game made of a scene and scripts.
pub fn package(scene: &str, scripts: &[(&str, &str)]) -> Package {
    let manifest = "[game]\nid = \"test\"\nname = \"Test\"\nversion = \"1.0.0\"\n";
    let mut files = BTreeMap::from([
        ("game.toml".to_owned(), manifest.as_bytes().to_vec()),
        ("scene.json".to_owned(), scene.as_bytes().to_vec()),
    ]);
    for (path, text) in scripts {
        files.insert((*path).to_owned(), text.as_bytes().to_vec());
    }
    Package::from_files(files, &Limits::default()).unwrap_or_else(|report| panic!("{report}"))
}
