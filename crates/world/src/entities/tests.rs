//! The journal and the indices follow each change.

use std::rc::Rc;

use frolic_scene::{Components, Transform};

use super::*;

/// A store with entities that scripts spawned.
fn store(ids: &[u32]) -> EntityStore {
    let mut store = EntityStore::default();
    for id in ids {
        let components = Rc::new(Components::default());
        let at = Transform::default();
        store.insert(Entity::new(*id, format!("E{id}"), 1, components, &at));
    }
    store
}

/// The entities that replication collects, and whether they exist.
fn collected(store: &mut EntityStore) -> Vec<(u32, bool)> {
    let mut seen = Vec::new();
    store.drain_touched(|id, entity| seen.push((id, entity.is_some())));
    seen
}

fn remove(store: &mut EntityStore, id: u32) {
    store.begin_removal(id);
    store.unindex(id);
    store.end_removal(id);
}

#[test]
fn a_change_is_collected_once() {
    let mut store = store(&[7]);
    store.replicate(7);
    assert_eq!(collected(&mut store), [(7, true)]);
    assert!(collected(&mut store).is_empty());
    store.change_looks(7, |looks| looks.opacity = Some(0.5));
    assert_eq!(collected(&mut store), [(7, true)]);
}

#[test]
fn what_is_held_back_is_collected_after_its_release() {
    let mut store = store(&[7, 8]);
    store.hold_back(7);
    store.replicate(7);
    assert_eq!(collected(&mut store), [(8, true)]);
    store.release(7);
    assert_eq!(collected(&mut store), [(7, true)]);
    remove(&mut store, 7);
    store.hold_back(7);
    assert!(collected(&mut store).is_empty());
    store.release(7);
    assert_eq!(collected(&mut store), [(7, false)]);
}

#[test]
fn the_indices_follow() {
    let mut store = store(&[7]);
    let far = Vec3::X * 400.0;
    store.place(7, Pose::from_translation(far));
    assert_eq!(store.near(far, 1.0), [7]);
    assert!(store.near(Vec3::ZERO, 1.0).is_empty());
    store.set_tag(7, "E7", true).expect("there is room");
    store.rename(7, "Door").expect("it exists");
    assert_eq!(store.index().named("E7"), [7], "still a tag");
    store.set_tag(7, "E7", false).expect("it exists");
    assert!(store.index().named("E7").is_empty());
    remove(&mut store, 7);
    assert!(store.index().named("Door").is_empty());
    assert!(store.near(far, 1.0).is_empty());
}
