//! Notices: moderation decisions as shown to the affected user, with rule, evidence,
//! advice, and the way to appeal.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::audit::{self, LogRecord};
use super::reports;
use crate::Platform;
use crate::api::limits::APPEAL_CHARS_MAX;
use crate::api::{
    Appeal, AppealState, NewAppeal, Notice, NoticeList, NoticeState, TargetKind, Verdict,
};
use crate::community::auth::Session;
use crate::community::rules;
use crate::core::clock::rfc3339;
use crate::core::db::to_u32;
use crate::core::error::ApiError;
use crate::core::extract::{ApiJson, ApiPath, ApiQuery};
use crate::core::paging::PageQuery;
use crate::core::{ids, texts};

/// Selects a notice with its appeal, for [`notice`].
pub const SELECT: &str = "SELECT n.notice_id, n.action, n.target_kind, n.target_id, n.target_name,
       n.subject_id, n.subject_name, n.rule, n.reason, n.advice, n.evidence, n.moderator_id,
       n.moderator_name, n.state, n.until_at, n.seen_at, n.created_at,
       a.appeal_id, a.text AS appeal_text, a.state AS appeal_state, a.answer,
       a.created_at AS appealed_at, a.decided_at
     FROM notices n LEFT JOIN appeals a ON a.notice_id = n.notice_id";

pub fn routes() -> OpenApiRouter<Platform> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(see))
        .routes(routes!(appeal))
}

/// Your notices
#[utoipa::path(get, path = "/api/notices", tag = "moderation", params(PageQuery), security(("bearer" = [])),
    responses((status = 200, body = NoticeList)))]
async fn list(
    State(platform): State<Platform>,
    session: Session,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Result<Json<NoticeList>, ApiError> {
    let page = query.page()?;
    let counts = sqlx::query(
        "SELECT COUNT(*) AS total, CAST(COALESCE(SUM(CASE WHEN seen_at IS NULL THEN 1 ELSE 0 END), 0) AS BIGINT)
           AS unseen FROM notices WHERE subject_id = $1",
    )
    .bind(&session.user_id)
    .fetch_one(&platform.core.db)
    .await?;
    let select = format!(
        "{SELECT} WHERE n.subject_id = $1 ORDER BY n.created_at DESC, n.notice_id LIMIT $2 OFFSET $3"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(select))
        .bind(&session.user_id)
        .bind(page.limit())
        .bind(page.offset())
        .fetch_all(&platform.core.db)
        .await?;
    let now = platform.core.clock.now_ms();
    let notices = rows.iter().map(|row| notice(row, now));
    Ok(Json(NoticeList {
        notices: notices.collect::<Result<_, _>>()?,
        total: to_u32(counts.try_get("total")?),
        unseen: to_u32(counts.try_get("unseen")?),
        page: page.page,
        per_page: page.per_page,
    }))
}

/// Mark a notice as read
#[utoipa::path(post, path = "/api/notices/{id}/seen", tag = "moderation", security(("bearer" = [])),
    responses((status = 204)))]
async fn see(
    State(platform): State<Platform>,
    session: Session,
    ApiPath(id): ApiPath<String>,
) -> Result<StatusCode, ApiError> {
    let seen = sqlx::query(
        "UPDATE notices SET seen_at = COALESCE(seen_at, $1) WHERE notice_id = $2 AND subject_id = $3",
    )
    .bind(platform.core.clock.now_ms())
    .bind(&id)
    .bind(&session.user_id)
    .execute(&platform.core.db)
    .await?;
    if seen.rows_affected() == 0 {
        return Err(unknown_notice());
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Appeal against a notice, once
#[utoipa::path(post, path = "/api/notices/{id}/appeal", tag = "moderation", security(("bearer" = [])),
    request_body = NewAppeal,
    responses((status = 201, body = Appeal),
        (status = 409, description = "You have appealed already, or the notice is not in effect")))]
