//! Snapshots round trip, cost nothing when nothing changed, and survive garbage.

use super::*;
use crate::entity::{EntityKind, EntityState};
use crate::quantize;
use frolic_motion::Motion;
use proptest::prelude::*;

fn any_motion() -> impl Strategy<Value = Option<Motion>> {
    prop::option::of(
        (any_vector(), any_vector(), 0u32..1_000_000, 0u32..10_000).prop_map(
            |(from, to, start_tick, length)| Motion {
                from,
                to,
                start_tick,
                end_tick: start_tick + length,
            },
        ),
    )
}

fn any_vector() -> impl Strategy<Value = Vec3> {
    [-1e4f32..1e4, -1e4f32..1e4, -1e4f32..1e4].prop_map(Vec3::from)
}

fn any_position() -> impl Strategy<Value = [i32; 3]> {
    const MAX: i32 = 256 * 8_000;
    [-MAX..=MAX, -MAX..=MAX, -MAX..=MAX]
}

fn any_state() -> impl Strategy<Value = EntityState> {
    (
        (1u32..2_000_000, any::<bool>(), any::<u16>(), any::<u32>()),
        any_position(),
        any::<u32>(),
        any::<[i16; 3]>(),
        any::<[u16; 2]>(),
        (any::<u8>(), any::<u16>(), any::<u8>()),
        any_motion(),
    )
        .prop_map(
            |(identity, position, rotation, velocity, look, rare, motion)| {
                let (id, character, definition, owner) = identity;
                EntityState {
                    id,
                    kind: if character {
                        EntityKind::Character
                    } else {
                        EntityKind::Thing
                    },
                    definition,
                    owner,
                    position,
                    rotation,
                    velocity,
                    look: quantize::look(look[0], look[1]),
                    flags: rare.0,
                    details: rare.1,
                    motion,
                    mood: crate::npc::Mood(rare.2),
                }
            },
        )
}

fn any_set() -> impl Strategy<Value = Vec<EntityState>> {
    prop::collection::btree_map(1u32..60, any_state(), 0..40).prop_map(|states| {
        states
            .into_iter()
            .map(|(id, state)| EntityState { id, ..state })
            .collect()
    })
}

/// A kind never changes under the same id; small steps are as common as jumps.
fn next(old: &[EntityState], new: Vec<EntityState>, near: bool) -> Vec<EntityState> {
    let of = |id| old.iter().find(|before| before.id == id);
    let follow = |state: EntityState| match of(state.id) {
        Some(before) if near && !state.id.is_multiple_of(3) => EntityState {
            position: before.position.map(|c| (c + 3).min(256 * 8_000)),
            look: state.look,
            ..*before
        },
        Some(before) => EntityState {
            kind: before.kind,
            ..state
        },
        None => state,
    };
    new.into_iter().map(follow).collect()
}

fn any_key() -> impl Strategy<Value = CellKey> {
    prop_oneof![
        (any::<i16>(), any::<i16>()).prop_map(|(x, z)| CellKey::Grid { x, z }),
        Just(CellKey::Everywhere),
        any::<u32>().prop_map(CellKey::Owned),
    ]
}

/// Details are the id's bytes; every removed entity moved one cell east.
struct World;

impl CellSource for World {
    fn details(&self, id: u32) -> Vec<u8> {
        id.to_le_bytes().to_vec()
    }
    fn cell_of(&self, _: u32) -> Option<(i16, i16)> {
        Some((4, 5))
    }
}

/// A client that has one version of every cell.
struct Has<'a>(u32, &'a [EntityState]);

impl KnownCells for Has<'_> {
    fn entities(&self, _: CellKey, version: u32) -> Option<&[EntityState]> {
        (version == self.0).then_some(self.1)
    }
}

const HEADER: SnapshotHeader = SnapshotHeader {
    scripts: 9,
    tick: 1000,
    number: Some(77),
    own: None,
};
const HERE: CellKey = CellKey::Grid { x: 3, z: 5 };

fn encode(key: CellKey, old: Option<&[EntityState]>, new: &[EntityState]) -> Vec<u8> {
    let baseline = old.map(|entities| CellVersion {
        tick: 990,
        entities,
    });
    let current = CellVersion {
        tick: 999,
        entities: new,
    };
    let bytes = write_header(Vec::new(), &HEADER);
    write_cell(bytes, HEADER.tick, 60, key, baseline, current, &World)
}

fn content(bytes: &[u8], old: &[EntityState]) -> CellContent {
    let snapshot = decode(bytes, 60, &Has(990, old)).unwrap();
    assert_eq!(snapshot.header, HEADER);
    snapshot.cells[0].content.clone().unwrap()
}

