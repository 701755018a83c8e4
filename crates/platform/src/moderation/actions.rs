//! Decisions of moderators about reports: their effects, and how they are revoked.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use sqlx::{AnyConnection, AnyPool, Row};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::audit::{self, LogRecord};
use super::{Moderator, reports};
use crate::Platform;
use crate::api::limits::DECISION_CHARS_MAX;
use crate::api::{Decided, Decision, LiftNotice, Report, TargetKind, Verdict};
use crate::catalog::channels::refresh_visibility;
use crate::community::auth::{Principal, Role};
use crate::community::{rules, sanctions};
use crate::core::error::ApiError;
use crate::core::extract::{ApiJson, ApiPath};
use crate::core::{ids, texts};
use crate::{catalog, spells};

const SUSPENSION_DAYS_MAX: u32 = 3650;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

pub fn routes() -> OpenApiRouter<Platform> {
    OpenApiRouter::new()
        .routes(routes!(decide))
        .routes(routes!(lift))
}

impl Verdict {
    /// Its name in the database and the log.
    pub(super) fn name(self) -> &'static str {
        match self {
            Verdict::Dismiss => "dismiss",
            Verdict::Warn => "warn",
            Verdict::Takedown => "takedown",
            Verdict::Suspend => "suspend",
        }
    }

    /// Parses [`Verdict::name`] from a row that this program wrote.
    pub(super) fn from_name(name: &str) -> Self {
        match name {
            "takedown" => Verdict::Takedown,
            "suspend" => Verdict::Suspend,
            "dismiss" => Verdict::Dismiss,
            _ => Verdict::Warn,
        }
    }
}

/// Decide a report
#[utoipa::path(post, path = "/api/moderation/reports/{id}/decide", tag = "moderation",
    security(("bearer" = [])), request_body = Decision,
    responses((status = 200, body = Decided), (status = 403),
        (status = 409, description = "The report was decided in the meantime")))]
async fn decide(
    State(platform): State<Platform>,
    Moderator(moderator): Moderator,
    ApiPath(id): ApiPath<String>,
    ApiJson(decision): ApiJson<Decision>,
) -> Result<Json<Decided>, ApiError> {
    let report = reports::find(&platform.core.db, &id).await?;
    let plan = ValidatedDecision::new(&platform, &moderator, &report, decision).await?;
    let now = platform.core.clock.now_ms();
    let mut transaction = crate::core::db::begin(&platform.core.db).await?;
    let decided = plan.close_reports(&mut transaction, now).await?;
    if plan.verdict != Verdict::Dismiss {
        plan.write_notice(&mut transaction, now).await?;
    }
    let entry = LogRecord {
        actor: (&moderator.user_id, &moderator.username),
        action: plan.verdict.name(),
        target_kind: report.target_kind.name(),
        target_id: &report.target_id,
        target_name: &report.target_name,
        rule: &plan.rule,
        summary: &plan.reason,
    };
    audit::write(&mut transaction, now, entry).await?;
    transaction.commit().await?;
    plan.follow_up(&platform).await?;
    let notice = (plan.verdict != Verdict::Dismiss).then_some(plan.notice_id);
    Ok(Json(Decided {
        notice_id: notice,
        reports: u32::try_from(decided).unwrap_or(u32::MAX),
    }))
}

/// A validated decision.
struct ValidatedDecision<'a> {
    report: &'a Report,
    moderator: &'a Principal,
    verdict: Verdict,
    rule: String,
    reason: String,
    advice: String,
    until: Option<i64>,
    all_on_target: bool,
    notice_id: String,
}

impl<'a> ValidatedDecision<'a> {
    async fn new(
        platform: &Platform,
        moderator: &'a Principal,
        report: &'a Report,
        decision: Decision,
    ) -> Result<Self, ApiError> {
        let verdict = decision.verdict;
        let rule = decision.rule.unwrap_or_else(|| report.rule.id.clone());
        rules::known(&rule)?;
        let reason = texts::lines(&decision.reason, DECISION_CHARS_MAX);
        if verdict != Verdict::Dismiss && reason.is_empty() {
            return Err(ApiError::bad_request(
                "reason_missing",
                "give a reason; the affected user reads it",
            ));
        }
        let is_made = matches!(report.target_kind, TargetKind::Game | TargetKind::Spell);
        if verdict == Verdict::Takedown && !is_made {
            return Err(ApiError::bad_request(
                "not_made",
                "only games and spells can be taken down; warn or suspend the user instead",
            ));
        }
        let until = match (verdict, decision.days) {
            (Verdict::Suspend, Some(days @ 1..=SUSPENSION_DAYS_MAX)) => {
                Some(platform.core.clock.now_ms() + i64::from(days) * DAY_MS)
            }
            (Verdict::Suspend, _) => {
                return Err(ApiError::bad_request(
                    "days_missing",
                    format!("days must be from 1 to {SUSPENSION_DAYS_MAX}"),
                ));
            }
            _ => None,
        };
        if verdict != Verdict::Dismiss {
            may_judge(&platform.core.db, moderator, &report.subject_id).await?;
        }
        let mut advice = texts::lines(&decision.advice, DECISION_CHARS_MAX);
        if advice.is_empty() {
            advice = rules::rule(&rule).advice;
        }
        Ok(Self {
            report,
            moderator,
            verdict,
            rule,
            reason,
            advice,
            until,
            all_on_target: decision.all_on_target,
            notice_id: ids::new_id("notice"),
        })
    }

