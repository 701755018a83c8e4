//! An incremental look sees the same as a scan over every cell of the world.

use std::collections::{BTreeMap, BTreeSet};

use frolic_protocol::{EntityKind, EntityState};
use proptest::prelude::*;

use super::*;
use crate::interest::Delivery;
use crate::interest::cells::Relevance;

const PLAYER: u32 = 7;
const TICK_HZ: u32 = 20;
/// Longer than an empty cell is retained.
const LONG_TICKS: u32 = 70 * TICK_HZ;

/// What can happen between two looks.
#[derive(Clone, Debug)]
enum Event {
    /// Something is at a place now; possibly replicated to all clients,
    /// possibly owned by a player.
    Place(u32, [f32; 2], bool, u32),
    Remove(u32),
    /// The viewer moves by this much.
    Walk([f32; 2]),
    /// Long enough for empty cells to be removed and their slots reused.
    Wait,
    /// The client acknowledged everything sent so far.
    Acknowledge,
}

fn event() -> impl Strategy<Value = Event> {
    let near = || -150.0f32..150.0;
    // Far from the origin the cells end, and so does the precision of numbers.
    let place = prop_oneof![
        8 => (near(), near()).prop_map(|(x, z)| [x, z]),
        1 => (-1e6f32..1e6, near()).prop_map(|(x, z)| [x, z]),
    ];
    let owner = prop_oneof![Just(0), Just(PLAYER), Just(PLAYER + 1)];
    prop_oneof![
        10 => (1u32..40, place.clone(), prop::bool::weighted(0.1), owner)
            .prop_map(|(id, place, everywhere, owner)| Event::Place(id, place, everywhere, owner)),
        4 => (1u32..40).prop_map(Event::Remove),
        6 => (-30.0f32..30.0, -30.0f32..30.0).prop_map(|(x, z)| Event::Walk([x, z])),
        1 => place.prop_map(Event::Walk),
        2 => Just(Event::Wait),
        2 => Just(Event::Acknowledge),
    ]
}

/// The reference implementation: scans every cell of the world.
#[derive(Default)]
struct FullScan {
    /// By slot and birth: whether it is leaving.
    leaving: BTreeMap<(u32, u32), bool>,
    /// The keys of all cells that ever existed.
    keys: BTreeMap<(u32, u32), CellKey>,
}

impl FullScan {
    fn look(&mut self, cells: &Cells, policy: &InterestPolicy, eye: Vec3) {
        let mut after = BTreeMap::new();
        for slot in 0..cells.slots() {
            let Some(cell) = cells.alive(slot) else {
                continue;
            };
            self.keys.insert((slot, cell.born), cell.key);
            let inside = self.leaving.get(&(slot, cell.born)) == Some(&false);
            let reach = if inside { HYSTERESIS } else { 1.0 };
            let in_view = match (cell.key, policy.radius) {
                (CellKey::Owned(owner), _) => owner == PLAYER,
                (CellKey::Everywhere, _) | (_, None) => true,
                (key, Some(radius)) => cells.distance(key, eye) <= radius * reach,
            };
            if in_view {
                after.insert((slot, cell.born), false);
            }
        }
        for known in self.leaving.keys() {
            after.entry(*known).or_insert(true);
        }
        let in_view = after.iter().filter(|(_, leaving)| !**leaving);
        let in_view: BTreeSet<_> = in_view.map(|(known, _)| self.keys[known]).collect();
        after.retain(|known, leaving| !*leaving || !in_view.contains(&self.keys[known]));
        self.leaving = after;
    }
}

/// Clients identify cells by key, so two watched cells with the same key would
/// be sent as one.
fn no_key_is_there_twice(watch: &Watch) -> bool {
    let keys: BTreeSet<_> = watch.backgrounds.iter().map(|known| known.key).collect();
    keys.len() == watch.backgrounds.len()
}

