//! One player in the world.

use std::collections::BTreeMap;

use frolic_protocol::avatar::AvatarLooks;
use frolic_protocol::message::PlayerStat;
use frolic_protocol::projectile::Vitals;
use frolic_protocol::snapshot::OwnState;
use frolic_protocol::{PlayerInfo, Value};
use frolic_sim::{CharacterInput, CharacterState, StepCache};

use crate::inputs::InputQueue;
use crate::lag_compensation::Shown;
use crate::leaderstats::Leaderstats;
use crate::life::Life;
use crate::projectiles::Arms;

/// Number of a player in a world, from 1; never reused.
pub type PlayerNumber = u32;

/// Leaderstats of one player that are replicated to all.
const STATS_SHOWN_MAX: usize = 16;

/// Maximum mana of a player.
pub(crate) const MANA_MAX: f32 = 100.0;
/// Mana that regenerates per second.
pub(crate) const MANA_PER_S: f32 = 10.0;

/// Health of a fresh character.
pub(crate) const HEALTH_MAX: f64 = 100.0;

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
