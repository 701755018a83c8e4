//! Who may see and change a game: one place for the rules of visibility.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use sqlx::AnyPool;

use super::games::{self, GameRow};
use crate::Platform;
use crate::api::{Channel, GameVisibility};
use crate::auth::{Role, Session};
use crate::error::ApiError;

/// Who looks, when they say so: pages that everybody may see show more to
/// some. A token that is not valid (any more) counts as none.
pub struct Viewer(pub Option<Session>);

impl FromRequestParts<Platform> for Viewer {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        platform: &Platform,
    ) -> Result<Self, Self::Rejection> {
        if !parts.headers.contains_key(AUTHORIZATION) {
            return Ok(Self(None));
        }
        let session = Session::from_request_parts(parts, platform).await;
        Ok(Self(session.ok()))
    }
}

impl Viewer {
    /// Their id, when they are somebody.
    pub fn user_id(&self) -> Option<&str> {
        self.0.as_ref().map(|session| session.user_id.as_str())
    }

    /// Whether they may see and play this game.
    pub fn may_see(&self, game: &GameRow) -> bool {
        match &self.0 {
            Some(session) => may_see(game, session),
            None => game.visibility != GameVisibility::Private,
        }
    }
}

/// Whether this person may see and play this game: private ones are for their
/// creator, and for those who judge reports.
pub fn may_see(game: &GameRow, session: &Session) -> bool {
    may_see_as(game, &session.user_id, session.role)
}

/// The same for somebody who has no session of their own, such as a Socket.IO client.
pub fn may_see_as(game: &GameRow, user_id: &str, role: Role) -> bool {
    game.open_to(user_id) || role >= Role::Moderator
}

/// The game, for who may see it.
///
/// # Errors
/// 404, also for a private game of somebody else: nothing to probe.
pub async fn visible(db: &AnyPool, game_id: &str, viewer: &Viewer) -> Result<GameRow, ApiError> {
    let game = games::find(db, game_id).await?;
    game.filter(|game| viewer.may_see(game))
        .ok_or_else(games::unknown_game)
}

/// The game, for who may change it: its creator and administrators.
///
/// # Errors
/// 404 for a game they cannot see, 403 for one that is not theirs.
pub async fn owned(db: &AnyPool, game_id: &str, session: &Session) -> Result<GameRow, ApiError> {
    let game = games::find(db, game_id).await?;
    let game = game.filter(|game| may_see(game, session));
    let game = game.ok_or_else(games::unknown_game)?;
    if game.creator_id != session.user_id && session.role < Role::Admin {
        return Err(ApiError::forbidden(
            "only the creator of this game may do this",
        ));
    }
    Ok(game)
}

impl Channel {
    /// All, from the safest to the newest.
    pub const ALL: [Channel; 3] = [Channel::Stable, Channel::Beta, Channel::Dev];

    /// As the database and the interface write it.
    pub fn name(self) -> &'static str {
        match self {
            Channel::Dev => "dev",
            Channel::Beta => "beta",
            Channel::Stable => "stable",
        }
    }

    /// From [`Channel::name`]; anything else is what everybody gets.
    pub fn from_name(name: &str) -> Self {
        match name {
            "dev" => Channel::Dev,
            "beta" => Channel::Beta,
            _ => Channel::Stable,
        }
    }
}

impl GameVisibility {
    /// As the database and the interface write it.
    pub fn name(self) -> &'static str {
        match self {
            GameVisibility::Public => "public",
            GameVisibility::Unlisted => "unlisted",
            GameVisibility::Private => "private",
        }
    }

    /// From [`GameVisibility::name`]; anything else hides.
    pub fn from_name(name: &str) -> Self {
        match name {
            "public" => GameVisibility::Public,
            "unlisted" => GameVisibility::Unlisted,
            _ => GameVisibility::Private,
        }
    }
}
