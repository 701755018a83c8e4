//! Sanctions that are in effect: suspended users and games that were taken down. Moderators impose
//! them (`moderation.rs`).

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use sqlx::{AnyPool, Row};

use crate::community::auth::Session;
use crate::community::{Community, rules};
use crate::core::Provides;
use crate::core::clock::rfc3339;
use crate::core::error::ApiError;

/// Extractor for users who may publish content: logged in and not suspended.
#[derive(Clone, Debug)]
pub struct ActiveSession(pub Session);

impl<S: Provides<Community>> FromRequestParts<S> for ActiveSession {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let community = state.provide();
        let session = Session::from_request_parts(parts, state).await?;
        let now = community.core.clock.now_ms();
        refuse_suspended(&community.core.db, &session.user_id, now).await?;
        Ok(Self(session))
    }
}

/// Rejects suspended users.
///
/// # Errors
/// 403 `suspended`, with the end of the suspension and where to read the reason.
pub async fn refuse_suspended(db: &AnyPool, user_id: &str, now_ms: i64) -> Result<(), ApiError> {
    let row = sqlx::query(
        "SELECT notice_id, rule, until_at FROM notices WHERE subject_id = $1 AND action = 'suspend'
           AND state = 'active' AND until_at > $2 ORDER BY until_at DESC LIMIT 1",
    )
    .bind(user_id)
    .bind(now_ms)
    .fetch_optional(db)
    .await?;
    let Some(row) = row else {
        return Ok(());
    };
    let until = rfc3339(row.try_get("until_at")?);
    let rule = rules::rule(row.try_get("rule")?).title;
    let notice_id: String = row.try_get("notice_id")?;
    Err(ApiError::new(
        StatusCode::FORBIDDEN,
        "suspended",
        format!("you are suspended until {until} ({rule}); read why and appeal at /notices"),
    )
    .with_details(serde_json::json!({ "notice_id": notice_id, "until": until })))
}

/// Rejects games that moderators took down.
///
/// # Errors
/// 403 `game_taken_down`.
pub async fn refuse_taken_down(db: &AnyPool, game_id: &str) -> Result<(), ApiError> {
    let row = sqlx::query(
        "SELECT rule FROM notices WHERE target_kind = 'game' AND target_id = $1
           AND action = 'takedown' AND state = 'active' LIMIT 1",
    )
    .bind(game_id)
    .fetch_optional(db)
    .await?;
    let Some(row) = row else {
        return Ok(());
    };
    let rule = rules::rule(row.try_get("rule")?).title;
    Err(ApiError::new(
        StatusCode::FORBIDDEN,
        "game_taken_down",
        format!(
            "moderators took this game down ({rule}); its creator can read the reason at /notices"
        ),
    ))
}
