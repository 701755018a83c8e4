//! Records that arrive late, twice, or out of order across cells.

use super::*;

/// A slow page is sent everything again before the server knows that it has it, and
/// later records build on the first.
#[test]
fn a_record_that_builds_on_nothing_leaves_what_others_build_on() {
    let mut replication = Replication::new(60, 20);
    let key = CellKey::Everywhere;
    let mut replicate = |version: u32, baseline: Option<u32>| {
        let content = CellContent {
            version,
            baseline,
            entities: Vec::new(),
            gone_next_door: Vec::new(),
            details: Vec::new(),
        };
        replication.update_cell(version, key, content, &mut Applied::default());
        let known = [10, 25, 28].map(|v| replication.cells.entities(key, v).is_some());
        (version, known)
    };
    assert_eq!(replicate(10, None), (10, [true, false, false]));
    assert_eq!(replicate(25, None), (25, [true, true, false]));
    assert_eq!(replicate(28, Some(10)), (28, [true, true, true]));
    assert_eq!(replicate(31, Some(28)), (31, [false, false, true]));
}

#[test]
fn acknowledgements_remember_the_last_33() {
    let ack = [5, 7, 6, 6, 40]
        .iter()
        .fold(None, |ack, n| Some(acknowledge(ack, *n)));
    let ack = ack.unwrap();
    assert_eq!(ack.newest, 40);
    let has = |n: u32| ack.earlier >> (40 - n - 1) & 1 == 1;
    assert!(!has(8) && !has(39));
    assert_eq!(acknowledge(Some(ack), 8).earlier.count_ones(), 1);
    let near = [5, 7, 6]
        .iter()
        .fold(None, |ack, n| Some(acknowledge(ack, *n)));
    assert_eq!(near.unwrap().earlier, 0b11);
    assert_eq!(acknowledge(near, u32::MAX).earlier, 0);
}

const K: CellKey = CellKey::Grid { x: 0, z: 0 };
const L: CellKey = CellKey::Grid { x: 1, z: 0 };
const NONE: [u32; 0] = [];

fn ball(id: u32) -> EntityState {
    let mut ball = EntityState::new(id, EntityKind::Thing);
    ball.definition = 1;
    ball
}

fn content(version: u32, entities: &[EntityState]) -> CellContent {
    CellContent {
        version,
        baseline: None,
        entities: entities.to_vec(),
        gone_next_door: Vec::new(),
        details: Vec::new(),
    }
}

/// Applies records of one snapshot; returns which entities are removed by it.
fn replicate(
    replication: &mut Replication,
    tick: u32,
    records: Vec<(CellKey, Option<CellContent>)>,
) -> Vec<u32> {
    let mut applied = Applied::default();
    for (key, content) in records {
        match content {
            Some(content) => replication.update_cell(tick, key, content, &mut applied),
            None => replication.drop_cell(tick, key, &mut applied),
        }
    }
    replication.settle_departures(tick, &mut applied);
    applied.removed
}

/// At pressure 2 a far cell is sent in one of 32 updates.
#[test]
fn an_entity_that_crosses_a_far_border_does_not_blink() {
    let mut replication = Replication::new(60, 20);
    let both = vec![
        (K, Some(content(10, &[ball(7)]))),
        (L, Some(content(10, &[]))),
    ];
    assert_eq!(replicate(&mut replication, 10, both), NONE);
    let mut left = content(100, &[]);
    left.gone_next_door.push((7, L));
    assert_eq!(
        replicate(&mut replication, 100, vec![(K, Some(left))]),
        NONE
    );
    for tick in (103..100 + 32 * 3).step_by(3) {
        assert_eq!(
            replicate(&mut replication, tick, Vec::new()),
            NONE,
            "tick {tick}"
        );
    }
    let arrived = vec![(L, Some(content(196, &[ball(7)])))];
    assert_eq!(replicate(&mut replication, 196, arrived), NONE);
    assert!(replication.state_of(7).is_some());
}

