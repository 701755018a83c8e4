//! Which versions of cells are stored, for how long, and how often they are
//! encoded.

use std::collections::BTreeMap;

use frolic_package::Package;
use frolic_protocol::NumberedInput;
use frolic_scene::Limits;
use frolic_sim::{Buttons, CharacterInput};

use super::*;
use crate::interest::{ClientView, Delivery};
use crate::world::{World, WorldOptions, input};

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
    let mut state = EntityState::new(id, EntityKind::Thing);
    state.position = [0, height, 0];
    cells.update(&state, Vec3::new(x, 0.0, 0.0), Relevance::Near);
}

/// A built-up world in which one entity moves.
#[test]
fn what_rests_leaves_its_versions_to_what_moves() {
    let mut cells = Cells::new(32.0, 60, u16::MAX);
    for tick in 1..=600 {
        // All of them move at first.
        let moving = if tick < 20 { 0..30_000 } else { 0..1 };
        for id in moving {
            place(&mut cells, id, (id / 100) as f32 * 32.0 + 16.0, tick as i32);
        }
        cells.commit(tick);
        if tick == 100 {
            assert_eq!(cells.versions_max, 17, "much has moved lately");
            assert_eq!(cells.updates_retained(20), 4);
        }
    }
    assert_eq!(
        cells.updates_retained(20),
        32,
        "one of 8, at the highest pressure"
    );
    assert_eq!(cells.updates_retained(10), 16);
    let versions = |slot: usize| cells.cells[slot].versions.len();
    assert_eq!(versions(0), VERSIONS_MAX);
    assert!(cells.cells[0].version(600 - 96).is_some());
    assert_eq!((1..300).map(versions).max(), Some(1), "one is enough");
    assert!(
        cells.cells[1].version(19).is_some(),
        "and the newest is there"
    );
}

const TRAIN: u32 = 3;

/// The flags of the train as replicated in the origin's cell, and in those one
/// and two to the east of it.
fn train_flags(cells: &Cells) -> [Option<u8>; 3] {
    [0, 1, 2].map(|x| {
        let slot = cells.slot_of(CellKey::Grid { x, z: 0 })?;
        let members = cells.members(slot).iter();
        let mut train = members.filter(|state| state.id == TRAIN);
        train.next().map(|state| state.flags)
    })
}

#[test]
fn a_part_of_the_scene_is_missed_where_the_file_has_it_and_nowhere_else() {
    const GONE: u8 = flags::DESTROYED | flags::AWAY;
    let mut cells = Cells::new(32.0, 60, u16::MAX);
    let mut state = EntityState::new(TRAIN, EntityKind::Thing);
    let file_place = Vec3::new(16.0, 0.0, 16.0);
    let mut tick = 0;
    let mut drive = |state: &EntityState, x: f32, relevance: Relevance| {
        tick += 1;
        cells.update(state, Vec3::new(x, 0.0, 16.0), relevance);
        cells.commit(tick);
        let home = cells
            .slot_of(CellKey::Grid { x: 0, z: 0 })
            .map(|slot| cells.newest(slot));
        (train_flags(&cells), home.and_then(Version::tick))
    };
    let part = Relevance::Part(file_place);
    assert_eq!(drive(&state, 20.0, part).0, [Some(0), None, None]);
    let (flags_sent, left_at) = drive(&state, 40.0, part);
    assert_eq!(flags_sent, [Some(GONE), Some(flags::AWAY), None]);
    // A place where nothing happens is not sent again.
    for step in 1..20 {
        state.position[0] = step;
        let (flags_sent, changed_at) = drive(&state, 40.0 + step as f32, part);
        assert_eq!(flags_sent, [Some(GONE), Some(flags::AWAY), None]);
        assert_eq!(changed_at, left_at);
    }
    let (flags_sent, changed_at) = drive(&state, 80.0, part);
    assert_eq!(flags_sent, [Some(GONE), None, Some(flags::AWAY)]);
    assert_eq!(changed_at, left_at);
    // An entity that is replicated to all clients is missing nowhere.
    let (flags_sent, _) = drive(&state, 80.0, Relevance::Everywhere);
    assert_eq!(flags_sent, [None, None, None]);
    assert_eq!(drive(&state, 80.0, part).0, [Some(GONE), None, Some(8)]);
    assert_eq!(drive(&state, 16.0, part).0, [Some(0), None, None]);
    // Wherever it is destroyed.
    drive(&state, 80.0, part);
    state.flags = flags::DESTROYED;
    let destroyed = [Some(flags::DESTROYED), None, None];
    assert_eq!(drive(&state, 80.0, part).0, destroyed);
    // For all clients, if it was replicated to all.
    drive(&state, 80.0, Relevance::Everywhere);
    assert_eq!(drive(&state, 80.0, part).0, [None, None, None]);
    assert_eq!(cells.everything(), [state]);
    cells.remove(TRAIN);
    assert!(cells.everything().is_empty());
}

#[test]
fn who_is_missed_is_one_of_everything_once_and_as_it_is() {
    let mut cells = Cells::new(32.0, 60, u16::MAX);
    let state = EntityState::new(TRAIN, EntityKind::Thing);
    let part = Relevance::Part(Vec3::ZERO);
    cells.update(&state, Vec3::new(80.0, 0.0, 0.0), part);
    cells.commit(1);
    let all = cells.everything();
    assert_eq!(all.len(), 1);
    assert!(!all[0].is_elsewhere());
    cells.remove(TRAIN);
    assert!(cells.cells.iter().all(|cell| cell.members.is_empty()));
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

/// A change is encoded once for all clients that have the same version, so the
/// size of all records of a tick does not grow with the number of clients.
#[test]
fn what_fifty_clients_see_is_encoded_once() {
    for delivery in [Delivery::Ordered, Delivery::Lossy] {
        let mut world = World::load(&meadow(), WorldOptions::default()).expect("it loads");
        let join = |n: u32| {
            let number = world.apply(input::Join::new(format!("id_{n}"), format!("Player {n}")));
            ClientView::new(number, delivery)
        };
        let mut views: Vec<ClientView> = (0..50).map(join).collect();
        let mut updates = 0;
        for seq in 1..=120 {
            for view in &views {
                // In circles over some cells, with every player in sight.
                let yaw = view.player() as f32 * 0.7 + seq as f32 * 0.05;
                let input = CharacterInput::new(0.0, 1.0, yaw, 0.0, Buttons::default());
                world.apply(input::Controls::new(
                    view.player(),
                    [NumberedInput { seq, input }],
                ));
            }
            world.apply(input::Step);
            world.take_outbox();
            world.collect_changes();
            if !world.update_is_due(views[0].player()) {
                continue;
            }
            let mut encoded = Vec::new();
            let mut sent = 0;
            for view in &mut views {
                assert!(world.update_is_due(view.player()), "all at once");
                world.snapshot(view, 0, &mut |packet| sent += packet.len());
                let heads = world.replication().cells.heads.iter();
                let records: usize = heads.map(|head| head.records.len()).sum();
                encoded.push((records, world.replication().cells.records.len()));
            }
            let (records, bytes) = encoded[0];
            assert!(records > 0 && bytes > 50, "all of them move: {bytes} B");
            assert!(sent > bytes * 50, "all clients receive it: {sent} B");
            assert_eq!(encoded, [(records, bytes); 50], "update {updates}");
            updates += 1;
        }
        assert_eq!(updates, 40);
    }
}