    /// Marks the report as decided, and other reports about the same target if
    /// requested. The first of two concurrent moderators wins.
    async fn close_reports(
        &self,
        connection: &mut AnyConnection,
        now: i64,
    ) -> Result<u64, ApiError> {
        let (status, notice) = match self.verdict {
            Verdict::Dismiss => ("dismissed", None),
            _ => ("acted", Some(self.notice_id.as_str())),
        };
        let close =
            "UPDATE reports SET status = $1, notice_id = $2, decided_by = $3, decided_at = $4
             WHERE status = 'open' AND ";
        let one = format!("{close} report_id = $5");
        let mut closed = sqlx::query(sqlx::AssertSqlSafe(one))
            .bind(status)
            .bind(notice)
            .bind(&self.moderator.user_id)
            .bind(now)
            .bind(&self.report.report_id)
            .execute(&mut *connection)
            .await?
            .rows_affected();
        if closed == 0 {
            return Err(ApiError::new(
                StatusCode::CONFLICT,
                "already_decided",
                "another moderator has decided this report; reload the queue",
            ));
        }
        if self.all_on_target {
            let all = format!("{close} target_kind = $5 AND target_id = $6");
            closed += sqlx::query(sqlx::AssertSqlSafe(all))
                .bind(status)
                .bind(notice)
                .bind(&self.moderator.user_id)
                .bind(now)
                .bind(self.report.target_kind.name())
                .bind(&self.report.target_id)
                .execute(&mut *connection)
                .await?
                .rows_affected();
        }
        Ok(closed)
    }

    async fn write_notice(&self, connection: &mut AnyConnection, now: i64) -> Result<(), ApiError> {
        if self.verdict == Verdict::Takedown {
            take_down(connection, self.report.target_kind, &self.report.target_id).await?;
        }
        let evidence = serde_json::to_string(&self.report.evidence).unwrap_or_default();
        sqlx::query(
            "INSERT INTO notices (notice_id, action, target_kind, target_id, target_name, subject_id,
               subject_name, rule, reason, advice, evidence, moderator_id, moderator_name, state,
               until_at, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 'active', $14, $15)",
        )
        .bind(&self.notice_id)
        .bind(self.verdict.name())
        .bind(self.report.target_kind.name())
        .bind(&self.report.target_id)
        .bind(&self.report.target_name)
        .bind(&self.report.subject_id)
        .bind(&self.report.subject_name)
        .bind(&self.rule)
        .bind(&self.reason)
        .bind(&self.advice)
        .bind(evidence)
        .bind(&self.moderator.user_id)
        .bind(&self.moderator.username)
        .bind(self.until)
        .bind(now)
        .execute(connection)
        .await?;
        Ok(())
    }

    /// Effects outside the database, after the transaction was committed.
    async fn follow_up(&self, platform: &Platform) -> Result<(), sqlx::Error> {
        match self.verdict {
            Verdict::Suspend => {
                let reason = format!(
                    "You were suspended: {}. See Notices for the reason and how to appeal.",
                    rules::rule(&self.rule).title
                );
                let expulsions = &platform.community.expulsions;
                expulsions.add(&self.report.subject_id, &reason).await;
            }
            Verdict::Takedown if self.report.target_kind == TargetKind::Spell => {
                spells::forget_everywhere(&platform.spells, &self.report.target_id);
            }
            Verdict::Takedown => {
                let fleet = &platform.worlds.fleet;
                let game_id = &self.report.target_id;
                catalog::game_changed(&platform.catalog, game_id).await?;
                for server in fleet.all() {
                    if server.spec.game_id == *game_id {
                        fleet.stop(&server.spec.world_id);
                    }
                }
            }
            Verdict::Dismiss | Verdict::Warn => {}
        }
        Ok(())
    }
}

/// Moderators must not decide about themselves or users with the same or higher role.
async fn may_judge(db: &AnyPool, moderator: &Principal, subject_id: &str) -> Result<(), ApiError> {
    let row = sqlx::query("SELECT role FROM users WHERE user_id = $1")
        .bind(subject_id)
        .fetch_optional(db)
        .await?;
    let role = match &row {
        Some(row) => Role::from_name(row.try_get("role")?),
        None => Role::Player,
    };
    if moderator.user_id == subject_id || role >= moderator.role && moderator.role != Role::Admin {
        return Err(ApiError::forbidden(
            "this concerns a moderator; an administrator has to decide it",
        ));
    }
    Ok(())
}

