//! What is kept of cells, and for how long.

use super::*;

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
