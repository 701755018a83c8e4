//! Build workers: claim jobs from the queue, run their stages, and notify the user
//! who requested them. Every step is stored in the database, so a worker may die at
//! any time.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::{interval, sleep};

use super::build::{self, BuildError};
use super::jobs::{self, ATTEMPTS_MAX, AttemptResult, Job, LEASE_MS, ProgressReport};
use crate::api::{RevisionInfo, SpellManifest};
use crate::core::ids;
use crate::spells::Spells;

/// Number of concurrent builds.
const WORKERS: usize = 2;
/// Polling interval of the queue, for retries and expired leases; new jobs wake a
/// worker at once.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Pause after a database error.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// Polls between two deletions of old jobs.
const CLEANUP_EVERY_POLLS: u32 = 3600;
/// Limits of a log, in lines and in characters per line.
const LINES_MAX: usize = 200;
const LINE_CHARS_MAX: usize = 400;

/// `job.progress`.
#[derive(Debug, Serialize)]
struct Progress<'a> {
    job_id: &'a str,
    spell_id: &'a str,
    stage: &'a str,
    pct: u32,
    message: &'a str,
    extras: serde_json::Value,
}

/// `spell.revision_ready`.
#[derive(Debug, Serialize)]
struct RevisionReady<'a> {
    spell_id: &'a str,
    revision_id: &'a str,
    job_id: &'a str,
    version: u32,
    channel: &'static str,
    manifest: &'a SpellManifest,
}

/// Runs the workers until dropped.
pub async fn run(spells: Arc<Spells>) {
    let workers = (0..WORKERS).map(|_| work(spells.clone(), ids::new_id("worker")));
    futures_util::future::join_all(workers).await;
}

async fn work(spells: Arc<Spells>, owner: String) {
    let _release = ReleaseOnDrop {
        spells: spells.clone(),
        owner: owner.clone(),
    };
    let mut polls = 0_u32;
    loop {
        let (db, now) = (&spells.core.db, spells.core.clock.now_ms());
        if polls.is_multiple_of(CLEANUP_EVERY_POLLS)
            && let Err(error) = jobs::delete_old(db, now).await
        {
            tracing::warn!(%error, "could not delete old builds");
        }
        polls = polls.wrapping_add(1);
        match jobs::claim(db, &owner, now).await {
            Ok(Some(job)) => BuildRun::new(&spells, &owner, job).run().await,
            Ok(None) => {
                let notified = spells.jobs.notified();
                let _ = tokio::time::timeout(POLL_INTERVAL, notified).await;
            }
            Err(error) => {
                tracing::warn!(%error, "could not read the build queue");
                sleep(RETRY_DELAY).await;
            }
        }
    }
}

/// Releases a worker's job when the worker is dropped in the middle of it, so that
/// the next worker need not wait for the lease to expire.
struct ReleaseOnDrop {
    spells: Arc<Spells>,
    owner: String,
}

impl Drop for ReleaseOnDrop {
    fn drop(&mut self) {
        let (spells, owner) = (self.spells.clone(), self.owner.clone());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            // The database may be closed already; then the lease expires.
            let _ = jobs::release(&spells.core.db, &owner).await;
        });
    }
}

struct BuildRun<'a> {
    spells: &'a Spells,
    owner: &'a str,
    job: Job,
    logs: Vec<String>,
}

impl<'a> BuildRun<'a> {
    fn new(spells: &'a Spells, owner: &'a str, job: Job) -> Self {
        let logs = job.info.logs.clone();
        Self {
            spells,
            owner,
            job,
            logs,
        }
    }

    async fn run(mut self) {
        let outcome = self.stages().await;
        let attempts = self.job.info.attempts;
        let now = self.spells.core.clock.now_ms();
        let (result, message) = match outcome {
            Ok(revision) => return self.notify_ready(&revision),
            Err(BuildError::Cancelled) => (
                AttemptResult::Cancelled,
                "the build was cancelled".to_owned(),
            ),
            Err(BuildError::Retryable(why)) if attempts < ATTEMPTS_MAX => {
                let wait = 1000 << attempts.min(10);
                let message = format!("{why}; attempt {} follows", attempts + 1);
                self.log(message.clone());
                let result = AttemptResult::Retry(now + wait, "");
                self.finish(result, now).await;
                self.notify(
                    "prepare",
                    0,
                    &message,
                    serde_json::json!({ "status": "queued" }),
                );
                return;
            }
            Err(BuildError::Retryable(why) | BuildError::Rejected(why)) => {
                // It contains untrusted code: log it as one line without control
                // characters.
                let why = why.replace(char::is_control, " ");
                self.log(why.clone());
                (AttemptResult::Failed(""), why)
            }
        };
        let failed = matches!(result, AttemptResult::Failed(_));
        let result = if failed {
            AttemptResult::Failed(&message)
        } else {
            AttemptResult::Cancelled
        };
        self.finish(result, now).await;
        let status = if failed { "failed" } else { "cancelled" };
        let extras = serde_json::json!({ "status": status, "error": message });
        self.notify(status, 100, &message, extras);
    }

