//! Appeals: another moderator reviews the decision, and the answer is final.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use sqlx::Row;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::audit::{self, LogRecord};
use super::{Moderator, actions, notices};
use crate::Platform;
use crate::api::limits::APPEAL_ANSWER_CHARS_MAX;
use crate::api::{AppealCase, AppealDecision, AppealList, AppealState, Notice, NoticeState};
use crate::community::auth::Role;
use crate::core::db::to_u32;
use crate::core::error::ApiError;
use crate::core::extract::{ApiJson, ApiPath, ApiQuery};
use crate::core::paging::{PER_PAGE, Page};
use crate::core::texts;

pub fn routes() -> OpenApiRouter<Platform> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(decide))
}

/// Filter of the appeal queue.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct AppealQuery {
    /// Only appeals in this state; default `open`.
    #[param(inline)]
    state: Option<AppealState>,
    /// Page number, from 1.
    #[param(minimum = 1, maximum = 100_000)]
    page: Option<u32>,
    /// Page size; at most 100.
    #[param(minimum = 1, maximum = 100)]
    per_page: Option<u32>,
}

/// The queue of appeals
#[utoipa::path(get, path = "/api/moderation/appeals", tag = "moderation", params(AppealQuery),
    security(("bearer" = [])),
    responses((status = 200, body = AppealList), (status = 403)))]
async fn list(
    State(platform): State<Platform>,
    _: Moderator,
    ApiQuery(query): ApiQuery<AppealQuery>,
) -> Result<Json<AppealList>, ApiError> {
    let page = Page::of(query.page, query.per_page, PER_PAGE)?;
    let state = match query.state.unwrap_or(AppealState::Open) {
        AppealState::Open => "open",
        AppealState::Granted => "granted",
        AppealState::Refused => "refused",
    };
    let total: i64 = sqlx::query_scalar("SELECT COUNT(*) AS total FROM appeals WHERE state = $1")
        .bind(state)
        .fetch_one(&platform.core.db)
        .await?;
    let order = if state == "open" { "ASC" } else { "DESC" };
    let select = format!(
        "{} WHERE a.state = $1 ORDER BY a.created_at {order}, a.appeal_id LIMIT $2 OFFSET $3",
        notices::SELECT
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(select))
        .bind(state)
        .bind(page.limit())
        .bind(page.offset())
        .fetch_all(&platform.core.db)
        .await?;
    let now = platform.core.clock.now_ms();
    let appeals = rows
        .iter()
        .map(|row| notices::from_row(row, now).map(case))
        .collect::<Result<_, _>>()?;
    Ok(Json(AppealList {
        appeals,
        total: to_u32(total),
        page: page.page,
        per_page: page.per_page,
    }))
}

fn case(found: notices::NoticeRecord) -> AppealCase {
    AppealCase {
        notice: found.notice,
        subject_id: found.subject_id,
        subject_name: found.subject_name,
        moderator_id: found.moderator_id,
        moderator_name: found.moderator_name,
    }
}

/// Decide an appeal
#[utoipa::path(post, path = "/api/moderation/appeals/{id}/decide", tag = "moderation",
    security(("bearer" = [])), request_body = AppealDecision,
    responses((status = 200, body = Notice), (status = 403),
        (status = 409, description = "The appeal was decided in the meantime")))]
async fn decide(
    State(platform): State<Platform>,
    Moderator(moderator): Moderator,
    ApiPath(id): ApiPath<String>,
    ApiJson(decision): ApiJson<AppealDecision>,
) -> Result<Json<Notice>, ApiError> {
    let answer = texts::lines(&decision.answer, APPEAL_ANSWER_CHARS_MAX);
    if answer.is_empty() {
        return Err(ApiError::bad_request(
            "answer_missing",
            "give a reason; the affected user reads it",
        ));
    }
    let (db, now) = (&platform.core.db, platform.core.clock.now_ms());
    let row = sqlx::query("SELECT notice_id FROM appeals WHERE appeal_id = $1")
        .bind(&id)
        .fetch_optional(db)
        .await?
        .ok_or_else(unknown_appeal)?;
    let notice_id: String = row.try_get("notice_id")?;
    let found = notices::find(db, &notice_id, now)
        .await?
        .ok_or_else(unknown_appeal)?;
    let involved = found.moderator_id == moderator.user_id || found.subject_id == moderator.user_id;
    if involved && moderator.role != Role::Admin {
        return Err(ApiError::forbidden(
            "this appeal is about your own decision; another moderator has to decide it",
        ));
    }
    let mut transaction = crate::core::db::begin(db).await?;
    let decided = sqlx::query(
        "UPDATE appeals SET state = $1, answer = $2, decided_by = $3, decided_at = $4
         WHERE appeal_id = $5 AND state = 'open'",
    )
    .bind(if decision.grant { "granted" } else { "refused" })
    .bind(&answer)
    .bind(&moderator.user_id)
    .bind(now)
    .bind(&id)
    .execute(&mut *transaction)
    .await?;
    if decided.rows_affected() == 0 {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "already_decided",
            "another moderator has decided this appeal; reload the queue",
        ));
    }
    // An expired suspension can still be overturned, but a revoked notice must not be
    // revoked twice.
    let counts = matches!(
        found.notice.state,
        NoticeState::Active | NoticeState::Expired
    );
    let mut freed = None;
    if decision.grant && counts {
        let log = ("grant", answer.as_str());
        let revoked = actions::revoke(
            &mut transaction,
            &notice_id,
            "overturned",
            &moderator,
            log,
            now,
        )
        .await?;
        freed = Some(revoked);
    } else {
        let entry = LogRecord {
            actor: (&moderator.user_id, &moderator.username),
            action: if decision.grant { "grant" } else { "refuse" },
            target_kind: found.notice.target_kind.name(),
            target_id: &found.notice.target_id,
            target_name: &found.notice.target_name,
            rule: &found.notice.rule.id,
            summary: &answer,
        };
        audit::write(&mut transaction, now, entry).await?;
    }
    transaction.commit().await?;
    if let Some(revoked) = freed {
        revoked.follow_up(&platform).await?;
    }
    let found = notices::find(db, &notice_id, now)
        .await?
        .ok_or_else(unknown_appeal)?;
    Ok(Json(found.notice))
}

fn unknown_appeal() -> ApiError {
    ApiError::not_found("appeal_not_found", "appeal not found")
}