#[test]
fn an_entity_that_never_arrives_in_the_next_cell_is_removed() {
    let mut replication = Replication::new(60, 20);
    let both = vec![
        (K, Some(content(10, &[ball(7)]))),
        (L, Some(content(10, &[]))),
    ];
    replicate(&mut replication, 10, both);
    let mut left = content(100, &[]);
    left.gone_next_door.push((7, L));
    replicate(&mut replication, 100, vec![(K, Some(left))]);
    assert_eq!(replicate(&mut replication, 300, Vec::new()), [7]);
}

/// The server's clock is untrusted.
#[test]
fn an_endless_patience_does_not_overflow() {
    let mut replication = Replication::new(u32::MAX, 1);
    let both = vec![
        (K, Some(content(10, &[ball(7)]))),
        (L, Some(content(10, &[]))),
    ];
    replicate(&mut replication, 10, both);
    let mut left = content(100, &[]);
    left.gone_next_door.push((7, L));
    replicate(&mut replication, 100, vec![(K, Some(left))]);
    assert_eq!(replicate(&mut replication, 300, Vec::new()), NONE);
    for x in 0..=GONE_CELLS_MAX as i16 {
        replication.drop_cell(400, CellKey::Grid { x, z: 9 }, &mut Applied::default());
    }
}

/// They turned round at the border, before the neighbouring cell was sent.
#[test]
fn an_entity_that_returns_to_its_cell_stays() {
    let mut replication = Replication::new(60, 20);
    let both = vec![
        (K, Some(content(10, &[ball(7)]))),
        (L, Some(content(10, &[]))),
    ];
    replicate(&mut replication, 10, both);
    let mut left = content(100, &[]);
    left.gone_next_door.push((7, L));
    assert_eq!(
        replicate(&mut replication, 100, vec![(K, Some(left))]),
        NONE
    );
    let back = vec![(K, Some(content(106, &[ball(7)])))];
    assert_eq!(replicate(&mut replication, 106, back), NONE);
    let without = vec![(L, Some(content(124, &[])))];
    assert_eq!(replicate(&mut replication, 124, without), NONE);
    assert_eq!(replicate(&mut replication, 500, Vec::new()), NONE);
    assert!(replication.state_of(7).is_some());
    // And is removed when they leave for good.
    let gone = vec![(K, Some(content(503, &[])))];
    assert_eq!(replicate(&mut replication, 503, gone), [7]);
}

/// The scene file has it, so it is not removed.
#[test]
fn a_part_of_the_scene_is_out_of_view_and_not_removed() {
    let mut replication = Replication::new(60, 20);
    let gate = EntityState::new(3, EntityKind::Thing);
    replicate(&mut replication, 10, vec![(K, Some(content(10, &[gate])))]);
    let mut applied = Applied::default();
    replication.drop_cell(13, K, &mut applied);
    assert_eq!(applied.removed, NONE);
    assert_eq!(applied.out_of_view, [3]);
}

/// A train of the scene that another cell than that of its file replicates.
fn train() -> EntityState {
    let mut train = EntityState::new(3, EntityKind::Thing);
    train.flags = flags::AWAY;
    train
}

/// Its entry in K, which is the cell of its file.
fn missing() -> EntityState {
    EntityState::elsewhere(3)
}

#[test]
fn the_state_of_a_moved_part_is_valid_in_any_order() {
    let records = [
        (10, K, content(10, &[missing()])),
        (10, L, content(10, &[train()])),
    ];
    for order in [[0, 1], [1, 0]] {
        let mut replication = Replication::new(60, 20);
        for index in order {
            let (tick, key, content) = records[index].clone();
            replicate(&mut replication, tick, vec![(key, Some(content))]);
        }
        // Something else happens in K, and is sent later than the content of L.
        let busy = vec![(K, Some(content(40, &[missing(), ball(7)])))];
        assert_eq!(replicate(&mut replication, 40, busy), NONE);
        assert_eq!(replication.state_of(3), Some(&train()));
        assert_eq!(replication.missing_parts(), NONE);
        // It drives on, out of view; K has no more updates.
        let left = vec![(L, Some(content(50, &[])))];
        assert_eq!(replicate(&mut replication, 50, left), [3]);
        assert_eq!(replication.missing_parts(), [3]);
        // And comes home.
        let home = EntityState::new(3, EntityKind::Thing);
        let back = vec![(K, Some(content(60, &[home, ball(7)])))];
        assert_eq!(replicate(&mut replication, 60, back), NONE);
        assert_eq!(replication.state_of(3), Some(&home));
    }
}