fn happen(event: &Event, cells: &mut Cells, tick: &mut u32, eye: &mut Vec3) {
    match event {
        Event::Place(id, [x, z], everywhere, owner) => {
            let place = Vec3::new(*x, 0.0, *z);
            let mut state = EntityState::new(*id, EntityKind::Thing);
            state.owner = *owner;
            state.position = [*x as i32, 0, *z as i32];
            let relevance = match everywhere {
                true => Relevance::Everywhere,
                false => Relevance::Near,
            };
            cells.update(&state, place, relevance);
        }
        Event::Remove(id) => cells.remove(*id),
        Event::Walk([x, z]) => *eye += Vec3::new(*x, 0.0, *z),
        Event::Wait => *tick = tick.next_multiple_of(TICK_HZ) + LONG_TICKS,
        Event::Acknowledge => {}
    }
    *tick += 1;
    cells.commit(*tick);
    if tick.is_multiple_of(7) {
        // Once a second, as in a running world.
        *tick = tick.next_multiple_of(TICK_HZ);
        cells.commit(*tick);
    }
}

proptest! {
    #[test]
    fn looking_around_sees_what_looking_everywhere_sees(
        radius in prop::option::of(5.0f32..120.0),
        events in prop::collection::vec(event(), 1..120),
    ) {
        let policy = InterestPolicy { radius, ..InterestPolicy::default() };
        let mut cells = Cells::new(policy.cell_size(), TICK_HZ, u16::MAX);
        let (mut watch, mut full) = (Watch::default(), FullScan::default());
        let (mut eye, mut tick) = (Vec3::ZERO, 0);
        for event in &events {
            happen(event, &mut cells, &mut tick, &mut eye);
            if matches!(event, Event::Acknowledge) {
                watch.forget_leaving();
                full.leaving.retain(|_, leaving| !*leaving);
            }
            let who = Viewer { player: PLAYER, eye, number: 1, turn: 0 };
            watch.look(&cells, &policy, &who);
            full.look(&cells, &policy, eye);
            let seen: BTreeMap<_, _> = watch
                .cells
                .iter()
                .zip(&watch.backgrounds)
                .map(|(watched, background)| ((watched.slot, background.born), watched.leaving))
                .collect();
            prop_assert_eq!(&seen, &full.leaving, "after {:?}", event);
            prop_assert_eq!(seen.len(), watch.cells.len(), "nothing twice");
            prop_assert!(no_key_is_there_twice(&watch), "after {:?}", event);
            let leaving = watch.cells.iter().any(|watched| watched.leaving);
            prop_assert_eq!(watch.leaving, leaving);
            prop_assert!(watch.cells.is_sorted_by_key(|watched| watched.slot));
            for watched in &mut watch.cells {
                // Sent, so that its departure must be reported.
                watched.sent = Version::of(tick);
            }
        }
    }

    /// Skipping a look is right only if nothing that matters has happened.
    #[test]
    fn a_watch_that_does_not_look_misses_nothing_near(
        delivery in prop_oneof![Just(Delivery::Ordered), Just(Delivery::Lossy)],
        radius in prop::option::of(5.0f32..120.0),
        events in prop::collection::vec(event(), 1..120),
    ) {
        let policy = InterestPolicy { radius, ..InterestPolicy::default() };
        let mut cells = Cells::new(policy.cell_size(), TICK_HZ, u16::MAX);
        let mut watch = Watch::default();
        let (mut eye, mut tick) = (Vec3::ZERO, 0);
        for event in &events {
            happen(event, &mut cells, &mut tick, &mut eye);
            let who = Viewer { player: PLAYER, eye, number: 1, turn: 0 };
            watch.refresh(&cells, &policy, who);
            prop_assert!(no_key_is_there_twice(&watch), "after {:?}", event);
            if delivery == Delivery::Ordered || matches!(event, Event::Acknowledge) {
                watch.forget_leaving();
            }
            for watched in &mut watch.cells {
                watched.sent = Version::of(tick);
            }
            for (watched, background) in watch.cells.iter().zip(&watch.backgrounds) {
                // A reused slot never belongs to another cell.
                let cell = cells.alive(watched.slot);
                let same = cell.is_none_or(|cell| cell.born == background.born);
                prop_assert!(same || watched.leaving);
            }
            let slack = cells.size() * 0.25;
            for slot in 0..cells.slots() {
                let Some(cell) = cells.alive(slot) else { continue };
                let near = match cell.key {
                    CellKey::Owned(owner) => owner == PLAYER,
                    CellKey::Everywhere => true,
                    key => radius.is_none_or(|r| cells.distance(key, eye) <= r - slack),
                };
                let watched = watch.find(slot, cell.born);
                let watched = watched.is_some_and(|index| !watch.cells[index].leaving);
                prop_assert!(watched || !near, "{:?} is near and not watched", cell.key);
            }
        }
    }
}

