//! Reporting, and the report queue of moderators.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::audit::{self, LogRecord};
use super::{Moderator, recordings};
use crate::Platform;
use crate::api::limits::REPORT_DETAILS_CHARS_MAX;
use crate::api::{
    Evidence, NewReport, OwnReport, OwnReportList, Report, ReportList, ReportStatus, TargetKind,
};
use crate::community::auth::Session;
use crate::community::rules;
use crate::core::clock::rfc3339;
use crate::core::db::{from_row, to_u32};
use crate::core::error::ApiError;
use crate::core::extract::{ApiJson, ApiPath, ApiQuery};
use crate::core::paging::{PER_PAGE, Page, PageQuery};
use crate::core::{ids, texts};

const LINES_MAX: usize = 20;
const LINE_CHARS_MAX: usize = 400;
const ID_BYTES_MAX: usize = 128;
const WORLD_CHARS_MAX: usize = 64;
/// Maximum number of open reports per reporter.
const OPEN_PER_REPORTER_MAX: i64 = 30;

/// Selects a report, for [`report`].
const SELECT: &str = "SELECT r.report_id, r.target_kind, r.target_id, r.target_name, r.subject_id, r.subject_name,
       r.rule, r.details, r.evidence, r.reporter_id, r.reporter_name, r.status, r.created_at, r.recording,
       (SELECT COUNT(*) FROM reports o WHERE o.target_kind = r.target_kind AND o.target_id = r.target_id
          AND o.status = 'open') AS open_on_target,
       (SELECT COUNT(*) FROM notices n WHERE n.subject_id = r.subject_id AND n.state = 'active') AS notices_before
     FROM reports r";

/// A reportable target and its owner.
pub struct Target {
    /// Kind.
    pub kind: TargetKind,
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// User id of the owner.
    pub subject_id: String,
    /// Name of the owner.
    pub subject_name: String,
}

/// The route for reporting, with a rate limit per address (`limits.rs`).
pub fn rated_routes() -> OpenApiRouter<Platform> {
    OpenApiRouter::new().routes(routes!(create))
}

from_row!(OwnReport {
    report_id, target_kind => TargetKind::from_name, target_name, rule => rules::title,
    status => ReportStatus::from_name, created_at => rfc3339
});

pub fn routes() -> OpenApiRouter<Platform> {
    OpenApiRouter::new()
        .routes(routes!(mine))
        .routes(routes!(queue))
        .routes(routes!(show))
}

/// Report a game, user, spell or chat message
#[utoipa::path(post, path = "/api/reports", tag = "moderation", security(("bearer" = [])),
    request_body = NewReport,
    responses((status = 201, body = OwnReport),
        (status = 200, description = "You have reported this already", body = OwnReport),
        (status = 404), (status = 409),
        (status = 429, description = "Too many requests from your address")))]
async fn create(
    State(platform): State<Platform>,
    session: Session,
    ApiJson(new): ApiJson<NewReport>,
) -> Result<(StatusCode, Json<OwnReport>), ApiError> {
    rules::known(&new.rule)?;
    let target = find_target(&platform.core.db, new.target_kind, &new.target_id).await?;
    if target.subject_id == session.user_id {
        return Err(ApiError::bad_request(
            "own_target",
            "this is yours; change or remove it yourself",
        ));
    }
    let (db, now) = (&platform.core.db, platform.core.clock.now_ms());
    let report_id = ids::new_id("report");
    let details = texts::lines(&new.details, REPORT_DETAILS_CHARS_MAX);
    let world_id = new.evidence.world_id.as_deref().map(named_world);
    let evidence = stored_evidence(new.evidence)?;
    let mut transaction = crate::core::db::begin(db).await?;
    // A repeated report is merged while the first is open.
    let made = sqlx::query(
        "INSERT INTO reports (report_id, reporter_id, reporter_name, target_kind, target_id, target_name,
           subject_id, subject_name, rule, details, evidence, status, created_at)
         SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'open', $12
         WHERE NOT EXISTS (SELECT 1 FROM reports WHERE reporter_id = $2 AND target_kind = $4
             AND target_id = $5 AND rule = $9 AND status = 'open')
           AND (SELECT COUNT(*) FROM reports WHERE reporter_id = $2 AND status = 'open') < $13",
    )
    .bind(&report_id)
    .bind(&session.user_id)
    .bind(&session.username)
    .bind(target.kind.name())
    .bind(&target.id)
    .bind(&target.name)
    .bind(&target.subject_id)
    .bind(&target.subject_name)
    .bind(&new.rule)
    .bind(&details)
    .bind(&evidence)
    .bind(now)
    .bind(OPEN_PER_REPORTER_MAX)
    .execute(&mut *transaction)
    .await?
    .rows_affected();
    if made > 0 {
        let entry = LogRecord {
            actor: (&session.user_id, &session.username),
            action: "report",
            target_kind: target.kind.name(),
            target_id: &target.id,
            target_name: &target.name,
            rule: &new.rule,
            summary: &details,
        };
        audit::write(&mut transaction, now, entry).await?;
    }
    let report: Option<OwnReport> = sqlx::query_as(
        "SELECT report_id, target_kind, target_name, rule, status, created_at FROM reports
         WHERE reporter_id = $1 AND target_kind = $2 AND target_id = $3 AND rule = $4 AND status = 'open'
         ORDER BY created_at LIMIT 1",
    )
    .bind(&session.user_id)
    .bind(target.kind.name())
    .bind(&target.id)
    .bind(&new.rule)
    .fetch_optional(&mut *transaction)
    .await?;
    transaction.commit().await?;
    let report = report.ok_or_else(|| {
        ApiError::new(
            StatusCode::CONFLICT,
            "too_many_reports",
            "you have too many open reports; report again when some are decided",
        )
    })?;
    let status = if made > 0 {
        // Only after the report is stored: a linked recording is retained
        // permanently.
        if let Some(world_id) = world_id {
            recordings::attach(&platform, &report_id, &session.user_id, &world_id).await;
        }
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(report)))
}

