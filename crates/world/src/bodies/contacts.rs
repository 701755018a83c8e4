//! Contacts between entities, for scripts that subscribe to `Touched`.

use std::collections::BTreeSet;
use std::sync::Mutex;

use frolic_script::ScriptEvent;
use rapier3d::prelude::{
    ActiveEvents, ColliderSet, CollisionEvent, ContactPair, EventHandler, RigidBodySet,
    SoftBodySet, SoftBodyTearEvent,
};

use super::Bodies;
use crate::entities::Entity;
use crate::space::Space;

/// The events enabled on colliders of watched entities.
pub(super) const TOUCHES: ActiveEvents = ActiveEvents::COLLISION_EVENTS;
/// Touches reported in one tick; a collapsing heap produces thousands.
const TOUCHES_MAX: usize = 1024;

/// Which touches are reported.
#[derive(Default)]
pub(super) struct Touches {
    /// Entities whose touches scripts subscribed to.
    watched: BTreeSet<u32>,
    pub contacts: Contacts,
    /// Touches of one tick; a reused buffer.
    found: Vec<(u32, u32)>,
}

impl Touches {
    pub fn watched(&self) -> &BTreeSet<u32> {
        &self.watched
    }

    pub fn forget(&mut self, entity: u32) {
        self.watched.remove(&entity);
    }

    fn report(&self, space: &mut Space, a: u32, b: u32) {
        for (entity, other) in [(a, b), (b, a)] {
            let alive = |id| space.alive(id).is_some();
            if self.watched.contains(&entity) && alive(entity) && alive(other) {
                space.events.push(ScriptEvent::Touched { entity, other });
            }
        }
    }
}

/// Collects rapier's collision events during a step.
#[derive(Default)]
pub(super) struct Contacts(Mutex<Vec<(u32, u32)>>);

impl Contacts {
    pub fn take(&mut self, out: &mut Vec<(u32, u32)>) {
        out.clear();
        if let Ok(touched) = self.0.get_mut() {
            out.append(touched);
        }
    }
}

impl EventHandler for Contacts {
    fn handle_collision_event(
        &self,
        _bodies: &RigidBodySet,
        colliders: &ColliderSet,
        event: CollisionEvent,
        _contact_pair: Option<&ContactPair>,
    ) {
        let CollisionEvent::Started(a, b, _) = event else {
            return;
        };
        let entity = |handle| colliders.get(handle).map(|c| c.user_data as u32);
        if let (Some(a), Some(b), Ok(mut touched)) = (entity(a), entity(b), self.0.lock())
            && touched.len() < TOUCHES_MAX
        {
            touched.push((a, b));
        }
    }

    fn handle_contact_force_event(
        &self,
        _dt: f32,
        _bodies: &RigidBodySet,
        _colliders: &ColliderSet,
        _contact_pair: &ContactPair,
        _total_force_magnitude: f32,
    ) {
    }

    fn handle_soft_body_tear_event(&self, _soft_bodies: &SoftBodySet, _event: &SoftBodyTearEvent) {}
}

impl Bodies {
    /// Enables `Touched` events for an entity.
    pub fn watch(&mut self, entity: u32) {
        if self.touches.watched.insert(entity) {
            let collider = self.links.get(&entity).map(|link| link.collider);
            if let Some(collider) = collider.and_then(|c| self.physics.colliders.get_mut(c)) {
                collider.set_active_events(TOUCHES);
            }
        }
    }

    /// Enables `Touched` events for an entity with a script.
    pub fn watch_scripted(&mut self, space: &Space, entity: u32) {
        let script = |entity: &Entity| entity.components.script.is_some();
        if space.alive(entity).is_some_and(script) {
            self.watch(entity);
        }
    }

    /// Reports contacts between bodies. Contacts of characters are reported
    /// separately.
    pub(super) fn report_touches(&mut self, space: &mut Space) {
        let mut touched = std::mem::take(&mut self.touches.found);
        self.touches.contacts.take(&mut touched);
        // Makes the order independent of the order in which rapier found them.
        touched.sort_unstable();
        for &(a, b) in &touched {
            let entity = |id| space.entities.get(id);
            let is_character = |id| entity(id).is_some_and(|e| e.player.is_some());
            if !is_character(a) && !is_character(b) {
                self.touches.report(space, a, b);
            }
        }
        touched.clear();
        self.touches.found = touched;
    }

    /// Reports what characters began to touch in this tick.
    pub(super) fn report_character_touches(&self, space: &mut Space) {
        let mut begun: Vec<(u32, u32)> = Vec::new();
        for player in space.players.values_mut().filter(|player| player.online) {
            let touches = player.contact.cache.touches();
            let same = touches.len() == player.contact.touching.len()
                && touches
                    .iter()
                    .zip(&player.contact.touching)
                    .all(|(t, id)| t.entity == *id);
            if same {
                continue;
            }
            let fresh = touches.iter().map(|touch| touch.entity);
            let fresh = fresh.filter(|id| !player.contact.touching.contains(id));
            begun.extend(fresh.map(|id| (player.entity, id)));
            let touching = &mut player.contact.touching;
            touching.clear();
            touching.extend(touches.iter().map(|touch| touch.entity));
        }
        for (character, solid) in begun {
            self.touches.report(space, character, solid);
        }
    }
}
