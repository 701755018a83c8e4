//! Which sets are stored, and for how long.

use frolic_protocol::EntityKind;

use super::*;

fn set(entities: usize) -> Vec<EntityState> {
    vec![EntityState::new(1, EntityKind::Thing); entities]
}

fn remembered(view: &JsonView) -> usize {
    view.sent.iter().map(|sent| sent.entities.len()).sum()
}

/// Acknowledgements take ten snapshots, and only three sets fit.
#[test]
fn a_large_world_fills_no_memory_and_acknowledgements_get_through() {
    let mut view = JsonView::new(1);
    for tick in 1..=200 {
        view.remember(tick, set(20_000));
        assert!(
            remembered(&view) <= STATES_MAX,
            "{} states",
            remembered(&view)
        );
        if tick > 10 {
            view.acknowledge(tick - 10);
            assert!(view.baseline().is_some(), "lost in tick {tick}");
        }
    }
    assert!(view.acknowledged > Some(150), "{:?}", view.acknowledged);
}

#[test]
fn who_has_not_acknowledged_for_sixty_snapshots_has_nothing() {
    let mut view = JsonView::new(1);
    view.remember(1, set(10));
    view.acknowledge(1);
    for tick in 2..=60 {
        view.remember(tick, set(10));
        assert!(view.baseline().is_some());
    }
    view.remember(61, set(10));
    assert!(view.baseline().is_none());
    assert_eq!(view.sent.len(), SENT_MAX as usize);
}

#[test]
fn even_the_largest_world_can_be_acknowledged() {
    let mut view = JsonView::new(1);
    view.remember(1, set(STATES_MAX + 1));
    view.remember(2, set(STATES_MAX + 1));
    view.acknowledge(1);
    assert!(view.baseline().is_some());
    assert_eq!(view.sent.len(), 1);
}
