//! What a world persists across processes, and how it is sent to the control plane:
//! operations, player states, and checkpoints of the world that replace the
//! operations before them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ops::{LoggedOp, Structure};

/// Operations in one batch.
pub const BATCH_OPS_MAX: usize = 4096;
/// Players in one batch; more than fit into any world.
pub const BATCH_PLAYERS_MAX: usize = 8192;
/// Sections of a world's checkpoint.
pub const SECTIONS_MAX: usize = 65_536;
/// Bytes of one section.
pub const SECTION_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of all sections in one batch.
pub const CHECKPOINT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Name of the section with the structures.
pub const STRUCTURES: &str = "structures";
/// Number of persisted stats per player, and the bytes of a text among them.
pub const STATS_MAX: usize = 16;
/// See [`STATS_MAX`].
pub const STAT_BYTES_MAX: usize = 64;

/// Bytes of [`SavedPlayer::undelivered`].
pub const UNDELIVERED_BYTES_MAX: usize = 64 * 1024;

/// The persisted state of a player, from which they continue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlayerState {
    /// Position of the feet.
    pub feet: [f32; 3],
    /// Metres per second.
    pub velocity: [f32; 3],
    /// Where they looked, in 1/65536 of a turn: yaw and pitch.
    pub look: [u16; 2],
    /// The held buttons.
    #[serde(default)]
    pub buttons: u8,
    /// To the right and forward, −127…127.
    #[serde(default)]
    pub steer: [i8; 2],
    /// Health, and its maximum.
    pub health: [f64; 2],
    /// Their team.
    #[serde(default)]
    pub team: Option<String>,
    /// Their stats, if short enough.
    #[serde(default)]
    pub stats: BTreeMap<String, Stat>,
}

/// A stat beside a player's name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Stat {
    /// A number.
    Number(f64),
    /// A short text.
    Text(String),
}

impl PlayerState {
    /// Whether every number is valid for a player.
    pub fn is_sound(&self) -> bool {
        let [health, health_max] = self.health;
        self.feet.iter().all(|part| part.is_finite())
            && self.velocity.iter().all(|part| part.is_finite())
            && health.is_finite()
            && health_max.is_finite()
            && health_max > 0.0
    }

    /// The same without stats: what fits into a ticket. After a longer time scripts
    /// know those better.
    #[must_use]
    pub fn for_ticket(mut self) -> Self {
        self.stats.clear();
        self
    }
}

/// A player's checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedPlayer {
    /// Persistent id.
    pub player_id: String,
    /// Their state.
    pub state: PlayerState,
    /// Whether they were connected.
    pub online: bool,
    /// Identifies their session while its counts continue.
    #[serde(default)]
    pub session: String,
    /// Reliable messages received from them in this session whose effects are
    /// stored with this.
    #[serde(default)]
    pub received: u32,
    /// Number of the newest reliable message to them that `undelivered` includes. Within
    /// one session, a smaller number, or fewer received, is older.
    #[serde(default)]
    pub sent: u32,
    /// Unacknowledged reliable messages to them, in a form that game servers know,
    /// base64 where it is sent as text.
    #[serde(
        default,
        rename = "told",
        with = "base64_bytes",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub undelivered: Vec<u8>,
}

/// A part of a world's checkpoint. Its format is defined by its writer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Version of its format.
    pub version: u32,
    /// Its content, in base64 where it is sent as text.
    #[serde(with = "base64_bytes")]
    pub bytes: Vec<u8>,
}

impl Section {
    /// Replaces a section that is no longer part of the world.
    pub fn gone() -> Self {
        Self {
            version: 0,
            bytes: Vec::new(),
        }
    }
}

/// A world as of one operation. Sections that are not named stay as in the previous
/// checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The last operation that it includes.
    pub seq: u64,
    /// New and changed sections by name; a section without content is removed.
    pub sections: BTreeMap<String, Section>,
}

/// `POST …/keep`: applied as a whole or not at all; a repetition is applied once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PersistBatch {
    /// The process generation of the world.
    pub epoch: u64,
    /// Whether only nearby entities are replicated to players: then outside
    /// subscribers must not learn what others do here.
    #[serde(default)]
    pub near_only: bool,
    /// Operations in order.
    #[serde(default)]
    pub ops: Vec<LoggedOp>,
    /// Players whose state changed.
    #[serde(default)]
    pub players: Vec<SavedPlayer>,
    /// Players whose state must be deleted.
    #[serde(default)]
    pub forget: Vec<String>,
    /// Includes all operations up to its own.
    #[serde(default)]
    pub checkpoint: Option<Checkpoint>,
}

/// Answer to a [`PersistBatch`]: it is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistReply {
    /// Number of the newest stored operation.
    pub seq: u64,
}

/// `GET …/saved`: what earlier processes of the world persisted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SavedWorld {
    /// The newest checkpoint, all its sections.
    #[serde(default)]
    pub checkpoint: Checkpoint,
    /// Operations since, in order.
    #[serde(default)]
    pub ops: Vec<LoggedOp>,
}

impl SavedWorld {
    /// Number of the newest operation.
    pub fn newest(&self) -> u64 {
        let last = self.ops.last().map_or(0, |op| op.seq);
        last.max(self.checkpoint.seq)
    }
}

/// Answer to `GET …/saved`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    /// The world.
    pub world: SavedWorld,
    /// Players who may reconnect with nothing but a resume token.
    #[serde(default)]
    pub players: Vec<SavedPlayer>,
}

/// Content of the section [`STRUCTURES`], version 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Structures {
    /// The number that the next one gets.
    pub next: u64,
    /// All of them, by number.
    pub all: Vec<Structure>,
}

/// Version of [`Structures`].
pub const STRUCTURES_VERSION: u32 = 1;

pub(crate) mod base64_bytes {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD as BASE64;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(&BASE64.encode(bytes))
        } else {
            serializer.serialize_bytes(bytes)
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            BASE64.decode(text).map_err(serde::de::Error::custom)
        } else {
            Vec::<u8>::deserialize(deserializer)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_the_same_as_text_and_as_bytes() {
        let section = Section {
            version: 3,
            bytes: (0..=255).collect(),
        };
        let checkpoint = Checkpoint {
            seq: 9,
            sections: BTreeMap::from([("terrain/0,1,2".to_owned(), section)]),
        };
        let text = serde_json::to_string(&checkpoint).unwrap();
        assert_eq!(
            serde_json::from_str::<Checkpoint>(&text).unwrap(),
            checkpoint
        );
        let bytes = postcard::to_allocvec(&checkpoint).unwrap();
        assert_eq!(
            postcard::from_bytes::<Checkpoint>(&bytes).unwrap(),
            checkpoint
        );
    }
}
