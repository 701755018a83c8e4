//! Commands to a world from users outside of it: spells to learn, casts and
//! operations, and the events in return. The control plane posts [`OutsideRequest`]
//! to `/internal/outside` of the world's process, which posts [`OutsideNews`] to
//! `…/news`.

use serde::{Deserialize, Serialize};

use crate::ops::LoggedOp;
use frolic_protocol::terrain::TerrainOp;

/// Casts and operations in one [`OutsideNews`].
pub const NEWS_MAX: usize = 256;
/// Spells that a world learns at most; the least recently cast one is dropped for
/// the next.
pub const LEARNED_MAX: usize = 64;

/// A revision of a spell for a world to learn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LearnSpell {
    /// The name to cast it by: the spell's id, followed by `@beta` or `@draft` for
    /// those.
    pub name: String,
    /// Which revision.
    pub revision_id: String,
    /// Name to show.
    pub display_name: String,
    /// Seconds until the same player can cast it again.
    pub cooldown_s: f32,
    /// Mana that a cast takes.
    pub cost: f32,
    /// How far from the caster its target may be, in metres.
    pub range_m: f32,
    /// Luau with a function `on_cast(ctx)`.
    pub code: String,
}

/// A request of an outside user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum OutsideRequest {
    /// Learn these.
    Learn {
        /// The spells.
        spells: Vec<LearnSpell>,
    },
    /// Forget these, by the name to cast them by.
    Forget {
        /// The names.
        spells: Vec<String>,
    },
    /// Cast a spell: with the character of this player, if they are connected.
    Cast {
        /// Persistent id of the caster.
        by: String,
        /// The name to cast it by.
        spell: String,
        /// Which revision of it.
        revision: Option<String>,
        /// The caster's parameters.
        params: serde_json::Value,
    },
    /// Change the terrain.
    Terraform {
        /// Persistent id of the user.
        by: String,
        /// The operation.
        op: TerrainOp,
    },
    /// Undo every change ever made here.
    Clear {
        /// Persistent id of the user.
        by: String,
    },
}

/// The result of an [`OutsideRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum OutsideReply {
    /// It is done; its effects are replicated to players as usual.
    Done,
    /// It was refused.
    Refused {
        /// A machine-readable code.
        code: String,
        /// A human-readable message.
        message: String,
    },
}

/// A cast that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CastNews {
    /// Persistent id of the caster; empty for none.
    pub by: String,
    /// The revision that it was learned as; its code's hash for a spell of the
    /// game.
    pub revision_id: String,
    /// As sent to JSON clients of the world.
    pub cast: serde_json::Value,
}

/// `POST …/news`: events of a world, for subscribers outside of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutsideNews {
    /// Whether only nearby entities are replicated to players; see
    /// [`PersistBatch`](crate::persist::PersistBatch).
    #[serde(default)]
    pub near_only: bool,
    /// In the order they happened.
    pub casts: Vec<CastNews>,
    /// Operations of a world that persists none; of others the control plane gets
    /// them when they are stored.
    pub ops: Vec<LoggedOp>,
}
