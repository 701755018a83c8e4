//! Moderation with reasons: reports name a rule and bring evidence;
//! what moderators do tells the person concerned which rule, which evidence and
//! what to do, and can be appealed; everything is in a log.
//!
//! [`Member`], [`refuse_suspended`] and [`refuse_taken_down`] are what the rest of
//! the platform asks before it lets somebody in or a game out.

mod actions;
mod appeals;
mod audit;
mod expelled;
mod notices;
mod recordings;
mod reports;
mod rules;

pub use actions::{refuse_suspended, refuse_taken_down};
pub use expelled::Expulsions;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use utoipa_axum::router::OpenApiRouter;

use crate::Platform;
use crate::api::TargetKind;
use crate::auth::{Role, Session, bearer};
use crate::error::ApiError;
use crate::ids;

/// Name under which the holder of ADMIN_TOKEN is in the log.
const OPERATOR: &str = "operator";

/// Reporting, which is bounded like joins.
pub fn rated_routes() -> OpenApiRouter<Platform> {
    reports::rated_routes()
}

/// What the rest of the platform mounts.
pub fn routes() -> OpenApiRouter<Platform> {
    rules::routes()
        .merge(reports::routes())
        .merge(recordings::routes())
        .merge(actions::routes())
        .merge(notices::routes())
        .merge(appeals::routes())
        .merge(audit::routes())
}

/// Somebody who may make what others see: logged in, and not suspended.
#[derive(Clone, Debug)]
pub struct Member(pub Session);

impl FromRequestParts<Platform> for Member {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        platform: &Platform,
    ) -> Result<Self, Self::Rejection> {
        let session = Session::from_request_parts(parts, platform).await?;
        let now = platform.clock().now_ms();
        refuse_suspended(platform.db(), &session.user_id, now).await?;
        Ok(Self(session))
    }
}

/// Somebody who may judge: a moderator, an admin, or the holder of ADMIN_TOKEN.
#[derive(Clone, Debug)]
pub struct Moderator {
    /// Their id, or `operator`.
    pub id: String,
    /// Their name.
    pub name: String,
    /// What they may do.
    pub role: Role,
}

impl FromRequestParts<Platform> for Moderator {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        platform: &Platform,
    ) -> Result<Self, Self::Rejection> {
        let expected = platform.settings().admin_token.as_deref();
        let given = bearer(&parts.headers)?;
        if expected.is_some_and(|token| ids::matches_secret(given, &ids::secret_digest(token))) {
            return Ok(Self {
                id: OPERATOR.to_owned(),
                name: OPERATOR.to_owned(),
                role: Role::Admin,
            });
        }
        let session = Session::from_request_parts(parts, platform).await?;
        session.require(Role::Moderator)?;
        Ok(Self {
            id: session.user_id,
            name: session.username,
            role: session.role,
        })
    }
}

impl TargetKind {
    /// As the database writes it.
    fn name(self) -> &'static str {
        match self {
            TargetKind::Game => "game",
            TargetKind::User => "user",
            TargetKind::Spell => "spell",
            TargetKind::Chat => "chat",
        }
    }

    /// From [`TargetKind::name`]; rows are our own.
    fn from_name(name: &str) -> Self {
        match name {
            "game" => TargetKind::Game,
            "spell" => TargetKind::Spell,
            "chat" => TargetKind::Chat,
            _ => TargetKind::User,
        }
    }
}
