//! The fingerprint of a world: two worlds with the same fingerprint continue
//! identically.

use std::collections::BTreeMap;

use frolic_fleet_api::ops::Structure;
use frolic_protocol::details::Looks;
use frolic_protocol::{PlayerInfo, ServerMessage, Value};
use frolic_sim::digest::Digest;
use frolic_sim::{CharacterInput, Motion, Vec3};

use crate::entity::Entity;
use crate::lag_compensation::Moment;
use crate::life::Life;
use crate::player::Player;
use crate::projectiles::{Arms, Projectiles};
use crate::state::{Outgoing, WorldState};
use crate::structures::Structures;

/// A running 64-bit hash. Each step is a bijection of the state, so a single
/// changed word always changes the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Extend<u8> for Fingerprint {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, bytes: I) {
        bytes
            .into_iter()
            .for_each(|byte| self.word(u64::from(byte)));
    }
}

impl Fingerprint {
    pub fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    pub fn value(self) -> u64 {
        // The last multiplication leaves the low bits weak.
        self.0 ^ (self.0 >> 32)
    }

    pub fn option(&mut self, word: Option<u32>) {
        self.word(word.map_or(u64::MAX, u64::from));
    }

    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }

    pub fn floats(&mut self, floats: &[f32]) {
        floats
            .iter()
            .for_each(|float| self.word(u64::from(float.to_bits())));
    }

    pub fn vector(&mut self, vector: Vec3) {
        self.floats(&vector.to_array());
    }

    fn values(&mut self, values: &BTreeMap<String, Value>) {
        self.word(values.len() as u64);
        for (name, value) in values {
            self.text(name);
            self.one_value(value);
        }
    }

    fn one_value(&mut self, value: &Value) {
        match value {
            Value::Nil => self.word(0),
            Value::Bool(value) => self.word(1 + u64::from(*value)),
            Value::Number(value) => {
                self.word(3);
                self.word(value.to_bits());
            }
            Value::String(value) => {
                self.word(4);
                self.text(value);
            }
            Value::Vector(value) => {
                self.word(5);
                self.floats(value);
            }
            Value::Entity(id) => {
                self.word(6);
                self.word(u64::from(*id));
            }
            Value::Buffer(bytes) => {
                self.word(9);
                self.bytes(bytes);
            }
            Value::List(values) => {
                self.word(7);
                self.word(values.len() as u64);
                values.iter().for_each(|value| self.one_value(value));
            }
            Value::Map(values) => {
                self.word(8);
                self.values(values);
            }
        }
    }

    pub fn input(&mut self, input: &CharacterInput) {
        let CharacterInput {
            right,
            forward,
            yaw,
            pitch,
            buttons,
        } = *input;
        let look = u64::from(yaw.0) << 16 | u64::from(pitch.0);
        let keys = u64::from(right.cast_unsigned()) << 8 | u64::from(forward.cast_unsigned());
        self.word(look << 32 | keys << 8 | u64::from(buttons.0));
    }

    fn motion(&mut self, motion: Option<Motion>) {
        self.word(u64::from(motion.is_some()));
        if let Some(motion) = motion {
            self.vector(motion.from);
            self.vector(motion.to);
            self.word(u64::from(motion.start_tick) << 32 | u64::from(motion.end_tick));
        }
    }

    fn looks(&mut self, looks: &Looks) {
        let Looks {
            color,
            opacity,
            scale: _, // the entity's own scale
        } = *looks;
        let color = color.map(|[r, g, b]| u32::from_be_bytes([0, r, g, b]));
        self.option(color);
        self.option(opacity.map(f32::to_bits));
    }

    /// Adds a message to players: the output of scripts is part of their
    /// behaviour.
    pub fn outgoing(&mut self, outgoing: &Outgoing) {
        self.option(outgoing.to);
        self.word(u64::from(outgoing.reliable));
        if let ServerMessage::Presence(players) = &outgoing.message {
            players.iter().for_each(|info| self.presence(info));
            return;
        }
        // Our messages always serialise.
        if let Ok(fingerprint) = postcard::to_extend(&outgoing.message, *self) {
            *self = fingerprint;
        }
    }

    /// Adds a player's presence, except for the connection, which is not part
    /// of the world or of a recording.
    fn presence(&mut self, info: &PlayerInfo) {
        let info = PlayerInfo {
            online: !info.left,
            ..info.clone()
        };
        if let Ok(fingerprint) = postcard::to_extend(&info, *self) {
            *self = fingerprint;
        }
    }

    /// Adds everything that determines the future, except the state inside
    /// scripts. Structures are destructured by name, so that adding a field
    /// requires a decision here whether it counts.
    pub fn state(&mut self, state: &WorldState) {
        self.word(u64::from(state.tick) << 32 | u64::from(state.tick_hz));
        self.word(u64::from(state.next_entity()));
        self.word(state.events.len() as u64);
        self.word(u64::from(state.spells.casts()));
        self.word(state.history.newest());
        self.word(state.history.persisted());
        self.structures(&state.structures);
        state.ground.words().for_each(|word| self.word(word));
        if let Some(terrain) = state.collision.terrain() {
            self.word(terrain.fingerprint());
        }
        self.floats(&[state.params.gravity, state.kill_height]);
        self.word(u64::from(state.respawn_ticks));
        self.projectiles(&state.projectiles);
        for id in state.spawn_points.iter().chain(&state.moving) {
            self.word(u64::from(*id));
        }
        state.bodies.fingerprint(self);
        for id in &state.watched {
            self.word(u64::from(*id));
        }
        for (trigger, inside) in state.triggers.occupied() {
            self.word(u64::from(trigger));
            inside.for_each(|id| self.word(u64::from(id)));
        }
        state.npcs.fingerprint(self);
        state
            .entities
            .values()
            .for_each(|entity| self.entity(entity));
        state
            .players
            .values()
            .for_each(|player| self.player(player));
    }

    fn structures(&mut self, structures: &Structures) {
        self.word(structures.next());
        let (second, built) = structures.rate();
        self.word(u64::from(second) << 32 | u64::from(built));
        for (structure, entity) in structures.standing() {
            let Structure {
                number,
                prefab,
                position,
                rotation,
                owner,
            } = structure;
            self.word(*number);
            self.option(entity);
            self.text(prefab);
            self.floats(position);
            self.floats(rotation);
            self.text(owner.as_deref().unwrap_or("\0"));
        }
        for (seq, entity) in structures.waiting() {
            self.word(seq);
            self.word(u64::from(entity));
        }
    }

    fn projectiles(&mut self, projectiles: &Projectiles) {
        self.word(u64::from(projectiles.next_id));
        self.word(projectiles.refused);
        for arm in projectiles.armoury.iter() {
            // Our types always serialise.
            if let Ok(fingerprint) = postcard::to_extend(&arm.weapon, *self) {
                *self = fingerprint;
            }
            self.word(arm.damage.to_bits());
            self.word(u64::from(arm.friendly_fire));
        }
        for shot in &projectiles.flying {
            self.word(u64::from(shot.id) << 32 | u64::from(shot.weapon));
            self.option(shot.shooter);
            self.word(u64::from(shot.born_tick) << 32 | u64::from(shot.last_tick));
            self.word(u64::from(shot.delay) << 8 | u64::from(shot.flight.bounces));
            self.vector(shot.flight.position);
            self.vector(shot.flight.velocity);
            self.floats(&[shot.params.gravity, shot.params.radius, shot.params.bounce]);
        }
    }

    fn entity(&mut self, entity: &Entity) {
        let Entity {
            id,
            name,
            definition,
            components: _, // part of the definition
            parent,
            children,
            position,
            made_at: _, // only for clients
            rotation,
            home: _, // part of the scene
            scale,
            velocity,
            motion,
            tags,
            attributes,
            player,
            jumps,
            destroyed,
            looks,
            details_count: _, // only for clients, like the next two
            replicated: _,
            touched: _,
            reach: _, // follows from the definition and the scale
        } = entity;
        self.word(u64::from(*id) << 32 | u64::from(*definition));
        self.word(u64::from(*jumps) << 1 | u64::from(*destroyed));
        self.text(name);
        self.option(*parent);
        self.option(*player);
        self.word(children.len() as u64);
        children
            .iter()
            .for_each(|child| self.word(u64::from(*child)));
        self.vector(*position);
        self.floats(&rotation.to_array());
        self.vector(*scale);
        self.looks(looks);
        self.vector(*velocity);
        self.motion(*motion);
        self.word(tags.len() as u64);
        tags.iter().for_each(|tag| self.text(tag));
        self.values(attributes);
    }

    fn player(&mut self, player: &Player) {
        let Player {
            number,
            id,
            name,
            entity,
            character,
            step_cache: _, // a cache
            touching,
            inputs,
            input,
            health,
            health_max,
            mana,
            spells_ready,
            team,
            stats,
            online,
            connected: _, // only for clients, and no part of a recording
            interacting,
            shown,
            arms,
            dead_until,
            life,
            vitals_sent: _, // only for clients
            chat_used_until,
            // The simulation does not depend on them.
            looks: _,
        } = player;
        self.word(u64::from(*number) << 32 | u64::from(*entity));
        self.text(id);
        self.text(name);
        let mut digest = Digest::default();
        digest.character(character);
        self.word(digest.value());
        for id in touching {
            self.word(u64::from(*id));
        }
        inputs.fingerprint(self);
        self.input(input);
        self.word(health.to_bits());
        self.word(health_max.to_bits());
        self.floats(&[*mana]);
        for (spell, tick) in spells_ready {
            self.text(spell);
            self.word(u64::from(*tick));
        }
        self.text(team.as_deref().unwrap_or("\0"));
        self.word(stats.len() as u64);
        for (name, value) in stats.iter() {
            self.text(name);
            self.one_value(value);
        }
        self.word(u64::from(*online) << 1 | u64::from(*interacting));
        self.word(shown.said.map_or(u64::MAX, Moment::word));
        self.word(u64::from(shown.round_trip_ms));
        let Arms { weapon, ready } = *arms;
        self.option(weapon.map(u32::from));
        self.word(ready);
        self.option(*dead_until);
        let Life { number, first_tick } = *life;
        self.word(u64::from(number) << 32 | u64::from(first_tick));
        self.word(u64::from(*chat_used_until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &Value) -> u64 {
        let mut fingerprint = Fingerprint::default();
        fingerprint.one_value(value);
        fingerprint.value()
    }

    #[test]
    fn different_values_have_different_fingerprints() {
        let text = |text: &str| Value::String(text.to_owned());
        let values = [
            Value::Nil,
            Value::Bool(false),
            Value::Bool(true),
            Value::Number(0.0),
            Value::Number(-0.0),
            text(""),
            text("\0"),
            text("Ada"),
            Value::Vector([0.0; 3]),
            Value::Entity(0),
            Value::Buffer(vec![]),
            Value::Buffer(vec![0]),
            Value::List(vec![]),
            Value::List(vec![Value::Nil]),
            Value::List(vec![Value::List(vec![]), Value::Nil]),
            Value::Map(BTreeMap::from([("a".to_owned(), Value::Nil)])),
        ];
        for (index, a) in values.iter().enumerate() {
            for b in &values[..index] {
                assert_ne!(of(a), of(b), "{a:?} {b:?}");
            }
        }
    }
}
