//! Snapshots round trip, cost nothing when nothing changed, and survive garbage.

use super::*;
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

fn any_state() -> impl Strategy<Value = EntityState> {
    (
        (1u32..2_000_000, any::<bool>(), any::<u16>(), any::<u32>()),
        any::<[i32; 3]>(),
        any::<u32>(),
        any::<[i16; 3]>(),
        any::<[u16; 2]>(),
        any::<u8>(),
        any_motion(),
    )
        .prop_map(
            |(
                (id, character, definition, owner),
                position,
                rotation,
                velocity,
                look,
                flags,
                motion,
            )| {
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
                    look,
                    flags,
                    motion,
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

/// What an entity is never changes under the same id.
fn same_identity(old: &[EntityState], mut new: Vec<EntityState>) -> Vec<EntityState> {
    for state in &mut new {
        if let Some(before) = old.iter().find(|before| before.id == state.id) {
            (state.kind, state.definition, state.owner) =
                (before.kind, before.definition, before.owner);
        }
    }
    new
}

fn header(baseline: Option<u32>) -> SnapshotHeader {
    SnapshotHeader {
        tick: 1000,
        baseline,
        ack_seq: 7,
        late_ticks: 1,
        queued_inputs: 3,
        own: None,
    }
}

proptest! {
    #[test]
    fn any_set_follows_from_any_other(old in any_set(), new in any_set(), keep in any::<bool>()) {
        let new = same_identity(&old, new);
        let new = if keep { old.clone() } else { new };
        let bytes = encode(&header(Some(990)), &old, &new);
        let (decoded, entities) = decode(&bytes, |tick| (tick == 990).then_some(&old[..])).unwrap();
        prop_assert_eq!(decoded, header(Some(990)));
        prop_assert_eq!(entities, new);
    }

    #[test]
    fn own_character_is_exact(feet in any_vector(), velocity in any_vector(), normal in any_vector(), ground in prop::option::of(any::<u32>()), air_ticks in any::<u8>()) {
        let mut own = CharacterState { feet, velocity, ground_normal: normal, ground, air_ticks };
        if ground.is_none() {
            own.ground_normal = Vec3::Y;
        }
        let sent = SnapshotHeader { own: Some(own), ..header(None) };
        let (got, _) = decode(&encode(&sent, &[], &[]), |_| None).unwrap();
        prop_assert_eq!(got, sent);
    }

    #[test]
    fn garbage_is_an_error_or_a_snapshot(bytes in prop::collection::vec(any::<u8>(), 0..400), old in any_set()) {
        let _ = decode(&bytes, |_| Some(&old[..]));
    }

    #[test]
    fn a_cut_snapshot_is_an_error(old in any_set(), new in any_set(), cut in 1usize..40) {
        let new = same_identity(&old, new);
        let bytes = encode(&header(Some(990)), &old, &new);
        let kept = bytes.len().saturating_sub(cut);
        prop_assert!(decode(&bytes[..kept], |_| Some(&old[..])).is_err());
    }
}

#[test]
fn unchanged_entities_cost_nothing() {
    let few: Vec<_> = (1..10)
        .map(|id| EntityState::new(id, EntityKind::Thing))
        .collect();
    let many: Vec<_> = (1..1000)
        .map(|id| EntityState::new(id, EntityKind::Thing))
        .collect();
    let size = |set: &[EntityState]| encode(&header(Some(990)), set, set).len();
    assert_eq!(size(&few), size(&many));
}

#[test]
fn a_walking_player_costs_few_bytes() {
    let old: Vec<_> = (1..101)
        .map(|id| EntityState::new(id, EntityKind::Character))
        .collect();
    let new: Vec<_> = old
        .iter()
        .map(|state| EntityState {
            position: [40, 0, -50],
            ..*state
        })
        .collect();
    let bytes =
        encode(&header(Some(990)), &old, &new).len() - encode(&header(Some(990)), &[], &[]).len();
    assert!(bytes <= 100 * 5, "{bytes} bytes for 100 players");
}

#[test]
fn a_missing_baseline_is_named() {
    let bytes = encode(&header(Some(990)), &[], &[]);
    assert_eq!(
        decode(&bytes, |_| None),
        Err(SnapshotError::UnknownBaseline(990))
    );
}
