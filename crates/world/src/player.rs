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

/// Counts the players of a world, from 1; never used twice.
pub type PlayerNumber = u32;

/// Figures of one player that everybody is told of.
const STATS_SHOWN_MAX: usize = 16;

/// Most mana a player has.
pub(crate) const MANA_MAX: f32 = 100.0;
/// Mana that comes back per second.
pub(crate) const MANA_PER_S: f32 = 10.0;

/// Health of a fresh character.
pub(crate) const HEALTH_MAX: f64 = 100.0;

pub(crate) struct Player {
    pub number: PlayerNumber,
    pub id: String,
    pub name: String,
    pub entity: u32,
    pub character: CharacterState,
    /// What its last steps found; only ever saves time.
    pub step_cache: StepCache,
    /// What it touched in the last tick.
    pub touching: Vec<u32>,
    pub inputs: InputQueue,
    /// The input of this tick.
    pub input: CharacterInput,
    pub health: f64,
    pub health_max: f64,
    /// What casting spells takes; fills by itself.
    pub mana: f32,
    /// Tick from which each spell can be cast again.
    pub spells_ready: BTreeMap<String, u32>,
    pub team: Option<String>,
    pub stats: Leaderstats,
    /// Whether they are in the world, with a connection or without one.
    pub online: bool,
    /// Whether the game server has a connection to them: for others to see, and
    /// nothing that happens depends on it.
    pub connected: bool,
    /// Whether they hold interact.
    pub interacting: bool,
    /// What their client shows of the others.
    pub shown: Shown,
    /// What they hold, and when it may fire again.
    pub arms: Arms,
    /// The tick at which a dead character is born again.
    pub dead_until: Option<u32>,
    /// Which of their lives this is.
    pub life: Life,
    /// What their client knows of their health.
    pub vitals_told: Vitals,
    /// The chat lines they have used up; see `chat.rs`.
    pub chat_used_until: u32,
    /// How their character looks.
    pub looks: AvatarLooks,
}

impl Player {
    /// Reads what inputs and updates begin with.
    pub fn glance(&self) -> u32 {
        let character = self.character.feet.x.to_bits();
        self.inputs.ack_seq() ^ u32::from(self.inputs.queued()) ^ character
    }

    /// What their own client learns of them, exactly.
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

/// A figure as everybody sees it.
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