    async fn stages(&mut self) -> Result<RevisionInfo, BuildError> {
        let compiler = self.spells.compiler.clone();
        let spell_id = self.job.info.spell_id.clone();
        if self.job.info.attempts > ATTEMPTS_MAX {
            let why = "the worker died in every attempt";
            return Err(BuildError::Rejected(why.to_owned()));
        }
        self.enter_stage("prepare", 5).await?;
        let prepared = self.prepare(&compiler).await?;
        self.enter_stage("assemble_package", 40).await?;
        let assembled = build::assemble(prepared);
        self.enter_stage("validate", 65).await?;
        build::validate(&compiler, &spell_id, &assembled).await?;
        self.log("the code compiles".to_owned());
        self.enter_stage("finalize", 85).await?;
        self.log("done".to_owned());
        build::finalize(self.spells, self.owner, &self.job, assembled, &self.logs).await
    }

    /// Runs the only stage that may take long: extends the lease, and stops when the
    /// job is cancelled.
    async fn prepare(
        &mut self,
        compiler: &Arc<dyn super::SpellCompiler>,
    ) -> Result<build::Prepared, BuildError> {
        let mut lines = Vec::new();
        let prepared = {
            let mut say = |line| lines.push(line);
            let (spells, job, owner) = (self.spells, &self.job, self.owner);
            let preparing = build::prepare(spells, compiler, job, &mut say);
            let mut preparing = std::pin::pin!(preparing);
            let third = Duration::from_millis(LEASE_MS.unsigned_abs() / 3);
            let mut renew = interval(third.min(Duration::from_secs(2)));
            loop {
                tokio::select! {
                    prepared = preparing.as_mut() => break prepared,
                    _ = renew.tick() => {
                        let report = ProgressReport { stage: "prepare", progress_pct: 5, logs: &self.logs };
                        let now = spells.core.clock.now_ms();
                        if !jobs::report_progress(&spells.core.db, owner, &job.info.job_id, &report, now).await? {
                            return Err(BuildError::Cancelled);
                        }
                    }
                }
            }
        };
        lines.into_iter().for_each(|line| self.log(line));
        prepared
    }

    async fn enter_stage(&mut self, stage: &'static str, pct: u32) -> Result<(), BuildError> {
        let report = ProgressReport {
            stage,
            progress_pct: pct,
            logs: &self.logs,
        };
        let now = self.spells.core.clock.now_ms();
        let job_id = &self.job.info.job_id;
        if !jobs::report_progress(&self.spells.core.db, self.owner, job_id, &report, now).await? {
            return Err(BuildError::Cancelled);
        }
        let message = match stage {
            "prepare" => "preparing the code",
            "assemble_package" => "assembling the files",
            "validate" => "compiling",
            _ => "storing the revision",
        };
        self.notify(
            stage,
            pct,
            message,
            serde_json::json!({ "status": "running" }),
        );
        Ok(())
    }

    async fn finish(&self, result: AttemptResult<'_>, now: i64) {
        let (db, job_id) = (&self.spells.core.db, &self.job.info.job_id);
        let finished = jobs::finish_attempt(db, self.owner, job_id, &self.logs, result, now).await;
        if let Err(error) = finished {
            // The lease will expire, and another worker restarts the job.
            tracing::warn!(%error, job_id, "could not release a build job");
        }
    }

    fn log(&mut self, line: String) {
        if self.logs.len() < LINES_MAX {
            let one_line = line.replace(char::is_control, " ");
            self.logs
                .push(one_line.chars().take(LINE_CHARS_MAX).collect());
        }
    }

    fn notify(&self, stage: &str, pct: u32, message: &str, extras: serde_json::Value) {
        let info = &self.job.info;
        let progress = Progress {
            job_id: &info.job_id,
            spell_id: &info.spell_id,
            stage,
            pct,
            message,
            extras,
        };
        let sockets = &self.spells.worlds.notifier;
        sockets.send_to_user(&self.job.created_by, "job.progress", &progress);
    }

    fn notify_ready(&self, revision: &RevisionInfo) {
        let extras = serde_json::json!({
            "status": "done",
            "result_revision_id": revision.revision_id,
            "version": revision.version,
        });
        self.notify("done", 100, "the revision is ready", extras);
        let ready = RevisionReady {
            spell_id: &revision.spell_id,
            revision_id: &revision.revision_id,
            job_id: &self.job.info.job_id,
            version: revision.version,
            channel: "draft",
            manifest: &revision.manifest,
        };
        self.spells
            .worlds
            .notifier
            .broadcast("spell.revision_ready", &ready);
    }
}
