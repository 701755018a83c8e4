//! Health, death and respawning of players' characters.

use frolic_protocol::ServerMessage;
use frolic_protocol::projectile::Vitals;
use frolic_script::ScriptEvent;

use crate::player::{HEALTH_MAX, Player, PlayerNumber};
use crate::state::{Outgoing, WorldState};

/// The vitals that a client assumes until it receives others.
pub(crate) const UNHURT: Vitals = Vitals {
    health: HEALTH_MAX as f32,
    health_max: HEALTH_MAX as f32,
    alive: true,
};

/// One life of a player's character, from one spawn to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Life {
    /// Counts lives, from 1.
    pub number: u32,
    /// The first tick that ended in this life. A character seen earlier was
    /// seen in another life.
    pub first_tick: u32,
}

impl Player {
    /// Whether a character hit in `life` can still be hurt in it.
    pub fn lives(&self, life: Life) -> bool {
        self.dead_until.is_none() && self.life == life
    }

    fn vitals(&self) -> Vitals {
        Vitals {
            health: self.health as f32,
            health_max: self.health_max as f32,
            alive: self.dead_until.is_none(),
        }
    }
}

impl WorldState {
    /// Reduces a player's health; true if that killed them.
    pub fn hurt(
        &mut self,
        number: PlayerNumber,
        damage: f64,
        by: Option<PlayerNumber>,
        weapon: &str,
    ) -> bool {
        let Some(player) = self.players.get_mut(&number) else {
            return false;
        };
        if player.dead_until.is_some() {
            return false;
        }
        player.health = (player.health - damage).max(0.0);
        let killed = player.health <= 0.0;
        if killed {
            self.die(number, by, Some(weapon.to_owned()));
        }
        killed
    }

    /// Ends a character's life; it respawns at once, or after the delay set by
    /// the game. No effect on a dead character.
    pub fn die(
        &mut self,
        number: PlayerNumber,
        killer: Option<PlayerNumber>,
        weapon: Option<String>,
    ) {
        let until = self.tick.saturating_add(self.respawn_ticks);
        let Some(player) = self.players.get_mut(&number) else {
            return;
        };
        if player.dead_until.is_some() {
            return;
        }
        player.health = 0.0;
        self.events.push(ScriptEvent::PlayerDied {
            player: number,
            killer,
            weapon,
        });
        if self.respawn_ticks == 0 {
            self.respawn(number);
        } else if let Some(player) = self.players.get_mut(&number) {
            player.dead_until = Some(until);
        }
    }

    /// The life that begins now, after `before`.
    pub fn life_after(&self, before: Life) -> Life {
        Life {
            number: before.number.wrapping_add(1),
            first_tick: self.past.next_tick().unwrap_or(self.tick),
        }
    }

    /// Respawns characters that have been dead for long enough.
    pub fn respawn_dead(&mut self) {
        let tick = self.tick;
        let due = |player: &&Player| player.dead_until.is_some_and(|until| until <= tick);
        let due: Vec<PlayerNumber> = self
            .players
            .values()
            .filter(|player| player.online)
            .filter(due)
            .map(|player| player.number)
            .collect();
        for number in due {
            self.respawn(number);
        }
    }

    /// Sends each player the vitals of their own character when they changed.
    pub fn send_vitals(&mut self) {
        for player in self.players.values_mut().filter(|player| player.online) {
            let vitals = player.vitals();
            if player.vitals_sent != vitals {
                player.vitals_sent = vitals;
                self.outbox.push(Outgoing {
                    to: Some(player.number),
                    message: ServerMessage::Vitals(vitals),
                    reliable: true,
                });
            }
        }
    }
}