/// Your reports and their state
#[utoipa::path(get, path = "/api/reports", tag = "moderation", params(PageQuery), security(("bearer" = [])),
    responses((status = 200, body = OwnReportList)))]
async fn mine(
    State(platform): State<Platform>,
    session: Session,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Result<Json<OwnReportList>, ApiError> {
    let page = query.page()?;
    let total: i64 =
        sqlx::query_scalar("SELECT COUNT(*) AS total FROM reports WHERE reporter_id = $1")
            .bind(&session.user_id)
            .fetch_one(&platform.core.db)
            .await?;
    let reports = sqlx::query_as(
        "SELECT report_id, target_kind, target_name, rule, status, created_at FROM reports
         WHERE reporter_id = $1 ORDER BY created_at DESC, report_id LIMIT $2 OFFSET $3",
    )
    .bind(&session.user_id)
    .bind(page.limit())
    .bind(page.offset())
    .fetch_all(&platform.core.db)
    .await?;
    Ok(Json(OwnReportList {
        reports,
        total: to_u32(total),
        page: page.page,
        per_page: page.per_page,
    }))
}

/// Filter of the report queue.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct QueueQuery {
    /// Only reports in this state; default `open`.
    #[param(inline)]
    status: Option<ReportStatus>,
    /// Page number, from 1.
    #[param(minimum = 1, maximum = 100_000)]
    page: Option<u32>,
    /// Page size; at most 100.
    #[param(minimum = 1, maximum = 100)]
    per_page: Option<u32>,
}

/// The report queue
#[utoipa::path(get, path = "/api/moderation/reports", tag = "moderation", params(QueueQuery),
    security(("bearer" = [])),
    responses((status = 200, body = ReportList), (status = 403)))]
async fn queue(
    State(platform): State<Platform>,
    _: Moderator,
    ApiQuery(query): ApiQuery<QueueQuery>,
) -> Result<Json<ReportList>, ApiError> {
    let page = Page::of(query.page, query.per_page, PER_PAGE)?;
    let status = query.status.unwrap_or(ReportStatus::Open);
    let total: i64 = sqlx::query_scalar("SELECT COUNT(*) AS total FROM reports WHERE status = $1")
        .bind(status.name())
        .fetch_one(&platform.core.db)
        .await?;
    let order = if status == ReportStatus::Open {
        "ASC"
    } else {
        "DESC"
    };
    let select = format!(
        "{SELECT} WHERE r.status = $1 ORDER BY r.created_at {order}, r.report_id LIMIT $2 OFFSET $3"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(select))
        .bind(status.name())
        .bind(page.limit())
        .bind(page.offset())
        .fetch_all(&platform.core.db)
        .await?;
    let reports = rows.iter().map(report).collect::<Result<_, _>>()?;
    Ok(Json(ReportList {
        reports,
        total: to_u32(total),
        page: page.page,
        per_page: page.per_page,
    }))
}

/// One report
#[utoipa::path(get, path = "/api/moderation/reports/{id}", tag = "moderation", security(("bearer" = [])),
    responses((status = 200, body = Report), (status = 403)))]
