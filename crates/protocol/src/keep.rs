//! What a world leaves behind when its process ends, and how it gets to the
//! control plane: lasting operations, where players are, and
//! checkpoints of the world that stand for the operations before them.

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
/// Values of a player that are kept, and the bytes of a text among them.
pub const STATS_MAX: usize = 16;
/// See [`STATS_MAX`].
pub const STAT_BYTES_MAX: usize = 64;

/// Bytes of [`SavedPlayer::told`].
pub const TOLD_BYTES_MAX: usize = 64 * 1024;

/// Where a player was and how they fared: what they go on with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlayerState {
    /// Position of the feet.
    pub feet: [f32; 3],
    /// Metres per second.
    pub velocity: [f32; 3],
    /// Where they looked, in 1/65536 of a turn: yaw and pitch.
    pub look: [u16; 2],
    /// What they held down.
    #[serde(default)]
    pub buttons: u8,
    /// To the right and forward, −127…127.
    #[serde(default)]
    pub steer: [i8; 2],
    /// Health, and the most of it.
    pub health: [f64; 2],
    /// Their team.
    #[serde(default)]
    pub team: Option<String>,
    /// Their figures, as far as those are short.
    #[serde(default)]
    pub stats: BTreeMap<String, Stat>,
}

/// A figure beside a player's name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Stat {
    /// A number.
    Number(f64),
    /// A short text.
    Text(String),
}

impl PlayerState {
    /// Whether every number can be one of a player's.
    pub fn is_sound(&self) -> bool {
        let [health, health_max] = self.health;
        self.feet.iter().all(|part| part.is_finite())
            && self.velocity.iter().all(|part| part.is_finite())
            && health.is_finite()
            && health_max.is_finite()
            && health_max > 0.0
    }

    /// The same without figures: what a ticket has room for. After a longer
    /// time scripts know those better.
    #[must_use]
    pub fn for_ticket(mut self) -> Self {
        self.stats.clear();
        self
    }
}

/// A player's checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedPlayer {
    /// Lasting id.
    pub player_id: String,
    /// Where they were.
    pub state: PlayerState,
    /// Whether they were connected.
    pub online: bool,
    /// Names their session, for as long as its counts go on.
    #[serde(default)]
    pub session: String,
    /// Messages that count of theirs in this session whose consequences are
    /// stored with this.
    #[serde(default)]
    pub received: u32,
    /// Number of the newest message that counts to them that `told` knows of. Of
    /// one session, what has a smaller one, or fewer received, is older.
    #[serde(default)]
    pub sent: u32,
    /// Messages that count to them that they had not confirmed, in a form that
    /// game servers know, base64 where it travels as text.
    #[serde(default, with = "base64_bytes", skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<u8>,
}

/// A part of a world's checkpoint. Whoever wrote it knows its form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Version of its form.
    pub version: u32,
    /// Its content, in base64 where it travels as text.
    #[serde(with = "base64_bytes")]
    pub bytes: Vec<u8>,
}

impl Section {
    /// In place of one that is not part of the world any more.
    pub fn gone() -> Self {
        Self {
            version: 0,
            bytes: Vec::new(),
        }
    }
}

/// A world as of one operation. Sections that are not named stay as the
/// checkpoint before had them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The last operation that is in it.
    pub seq: u64,
    /// New and changed parts by name; a part without content is gone.
    pub sections: BTreeMap<String, Section>,
}

/// `POST …/keep`: done as a whole or not at all; the same again is done once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeepBatch {
    /// Which process of the world this is, counted.
    pub epoch: u64,
    /// Whether players are told only of what is near: then what others do here is
    /// nobody's business outside.
    #[serde(default)]
    pub near_only: bool,
    /// Operations in their order.
    #[serde(default)]
    pub ops: Vec<LoggedOp>,
    /// Players whose state is news.
    #[serde(default)]
    pub players: Vec<SavedPlayer>,
    /// Players of whom nothing is to be kept.
    #[serde(default)]
    pub forget: Vec<String>,
    /// Stands for all operations up to its own.
    #[serde(default)]
    pub checkpoint: Option<Checkpoint>,
}

/// Answer to a [`KeepBatch`]: it is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeepReply {
    /// Number of the newest operation that is kept.
    pub seq: u64,
}

/// `GET …/saved`: what the world's processes before this one left.
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
    /// Players who may come back with nothing but a resume token.
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