#[test]
fn a_part_that_is_missing_where_the_file_has_it_is_removed_once() {
    let mut replication = Replication::new(60, 20);
    let whole = |version: u32| Some(content(version, &[missing()]));
    assert_eq!(replicate(&mut replication, 10, vec![(K, whole(10))]), [3]);
    assert_eq!(replicate(&mut replication, 13, vec![(K, whole(13))]), NONE);
    assert_eq!(replicate(&mut replication, 16, vec![(K, None)]), NONE);
    assert_eq!(replication.missing_parts(), NONE, "unknown");
    assert_eq!(replicate(&mut replication, 19, vec![(K, whole(13))]), [3]);
}

/// The record of the neighbouring cell is late, and the other cell is busy.
#[test]
fn a_part_that_moves_to_the_next_cell_does_not_blink() {
    let mut replication = Replication::new(60, 20);
    let home = EntityState::new(3, EntityKind::Thing);
    let both = vec![(K, Some(content(10, &[home]))), (L, Some(content(10, &[])))];
    replicate(&mut replication, 10, both);
    let mut left = content(100, &[missing()]);
    left.gone_next_door.push((3, L));
    assert_eq!(
        replicate(&mut replication, 100, vec![(K, Some(left))]),
        NONE
    );
    assert!(replication.state_of(3).is_some());
    // Even if its own cell leaves the view meanwhile.
    assert_eq!(replicate(&mut replication, 106, vec![(K, None)]), NONE);
    let arrived = vec![(L, Some(content(109, &[train()])))];
    assert_eq!(replicate(&mut replication, 109, arrived), NONE);
    assert_eq!(replication.state_of(3), Some(&train()));
    // From there it may go anywhere unseen.
    assert_eq!(replicate(&mut replication, 112, vec![(L, None)]), [3]);
}

/// A cell left the view and came back, and nothing in it has changed.
#[test]
fn a_late_packet_does_not_drop_what_is_back_in_view() {
    let mut replication = Replication::new(60, 20);
    let whole = || Some(content(10, &[ball(7)]));
    replicate(&mut replication, 10, vec![(K, whole())]);
    replicate(&mut replication, 16, vec![(K, whole())]);
    let gone = replicate(&mut replication, 13, vec![(K, None)]);
    assert_eq!(gone, NONE, "dropped before it came back");
    assert!(replication.cells.entities(K, 10).is_some());
    assert_eq!(replicate(&mut replication, 19, vec![(K, None)]), [7]);
}

/// A record of its previous cell may arrive after one of its current cell.
#[test]
fn a_late_record_does_not_bring_old_details_back() {
    let colored = |red: u8| {
        let mut details = Details::default();
        details.looks.color = Some([red, 0, 0]);
        details
    };
    let record = |version: u32, count: u16| {
        let mut lamp = ball(7);
        lamp.details = count;
        let mut record = content(version, &[lamp]);
        record.details.push((7, colored(count as u8).encode()));
        record
    };
    let mut replication = Replication::new(60, 20);
    let mut applied = Applied::default();
    for (key, version) in [(K, 10), (L, 20), (K, 13), (K, 16)] {
        let record = record(version, version as u16);
        replication.update_cell(version, key, record, &mut applied);
    }
    assert_eq!(applied.details, [(7, colored(10)), (7, colored(20))]);
    assert_eq!(replication.state_of(7).map(|state| state.details), Some(20));
}

/// What belongs to the player is in a spatial cell and in a cell of theirs.
#[test]
fn an_owned_entity_is_removed_only_when_no_cell_has_it() {
    const MINE: CellKey = CellKey::Owned(3);
    let mut wall = ball(7);
    wall.owner = 3;
    let with = |version: u32| Some(content(version, &[wall]));
    let without = |version: u32| Some(content(version, &[]));
    for (first, last) in [(K, MINE), (MINE, K)] {
        let mut replication = Replication::new(60, 20);
        let both = vec![(K, with(10)), (MINE, with(10))];
        assert_eq!(replicate(&mut replication, 10, both), NONE);
        // Whichever cell was sent last.
        let again = vec![(first, with(13))];
        assert_eq!(replicate(&mut replication, 13, again), NONE);
        let gone = replicate(&mut replication, 16, vec![(first, None)]);
        assert_eq!(gone, NONE, "{last:?} has it");
        assert!(replication.state_of(7).is_some());
        let gone = replicate(&mut replication, 19, vec![(last, without(19))]);
        assert_eq!(gone, [7], "no cell has it");
    }
}

