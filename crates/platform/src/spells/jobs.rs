//! The build queue. Workers claim rows with a lease. When a worker dies, its lease
//! expires and another worker restarts the job. A cancelled job never produces a
//! revision.

use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row};

use super::{content::ENTRY, drafts, must_own, unknown_revision};
use crate::api::{BuildRequest, BuildStarted, CreateSpellRequest, JobInfo, JobStatus};
use crate::community::auth::Principal;
use crate::core::clock::rfc3339;
use crate::core::db::to_u32;
use crate::core::error::ApiError;
use crate::core::ids;
use crate::spells::Spells;

/// Duration of a worker's lease on a job; each progress note extends it.
pub const LEASE_MS: i64 = 30_000;
/// Maximum number of attempts per job.
pub const ATTEMPTS_MAX: u32 = 4;
/// Maximum size of the code.
pub const CODE_BYTES_MAX: usize = 48 * 1024;
/// Maximum size of a prompt.
pub const PROMPT_BYTES_MAX: usize = 8 * 1024;
/// Maximum size of the metadata that a build adds to the manifest.
const METADATA_BYTES_MAX: usize = 4096;
/// Maximum number of unfinished jobs per user.
const OPEN_PER_USER: i64 = 10;
/// Maximum number of unfinished jobs in total.
const OPEN_MAX: i64 = 1000;
/// Maximum number of revisions per spell.
const REVISIONS_MAX: u32 = 2000;
/// How long finished jobs are retained.
const RETENTION_MS: i64 = 30 * 24 * 3600 * 1000;
const COLUMNS: &str = "job_id, draft_id, status, stage, progress_pct, logs, error_message, \
     result_revision_id, request, created_by, attempts, created_at, updated_at";

/// A row of `jobs`.
#[derive(Clone, Debug)]
pub struct Job {
    /// The public part.
    pub info: JobInfo,
    /// The user who requested the build.
    pub created_by: String,
    /// What to build.
    pub request: BuildRequest,
}

/// Enqueues a build; creates the spell if it does not exist.
///
/// # Errors
/// 400 for an empty or invalid request, 403, 409 for a draft that changed in the
/// meantime, 429.
pub async fn start(
    spells: &Spells,
    actor: &Principal,
    spell_id: &str,
    request: BuildRequest,
) -> Result<BuildStarted, ApiError> {
    check(&request)?;
    if !frolic_package::spells::is_id(spell_id) {
        return Err(ApiError::not_found(
            "spell_not_found",
            "spell not found, and the id is invalid for a new one: an id has 1 to 64 lower-case \
                letters, digits, _ and -",
        ));
    }
    let db = &spells.core.db;
    let filled =
        |text: &Option<String>| text.as_deref().is_some_and(|text| !text.trim().is_empty());
    if filled(&request.prompt) && !spells.compiler.supports_prompts() {
        return Err(ApiError::new(
            axum::http::StatusCode::CONFLICT,
            "prompts_unavailable",
            super::build::NO_PROMPTS,
        ));
    }
    let empty = !filled(&request.code) && !filled(&request.prompt);
    if empty {
        // Reject an empty request before creating a draft for it.
        let known = sqlx::query("SELECT spell_id FROM spells WHERE spell_id = $1")
            .bind(spell_id)
            .fetch_optional(db)
            .await?;
        known.ok_or_else(nothing_to_build)?;
    }
    let options = request.options.as_ref();
    let wanted = CreateSpellRequest {
        spell_id: Some(spell_id.to_owned()),
        display_name: options.and_then(|options| options.name.clone()),
        description: options.and_then(|options| options.description.clone()),
    };
    let spell = drafts::create(spells, actor, &wanted).await?.spell;
    must_own(actor, &spell.created_by)?;
    if let Some(parent) = &request.parent_revision_id {
        let known = super::content::find(db, parent).await?;
        known
            .filter(|revision| revision.spell_id == spell.spell_id)
            .ok_or_else(unknown_revision)?;
        if spell.active_draft_rev.as_ref() != Some(parent) {
            return Err(draft_changed(spell.active_draft_rev.as_deref()));
        }
    }
    if empty && spell.active_draft_rev.is_none() {
        return Err(nothing_to_build());
    }
    if spell.version >= REVISIONS_MAX {
        return Err(ApiError::new(
            axum::http::StatusCode::CONFLICT,
            "too_many_revisions",
            format!(
                "a spell may have at most {REVISIONS_MAX} revisions; continue with a new spell"
            ),
        ));
    }
    check_room(db, actor).await?;
    let job_id = ids::new_id("job");
    let now = spells.core.clock.now_ms();
    let text = serde_json::to_string(&request).map_err(|_| {
        ApiError::bad_request(
            "invalid_options",
            "options contains a number that is not finite",
        )
    })?;
    sqlx::query(
        "INSERT INTO jobs (job_id, draft_id, spell_id, status, stage, progress_pct, logs, error_message,
           result_revision_id, request, created_by, attempts, run_after, lease_owner, lease_until,
           cancel_requested, created_at, updated_at)
         VALUES ($1, $2, $2, 'queued', 'prepare', 0, '', '', '', $3, $4, 0, $5, '', 0, 0, $5, $5)",
    )
    .bind(&job_id)
    .bind(&spell.spell_id)
    .bind(text)
    .bind(&actor.user_id)
    .bind(now)
    .execute(db)
    .await?;
    spells.jobs.notify_one();
    Ok(BuildStarted {
        job_id,
        spell_id: spell.spell_id,
    })
}

