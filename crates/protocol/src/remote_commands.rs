//! Commands to a world from people who are not in it as players: spells to learn,
//! casts and operations, and the way back.
//! The control plane posts [`OutsideRequest`] to
//! `/internal/outside` of the world's process, which posts [`OutsideNews`] to
//! `…/news`.

use serde::{Deserialize, Serialize};

use crate::ops::LoggedOp;
use crate::terrain::TerrainOp;

/// Casts and operations in one [`OutsideNews`].
pub const NEWS_MAX: usize = 256;
/// Spells that a world learns at most; the one that was cast longest ago is
/// forgotten for the next.
pub const LEARNED_MAX: usize = 64;

/// A revision of a spell that a world is to know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LearnSpell {
    /// What it is cast by: the spell's id, and `@beta` or `@draft` behind it
    /// for those.
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

/// What somebody outside wants of a world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum OutsideRequest {
    /// Learn these.
    Learn {
        /// What.
        spells: Vec<LearnSpell>,
    },
    /// Forget these, by what they are cast by.
    Forget {
        /// What.
        spells: Vec<String>,
    },
    /// Cast a spell: with the character of this person, if they are here.
    Cast {
        /// Lasting id of the caster.
        by: String,
        /// What it is known by.
        spell: String,
        /// Which revision of it.
        revision: Option<String>,
        /// What the caster gives along.
        params: serde_json::Value,
    },
    /// Change the ground.
    Terraform {
        /// Lasting id of who asks.
        by: String,
        /// How.
        op: TerrainOp,
    },
    /// Undo everything that was ever changed here.
    Clear {
        /// Lasting id of who asks.
        by: String,
    },
}

/// What came of an [`OutsideRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum OutsideReply {
    /// It is done; what it did is told to everybody in its time.
    Done,
    /// It is not.
    Refused {
        /// A word for programs.
        code: String,
        /// A sentence for people.
        message: String,
    },
}

/// A cast that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CastNews {
    /// Lasting id of the caster; empty for nobody.
    pub by: String,
    /// The revision that it was learned as; its code's hash for a spell of the
    /// game.
    pub revision_id: String,
    /// As JSON clients of the world are told.
    pub cast: serde_json::Value,
}

/// `POST …/news`: what happened in a world, for those who follow it from
/// outside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutsideNews {
    /// Whether players are told only of what is near; see
    /// [`KeepBatch`](crate::keep::KeepBatch).
    #[serde(default)]
    pub near_only: bool,
    /// In the order they happened.
    pub casts: Vec<CastNews>,
    /// Operations of a world that keeps none; of the others the control plane
    /// hears when they are stored.
    pub ops: Vec<LoggedOp>,
}
