//! What of a world's state is in its fingerprint: two worlds with the same
//! fingerprint continue identically.

use frolic_fleet_api::ops::Structure;
use frolic_protocol::{PlayerInfo, ServerMessage};
use frolic_sim::Vec3;
use frolic_sim::digest::Digest;

use crate::entities::Entity;
use crate::fingerprint::Fingerprint;
use crate::history::Publication;
use crate::moment::Moment;
use crate::outbox::Outgoing;
use crate::player::{Arms, Contact, Life, Magic, Player, Style, Vitality};
use crate::projectiles::Projectiles;
use crate::state::WorldState;
use crate::structures::Structures;

impl Fingerprint {
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
        let space = &state.space;
        let entities = &space.entities;
        self.word(u64::from(space.tick) << 32 | u64::from(space.tick_hz));
        self.word(u64::from(entities.next_id()));
        self.word(space.events.len() as u64);
        self.word(u64::from(state.spells.casts()));
        self.word(state.history.newest());
        self.word(state.history.persisted());
        self.structures(&state.structures);
        for (seq, publication) in state.history.unpublished() {
            if let Publication::Structure(entity) = publication {
                self.word(seq);
                self.word(u64::from(*entity));
            }
        }
        for (seq, publication) in state.history.unpublished() {
            if matches!(publication, Publication::Chunks(_)) {
                self.word(seq);
            }
        }
        state.ground.words().for_each(|word| self.word(word));
        if let Some(terrain) = space.collision.terrain() {
            self.word(terrain.fingerprint());
        }
        self.floats(&[space.params.gravity, space.kill_height]);
        self.word(u64::from(state.characters.respawn_ticks));
        self.projectiles(&state.projectiles);
        for id in entities.spawn_points().iter().chain(entities.moving()) {
            self.word(u64::from(*id));
        }
        state.bodies.fingerprint(self);
        for (trigger, inside) in space.triggers.occupied() {
            self.word(u64::from(trigger));
            inside.for_each(|id| self.word(u64::from(id)));
        }
        state.npcs.fingerprint(space, self);
        entities.iter().for_each(|entity| self.entity(entity));
        let players = space.players.values();
        players.for_each(|player| self.player(player, space.feet_of(player)));
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
            origin: _, // only for clients
            position,
            rotation,
            scale,
            velocity,
            motion,
            tags,
            attributes,
            player,
            jumps,
            destroyed,
            looks,
            replicated: _, // only for clients
            reach: _,      // follows from the definition and the scale
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

    fn player(&mut self, player: &Player, feet: Vec3) {
        let Player {
            number,
            id,
            name,
            entity,
            gait,
            contact,
            inputs,
            input,
            vitality,
            magic,
            style,
            online,
            connected: _, // only for clients, and no part of a recording
            shown,
            arms,
            chat_used_until,
        } = player;
        let Contact {
            cache: _, // follows from the rest
            touching,
            interacting,
        } = contact;
        let Vitality {
            health,
            health_max,
            dead_until,
            life,
            sent: _, // only for clients
        } = vitality;
        let Magic { mana, ready } = magic;
        let Style {
            team,
            stats,
            looks: _, // the simulation does not depend on them
        } = style;
        self.word(u64::from(*number) << 32 | u64::from(*entity));
        self.text(id);
        self.text(name);
        let mut digest = Digest::default();
        digest.character(&gait.at(feet));
        self.word(digest.value());
        for id in touching {
            self.word(u64::from(*id));
        }
        inputs.fingerprint(self);
        self.input(input);
        self.word(health.to_bits());
        self.word(health_max.to_bits());
        self.floats(&[*mana]);
        for (spell, tick) in ready {
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
