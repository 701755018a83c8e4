//! Moderation with transparency: a report names a rule and includes evidence. The
//! affected user receives a notice with the rule, the evidence and advice, and can
//! appeal. Every action is logged.
//!
//! The rest of the platform uses [`ActiveSession`], [`refuse_suspended`] and
//! [`refuse_taken_down`] to exclude suspended users and games that were taken down.

mod actions;
mod appeals;
mod audit;
mod notices;
mod recordings;
mod reports;
mod rules;

pub use actions::{refuse_suspended, refuse_taken_down};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use utoipa_axum::router::OpenApiRouter;

use crate::Platform;
use crate::api::TargetKind;
use crate::core::auth::{Role, Session, bearer};
use crate::core::error::ApiError;
use crate::core::ids;

/// Name of the holder of ADMIN_TOKEN in the log.
const OPERATOR: &str = "operator";

/// The route for reporting, which has the rate limit of joins.
pub fn rated_routes() -> OpenApiRouter<Platform> {
    reports::rated_routes()
}

/// All other routes.
pub fn routes() -> OpenApiRouter<Platform> {
    rules::routes()
        .merge(reports::routes())
        .merge(recordings::routes())
        .merge(actions::routes())
        .merge(notices::routes())
        .merge(appeals::routes())
        .merge(audit::routes())
}

/// Extractor for users who may publish content: logged in and not suspended.
#[derive(Clone, Debug)]
pub struct ActiveSession(pub Session);

impl FromRequestParts<Platform> for ActiveSession {
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

/// Extractor for users who may decide reports: moderators, admins, and the holder of
/// ADMIN_TOKEN.
#[derive(Clone, Debug)]
pub struct Moderator {
    /// User id, or `operator`.
    pub id: String,
    pub name: String,
    /// Role.
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
    /// Its name in the database.
    fn name(self) -> &'static str {
        match self {
            TargetKind::Game => "game",
            TargetKind::User => "user",
            TargetKind::Spell => "spell",
            TargetKind::Chat => "chat",
        }
    }

    /// Parses [`TargetKind::name`] from a row that this program wrote.
    fn from_name(name: &str) -> Self {
        match name {
            "game" => TargetKind::Game,
            "spell" => TargetKind::Spell,
            "chat" => TargetKind::Chat,
            _ => TargetKind::User,
        }
    }
}
