//! Moderation with transparency: a report names a rule and includes evidence. The
//! affected user receives a notice with the rule, the evidence and advice, and can
//! appeal. Every action is logged.
//!
//! Decisions in effect are enforced through [`sanctions`](crate::community::sanctions).

mod actions;
mod appeals;
mod audit;
mod notices;
mod recordings;
mod reports;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use utoipa_axum::router::OpenApiRouter;

use crate::Platform;
use crate::api::TargetKind;
use crate::community::auth::{Principal, Role};
use crate::core::error::ApiError;

/// The route for reporting, which has the rate limit of joins.
pub fn rated_routes() -> OpenApiRouter<Platform> {
    reports::rated_routes()
}

/// All other routes.
pub fn routes() -> OpenApiRouter<Platform> {
    reports::routes()
        .merge(recordings::routes())
        .merge(actions::routes())
        .merge(notices::routes())
        .merge(appeals::routes())
        .merge(audit::routes())
}

/// A caller who may decide reports: a moderator, an admin, or the holder of ADMIN_TOKEN, whose id
/// and name are `operator` here.
pub struct Moderator(pub Principal);

impl FromRequestParts<Platform> for Moderator {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        platform: &Platform,
    ) -> Result<Self, Self::Rejection> {
        let mut principal = Principal::from_request_parts(parts, platform).await?;
        principal.require_login()?;
        principal.role.require(Role::Moderator)?;
        if principal.user_id.is_empty() {
            principal.user_id.clone_from(&principal.username);
        }
        Ok(Self(principal))
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