/// Takes down a game or a spell.
async fn take_down(
    connection: &mut AnyConnection,
    kind: TargetKind,
    target_id: &str,
) -> Result<(), ApiError> {
    if set_taken_down(connection, kind, target_id, true).await? {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::CONFLICT,
        "already_taken_down",
        "this was deleted or taken down already; dismiss the report, or warn its creator",
    ))
}

/// Returns false when it was in that state already.
async fn set_taken_down(
    connection: &mut AnyConnection,
    kind: TargetKind,
    target_id: &str,
    taken_down: bool,
) -> Result<bool, sqlx::Error> {
    let update = match kind {
        TargetKind::Spell => {
            "UPDATE spells SET taken_down = $1 WHERE spell_id = $2 AND taken_down <> $1"
        }
        _ => "UPDATE games SET taken_down = $1 WHERE game_id = $2 AND taken_down <> $1",
    };
    let changed = sqlx::query(update)
        .bind(i64::from(taken_down))
        .bind(target_id)
        .execute(&mut *connection)
        .await?
        .rows_affected();
    if kind == TargetKind::Game {
        refresh_visibility(connection, target_id).await?;
    }
    Ok(changed > 0)
}

/// Take a notice back
#[utoipa::path(post, path = "/api/moderation/notices/{id}/lift", tag = "moderation",
    security(("bearer" = [])), request_body = LiftNotice,
    responses((status = 204), (status = 403),
        (status = 409, description = "The notice is not in effect")))]
async fn lift(
    State(platform): State<Platform>,
    Moderator(moderator): Moderator,
    ApiPath(id): ApiPath<String>,
    ApiJson(request): ApiJson<LiftNotice>,
) -> Result<StatusCode, ApiError> {
    let reason = texts::lines(&request.reason, DECISION_CHARS_MAX);
    if reason.is_empty() {
        return Err(ApiError::bad_request(
            "reason_missing",
            "give a reason, for the log",
        ));
    }
    let mut transaction = crate::core::db::begin(&platform.core.db).await?;
    let now = platform.core.clock.now_ms();
    let revoked = revoke(
        &mut transaction,
        &id,
        "lifted",
        &moderator,
        ("lift", &reason),
        now,
    )
    .await?;
    transaction.commit().await?;
    revoked.follow_up(&platform).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A revoked notice.
pub struct Revoked {
    target_id: String,
    subject_id: String,
}

impl Revoked {
    /// Applies the effects outside the database, after the commit.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn follow_up(&self, platform: &Platform) -> Result<(), sqlx::Error> {
        // The notice may be another one than a suspension, or one of several suspensions.
        let (db, now) = (&platform.core.db, platform.core.clock.now_ms());
        if sanctions::refuse_suspended(db, &self.subject_id, now)
            .await
            .is_ok()
        {
            let expulsions = &platform.community.expulsions;
            expulsions.forget(&self.subject_id, None).await;
        }
        catalog::game_changed(&platform.catalog, &self.target_id).await
    }
}

/// Revokes a notice and undoes its effect, and logs `action` and `reason`. The caller
/// calls [`Revoked::follow_up`] after the commit.
///
/// # Errors
/// 404 for an unknown notice, 409 when it is not in effect.
pub async fn revoke(
    connection: &mut AnyConnection,
    notice_id: &str,
    state: &str,
    moderator: &Principal,
    (action, summary): (&'static str, &str),
    now_ms: i64,
) -> Result<Revoked, ApiError> {
    let ended =
        sqlx::query("UPDATE notices SET state = $1 WHERE notice_id = $2 AND state = 'active'")
            .bind(state)
            .bind(notice_id)
            .execute(&mut *connection)
            .await?
            .rows_affected();
    let row = sqlx::query(
        "SELECT action, target_kind, target_id, target_name, subject_id, rule FROM notices
         WHERE notice_id = $1",
    )
    .bind(notice_id)
    .fetch_optional(&mut *connection)
    .await?
    .ok_or_else(super::notices::unknown_notice)?;
    if ended == 0 {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "not_active",
            "this notice was revoked already",
        ));
    }
    let target_id: String = row.try_get("target_id")?;
    if row.try_get::<&str, _>("action")? == Verdict::Takedown.name() {
        let kind = TargetKind::from_name(row.try_get("target_kind")?);
        set_taken_down(connection, kind, &target_id, false).await?;
    }
    let entry = LogRecord {
        actor: (&moderator.user_id, &moderator.username),
        action,
        target_kind: row.try_get("target_kind")?,
        target_id: &target_id,
        target_name: row.try_get("target_name")?,
        rule: row.try_get("rule")?,
        summary,
    };
    audit::write(connection, now_ms, entry).await?;
    let subject_id = row.try_get("subject_id")?;
    Ok(Revoked {
        target_id,
        subject_id,
    })
}
