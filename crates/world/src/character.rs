//! Characters: joining, spawning, walking, dying.

use frolic_protocol::entity::{EntityKind, flags};
use frolic_protocol::quantize;
use frolic_protocol::{EntityState, ServerMessage};
use frolic_script::ScriptEvent;
use frolic_sim::{Angle, CharacterState, StepCache, Vec3, step_character_with};

use crate::inputs::InputQueue;
use crate::life::{Life, UNHURT};
use crate::player::{HEALTH_MAX, MANA_MAX, MANA_PER_S, Player, PlayerNumber};
use crate::state::{Outgoing, WorldState};
use crate::trigger::Way;

impl WorldState {
    /// Adds a player at a spawn point.
    pub fn join(&mut self, number: PlayerNumber, id: String, name: String) -> u32 {
        let (feet, _) = self.spawn_place(number);
        let entity = self.spawn_character(number, &name, feet);
        let player = Player {
            number,
            id: id.clone(),
            name,
            entity,
            character: CharacterState::at(feet),
            step_cache: StepCache::default(),
            touching: Vec::new(),
            inputs: InputQueue::default(),
            input: Default::default(),
            health: HEALTH_MAX,
            health_max: HEALTH_MAX,
            mana: MANA_MAX,
            spells_ready: Default::default(),
            team: None,
            stats: Default::default(),
            online: true,
            connected: true,
            interacting: false,
            shown: Default::default(),
            arms: Default::default(),
            dead_until: None,
            life: self.life_after(Life::default()),
            vitals_sent: UNHURT,
            chat_used_until: 0,
            looks: Default::default(),
        };
        self.note_presence(player.info());
        self.players.insert(number, player);
        self.note_owner(&id);
        self.events
            .push(ScriptEvent::PlayerJoined { player: number });
        self.events
            .push(ScriptEvent::CharacterSpawned { player: number });
        entity
    }

    /// Removes a player's character. The player's record stays until scripts
    /// have been notified.
    pub fn leave(&mut self, number: PlayerNumber) {
        let Some(player) = self.players.get_mut(&number) else {
            return;
        };
        player.online = false;
        let (entity, id, info) = (player.entity, player.id.clone(), player.info());
        self.note_presence(info);
        self.note_owner(&id);
        self.events.push(ScriptEvent::PlayerLeft { player: number });
        self.destroy(entity);
    }

    /// Moves a player to a spawn point with full health.
    pub fn respawn(&mut self, number: PlayerNumber) {
        let (feet, facing) = self.spawn_place(number);
        let before = self.players.get(&number).map(|player| player.life);
        let life = self.life_after(before.unwrap_or_default());
        let Some(player) = self.players.get_mut(&number) else {
            return;
        };
        player.life = life;
        player.health = player.health_max;
        player.dead_until = None;
        self.teleport(number, feet);
        self.face(number, facing);
        self.events
            .push(ScriptEvent::CharacterSpawned { player: number });
    }

    /// Turns a player's view. The client owns the view direction, so it is
    /// notified, and its next inputs carry the new one.
    fn face(&mut self, number: PlayerNumber, yaw: Angle) {
        self.outbox.push(Outgoing {
            to: Some(number),
            message: ServerMessage::Facing { yaw },
            reliable: true,
        });
    }

    /// Turns a player's view towards a place.
    pub fn face_towards(&mut self, number: PlayerNumber, place: Vec3) {
        if let Some(player) = self.players.get(&number) {
            self.face(number, yaw_towards(place - player.character.feet));
        }
    }

    /// Teleports a character.
    pub fn teleport(&mut self, number: PlayerNumber, feet: Vec3) {
        let Some(player) = self.players.get_mut(&number) else {
            return;
        };
        player.character = CharacterState::at(feet);
        let entity = player.entity;
        if let Some(entity) = self.alive_mut(entity) {
            entity.position = feet;
            entity.jumps = (entity.jumps + 1) & 3;
        }
        self.registry.moved(entity, feet);
        let crossings = self.triggers.forget(entity);
        self.report(&crossings);
    }

    /// Takes each player's input for this tick from the queue.
    pub fn take_inputs(&mut self) {
        let mana = MANA_PER_S * self.dt();
        for player in self.players.values_mut() {
            player.input = player.inputs.next_tick();
            let repeated = player.online && player.inputs.late_ticks() > 0;
            self.repeated_inputs += u64::from(repeated);
            player.mana = (player.mana + mana).min(MANA_MAX);
            if player.dead_until.is_some() {
                player.input = player.input.at_rest();
            }
        }
    }

    /// Steps every character, and records their movement for triggers.
    pub fn step_characters(&mut self) {
        let dt = self.dt();
        for player in self.players.values_mut().filter(|player| player.online) {
            let from = player.character.feet;
            step_character_with(
                &mut player.step_cache,
                &self.collision,
                &self.params,
                &mut player.character,
                &player.input,
                dt,
            );
            let to = player.character.feet;
            if let Some(entity) = self.entities.get_mut(&player.entity) {
                entity.position = to;
                entity.velocity = player.character.velocity;
            }
            self.registry.went(player.entity, from, to);
            self.ways.push(Way {
                entity: player.entity,
                from,
                to,
                radius: self.params.radius,
                height: self.params.height,
            });
        }
    }

    /// Respawns characters that fell out of the world, after triggers have
    /// processed what they fell through.
    pub fn respawn_fallen(&mut self) {
        let present = self.players.values().filter(|player| player.online);
        let fallen: Vec<PlayerNumber> = present
            .filter(|player| player.character.feet.y < self.kill_height)
            .map(|player| player.number)
            .collect();
        for number in fallen {
            self.respawn(number);
        }
    }

    /// The replicated state of a character.
    pub fn replicated_character(&self, player: &Player) -> EntityState {
        let mut state = EntityState::new(player.entity, EntityKind::Character);
        state.owner = player.number;
        state.position = quantize::position(player.character.feet);
        state.velocity = quantize::velocity(player.character.velocity);
        state.look = quantize::look(player.input.yaw.0, player.input.pitch.0);
        if let Some(entity) = self.entities.get(&player.entity) {
            state.flags = flags::jumps(entity.jumps);
            state.details = entity.details_count;
        }
        if player.character.grounded() {
            state.flags |= flags::GROUNDED;
        }
        if player.dead_until.is_some() {
            state.flags |= flags::DEAD;
        }
        state
    }
}

/// The yaw that faces along `way`; yaw 0 faces −z.
pub(crate) fn yaw_towards(way: Vec3) -> Angle {
    Angle::from_radians(libm::atan2f(-way.x, -way.z))
}
