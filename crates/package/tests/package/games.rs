//! Every folder in games/ is a game that passes the same checks as any uploaded game.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use frolic_package::{Limits, Package, Scene};

fn sample_games() -> Vec<PathBuf> {
    let games = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../games");
    let entries = fs::read_dir(games).expect("games/ is part of the repository");
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

fn read_folder(root: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_folder(root, &path, files);
        } else {
            let parts = path.strip_prefix(root).unwrap().iter();
            let parts: Vec<&str> = parts.map(|part| part.to_str().unwrap()).collect();
            files.insert(parts.join("/"), fs::read(&path).unwrap());
        }
    }
}

fn load(folder: &Path) -> Package {
    let mut files = BTreeMap::new();
    read_folder(folder, folder, &mut files);
    match Package::from_files(files, &Limits::default()) {
        Ok(package) => package,
        Err(report) => panic!("{}:\n{report}", folder.display()),
    }
}

#[test]
fn every_sample_game_is_a_valid_package() {
    let folders = sample_games();
    assert!(!folders.is_empty());
    for folder in folders {
        let package = load(&folder);
        let name = folder.file_name().unwrap().to_str().unwrap();
        assert_eq!(package.manifest.game.id, name, "folder and id are the same");
        assert!(package.thumbnail().is_some(), "{name} needs a picture");
        assert!(package.warnings.problems.is_empty(), "{}", package.warnings);
    }
}

#[test]
fn the_scenes_of_the_sample_games_are_saved_scenes() {
    for folder in sample_games() {
        let text = fs::read_to_string(folder.join("scene.json")).unwrap();
        let scene = Scene::parse(text.as_bytes(), &Limits::default()).unwrap();
        assert!(
            scene.to_canonical_json() == text,
            "{}/scene.json is not in canonical form; `frolic check --fix` writes it so",
            folder.display()
        );
    }
}

/// Facts in the README of the obby that end-to-end tests rely on.
#[test]
fn the_obby_keeps_its_landmarks() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../games/obby");
    let package = load(&folder);
    let world = package.scene.world_transforms();
    let position = |name: &str| {
        let entities = &package.scene.entities;
        let index = entities.iter().position(|entity| entity.name == name);
        world[index.unwrap_or_else(|| panic!("{name} is gone"))].position
    };
    assert_eq!(position("Spawn"), [0.0, 0.1, 0.0]);
    assert_eq!(position("KillBrick1"), [-3.0, 0.5, -8.0]);
    assert_eq!(position("MovingPlatform1"), [0.0, -0.25, -18.0]);
}
