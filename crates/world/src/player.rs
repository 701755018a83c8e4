//! One player in the world.

use std::collections::BTreeMap;

use frolic_protocol::avatar::AvatarLooks;
use frolic_protocol::message::PlayerStat;
use frolic_protocol::projectile::Vitals;
use frolic_protocol::snapshot::OwnState;
use frolic_protocol::{PlayerInfo, Value};
use frolic_sim::{CharacterInput, CharacterParams, StepCache, Vec3};

use crate::gait::Gait;
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
const HEALTH_MAX: f64 = 100.0;

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

/// Whether a character lives, and how well.
pub(crate) struct Vitality {
    pub health: f64,
    pub health_max: f64,
    /// The tick at which a dead character respawns.
    pub dead_until: Option<u32>,
    /// The current life.
    pub life: Life,
    /// The vitals last sent to the player's client.
    pub sent: Vitals,
}

/// What a player needs to cast spells.
pub(crate) struct Magic {
    /// Consumed by casting; regenerates.
    pub mana: f32,
    /// Tick from which each spell can be cast again.
    pub ready: BTreeMap<String, u32>,
}

/// What a character touches.
#[derive(Default)]
pub(crate) struct Contact {
    /// Results of its last steps; a cache only.
    pub cache: StepCache,
    /// What it touched in the last tick.
    pub touching: Vec<u32>,
    /// Whether the player holds the interact button.
    pub interacting: bool,
}

/// What others see of a player besides the character's movement.
#[derive(Default)]
pub(crate) struct Style {
    pub team: Option<String>,
    pub stats: Leaderstats,
    /// Appearance of the character.
    pub looks: AvatarLooks,
}

pub(crate) struct Player {
    pub number: PlayerNumber,
    pub id: String,
    pub name: String,
    pub entity: u32,
    pub gait: Gait,
    pub contact: Contact,
    pub inputs: InputQueue,
    /// The input of this tick.
    pub input: CharacterInput,
    pub vitality: Vitality,
    pub magic: Magic,
    pub style: Style,
    /// Whether they are in the world, with or without a connection.
    pub online: bool,
    /// Whether the game server has a connection to them. Shown to others; the
    /// simulation does not depend on it.
    pub connected: bool,
    /// What their client shows of other players.
    pub shown: Shown,
    /// The weapon they hold, and when it may fire again.
    pub arms: Arms,
    /// State of the chat rate limit.
    pub chat_used_until: u32,
}

impl Player {
    /// A player with a fresh character.
    pub fn new(
        (number, entity): (PlayerNumber, u32),
        (id, name): (String, String),
        life: Life,
    ) -> Self {
        Self {
            number,
            id,
            name,
            entity,
            gait: Gait::default(),
            contact: Contact::default(),
            inputs: InputQueue::default(),
            input: CharacterInput::default(),
            vitality: Vitality {
                health: HEALTH_MAX,
                health_max: HEALTH_MAX,
                dead_until: None,
                life,
                sent: UNHURT,
            },
            magic: Magic {
                mana: MANA_MAX,
                ready: BTreeMap::new(),
            },
            style: Style::default(),
            online: true,
            connected: true,
            shown: Shown::default(),
            arms: Arms::default(),
            chat_used_until: 0,
        }
    }

    /// Whether a character hit in `life` can still be hurt in it.
    pub fn lives(&self, life: Life) -> bool {
        self.vitality.dead_until.is_none() && self.vitality.life == life
    }

    pub fn vitals(&self) -> Vitals {
        Vitals {
            health: self.vitality.health as f32,
            health_max: self.vitality.health_max as f32,
            alive: self.vitality.dead_until.is_none(),
        }
    }

    /// Whether they are in the world and can act.
    pub fn is_living(&self) -> bool {
        self.online && self.vitality.dead_until.is_none()
    }

    /// The position of the eyes of their character at `feet`, and the view
    /// direction.
    pub fn aim(&self, feet: Vec3, params: &CharacterParams) -> (Vec3, Vec3) {
        let (sin, cos) = self.input.yaw.sin_cos();
        let (rise, level) = self.input.pitch.sin_cos();
        let ahead = Vec3::new(-sin * level, rise, -cos * level);
        let eyes = feet + Vec3::Y * (params.height * EYES);
        (eyes, ahead)
    }

    /// Prefetch: reads the memory that inputs and updates use first.
    pub fn glance(&self) -> u32 {
        let character = self.gait.velocity.x.to_bits();
        self.inputs.ack_seq() ^ u32::from(self.inputs.queued()) ^ character
    }

    /// The exact state that is sent to their own client; their character is at
    /// `feet`.
    pub fn own_state(&self, feet: Vec3) -> OwnState {
        OwnState {
            ack_seq: self.inputs.ack_seq(),
            late_ticks: self.inputs.late_ticks(),
            queued_inputs: self.inputs.queued(),
            character: self.gait.at(feet),
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
            team: self.style.team.clone(),
            stats: self
                .style
                .stats
                .iter()
                .take(STATS_SHOWN_MAX)
                .filter_map(|(name, value)| stat(name, value))
                .collect(),
            looks: self.style.looks,
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
