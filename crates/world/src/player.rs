//! One player in the world.

use std::collections::BTreeMap;

use frolic_protocol::avatar::AvatarLooks;
use frolic_protocol::message::PlayerStat;
use frolic_protocol::projectile::Vitals;
use frolic_protocol::snapshot::OwnState;
use frolic_protocol::{PlayerInfo, Value};
use frolic_sim::{CharacterInput, CharacterParams, CharacterState, StepCache, Vec3};

use crate::inputs::InputQueue;
use crate::leaderstats::Leaderstats;
use crate::moment::Shown;

/// Number of a player in a world, from 1; never reused.
pub type PlayerNumber = u32;

/// Leaderstats of one player that are replicated to all.
const STATS_SHOWN_MAX: usize = 16;

/// Maximum mana of a player.
pub(crate) const MANA_MAX: f32 = 100.0;
/// Mana that regenerates per second.
pub(crate) const MANA_PER_S: f32 = 10.0;

/// Height of the eyes as a fraction of a character's height.
const EYES: f32 = 0.9;

/// Health of a fresh character.
pub(crate) const HEALTH_MAX: f64 = 100.0;

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

/// The weapon that a player holds, and when it may fire again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arms {
    /// Number of the weapon.
    pub weapon: Option<u16>,
    /// In 1/256 of a tick. One input is used per tick, so this also limits
    /// inputs: a client that sends more of them fires no faster.
    pub ready: u64,
}

pub(crate) struct Player {
    pub number: PlayerNumber,
    pub id: String,
    pub name: String,
    pub entity: u32,
    pub character: CharacterState,
    /// Results of its last steps; a cache only.
    pub step_cache: StepCache,
    /// What it touched in the last tick.
    pub touching: Vec<u32>,
    pub inputs: InputQueue,
    /// The input of this tick.
    pub input: CharacterInput,
    pub health: f64,
    pub health_max: f64,
    /// Consumed by casting spells; regenerates.
    pub mana: f32,
    /// Tick from which each spell can be cast again.
    pub spells_ready: BTreeMap<String, u32>,
    pub team: Option<String>,
    pub stats: Leaderstats,
    /// Whether they are in the world, with or without a connection.
    pub online: bool,
    /// Whether the game server has a connection to them. Shown to others; the
    /// simulation does not depend on it.
    pub connected: bool,
    /// Whether they hold the interact button.
    pub interacting: bool,
    /// What their client shows of other players.
    pub shown: Shown,
    /// The weapon they hold, and when it may fire again.
    pub arms: Arms,
    /// The tick at which a dead character respawns.
    pub dead_until: Option<u32>,
    /// The current life.
    pub life: Life,
    /// The vitals last sent to their client.
    pub vitals_sent: Vitals,
    /// State of the chat rate limit; see `chat.rs`.
    pub chat_used_until: u32,
    /// Appearance of their character.
    pub looks: AvatarLooks,
}

impl Player {
    /// Whether a character hit in `life` can still be hurt in it.
    pub fn lives(&self, life: Life) -> bool {
        self.dead_until.is_none() && self.life == life
    }

    pub fn vitals(&self) -> Vitals {
        Vitals {
            health: self.health as f32,
            health_max: self.health_max as f32,
            alive: self.dead_until.is_none(),
        }
    }

    /// Whether they are in the world and can act.
    pub fn is_living(&self) -> bool {
        self.online && self.dead_until.is_none()
    }

    /// The position of their eyes, and the view direction.
    pub fn aim(&self, params: &CharacterParams) -> (Vec3, Vec3) {
        let (sin, cos) = self.input.yaw.sin_cos();
        let (rise, level) = self.input.pitch.sin_cos();
        let ahead = Vec3::new(-sin * level, rise, -cos * level);
        let eyes = self.character.feet + Vec3::Y * (params.height * EYES);
        (eyes, ahead)
    }

    /// Prefetch: reads the memory that inputs and updates use first.
    pub fn glance(&self) -> u32 {
        let character = self.character.feet.x.to_bits();
        self.inputs.ack_seq() ^ u32::from(self.inputs.queued()) ^ character
    }

    /// The exact state that is sent to their own client.
    pub fn own_state(&self) -> OwnState {
        OwnState {
            ack_seq: self.inputs.ack_seq(),
            late_ticks: self.inputs.late_ticks(),
            queued_inputs: self.inputs.queued(),
            character: self.character,
        }
    }

    pub fn info(&self) -> PlayerInfo {
        PlayerInfo {
            id: self.id.clone(),
            number: self.number,
            entity_id: self.entity,
            name: self.name.clone(),
            online: self.online && self.connected,
            left: !self.online,
            team: self.team.clone(),
            stats: self
                .stats
                .iter()
                .take(STATS_SHOWN_MAX)
                .filter_map(|(name, value)| stat(name, value))
                .collect(),
            looks: self.looks,
        }
    }
}

/// A leaderstat as replicated to all.
fn stat(name: &str, value: &Value) -> Option<PlayerStat> {
    let (text, number) = match value {
        Value::Number(n) if n.fract() == 0.0 => (format!("{n:.0}"), Some(*n)),
        Value::Number(n) => (format!("{n:.2}"), Some(*n)),
        Value::String(text) => (text.clone(), None),
        _ => return None,
    };
    let name = name.to_owned();
    Some(PlayerStat { name, text, number })
}