/// A moving platform and its rider, as of a tick; the ride takes from tick 60 to
/// 120, with a metre in each ten.
fn ferry(tick: u32, feet_off: f32) -> Vec<EntityState> {
    let motion = frolic_sim::Motion {
        from: Vec3::ZERO,
        to: Vec3::X * 6.0,
        start_tick: 60,
        end_tick: 120,
    };
    let mut platform = EntityState::new(2, EntityKind::Thing);
    platform.motion = (tick >= 60).then_some(motion);
    let mut rider = EntityState::new(9, EntityKind::Character);
    let feet = motion.position_at(tick) + Vec3::X * feet_off;
    rider.position = frolic_protocol::quantize::position(feet);
    vec![platform, rider]
}

/// The drawn position of the rider at a tick.
fn drawn_x(replication: &Replication, tick: f64) -> f32 {
    let track = &replication.tracks[&9];
    let drawn = track.drawn_at(tick, 1.0 / 60.0).expect("it was replicated");
    let ride = track.ride_at(tick);
    let detour = ride.map_or(Vec3::ZERO, |ride| replication.detour(&ride, 1.0 / 60.0));
    (drawn.position + detour).x
}

fn replicated(ticks: &[u32], feet_off: f32) -> Replication {
    let mut replication = Replication::new(60, 20);
    for &tick in ticks {
        let entities = ferry(tick, feet_off);
        replicate(
            &mut replication,
            tick,
            vec![(K, Some(content(tick, &entities)))],
        );
        replication.note_carriers(&entities);
    }
    replication
}

/// They stand still, and yet their position changes. Packets are lost, the platform
/// stops between two of them, and the last are late.
#[test]
fn a_rider_is_drawn_on_its_platform_whatever_is_lost() {
    for ticks in [
        &[57, 60, 63, 66][..],
        &[57, 66],
        &[30, 66, 117],
        &[57, 66, 123],
    ] {
        let replication = replicated(ticks, 1.5);
        for tick in 0..1_000 {
            let tick = 57.0 + f64::from(tick) * 0.1;
            let platform = ((tick - 60.0) * 0.1).clamp(0.0, 6.0) as f32;
            let off = drawn_x(&replication, tick) - platform;
            assert!((off - 1.5).abs() < 0.01, "{ticks:?}: {off} m at {tick}");
        }
    }
}

/// A character that walks beside it is not carried, nor is one that is teleported.
#[test]
fn a_character_is_carried_only_by_what_it_stands_on() {
    let mut replication = replicated(&[57, 66], 1.5);
    let mut entities = ferry(69, 1.5);
    entities[1].position[2] += 4_000;
    entities[1].flags = flags::jumps(1);
    replicate(
        &mut replication,
        69,
        vec![(K, Some(content(69, &entities)))],
    );
    replication.note_carriers(&entities);
    assert!(replication.tracks[&9].ride_at(75.0).is_none());
    let mut entities = ferry(72, 1.5);
    entities[1].velocity = [500, 0, 0];
    replicate(
        &mut replication,
        72,
        vec![(K, Some(content(72, &entities)))],
    );
    replication.note_carriers(&entities);
    assert!(replication.tracks[&9].ride_at(75.0).is_none());
}

#[test]
fn a_platform_that_is_put_elsewhere_leaves_its_riders_behind() {
    let mut replication = replicated(&[57, 66], 1.5);
    let mut entities = ferry(69, 1.5);
    entities.truncate(1);
    entities[0].motion = None;
    entities[0].position = [100_000, 0, 0];
    entities[0].flags = flags::jumps(1);
    replicate(
        &mut replication,
        69,
        vec![(L, Some(content(69, &entities)))],
    );
    let x = drawn_x(&replication, 72.0);
    assert!((x - 2.1).abs() < 0.01, "{x}");
}
