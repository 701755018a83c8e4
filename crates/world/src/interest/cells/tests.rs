//! What is kept of cells, for how long, and how often it is encoded.

use std::collections::BTreeMap;

use frolic_package::{Limits, Package};
use frolic_protocol::NumberedInput;
use frolic_sim::{Buttons, CharacterInput};

use super::*;
use crate::interest::{ClientView, Delivery};
use crate::world::{World, WorldOptions};

#[test]
fn old_versions_are_found_whether_or_not_something_moved_in_every_tick() {
    let ticks = [3, 4, 5, 8, 12, 13, 40];
    let mut cell = Cell {
        key: CellKey::Everywhere,
        born: 1,
        alive: true,
        changed: false,
        made_up: 0,
        members: Vec::new(),
        versions: VecDeque::new(),
    };
    assert!(cell.version(0).is_none());
    cell.versions.extend(ticks.map(|tick| Members {
        tick,
        entities: Vec::new(),
    }));
    for tick in 0..50 {
        let found = cell.version(tick).map(|version| version.tick);
        assert_eq!(found, ticks.contains(&tick).then_some(tick));
    }
}

fn place(cells: &mut Cells, id: u32, x: f32, height: i32) {
    let mut state = EntityState::new(id, frolic_protocol::EntityKind::Thing);
    state.position = [0, height, 0];
    cells.update(&state, Vec3::new(x, 0.0, 0.0), Relevance::Near);
}

/// A built-up world in which one thing moves.
#[test]
fn what_rests_leaves_its_versions_to_what_moves() {
    let mut cells = Cells::new(32.0, 60, u16::MAX);
    for tick in 1..=600 {
        // All of them move in the beginning.
        let moving = if tick < 20 { 0..30_000 } else { 0..1 };
        for id in moving {
            place(&mut cells, id, (id / 100) as f32 * 32.0 + 16.0, tick as i32);
        }
        cells.commit(tick);
        if tick == 100 {
            assert_eq!(cells.kept, 17, "much has moved lately");
            assert_eq!(cells.updates_kept(20), 4);
        }
    }
    assert_eq!(
        cells.updates_kept(20),
        32,
        "one of 8, at the highest pressure"
    );
    assert_eq!(cells.updates_kept(10), 16);
    let versions = |slot: usize| cells.cells[slot].versions.len();
    assert_eq!(versions(0), VERSIONS_MAX);
    assert!(cells.cells[0].version(600 - 96).is_some());
    assert_eq!((1..300).map(versions).max(), Some(1), "nobody needs more");
    assert!(
        cells.cells[1].version(19).is_some(),
        "and the newest is there"
    );
}

fn meadow() -> Package {
    let manifest = "[game]\nid = \"test\"\nname = \"Test\"\n";
    let scene = r#"{"format":1,"prefabs":{},"entities":[
        {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[200,1,200]}}},
        {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"#;
    let files = [("game.toml", manifest), ("scene.json", scene)];
    let files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
    let package = Package::from_files(BTreeMap::from(files), &Limits::default());
    package.unwrap_or_else(|report| panic!("{report}"))
}

/// BEY-6: a change is encoded once for everybody who has the same version, so
/// what all records of a tick take together does not grow with those who are
/// told.
#[test]
fn what_fifty_clients_see_is_encoded_once() {
    for delivery in [Delivery::Ordered, Delivery::Lossy] {
        let mut world = World::load(&meadow(), WorldOptions::default()).expect("it loads");
        let join = |n: u32| {
            let number = world.join(format!("id_{n}"), format!("Player {n}"));
            ClientView::new(number, delivery)
        };
        let mut views: Vec<ClientView> = (0..50).map(join).collect();
        let mut updates = 0;
        for seq in 1..=120 {
            for view in &views {
                // In circles over some squares, and nobody out of sight.
                let yaw = view.player() as f32 * 0.7 + seq as f32 * 0.05;
                let input = CharacterInput::new(0.0, 1.0, yaw, 0.0, Buttons::default());
                world.receive_inputs(view.player(), &[NumberedInput { seq, input }]);
            }
            world.step();
            world.take_outbox();
            world.look();
            if !world.update_is_due(views[0].player()) {
                continue;
            }
            let mut encoded = Vec::new();
            let mut sent = 0;
            for view in &mut views {
                assert!(world.update_is_due(view.player()), "all at once");
                world.snapshot(view, 0, &mut |packet| sent += packet.len());
                let heads = world.cells().heads.iter();
                let records: usize = heads.map(|head| head.records.len()).sum();
                encoded.push((records, world.cells().records.len()));
            }
            let (records, bytes) = encoded[0];
            assert!(records > 0 && bytes > 50, "all of them move: {bytes} B");
            assert!(sent > bytes * 50, "everybody is told: {sent} B");
            assert_eq!(encoded, [(records, bytes); 50], "update {updates}");
            updates += 1;
        }
        assert_eq!(updates, 40);
    }
}