proptest! {
    #[test]
    fn any_cell_follows_from_any_other(key in any_key(), old in any_set(), new in any_set(), near in any::<bool>()) {
        let new = next(&old, new, near);
        let bytes = encode(key, Some(&old), &new);
        let snapshot = decode(&bytes, 60, &Has(990, &old)).unwrap();
        prop_assert_eq!(snapshot.cells.len(), 1);
        prop_assert_eq!(snapshot.cells[0].key, key);
        let content = snapshot.cells[0].content.as_ref().unwrap();
        prop_assert_eq!(&content.entities, &new);
        prop_assert_eq!((content.version, content.baseline), (999, Some(990)));
        for state in &new {
            let stays = |old: &EntityState| old.is_elsewhere() || !state.is_elsewhere();
            let before = old.iter().find(|old| old.id == state.id && stays(old));
            let before = before.map_or(0, |old| old.details);
            let details = content.details.iter().find(|(id, _)| *id == state.id);
            let expected = (before != state.details).then(|| (state.id, state.id.to_le_bytes().to_vec()));
            prop_assert_eq!(details, expected.as_ref());
        }
    }

    #[test]
    fn a_cell_stands_alone_without_a_baseline(new in any_set()) {
        let bytes = encode(HERE, None, &new);
        prop_assert_eq!(content(&bytes, &[]).entities, new);
    }

    #[test]
    fn own_character_is_exact(feet in any_vector(), velocity in any_vector(), normal in any_vector(), ground in prop::option::of(any::<u32>()), air_ticks in any::<u8>()) {
        let mut character = CharacterState { feet, velocity, ground_normal: normal, ground, air_ticks };
        if ground.is_none() {
            character.ground_normal = Vec3::Y;
        }
        let own = OwnState { ack_seq: 9, late_ticks: 1, queued_inputs: 3, character };
        let sent = SnapshotHeader { own: Some(own), ..HEADER };
        let got = decode(&write_header(Vec::new(), &sent), 60, &Has(0, &[])).unwrap();
        prop_assert_eq!(got, Snapshot { header: sent, cells: Vec::new() });
    }

    #[test]
    fn garbage_is_an_error_or_a_snapshot(bytes in prop::collection::vec(any::<u8>(), 0..400), old in any_set()) {
        struct Any<'a>(&'a [EntityState]);
        impl KnownCells for Any<'_> {
            fn entities(&self, _: CellKey, _: u32) -> Option<&[EntityState]> {
                Some(self.0)
            }
        }
        let _ = decode(&bytes, 60, &Any(&old));
    }

    #[test]
    fn a_cut_snapshot_is_not_the_whole(old in any_set(), new in any_set(), cut in 1usize..40) {
        let new = next(&old, new, false);
        let whole = write_header(Vec::new(), &HEADER).len();
        let bytes = encode(HERE, Some(&old), &new);
        let length = bytes.len().saturating_sub(cut).max(whole + 1);
        if length < bytes.len() {
            prop_assert!(decode(&bytes[..length], 60, &Has(990, &old)).is_err());
        }
    }
}

#[test]
fn several_cells_follow_each_other() {
    let set = [EntityState::new(7, EntityKind::Thing)];
    let bytes = encode(HERE, None, &set);
    let bytes = write_dropped_cell(bytes, CellKey::Everywhere);
    let bytes = write_dropped_cell(bytes, CellKey::Grid { x: -300, z: 12 });
    let cells = decode(&bytes, 60, &Has(0, &[])).unwrap().cells;
    let keys: Vec<_> = cells.iter().map(|c| (c.key, c.content.is_some())).collect();
    let far = CellKey::Grid { x: -300, z: 12 };
    assert_eq!(
        keys,
        [(HERE, true), (CellKey::Everywhere, false), (far, false)]
    );
}

#[test]
fn entities_that_moved_to_the_next_cell_are_distinguished_from_removed_ones() {
    let old = [7, 8].map(|id| EntityState::new(id, EntityKind::Thing));
    let bytes = encode(HERE, Some(&old), &old[..1]);
    let next_door = CellKey::Grid { x: 4, z: 5 };
    assert_eq!(content(&bytes, &old).gone_next_door, [(8, next_door)]);
    let far = encode(CellKey::Grid { x: 9, z: 5 }, Some(&old), &old[..1]);
    assert_eq!(content(&far, &old).gone_next_door, []);
}

