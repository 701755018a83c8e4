//! Spells that players make: drafts, builds, revisions, channels,
//! and their way into running worlds.
//!
//! A build is a row of `jobs` ([`jobs`]) that a worker takes ([`worker`]) and
//! brings through its stages ([`build`]) to a revision. [`publish()`] makes a
//! revision the active one of a channel; [`cast`] has it run in a world.

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
use crate::auth::{Role, Session};
use crate::error::ApiError;

/// Somebody who acts, by REST or by Socket.IO.
#[derive(Clone, Debug)]
pub struct Actor {
    /// Who.
    pub user_id: String,
    /// What they may do besides.
    pub role: Role,
}

impl From<&Session> for Actor {
    fn from(session: &Session) -> Self {
        Self {
            user_id: session.user_id.clone(),
            role: session.role,
        }
    }
}

impl Actor {
    /// Whether this is theirs to change.
    pub fn owns(&self, created_by: &str) -> bool {
        self.user_id == created_by || self.role >= Role::Admin
    }

    fn must_own(&self, created_by: &str) -> Result<(), ApiError> {
        if self.owns(created_by) {
            return Ok(());
        }
        Err(ApiError::forbidden(
            "this spell is somebody else's; make one of your own with POST /api/spells",
        ))
    }
}

/// Whether a text can be an id that we made. Others are not asked for: not
/// every text is one to a database.
fn is_made_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=64).contains(&text.len()) && text.bytes().all(plain)
}

fn unknown_spell() -> ApiError {
    ApiError::not_found("spell_not_found", "there is no such spell")
}

/// Nobody casts or publishes what moderators have taken down, its maker neither.
fn refuse_taken_down(spell: &SpellInfo) -> Result<(), ApiError> {
    if !spell.taken_down {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::FORBIDDEN,
        "spell_taken_down",
        "moderators took this spell down; its maker reads why, and can appeal, at /notices",
    ))
}

fn unknown_revision() -> ApiError {
    ApiError::not_found(
        "revision_not_found",
        "this spell has no such revision, or it is somebody else's draft",
    )
}
