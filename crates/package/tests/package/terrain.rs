//! Chunks of terrain that a package stores in terrain/edits.bin.

use std::collections::BTreeMap;

use super::fixtures::game;
use frolic_package::{Limits, Package, Report, Rule, Scene};
use frolic_terrain::{Chunk, Edits, Material, Terrain};

const SCENE: &str = r#"{"format": 2, "prefabs": {},
    "entities": [{"id": 1, "name": "Spawn", "components": {"SpawnPoint": {}}}],
    "terrain": {"size": [64, 32, 64], "generator": {"type": "empty"}}}"#;

fn file(at: [i32; 3]) -> Vec<u8> {
    let chunks = BTreeMap::from([(at, Chunk::uniform(Material::STONE))]);
    Edits::new(&chunks).unwrap().as_bytes().to_vec()
}

fn load(scene: &str, edits: &[u8]) -> Result<Package, Report> {
    let files = game(&[
        ("scene.json", scene.as_bytes()),
        ("terrain/edits.bin", edits),
    ]);
    Package::build(files, &Limits::default()).map(|(package, _)| package)
}

#[test]
fn the_world_and_its_clients_have_the_stored_chunks() {
    let package = load(SCENE, &file([-1, 0, 0])).unwrap();
    let sent = Scene::parse(&package.scene_for_clients(), &Limits::default()).unwrap();
    for settings in [&package.scene.terrain, &sent.terrain] {
        let terrain = Terrain::new(settings.as_ref().unwrap());
        assert_eq!(terrain.block([-5, 3, 9]), Material::STONE);
        assert_eq!(terrain.block([5, 3, 9]), Material::AIR);
    }
    // The scene that clients receive is written as it was read.
    assert_eq!(
        sent.to_canonical_json().as_bytes(),
        &*package.scene_for_clients()
    );
}

#[test]
fn stored_chunks_that_fit_no_terrain_are_refused_with_all_other_problems() {
    let refused = |scene: &str, edits: &[u8]| load(scene, edits).unwrap_err();
    let far = refused(SCENE, &file([9, 0, 0]));
    assert!(far.to_string().contains("terrain/edits.bin"), "{far}");
    assert!(far.to_string().contains("outside of the terrain"), "{far}");
    let old = refused(
        &SCENE.replace("\"format\": 2", "\"format\": 1"),
        &file([0, 0, 0]),
    );
    assert!(old.broke(Rule::UnexpectedFile), "{old}");
    let without = SCENE.replace(
        ",\n    \"terrain\"",
        ",\n    \"terrain\": null, \"unknown\"",
    );
    let both = refused(&without, b"no chunks");
    assert!(
        both.broke(Rule::UnknownKey) && both.broke(Rule::InvalidValue),
        "{both}"
    );
    let mut long = file([0, 0, 0]);
    long.push(0);
    assert!(refused(SCENE, &long).broke(Rule::InvalidValue));
}

#[test]
fn the_scene_file_itself_stores_no_chunks() {
    let edits = Edits::from_bytes(&file([0, 0, 0])).unwrap();
    let text = serde_json::to_string(&edits).unwrap();
    let inline = SCENE.replace("\"size\"", &format!("\"edits\": {text}, \"size\""));
    let files = game(&[("scene.json", inline.as_bytes())]);
    let report = Package::from_files(files, &Limits::default()).unwrap_err();
    assert!(report.broke(Rule::UnknownKey), "{report}");
    assert!(report.to_string().contains("terrain/edits.bin"), "{report}");
}
