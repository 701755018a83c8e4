//! The characters of players: joining, spawning, walking, dying.

mod interact;
mod life;
mod spawning;

use frolic_protocol::entity::{EntityKind, flags};
use frolic_protocol::quantize;
use frolic_protocol::{EntityState, ServerMessage};
use frolic_script::ScriptEvent;
use frolic_sim::{Angle, CharacterState, StepCache, Vec3, step_character_with};

use crate::inputs::InputQueue;
use crate::player::{HEALTH_MAX, Life, MANA_MAX, MANA_PER_S, Player, PlayerNumber, UNHURT};
use crate::space::Space;
use crate::trigger::Way;

pub(crate) use interact::note_interactions;
pub(crate) use life::send_vitals;
pub(crate) use spawning::place_beside;

/// Rules and figures of all characters.
#[derive(Default)]
pub(crate) struct Characters {
    /// Ticks between a death and the respawn.
    pub respawn_ticks: u32,
    /// Ticks that repeated a player's last input; a metric, not part of the
    /// world's state.
    pub repeated_inputs: u64,
}

impl Characters {
    /// Adds a player at a spawn point.
    pub fn join(&self, space: &mut Space, number: PlayerNumber, id: String, name: String) -> u32 {
        let (feet, _) = spawning::spawn_place(space, number);
        let entity = space.spawn_character(number, &name, feet);
        let player = Player {
            number,
            id,
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
            life: life::life_after(space, Life::default()),
            vitals_sent: UNHURT,
            chat_used_until: 0,
            looks: Default::default(),
        };
        space.announce(player.info());
        space.players.insert(number, player);
        space.events.extend([
            ScriptEvent::PlayerJoined { player: number },
            ScriptEvent::CharacterSpawned { player: number },
        ]);
        entity
    }

    /// Removes a player from the world, except their entity. Their record stays
    /// until scripts have been notified.
    pub fn leave(&self, space: &mut Space, number: PlayerNumber) {
        let Some(player) = space.players.get_mut(&number) else {
            return;
        };
        player.online = false;
        let info = player.info();
        space.announce(info);
        space
            .events
            .push(ScriptEvent::PlayerLeft { player: number });
    }

    /// Moves a player to a spawn point with full health.
    pub fn respawn(&self, space: &mut Space, number: PlayerNumber) {
        let (feet, facing) = spawning::spawn_place(space, number);
        let before = space.players.get(&number).map(|player| player.life);
        let life = life::life_after(space, before.unwrap_or_default());
        let Some(player) = space.players.get_mut(&number) else {
            return;
        };
        player.life = life;
        player.health = player.health_max;
        player.dead_until = None;
        teleport(space, number, feet);
        face(space, number, facing);
        space
            .events
            .push(ScriptEvent::CharacterSpawned { player: number });
    }

    /// Takes each player's input for this tick from the queue.
    pub fn take_inputs(&mut self, space: &mut Space) {
        let mana = MANA_PER_S * space.dt();
        for player in space.players.values_mut() {
            player.input = player.inputs.next_tick();
            let repeated = player.online && player.inputs.late_ticks() > 0;
            self.repeated_inputs += u64::from(repeated);
            player.mana = (player.mana + mana).min(MANA_MAX);
            if player.dead_until.is_some() {
                player.input = player.input.at_rest();
            }
        }
    }

    /// Respawns characters that fell out of the world, after triggers have
    /// processed what they fell through.
    pub fn respawn_fallen(&self, space: &mut Space) {
        let fallen = space
            .online()
            .filter(|player| player.character.feet.y < space.kill_height);
        let fallen: Vec<PlayerNumber> = fallen.map(|player| player.number).collect();
        for number in fallen {
            self.respawn(space, number);
        }
    }
}

/// Steps every character, and records their movement for triggers.
pub(crate) fn step(space: &mut Space) {
    let dt = space.dt();
    for player in space.players.values_mut().filter(|player| player.online) {
        let from = player.character.feet;
        step_character_with(
            &mut player.step_cache,
            &space.collision,
            &space.params,
            &mut player.character,
            &player.input,
            dt,
        );
        let to = player.character.feet;
        let velocity = player.character.velocity;
        space.entities.walk(player.entity, to, velocity);
        space.ways.push(Way {
            entity: player.entity,
            from,
            to,
            radius: space.params.radius,
            height: space.params.height,
        });
    }
}

/// Teleports a player's character.
pub(crate) fn teleport(space: &mut Space, number: PlayerNumber, feet: Vec3) {
    if let Some(player) = space.players.get_mut(&number) {
        player.character = CharacterState::at(feet);
        let entity = player.entity;
        space.teleport(entity, feet);
    }
}

/// Turns a player's view. The client owns the view direction, so it is
/// notified, and its next inputs carry the new one.
fn face(space: &mut Space, number: PlayerNumber, yaw: Angle) {
    let message = ServerMessage::Facing { yaw };
    space.outbox.send(Some(number), message);
}

/// Turns a player's view towards a place.
pub(crate) fn face_towards(space: &mut Space, number: PlayerNumber, place: Vec3) {
    if let Some(player) = space.players.get(&number) {
        let yaw = yaw_towards(place - player.character.feet);
        face(space, number, yaw);
    }
}

/// The replicated state of a character.
pub(crate) fn replicated(space: &Space, player: &Player) -> EntityState {
    let mut state = EntityState::new(player.entity, EntityKind::Character);
    state.owner = player.number;
    state.position = quantize::position(player.character.feet);
    state.velocity = quantize::velocity(player.character.velocity);
    state.look = quantize::look(player.input.yaw.0, player.input.pitch.0);
    if let Some(entity) = space.entities.get(player.entity) {
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
/// The yaw that faces along `way`; yaw 0 faces −z.
pub(crate) fn yaw_towards(way: Vec3) -> Angle {
    Angle::from_radians(libm::atan2f(-way.x, -way.z))
}