async fn appeal(
    State(platform): State<Platform>,
    session: Session,
    ApiPath(id): ApiPath<String>,
    ApiJson(new): ApiJson<NewAppeal>,
) -> Result<(StatusCode, Json<Appeal>), ApiError> {
    let text = texts::lines(&new.text, APPEAL_CHARS_MAX);
    if text.is_empty() {
        return Err(ApiError::bad_request(
            "text_missing",
            "say why you think that the decision is wrong",
        ));
    }
    let notice = find(&platform.core.db, &id, platform.core.clock.now_ms())
        .await?
        .filter(|found| found.subject_id == session.user_id)
        .ok_or_else(unknown_notice)?
        .notice;
    let now = platform.core.clock.now_ms();
    let appeal_id = ids::new_id("appeal");
    let mut transaction = crate::core::db::begin(&platform.core.db).await?;
    let made = sqlx::query(
        "INSERT INTO appeals (appeal_id, notice_id, user_id, text, state, answer, created_at)
         SELECT $1, notice_id, $2, $3, 'open', '', $4 FROM notices
         WHERE notice_id = $5 AND state = 'active'
         ON CONFLICT (notice_id) DO NOTHING",
    )
    .bind(&appeal_id)
    .bind(&session.user_id)
    .bind(&text)
    .bind(now)
    .bind(&id)
    .execute(&mut *transaction)
    .await?;
    if made.rows_affected() == 0 {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "cannot_appeal",
            "you have appealed against this notice already, or it was revoked",
        ));
    }
    let entry = LogRecord {
        actor: (&session.user_id, &session.username),
        action: "appeal",
        target_kind: notice.target_kind.name(),
        target_id: &notice.target_id,
        target_name: &notice.target_name,
        rule: &notice.rule.id,
        summary: &text,
    };
    audit::write(&mut transaction, now, entry).await?;
    transaction.commit().await?;
    let appeal = Appeal {
        appeal_id,
        text,
        state: AppealState::Open,
        answer: String::new(),
        created_at: rfc3339(now),
        decided_at: None,
    };
    Ok((StatusCode::CREATED, Json(appeal)))
}

/// A notice with the users involved.
pub struct NoticeRecord {
    /// As the affected user reads it.
    pub notice: Notice,
    /// User id of the affected user.
    pub subject_id: String,
    /// Name of the affected user.
    pub subject_name: String,
    /// User id of the moderator who decided.
    pub moderator_id: String,
    /// Name of that moderator.
    pub moderator_name: String,
}

/// The notice with this id.
///
/// # Errors
/// When the database fails.
pub async fn find(
    db: &AnyPool,
    id: &str,
    now_ms: i64,
) -> Result<Option<NoticeRecord>, sqlx::Error> {
    let select = format!("{SELECT} WHERE n.notice_id = $1");
    let row = sqlx::query(sqlx::AssertSqlSafe(select))
        .bind(id)
        .fetch_optional(db)
        .await?;
    row.map(|row| from_row(&row, now_ms)).transpose()
}

/// Parses a row of [`SELECT`].
///
/// # Errors
/// When a column is missing.
pub fn from_row(row: &AnyRow, now_ms: i64) -> Result<NoticeRecord, sqlx::Error> {
    Ok(NoticeRecord {
        notice: notice(row, now_ms)?,
        subject_id: row.try_get("subject_id")?,
        subject_name: row.try_get("subject_name")?,
        moderator_id: row.try_get("moderator_id")?,
        moderator_name: row.try_get("moderator_name")?,
    })
}

fn notice(row: &AnyRow, now_ms: i64) -> Result<Notice, sqlx::Error> {
    let until: Option<i64> = row.try_get("until_at")?;
    let state = match row.try_get::<&str, _>("state")? {
        "lifted" => NoticeState::Lifted,
        "overturned" => NoticeState::Overturned,
        _ if until.is_some_and(|until| until <= now_ms) => NoticeState::Expired,
        _ => NoticeState::Active,
    };
    let appeal_id: Option<String> = row.try_get("appeal_id")?;
    let appeal = appeal_id.map(|id| appeal_of(row, id)).transpose()?;
    Ok(Notice {
        notice_id: row.try_get("notice_id")?,
        verdict: Verdict::from_name(row.try_get("action")?),
        target_kind: TargetKind::from_name(row.try_get("target_kind")?),
        target_id: row.try_get("target_id")?,
        target_name: row.try_get("target_name")?,
        rule: rules::rule(row.try_get("rule")?),
        reason: row.try_get("reason")?,
        evidence: reports::shown_evidence(row.try_get("evidence")?),
        advice: row.try_get("advice")?,
        state,
        until: until.map(rfc3339),
        seen: row.try_get::<Option<i64>, _>("seen_at")?.is_some(),
        appeal,
        created_at: rfc3339(row.try_get("created_at")?),
    })
}

fn appeal_of(row: &AnyRow, appeal_id: String) -> Result<Appeal, sqlx::Error> {
    Ok(Appeal {
        appeal_id,
        text: row.try_get("appeal_text")?,
        state: match row.try_get::<&str, _>("appeal_state")? {
            "granted" => AppealState::Granted,
            "refused" => AppealState::Refused,
            _ => AppealState::Open,
        },
        answer: row.try_get("answer")?,
        created_at: rfc3339(row.try_get("appealed_at")?),
        decided_at: row.try_get::<Option<i64>, _>("decided_at")?.map(rfc3339),
    })
}

/// 404 for an unknown notice or another user's.
pub fn unknown_notice() -> ApiError {
    ApiError::not_found("notice_not_found", "notice not found")
}
