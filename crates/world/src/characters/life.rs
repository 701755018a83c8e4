//! Health, death and respawning of players' characters.

use frolic_protocol::ServerMessage;
use frolic_script::ScriptEvent;

use super::Characters;
use crate::player::{Life, Player, PlayerNumber};
use crate::space::Space;

impl Characters {
    /// Reduces a player's health; true if that killed them.
    pub fn hurt(
        &self,
        space: &mut Space,
        number: PlayerNumber,
        damage: f64,
        by: Option<PlayerNumber>,
        weapon: &str,
    ) -> bool {
        let Some(player) = space.players.get_mut(&number) else {
            return false;
        };
        if player.vitality.dead_until.is_some() {
            return false;
        }
        player.vitality.health = (player.vitality.health - damage).max(0.0);
        let killed = player.vitality.health <= 0.0;
        if killed {
            self.die(space, number, by, Some(weapon.to_owned()));
        }
        killed
    }

    /// Ends a character's life; it respawns at once, or after the delay set by
    /// the game. No effect on a dead character.
    pub fn die(
        &self,
        space: &mut Space,
        number: PlayerNumber,
        killer: Option<PlayerNumber>,
        weapon: Option<String>,
    ) {
        let until = space.tick.saturating_add(self.respawn_ticks);
        let Some(player) = space.players.get_mut(&number) else {
            return;
        };
        if player.vitality.dead_until.is_some() {
            return;
        }
        player.vitality.health = 0.0;
        space.events.push(ScriptEvent::PlayerDied {
            player: number,
            killer,
            weapon,
        });
        if self.respawn_ticks == 0 {
            self.respawn(space, number);
        } else if let Some(player) = space.players.get_mut(&number) {
            player.vitality.dead_until = Some(until);
        }
    }

    /// Respawns characters that have been dead for long enough.
    pub fn respawn_dead(&self, space: &mut Space) {
        let tick = space.tick;
        let due = |player: &&Player| {
            player
                .vitality
                .dead_until
                .is_some_and(|until| until <= tick)
        };
        let due = space.online().filter(due);
        let due: Vec<PlayerNumber> = due.map(|player| player.number).collect();
        for number in due {
            self.respawn(space, number);
        }
    }
}

/// The life that begins now, after `before`.
pub(super) fn life_after(space: &Space, before: Life) -> Life {
    let past = space.entities.past();
    Life {
        number: before.number.wrapping_add(1),
        first_tick: past.next_tick().unwrap_or(space.tick),
    }
}

/// Sends each player the vitals of their own character when they changed.
pub(crate) fn send_vitals(space: &mut Space) {
    for player in space.players.values_mut().filter(|player| player.online) {
        let vitals = player.vitals();
        if player.vitality.sent != vitals {
            player.vitality.sent = vitals;
            let message = ServerMessage::Vitals(vitals);
            space.outbox.send(Some(player.number), message);
        }
    }
}