/// The cells that a client watches, and whether it must still be notified that
/// they left.
fn watched_keys(watch: &Watch) -> Vec<(CellKey, bool)> {
    let both = watch.cells.iter().zip(&watch.backgrounds);
    both.map(|(watched, background)| (background.key, watched.leaving))
        .collect()
}

/// The notification that a cell left is lost; the cell comes back, and leaves
/// again before there was budget to send it.
#[test]
fn a_client_that_may_still_have_a_cell_is_notified_that_it_left() {
    let policy = InterestPolicy::within(30.0);
    let mut cells = Cells::new(policy.cell_size(), TICK_HZ, u16::MAX);
    let (mut eye, mut tick) = (Vec3::ZERO, 0);
    let key = CellKey::Grid { x: 0, z: 0 };
    let at_home = Event::Place(1, [1.0, 1.0], false, 0);
    happen(&at_home, &mut cells, &mut tick, &mut eye);
    let mut watch = Watch::default();
    let mut look_from = |x: f32, number: u32| {
        let who = Viewer {
            player: PLAYER,
            eye: Vec3::new(x, 0.0, 0.0),
            number,
            turn: 0,
        };
        watch.look(&cells, &policy, &who);
        let sent = number == 1;
        for watched in watch.cells.iter_mut().filter(|_| sent) {
            watched.sent = Version::of(tick);
        }
        (watched_keys(&watch), watch.backgrounds[0].since)
    };
    assert_eq!(look_from(0.0, 1), (vec![(key, false)], 1));
    assert_eq!(look_from(500.0, 2), (vec![(key, true)], 2));
    // An acknowledgement counts from when the cell last left or came.
    assert_eq!(look_from(500.0, 3), (vec![(key, true)], 2));
    assert_eq!(look_from(0.0, 4), (vec![(key, false)], 4));
    assert_eq!(look_from(500.0, 5), (vec![(key, true)], 5));
}

/// A visible cell leaves the view only further out than it entered. Otherwise
/// whole cells would be sent again and again to a player who walks along the
/// edge of the view. The distances are in terms of a player, not of the
/// constant: the other tests would pass without hysteresis.
#[test]
fn walking_to_and_fro_over_the_edge_of_a_view_changes_nothing() {
    let policy = InterestPolicy::within(40.0);
    let mut cells = Cells::new(policy.cell_size(), TICK_HZ, u16::MAX);
    let (mut eye, mut tick) = (Vec3::ZERO, 0);
    let key = CellKey::Grid { x: 0, z: 0 };
    let at_home = Event::Place(1, [1.0, 1.0], false, 0);
    happen(&at_home, &mut cells, &mut tick, &mut eye);
    // The cell is in view up to here.
    let edge = cells.size() + 40.0;
    let mut watch = Watch::default();
    let mut look_from = |x: f32, number: u32| {
        let who = Viewer {
            player: PLAYER,
            eye: Vec3::new(x, 0.0, 1.0),
            number,
            turn: 0,
        };
        watch.refresh(&cells, &policy, who);
        let seen = watched_keys(&watch);
        let before = watch.cells.first().map(|watched| watched.sent);
        for watched in &mut watch.cells {
            watched.sent = Version::of(tick);
        }
        let since = watch.backgrounds.first().map(|known| known.since);
        (seen, before, since)
    };
    let nothing = (Vec::new(), None, None);
    assert_eq!(look_from(edge + 4.0, 1), nothing, "not in view yet");
    let new = (vec![(key, false)], Some(Version::NONE), Some(2));
    assert_eq!(look_from(edge - 4.0, 2), new);
    let known = (vec![(key, false)], Some(Version::of(tick)), Some(2));
    for round in 0..20 {
        // Far enough apart for each to cause a full look.
        assert_eq!(look_from(edge + 4.0, 3 + round), known, "out, {round}");
        assert_eq!(look_from(edge - 4.0, 3 + round), known, "in, {round}");
    }
    let (seen, ..) = look_from(edge + 20.0, 30);
    assert_eq!(seen, [(key, true)], "who goes away sees it no more");
}