/// 409 for a build that is based on an outdated draft.
pub fn draft_changed(newest: Option<&str>) -> ApiError {
    ApiError::new(
        axum::http::StatusCode::CONFLICT,
        "draft_changed",
        "the draft was built again in the meantime; look at the newest revision first",
    )
    .with_details(serde_json::json!({ "active_draft_rev": newest }))
}

fn check(request: &BuildRequest) -> Result<(), ApiError> {
    let bytes = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    for (name, found, most) in [
        ("code", bytes(&request.code), CODE_BYTES_MAX),
        ("prompt", bytes(&request.prompt), PROMPT_BYTES_MAX),
    ] {
        if found > most {
            return Err(ApiError::new(
                axum::http::StatusCode::PAYLOAD_TOO_LARGE,
                "too_long",
                format!("{name} has {found} bytes; the maximum is {most}"),
            ));
        }
    }
    let options = request.options.clone().unwrap_or_default();
    let is_object = |metadata: &serde_json::Value| metadata.is_object();
    if options
        .metadata
        .as_ref()
        .is_some_and(|given| !is_object(given) || given.to_string().len() > METADATA_BYTES_MAX)
    {
        return Err(ApiError::bad_request(
            "invalid_options",
            format!("metadata must be an object of at most {METADATA_BYTES_MAX} bytes of JSON"),
        ));
    }
    for (name, value, most) in [
        ("cooldown_s", options.cooldown_s, 3600.0),
        ("cost", options.cost, 1000.0),
        ("range_m", options.range_m, 1000.0),
    ] {
        if value.is_some_and(|value| !(0.0..=most).contains(&value)) {
            return Err(ApiError::bad_request(
                "invalid_options",
                format!("{name} must be a number from 0 to {most}"),
            ));
        }
    }
    Ok(())
}

async fn check_room(db: &AnyPool, actor: &Principal) -> Result<(), ApiError> {
    let row = sqlx::query(
        "SELECT COUNT(*) AS open,
           CAST(COALESCE(SUM(CASE WHEN created_by = $1 THEN 1 ELSE 0 END), 0) AS BIGINT) AS own
         FROM jobs WHERE status IN ('queued', 'running')",
    )
    .bind(&actor.user_id)
    .fetch_one(db)
    .await?;
    if row.try_get::<i64, _>("own")? >= OPEN_PER_USER {
        return Err(ApiError::new(
            axum::http::StatusCode::TOO_MANY_REQUESTS,
            "too_many_builds",
            format!("{OPEN_PER_USER} of your builds are unfinished; wait for one or cancel it"),
        ));
    }
    if row.try_get::<i64, _>("open")? >= OPEN_MAX {
        let message = "the build queue is full; try again later";
        return Err(ApiError::unavailable("queue_full", message, 10));
    }
    Ok(())
}

/// The progress of a job, for any user. The log and the error are only for the user
/// who requested it, because they may contain their code.
///
/// # Errors
/// 404 when the job does not exist.
pub async fn progress(db: &AnyPool, actor: &Principal, job_id: &str) -> Result<JobInfo, ApiError> {
    let job = find(db, job_id).await?.ok_or_else(unknown_job)?;
    let mut info = job.info;
    if !actor.owns(&job.created_by) {
        info.logs.clear();
        info.error_message = info.error_message.map(|_| "The build failed.".to_owned());
    }
    Ok(info)
}

fn unknown_job() -> ApiError {
    ApiError::not_found("job_not_found", "build not found")
}

