//! The caller of the worlds API: an operator, a logged-in user, or an anonymous client.

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::WorldRow;
use crate::Platform;
use crate::catalog::games::GameRow;
use crate::core::auth::{Role, Session, bearer};
use crate::core::error::ApiError;
use crate::core::ids;

/// The caller.
#[derive(Clone, Debug)]
pub enum Asker {
    /// Authenticated with ADMIN_TOKEN.
    Operator,
    /// Logged in.
    Person(Session),
    /// Sent no token.
    Nobody,
}

impl FromRequestParts<Platform> for Asker {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        platform: &Platform,
    ) -> Result<Self, Self::Rejection> {
        if !parts.headers.contains_key(AUTHORIZATION) {
            return Ok(Asker::Nobody);
        }
        let given = bearer(&parts.headers)?;
        if let Some(expected) = &platform.settings().admin_token
            && ids::matches_secret(given, &ids::secret_digest(expected))
        {
            return Ok(Asker::Operator);
        }
        let session = Session::from_request_parts(parts, platform).await?;
        Ok(Asker::Person(session))
    }
}

impl Asker {
    /// User id; empty for operators and anonymous clients.
    pub fn user_id(&self) -> &str {
        match self {
            Asker::Person(session) => &session.user_id,
            Asker::Operator | Asker::Nobody => "",
        }
    }

    /// Whether the caller has all rights.
    pub fn is_admin(&self) -> bool {
        match self {
            Asker::Operator => true,
            Asker::Person(session) => session.role >= Role::Admin,
            Asker::Nobody => false,
        }
    }

    /// Whether the caller owns the world.
    pub fn owns(&self, world: &WorldRow) -> bool {
        matches!(self, Asker::Person(session) if world.is_owned_by(&session.user_id))
    }

    /// Whether the caller may see this world of this game.
    pub fn sees(&self, world: &WorldRow, game: &GameRow) -> bool {
        let open = !world.spec.private && game.open_to(self.user_id());
        open || self.is_admin() || self.owns(world)
    }

    /// Requires an authenticated caller.
    ///
    /// # Errors
    /// 401 for an anonymous client.
    pub fn require_login(&self) -> Result<(), ApiError> {
        if matches!(self, Asker::Nobody) {
            return Err(ApiError::unauthorized(
                "missing_token",
                "log in first and send the header 'Authorization: Bearer <session_token>'",
            ));
        }
        Ok(())
    }

    /// Requires the owner of the world or an admin.
    ///
    /// # Errors
    /// 401 for an anonymous client, 403 for other users.
    pub fn require_owner(&self, world: &WorldRow) -> Result<(), ApiError> {
        self.require_login()?;
        if self.is_admin() || self.owns(world) {
            return Ok(());
        }
        Err(ApiError::forbidden(
            "only the owner of this world and admins may do this",
        ))
    }
}
