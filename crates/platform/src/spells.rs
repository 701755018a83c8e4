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

use axum::http::StatusCode;

use crate::api::SpellInfo;
use crate::core::auth::{Role, Session};
use crate::core::error::ApiError;

/// The user who performs an action, over REST or Socket.IO.
#[derive(Clone, Debug)]
pub struct Principal {
    /// User id; empty for an anonymous request.
    pub user_id: String,
    /// Role, which may grant further rights.
    pub role: Role,
}

impl From<&Session> for Principal {
    fn from(session: &Session) -> Self {
        Self {
            user_id: session.user_id.clone(),
            role: session.role,
        }
    }
}

impl Principal {
    /// Whether the user owns a spell created by `created_by`.
    pub fn owns(&self, created_by: &str) -> bool {
        self.user_id == created_by || self.role >= Role::Admin
    }

    fn must_own(&self, created_by: &str) -> Result<(), ApiError> {
        if self.owns(created_by) {
            return Ok(());
        }
        Err(ApiError::forbidden(
            "this spell belongs to another user; create your own with POST /api/spells",
        ))
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