/// The job with this id, for the user who requested it.
///
/// # Errors
/// 404 when it does not exist or belongs to another user.
pub async fn show(db: &AnyPool, actor: &Principal, job_id: &str) -> Result<Job, ApiError> {
    let job = find(db, job_id).await?;
    job.filter(|job| actor.owns(&job.created_by))
        .ok_or_else(unknown_job)
}

/// The newest builds of a spell.
///
/// # Errors
/// 403 for another user's spell, 404 when the spell does not exist.
pub async fn of_spell(
    db: &AnyPool,
    actor: &Principal,
    spell_id: &str,
) -> Result<Vec<JobInfo>, ApiError> {
    let spell = drafts::show(db, actor, spell_id).await?;
    must_own(actor, &spell.created_by)?;
    let query = format!(
        "SELECT {COLUMNS} FROM jobs WHERE draft_id = $1 ORDER BY created_at DESC, job_id LIMIT 20"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(query))
        .bind(spell_id)
        .fetch_all(db)
        .await?;
    let jobs = rows.iter().map(|row| Ok(read(row)?.info));
    Ok(jobs.collect::<Result<_, sqlx::Error>>()?)
}

/// Cancels a build. A running build stops before its next stage.
///
/// # Errors
/// 404 when it does not exist; 409 when it is finished.
pub async fn cancel(spells: &Spells, actor: &Principal, job_id: &str) -> Result<Job, ApiError> {
    let db = &spells.core.db;
    show(db, actor, job_id).await?;
    let now = spells.core.clock.now_ms();
    let waiting = sqlx::query(
        "UPDATE jobs SET status = 'cancelled', cancel_requested = 1, updated_at = $1
         WHERE job_id = $2 AND status = 'queued'",
    )
    .bind(now)
    .bind(job_id)
    .execute(db)
    .await?;
    if waiting.rows_affected() == 0 {
        let running = sqlx::query(
            "UPDATE jobs SET cancel_requested = 1, updated_at = $1
             WHERE job_id = $2 AND status = 'running'",
        )
        .bind(now)
        .bind(job_id)
        .execute(db)
        .await?;
        if running.rows_affected() == 0 {
            return Err(ApiError::new(
                axum::http::StatusCode::CONFLICT,
                "job_over",
                "this build is finished already",
            ));
        }
    }
    show(db, actor, job_id).await
}

/// The job with this id.
///
/// # Errors
/// When the database fails.
pub async fn find(db: &AnyPool, job_id: &str) -> Result<Option<Job>, sqlx::Error> {
    if !super::is_generated_id(job_id) {
        return Ok(None);
    }
    let query = format!("SELECT {COLUMNS} FROM jobs WHERE job_id = $1");
    sqlx::query(sqlx::AssertSqlSafe(query))
        .bind(job_id)
        .fetch_optional(db)
        .await?
        .map(|row| read(&row))
        .transpose()
}

/// Claims a waiting job, or one whose lease expired.
///
/// # Errors
/// When the database fails.
pub async fn claim(db: &AnyPool, owner: &str, now: i64) -> Result<Option<Job>, sqlx::Error> {
    let rows = sqlx::query(
        "SELECT job_id FROM jobs WHERE (status = 'queued' AND run_after <= $1)
           OR (status = 'running' AND lease_until < $2) ORDER BY created_at, job_id LIMIT 8",
    )
    .bind(now)
    .bind(now)
    .fetch_all(db)
    .await?;
    for row in rows {
        let job_id: String = row.try_get("job_id")?;
        // The update decides: another worker may have claimed the row first.
        let taken = sqlx::query(
            "UPDATE jobs SET status = 'running', lease_owner = $1, lease_until = $2,
               attempts = attempts + 1, updated_at = $3
             WHERE job_id = $4 AND ((status = 'queued' AND run_after <= $5)
               OR (status = 'running' AND lease_until < $6))",
        )
        .bind(owner)
        .bind(now + LEASE_MS)
        .bind(now)
        .bind(&job_id)
        .bind(now)
        .bind(now)
        .execute(db)
        .await?;
        if taken.rows_affected() == 1 {
            return find(db, &job_id).await;
        }
    }
    Ok(None)
}

/// A worker's progress report.
pub struct ProgressReport<'a> {
    /// The current stage, as in [`JobInfo::stage`].
    pub stage: &'a str,
    /// Progress of the whole build, 0 to 100.
    pub progress_pct: u32,
    /// All log lines so far.
    pub logs: &'a [String],
}

