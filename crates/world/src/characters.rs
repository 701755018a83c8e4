//! The characters of players: joining, spawning, walking, dying.

mod interact;
mod life;
mod spawning;

use frolic_protocol::entity::{EntityKind, flags};
use frolic_protocol::quantize;
use frolic_protocol::{EntityState, ServerMessage};
use frolic_script::ScriptEvent;
use frolic_sim::{Angle, CharacterState, Vec3, step_character_with};

use crate::entities::Entity;
use crate::gait::Gait;
use crate::player::{Life, MANA_MAX, MANA_PER_S, Player, PlayerNumber};
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
        let life = life::life_after(space, Life::default());
        let player = Player::new((number, entity), (id, name), life);
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
        let before = space
            .players
            .get(&number)
            .map(|player| player.vitality.life);
        let life = life::life_after(space, before.unwrap_or_default());
        let Some(player) = space.players.get_mut(&number) else {
            return;
        };
        player.vitality.life = life;
        player.vitality.health = player.vitality.health_max;
        player.vitality.dead_until = None;
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
            player.magic.mana = (player.magic.mana + mana).min(MANA_MAX);
            if player.vitality.dead_until.is_some() {
                player.input = player.input.at_rest();
            }
        }
    }

    /// Respawns characters that fell out of the world, after triggers have
    /// processed what they fell through.
    pub fn respawn_fallen(&self, space: &mut Space) {
        let fallen = space
            .online()
            .filter(|player| space.feet_of(player).y < space.kill_height);
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
        let entity = player.entity;
        let step = |character: &mut CharacterState| {
            let (cache, input) = (&mut player.contact.cache, &player.input);
            step_character_with(cache, &space.collision, &space.params, character, input, dt);
        };
        let walked = space.entities.walk(entity, &mut player.gait, None, step);
        let Some((before, now)) = walked else {
            continue;
        };
        space.ways.push(Way {
            entity,
            from: before.translation,
            to: now.position,
            radius: space.params.radius,
            height: space.params.height,
        });
    }
}

/// Teleports a player's character.
pub(crate) fn teleport(space: &mut Space, number: PlayerNumber, feet: Vec3) {
    if let Some(player) = space.players.get_mut(&number) {
        player.gait = Gait::default();
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
        let yaw = yaw_towards(place - space.feet_of(player));
        face(space, number, yaw);
    }
}

/// The replicated state of a player's character.
pub(crate) fn replicated(player: &Player, entity: &Entity) -> EntityState {
    let mut state = EntityState::new(player.entity, EntityKind::Character);
    state.owner = player.number;
    state.velocity = quantize::velocity(player.gait.velocity);
    state.look = quantize::look(player.input.yaw.0, player.input.pitch.0);
    state.position = quantize::position(entity.position);
    state.flags = flags::jumps(entity.jumps);
    state.details = entity.replicated.details_count;
    if player.gait.grounded() {
        state.flags |= flags::GROUNDED;
    }
    if player.vitality.dead_until.is_some() {
        state.flags |= flags::DEAD;
    }
    state
}

/// The yaw that faces along `way`; yaw 0 faces −z.
pub(crate) fn yaw_towards(way: Vec3) -> Angle {
    Angle::from_radians(libm::atan2f(-way.x, -way.z))
}
