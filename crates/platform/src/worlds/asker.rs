//! Who asks about worlds: an operator, a person, or nobody in particular.

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::WorldRow;
use crate::auth::{Role, Session, bearer};
use crate::error::ApiError;
use crate::games::GameRow;
use crate::{Platform, ids};

/// Who asks.
#[derive(Clone, Debug)]
pub enum Asker {
    /// Holds ADMIN_TOKEN.
    Operator,
    /// Is logged in.
    Person(Session),
    /// Gave no token at all.
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
    /// Their id; empty for an operator and for nobody.
    pub fn user_id(&self) -> &str {
        match self {
            Asker::Person(session) => &session.user_id,
            Asker::Operator | Asker::Nobody => "",
        }
    }

    /// Whether they may do everything.
    pub fn is_admin(&self) -> bool {
        match self {
            Asker::Operator => true,
            Asker::Person(session) => session.role >= Role::Admin,
            Asker::Nobody => false,
        }
    }

    /// Whether the world is theirs.
    pub fn owns(&self, world: &WorldRow) -> bool {
        matches!(self, Asker::Person(session) if world.is_owned_by(&session.user_id))
    }

    /// Whether they may see this world of this game.
    pub fn sees(&self, world: &WorldRow, game: &GameRow) -> bool {
        let open = !world.spec.private && game.open_to(self.user_id());
        open || self.is_admin() || self.owns(world)
    }

    /// Lets only those pass who said who they are.
    ///
    /// # Errors
    /// 401 for nobody.
    pub fn require_somebody(&self) -> Result<(), ApiError> {
        if matches!(self, Asker::Nobody) {
            return Err(ApiError::unauthorized(
                "missing_token",
                "log in first and send the header 'Authorization: Bearer <session_token>'",
            ));
        }
        Ok(())
    }

    /// Lets only the owner and admins pass.
    ///
    /// # Errors
    /// 401 for nobody, 403 for others.
    pub fn require_owner(&self, world: &WorldRow) -> Result<(), ApiError> {
        self.require_somebody()?;
        if self.is_admin() || self.owns(world) {
            return Ok(());
        }
        Err(ApiError::forbidden(
            "only the owner of this world and admins may do this",
        ))
    }
}
