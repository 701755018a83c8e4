//! When cells are due, and what acknowledgements count for.

use frolic_protocol::snapshot::CellKey;

use super::*;

/// The turns in which a cell is sent to a client with an interval.
fn turns_of(slot: u32, began: u16, interval: u16, late_in: &[u16]) -> Vec<u16> {
    let mut watched = Watched::new(slot, began);
    let turns = (1..=64).map(|n| began.wrapping_add(n));
    let turns = turns.filter(|turn| !late_in.contains(turn));
    turns
        .filter(|turn| {
            let due = is_its_turn(&watched, *turn, interval);
            if due {
                watched.sent_turn = *turn;
            }
            due
        })
        .collect()
}

#[test]
fn a_cell_has_its_turn_for_all_clients_at_once() {
    for interval in [2, 4, 8, 16, 32] {
        let first = turns_of(5, u16::MAX - 20, interval, &[]);
        assert_eq!(first.len(), 64 / usize::from(interval));
        let steps = first.windows(2).map(|two| two[1].wrapping_sub(two[0]));
        assert!(steps.into_iter().all(|step| step == interval), "{first:?}");
        let later = turns_of(5, u16::MAX - 17, interval, &[]);
        let both = later.iter().filter(|turn| first.contains(turn)).count();
        assert!(both >= first.len() - 1, "{first:?} and {later:?}");
        let other = turns_of(6, u16::MAX - 20, interval, &[]);
        assert!(!other.iter().any(|turn| first.contains(turn)));
    }
}

#[test]
fn a_late_client_is_updated_in_the_next_turn_and_back_in_step_after_it() {
    let in_step = turns_of(0, 0, 8, &[]);
    assert_eq!(in_step, [8, 16, 24, 32, 40, 48, 56, 64]);
    let late = turns_of(0, 0, 8, &[16, 17]);
    assert_eq!(late, [8, 18, 24, 32, 40, 48, 56, 64]);
}

#[test]
fn a_near_cell_is_sent_in_every_update_even_in_two_of_one_turn() {
    let watched = Watched::new(3, 7);
    assert!(is_its_turn(&watched, 7, 1));
    assert!(!is_its_turn(&watched, 7, 2));
}

/// A cell left, came back and left again: the acknowledgement of the first time
/// says nothing about the second.
#[test]
fn news_from_before_a_cell_came_or_left_does_not_count() {
    let mut watched = Watched::new(3, 0);
    watched.leaving = true;
    let background = Background {
        born: 1,
        key: CellKey::Grid { x: 0, z: 0 },
        distance: 0.0,
        since: 9,
        known_update: 0,
        lingers: false,
    };
    let left = background.sent_cell(3, Version::NONE);
    let seen = background.sent_cell(3, Version::of(50));
    let mut watch = Watch::default();
    watch.cells.push(watched);
    watch.backgrounds.push(background);
    watch.leaving = true;
    note_known(&mut watch, 5, &left, 1);
    note_known(&mut watch, 9, &seen, 1);
    assert_eq!(watch.cells.len(), 1, "it is sent again");
    note_known(&mut watch, 9, &left, 1);
    assert!(watch.cells.is_empty() && !watch.leaving);

    watch.cells.push(Watched::new(3, 0));
    watch.backgrounds.push(background);
    note_known(&mut watch, 5, &seen, 1);
    note_known(&mut watch, 9, &left, 1);
    assert_eq!(watch.cells[0].known, Version::NONE);
    note_known(&mut watch, 9, &seen, 1);
    assert_eq!(watch.cells[0].known, Version::of(50));
}