/// Its placeholder in the cell in which the scene file has it has no position and
/// no state, whatever it was before.
#[test]
fn a_part_of_the_scene_that_left_its_cell_is_written_with_its_direction() {
    let mut train = EntityState::new(8, EntityKind::Thing);
    train.position = [5_000, 256, 700];
    train.velocity = [960, 0, 0];
    train.details = 3;
    let old = [EntityState::new(7, EntityKind::Thing), train];
    let new = [
        old[0],
        EntityState::elsewhere(8),
        EntityState::new(9, EntityKind::Thing),
    ];
    let decoded = content(&encode(HERE, Some(&old), &new), &old);
    assert_eq!(decoded.entities, new);
    assert_eq!(decoded.gone_next_door, [(8, CellKey::Grid { x: 4, z: 5 })]);
    assert_eq!(decoded.details, []);
    // Clients that join later get no direction, and it costs next to nothing.
    let later = encode(HERE, None, &new[1..2]);
    assert_eq!(content(&later, &[]).entities, new[1..2]);
    assert_eq!(content(&later, &[]).gone_next_door, []);
    let bytes = later.len() - encode(HERE, None, &[]).len();
    assert!(bytes <= 4, "{bytes} bytes");
    assert_eq!(content(&encode(HERE, Some(&new), &new), &new).entities, new);
    // And back, with its complete state.
    let back = content(&encode(HERE, Some(&new), &old), &new);
    assert_eq!(back.entities, old);
    assert_eq!(back.details, [(8, 8u32.to_le_bytes().to_vec())]);
}

#[test]
fn unchanged_entities_cost_nothing_and_walking_ones_little() {
    let still = |count| -> Vec<_> {
        (1..=count)
            .map(|id| EntityState::new(id, EntityKind::Thing))
            .collect()
    };
    let size = |old: &[EntityState], new: &[EntityState]| encode(HERE, Some(old), new).len();
    let nothing = size(&[], &[]);
    assert!(size(&still(1000), &still(1000)) <= nothing + 3);
    // Straight on at 5 m/s for nine ticks; half a step of rounding either way.
    let walking: Vec<_> = (1..=100u32)
        .map(|id| EntityState {
            velocity: [320, 0, -64],
            position: [id as i32 * 300, 0, 0],
            ..EntityState::new(id, EntityKind::Character)
        })
        .collect();
    let further: Vec<_> = walking
        .iter()
        .map(|state| EntityState {
            position: [
                state.position[0] + 192 + (state.id % 2) as i32,
                0,
                state.position[2] - 38,
            ],
            ..*state
        })
        .collect();
    let bytes = size(&walking, &further) - nothing;
    assert!(
        bytes <= 100 * 3 / 2,
        "{bytes} bytes for 100 walking players"
    );
}

#[test]
fn turning_and_falling_characters_cost_little_more() {
    let walker = |yaw: u16, speed: f32, position: [i32; 3]| {
        let (sin, cos) = frolic_motion::Angle(yaw).sin_cos();
        EntityState {
            position,
            velocity: quantize::velocity(Vec3::new(-sin, 0.0, -cos) * speed),
            look: quantize::look(yaw, 0),
            flags: crate::entity::flags::GROUNDED,
            ..EntityState::new(1, EntityKind::Character)
        }
    };
    let bytes = |old: &EntityState, new: &EntityState| {
        let nothing = encode(HERE, Some(&[]), &[]).len();
        encode(HERE, Some(&[*old]), &[*new]).len() - nothing
    };
    for speed in [5.0, 8.0] {
        // A quarter of a turn a second, for nine ticks.
        let before = walker(40_000, speed, [0; 3]);
        let after = walker(42_457, speed, [0; 3]);
        let velocities = [before.velocity, after.velocity];
        let there = quantize::carried_on([0; 3], velocities, 9, 60);
        let after = EntityState {
            position: there.map(|c| c + 1),
            ..after
        };
        let bytes = bytes(&before, &after);
        assert!(bytes <= 6, "{bytes} bytes for turning at {speed} m/s");
    }
    let falls = |speed: f32, height: i32| EntityState {
        velocity: quantize::velocity(Vec3::new(3.0, speed, 4.0)),
        position: [0, height, 0],
        flags: 0,
        ..walker(0, 5.0, [0; 3])
    };
    let (before, after) = (falls(-1.0, 4_000), falls(-4.0, 0));
    let velocities = [before.velocity, after.velocity];
    let there = quantize::carried_on(before.position, velocities, 9, 60);
    let after = EntityState {
        position: there,
        ..after
    };
    let bytes = bytes(&before, &after);
    assert!(bytes <= 3, "{bytes} bytes for falling");
}

#[test]
fn a_missing_baseline_is_named() {
    let bytes = encode(HERE, Some(&[]), &[]);
    assert_eq!(
        decode(&bytes, 60, &Has(0, &[])),
        Err(SnapshotError::UnknownBaseline(990))
    );
}

#[test]
fn records_that_copy_a_large_cell_again_and_again_are_refused() {
    let large: Vec<_> = (1..50_000)
        .map(|id| EntityState::new(id, EntityKind::Thing))
        .collect();
    let mut bytes = write_header(Vec::new(), &HEADER);
    for _ in 0..20 {
        let version = CellVersion {
            tick: 990,
            entities: &large,
        };
        let same = CellVersion {
            tick: 999,
            ..version
        };
        bytes = write_cell(bytes, 1000, 60, HERE, Some(version), same, &World);
    }
    assert_eq!(
        decode(&bytes, 60, &Has(990, &large)),
        Err(SnapshotError::Malformed)
    );
}
