//! The scenes of the sample games, pinned: what a released scene becomes in a
//! world must not change when the reader of scenes does.
//!
//! Scripts are emptied, so that only scene, assets and settings count. When a
//! sample's scene is changed on purpose, its test prints the new values.

use std::collections::BTreeMap;
use std::path::Path;

use frolic_package::{Limits, Package};
use frolic_world::{World, WorldOptions, input};
use sha2::{Digest, Sha256};

use crate::harness::packages::read_folder;

/// Ticks after which a world is compared again: bodies fall and NPCs walk.
const TICKS: u32 = 120;

/// What a sample becomes.
#[derive(Debug, PartialEq)]
struct Pinned {
    /// SHA-256 of every entity with its prefab's components and its place.
    entities: &'static str,
    /// [`World::state_hash`] at the start and after [`TICKS`].
    world: [u64; 2],
}

#[test]
fn the_arena_still_gives_the_same_world() {
    let pinned = Pinned {
        entities: "0eaf2dc861ccfe938ed4bc1c462de5293c1b994cda1a3c4e4a9236c46aa453ee",
        world: [4_218_679_385_621_600_430, 14_810_561_982_967_633_748],
    };
    check("arena", &pinned);
}

#[test]
fn the_obby_still_gives_the_same_world() {
    let pinned = Pinned {
        entities: "ca91e5820be125dd3819689f2af3fc8d242f6d5c00008b48cb469b9a7290c9eb",
        world: [2_690_771_101_730_463_356, 8_294_091_909_381_250_597],
    };
    check("obby", &pinned);
}

#[test]
fn the_sandbox_still_gives_the_same_world() {
    let pinned = Pinned {
        entities: "4fd4711e15b015463056709d346df44abddbd38c0bff0f9005c1914662be607a",
        world: [17_646_534_926_993_855_088, 3_730_462_156_257_733_968],
    };
    check("sandbox", &pinned);
}

#[test]
fn the_stealth_game_still_gives_the_same_world() {
    let pinned = Pinned {
        entities: "8b659f933ccc2391873e2504abfb626a6654a535cb7ad3eb0a2ad7d7b1e67e40",
        world: [3_917_543_084_927_666_481, 13_682_734_042_451_156_895],
    };
    check("stealth", &pinned);
}

fn check(game: &str, pinned: &Pinned) {
    let package = without_scripts(game);
    let mut world = World::load(&package, WorldOptions::default()).expect("the sample starts");
    let start = world.state_hash();
    for _ in 0..TICKS {
        world.apply(input::Step);
    }
    let found = (entities(&package), [start, world.state_hash()]);
    assert_eq!((found.0.as_str(), found.1), (pinned.entities, pinned.world));
}

fn without_scripts(game: &str) -> Package {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../games");
    let root = root.join(game);
    let mut files = BTreeMap::new();
    read_folder(&root, &root, &mut files);
    for (path, bytes) in &mut files {
        if path.starts_with("scripts/") {
            bytes.clear();
        }
    }
    Package::from_files(files, &Limits::default()).unwrap_or_else(|report| panic!("{report}"))
}

fn entities(package: &Package) -> String {
    let scene = &package.scene;
    let mut hash = Sha256::new();
    for (entity, place) in scene.entities.iter().zip(scene.world_transforms()) {
        let resolved = scene.resolved(entity);
        let described = serde_json::json!([
            entity.id,
            entity.name,
            entity.parent,
            entity.prefab,
            resolved,
            place
        ]);
        hash.update(described.to_string());
    }
    hex::encode(hash.finalize())
}