/// Stores progress and extends the lease. False when the job was cancelled or belongs
/// to another worker now.
///
/// # Errors
/// When the database fails.
pub async fn report_progress(
    db: &AnyPool,
    owner: &str,
    job_id: &str,
    report: &ProgressReport<'_>,
    now: i64,
) -> Result<bool, sqlx::Error> {
    let noted = sqlx::query(
        "UPDATE jobs SET stage = $1, progress_pct = $2, logs = $3, lease_until = $4, updated_at = $5
         WHERE job_id = $6 AND lease_owner = $7 AND status = 'running' AND cancel_requested = 0",
    )
    .bind(report.stage)
    .bind(i64::from(report.progress_pct))
    .bind(report.logs.join("\n"))
    .bind(now + LEASE_MS)
    .bind(now)
    .bind(job_id)
    .bind(owner)
    .execute(db)
    .await?;
    Ok(noted.rows_affected() == 1)
}

/// The final state of an attempt.
pub enum AttemptResult<'a> {
    /// Do not retry.
    Failed(&'a str),
    /// The user cancelled it.
    Cancelled,
    /// Retry, not before the given time.
    Retry(i64, &'a str),
}

/// Ends an attempt and releases the job. A job that was cancelled in the meantime is
/// not retried.
///
/// # Errors
/// When the database fails.
pub async fn finish_attempt(
    db: &AnyPool,
    owner: &str,
    job_id: &str,
    logs: &[String],
    result: AttemptResult<'_>,
    now: i64,
) -> Result<(), sqlx::Error> {
    let (status, message, run_after) = match result {
        AttemptResult::Failed(message) => ("failed", message, now),
        AttemptResult::Cancelled => ("cancelled", "", now),
        AttemptResult::Retry(at, message) => ("queued", message, at),
    };
    sqlx::query(
        "UPDATE jobs SET status = CASE WHEN cancel_requested = 1 THEN 'cancelled' ELSE $1 END,
           error_message = $2, run_after = $3, logs = $4, lease_owner = '', lease_until = 0,
           updated_at = $5
         WHERE job_id = $6 AND lease_owner = $7 AND status = 'running'",
    )
    .bind(status)
    .bind(message)
    .bind(run_after)
    .bind(logs.join("\n"))
    .bind(now)
    .bind(job_id)
    .bind(owner)
    .execute(db)
    .await?;
    Ok(())
}

/// Releases all jobs of a worker, so that the next worker restarts them at once.
///
/// # Errors
/// When the database fails.
pub async fn release(db: &AnyPool, owner: &str) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE jobs SET status = CASE WHEN cancel_requested = 1 THEN 'cancelled' ELSE 'queued' END,
           lease_owner = '', lease_until = 0
         WHERE lease_owner = $1 AND status = 'running'",
    )
    .bind(owner)
    .execute(db)
    .await?;
    Ok(())
}

/// Deletes jobs that finished long ago.
///
/// # Errors
/// When the database fails.
pub async fn delete_old(db: &AnyPool, now: i64) -> Result<(), sqlx::Error> {
    sqlx::query(
        "DELETE FROM jobs WHERE status IN ('done', 'failed', 'cancelled') AND updated_at < $1",
    )
    .bind(now - RETENTION_MS)
    .execute(db)
    .await?;
    Ok(())
}

fn read(row: &AnyRow) -> Result<Job, sqlx::Error> {
    let text = |name| {
        let text: String = row.try_get(name)?;
        Ok::<_, sqlx::Error>(Some(text).filter(|text| !text.is_empty()))
    };
    let logs: String = row.try_get("logs")?;
    let request: String = row.try_get("request")?;
    let status: String = row.try_get("status")?;
    Ok(Job {
        info: JobInfo {
            job_id: row.try_get("job_id")?,
            spell_id: row.try_get("draft_id")?,
            status: match status.as_str() {
                "queued" => JobStatus::Queued,
                "running" => JobStatus::Running,
                "done" => JobStatus::Done,
                "cancelled" => JobStatus::Cancelled,
                _ => JobStatus::Failed,
            },
            stage: row.try_get("stage")?,
            progress_pct: to_u32(row.try_get("progress_pct")?),
            logs: logs.lines().map(str::to_owned).collect(),
            error_message: text("error_message")?,
            result_revision_id: text("result_revision_id")?,
            attempts: to_u32(row.try_get("attempts")?),
            created_at: rfc3339(row.try_get("created_at")?),
            updated_at: rfc3339(row.try_get("updated_at")?),
        },
        created_by: row.try_get("created_by")?,
        request: serde_json::from_str(&request).unwrap_or_default(),
    })
}

fn nothing_to_build() -> ApiError {
    ApiError::new(
        axum::http::StatusCode::CONFLICT,
        "nothing_to_build",
        format!("give code (the Luau of {ENTRY}) or prompt (a description of the spell)"),
    )
}
