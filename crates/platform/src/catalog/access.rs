//! Access rules of games: who may see and who may change one.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use sqlx::AnyPool;

use super::games::{self, GameRow};
use crate::api::{Channel, GameVisibility};
use crate::community::Community;
use crate::community::auth::{Role, Session};
use crate::core::Provides;
use crate::core::error::ApiError;

/// The optional session of a request to a public page. Pages show more to some users.
/// An invalid or expired token counts as none.
pub struct OptionalSession(pub Option<Session>);

impl<S: Provides<Community>> FromRequestParts<S> for OptionalSession {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        if !parts.headers.contains_key(AUTHORIZATION) {
            return Ok(Self(None));
        }
        let session = Session::from_request_parts(parts, state).await;
        Ok(Self(session.ok()))
    }
}

impl OptionalSession {
    /// The id of the signed-in user.
    pub fn user_id(&self) -> Option<&str> {
        self.0.as_ref().map(|session| session.user_id.as_str())
    }

    /// Whether the viewer may see and play this game.
    pub fn may_see(&self, game: &GameRow) -> bool {
        match &self.0 {
            Some(session) => may_see(game, session),
            None => game.visibility != GameVisibility::Private,
        }
    }
}

/// Whether this user may see and play this game: private games are visible to their
/// creator and to moderators.
pub fn may_see(game: &GameRow, session: &Session) -> bool {
    may_see_as(game, &session.user_id, session.role)
}

/// [`may_see`] for users without an HTTP session, such as Socket.IO clients.
pub fn may_see_as(game: &GameRow, user_id: &str, role: Role) -> bool {
    game.open_to(user_id) || role >= Role::Moderator
}

/// The game, if the viewer may see it.
///
/// # Errors
/// 404, also for other creators' private games, so that their ids cannot be probed.
pub async fn visible(
    db: &AnyPool,
    game_id: &str,
    viewer: &OptionalSession,
) -> Result<GameRow, ApiError> {
    let game = games::find(db, game_id).await?;
    game.filter(|game| viewer.may_see(game))
        .ok_or_else(games::unknown_game)
}

/// The game, if the user may change it: its creator or an administrator.
///
/// # Errors
/// 404 for a game that the user cannot see, 403 for another creator's.
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
    /// All channels, from the most to the least stable.
    pub const ALL: [Channel; 3] = [Channel::Stable, Channel::Beta, Channel::Dev];

    /// Its name in the database and the API.
    pub fn name(self) -> &'static str {
        match self {
            Channel::Dev => "dev",
            Channel::Beta => "beta",
            Channel::Stable => "stable",
        }
    }

    /// Parses [`Channel::name`]; unknown names mean `Stable`.
    pub fn from_name(name: &str) -> Self {
        match name {
            "dev" => Channel::Dev,
            "beta" => Channel::Beta,
            _ => Channel::Stable,
        }
    }
}

impl GameVisibility {
    /// Its name in the database and the API.
    pub fn name(self) -> &'static str {
        match self {
            GameVisibility::Public => "public",
            GameVisibility::Unlisted => "unlisted",
            GameVisibility::Private => "private",
        }
    }

    /// Parses [`GameVisibility::name`]; unknown names mean `Private`, the safe side.
    pub fn from_name(name: &str) -> Self {
        match name {
            "public" => GameVisibility::Public,
            "unlisted" => GameVisibility::Unlisted,
            _ => GameVisibility::Private,
        }
    }
}
