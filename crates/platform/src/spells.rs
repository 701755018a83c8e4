//! Spells that players create: drafts, builds, revisions, channels, and delivery to
//! running worlds.
//!
//! A build is a row of `jobs` ([`jobs`]) that a worker claims ([`worker`]) and takes
//! through its stages ([`build`]) to a revision. [`publish()`] makes a revision the
//! active one of a channel; [`cast`] runs it in a world.

pub mod build;
pub mod cast;
mod compiler;
pub mod content;
pub mod drafts;
pub mod jobs;
mod publish;
mod rest;
pub mod teach;
mod text;
pub mod worker;

pub use compiler::{SpellCompiler, WriteError};
pub use publish::publish;
pub use rest::routes;
pub use teach::forget_everywhere;

use std::sync::Arc;

use axum::http::StatusCode;
use tokio::sync::Notify;

use crate::api::SpellInfo;
use crate::community::Community;
use crate::community::auth::Principal;
use crate::core::error::ApiError;
use crate::core::{Core, Provides};
use crate::fleet::Fleet;
use crate::worlds::Worlds;

/// The services of this layer.
pub struct Spells {
    pub(crate) core: Arc<Core>,
    pub(crate) fleet: Fleet,
    pub(crate) worlds: Arc<Worlds>,
    /// Compiles the spells that players create, and generates their code.
    compiler: Arc<dyn SpellCompiler>,
    /// Notifies the workers that build spells.
    jobs: Notify,
}

impl Spells {
    pub(crate) fn new(worlds: Arc<Worlds>, compiler: Arc<dyn SpellCompiler>) -> Self {
        Self {
            core: worlds.core.clone(),
            fleet: worlds.fleet.clone(),
            worlds,
            compiler,
            jobs: Notify::new(),
        }
    }
}

impl Provides<Community> for Arc<Spells> {
    fn provide(&self) -> &Community {
        &self.worlds.community
    }
}

impl Provides<Worlds> for Arc<Spells> {
    fn provide(&self) -> &Worlds {
        &self.worlds
    }
}

/// Whether a text has the form of a generated id. Other texts are not queried: some
/// of them are invalid as database text.
fn is_generated_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=64).contains(&text.len()) && text.bytes().all(plain)
}

fn unknown_spell() -> ApiError {
    ApiError::not_found("spell_not_found", "spell not found")
}

/// Rejects casting or publishing a spell that moderators took down, also for its
/// creator.
fn refuse_taken_down(spell: &SpellInfo) -> Result<(), ApiError> {
    if !spell.taken_down {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::FORBIDDEN,
        "spell_taken_down",
        "moderators took this spell down; its creator can read the reason and appeal at /notices",
    ))
}

fn unknown_revision() -> ApiError {
    ApiError::not_found(
        "revision_not_found",
        "this spell has no such revision, or it is another user's draft",
    )
}

fn must_own(actor: &Principal, created_by: &str) -> Result<(), ApiError> {
    if actor.owns(created_by) {
        return Ok(());
    }
    Err(ApiError::forbidden(
        "this spell belongs to another user; create your own with POST /api/spells",
    ))
}
