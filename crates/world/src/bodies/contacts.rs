//! Contacts between entities, for scripts that subscribe to `Touched`.

use std::sync::Mutex;

use frolic_script::ScriptEvent;
use rapier3d::prelude::{
    ActiveEvents, ColliderSet, CollisionEvent, ContactPair, EventHandler, RigidBodySet,
    SoftBodySet, SoftBodyTearEvent,
};

use crate::state::WorldState;

/// The events enabled on colliders of watched entities.
pub(super) const TOUCHES: ActiveEvents = ActiveEvents::COLLISION_EVENTS;
/// Touches reported in one tick; a collapsing heap produces thousands.
const TOUCHES_MAX: usize = 1024;

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

impl WorldState {
    /// Enables `Touched` events for an entity.
    pub fn watch_touches(&mut self, entity: u32) {
        if self.alive(entity).is_some() && self.watched.insert(entity) {
            let bodies = &mut self.bodies;
            let link = bodies.links.get(&entity);
            let collider = link.map(|link| link.collider);
            if let Some(collider) = collider.and_then(|c| bodies.physics.colliders.get_mut(c)) {
                collider.set_active_events(TOUCHES);
            }
        }
    }

    /// Reports contacts between bodies. Contacts of characters are reported
    /// separately.
    pub(super) fn report_body_touches(&mut self) {
        let mut touched = std::mem::take(&mut self.body_touches);
        self.bodies.contacts.take(&mut touched);
        // Makes the order independent of the order in which rapier found them.
        touched.sort_unstable();
        for &(a, b) in &touched {
            let is_character = |id| self.entities.get(&id).is_some_and(|e| e.player.is_some());
            if !is_character(a) && !is_character(b) {
                self.report_touch(a, b);
            }
        }
        touched.clear();
        self.body_touches = touched;
    }

    /// Reports what characters began to touch in this tick.
    pub fn report_character_touches(&mut self) {
        let mut begun: Vec<(u32, u32)> = Vec::new();
        for player in self.players.values_mut().filter(|player| player.online) {
            let touches = player.step_cache.touches();
            let same = touches.len() == player.touching.len()
                && touches
                    .iter()
                    .zip(&player.touching)
                    .all(|(t, id)| t.entity == *id);
            if same {
                continue;
            }
            let fresh = touches.iter().map(|touch| touch.entity);
            let fresh = fresh.filter(|id| !player.touching.contains(id));
            begun.extend(fresh.map(|id| (player.entity, id)));
            player.touching.clear();
            player
                .touching
                .extend(touches.iter().map(|touch| touch.entity));
        }
        for (character, solid) in begun {
            self.report_touch(character, solid);
        }
    }

    fn report_touch(&mut self, a: u32, b: u32) {
        for (entity, other) in [(a, b), (b, a)] {
            if self.watched.contains(&entity) && self.alive(other).is_some() {
                self.events.push(ScriptEvent::Touched { entity, other });
            }
        }
    }
}