async fn show(
    State(platform): State<Platform>,
    _: Moderator,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<Report>, ApiError> {
    find(&platform.core.db, &id).await.map(Json)
}

/// The report with this id.
///
/// # Errors
/// 404 when it does not exist.
pub async fn find(db: &AnyPool, id: &str) -> Result<Report, ApiError> {
    let select = format!("{SELECT} WHERE r.report_id = $1");
    let row = sqlx::query(sqlx::AssertSqlSafe(select))
        .bind(id)
        .fetch_optional(db)
        .await?;
    let row = row.ok_or_else(|| ApiError::not_found("report_not_found", "report not found"))?;
    Ok(report(&row)?)
}

/// The current state of a reported target.
///
/// # Errors
/// 404 when it does not exist.
pub async fn find_target(db: &AnyPool, kind: TargetKind, id: &str) -> Result<Target, ApiError> {
    let nothing = || {
        let message = "nothing with this id exists to report; it may have been deleted";
        ApiError::not_found("target_not_found", message)
    };
    if id.is_empty() || id.len() > ID_BYTES_MAX {
        return Err(nothing());
    }
    let select = match kind {
        TargetKind::Game => {
            "SELECT g.name, u.user_id, u.username FROM games g JOIN users u ON u.user_id = g.creator_id
             WHERE g.game_id = $1"
        }
        TargetKind::User | TargetKind::Chat => {
            "SELECT username AS name, user_id, username FROM users WHERE user_id = $1"
        }
        TargetKind::Spell => {
            "SELECT s.display_name AS name, u.user_id, u.username FROM spells s
             JOIN users u ON u.user_id = s.created_by WHERE s.spell_id = $1"
        }
    };
    let row = match (kind, sqlx::query(select).bind(id).fetch_optional(db).await) {
        // A platform without spells has no table for them.
        (TargetKind::Spell, Err(sqlx::Error::Database(_))) => None,
        (_, found) => found?,
    };
    let row = row.ok_or_else(nothing)?;
    Ok(Target {
        kind,
        id: id.to_owned(),
        name: row.try_get("name")?,
        subject_id: row.try_get("user_id")?,
        subject_name: row.try_get("username")?,
    })
}

/// The id of the world that a report names; empty if it cannot be an id.
fn named_world(id: &str) -> String {
    texts::lines(id, WORLD_CHARS_MAX)
}

fn stored_evidence(mut evidence: Evidence) -> Result<String, ApiError> {
    if evidence.lines.len() > LINES_MAX {
        return Err(ApiError::bad_request(
            "too_much_evidence",
            format!("at most {LINES_MAX} chat messages are allowed; choose the relevant ones"),
        ));
    }
    evidence.world_id = evidence.world_id.as_deref().map(named_world);
    for line in &mut evidence.lines {
        line.from = texts::lines(&line.from, 64);
        line.text = texts::lines(&line.text, LINE_CHARS_MAX);
    }
    Ok(serde_json::to_string(&evidence).unwrap_or_else(|_| "{}".to_owned()))
}

/// Parses stored evidence; invalid parts are dropped.
pub fn shown_evidence(text: &str) -> Evidence {
    serde_json::from_str(text).unwrap_or_default()
}

fn report(row: &AnyRow) -> Result<Report, sqlx::Error> {
    let created_at = row.try_get("created_at")?;
    Ok(Report {
        report_id: row.try_get("report_id")?,
        target_kind: TargetKind::from_name(row.try_get("target_kind")?),
        target_id: row.try_get("target_id")?,
        target_name: row.try_get("target_name")?,
        subject_id: row.try_get("subject_id")?,
        subject_name: row.try_get("subject_name")?,
        rule: rules::rule(row.try_get("rule")?),
        details: row.try_get("details")?,
        evidence: shown_evidence(row.try_get("evidence")?),
        recording: recordings::shown(row.try_get("recording")?, created_at),
        reporter_id: row.try_get("reporter_id")?,
        reporter_name: row.try_get("reporter_name")?,
        status: ReportStatus::from_name(row.try_get("status")?),
        open_on_target: to_u32(row.try_get("open_on_target")?),
        notices_before: to_u32(row.try_get("notices_before")?),
        created_at: rfc3339(created_at),
    })
}

impl ReportStatus {
    fn name(self) -> &'static str {
        match self {
            ReportStatus::Open => "open",
            ReportStatus::Acted => "acted",
            ReportStatus::Dismissed => "dismissed",
        }
    }

    fn from_name(name: &str) -> Self {
        match name {
            "acted" => ReportStatus::Acted,
            "dismissed" => ReportStatus::Dismissed,
            _ => ReportStatus::Open,
        }
    }
}
