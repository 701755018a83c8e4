//! Group commit: batches of many worlds that wait at the same time are stored
//! in one transaction, because a disk takes milliseconds for a commit, whatever
//! is in it. One batch that is refused does not take the others along. A batch is
//! acknowledged by what the commit returns, and by nothing else.

use std::sync::Arc;

use frolic_protocol::keep::KeepBatch;
use sqlx::{AnyConnection, AnyPool, Executor};
use tokio::sync::{mpsc, oneshot};

use super::Log;
use crate::db::{self, Committed};
use crate::error::ApiError;
use crate::health::WriteHealth;

/// Batches that may wait; each world has one on its way.
const WAITING_MAX: usize = 1024;
/// Batches in one transaction.
const TOGETHER_MAX: usize = 64;

/// The one who commits.
#[derive(Clone)]
pub struct Committer {
    jobs: mpsc::Sender<Job>,
}

struct Job {
    world_id: String,
    batch: KeepBatch,
    now_ms: i64,
    answer: oneshot::Sender<Result<Committed<u64>, ApiError>>,
}

impl Committer {
    /// Starts it; it ends when the last handle is gone.
    pub fn start(db: AnyPool, health: Arc<WriteHealth>) -> Self {
        let (jobs, waiting) = mpsc::channel(WAITING_MAX);
        tokio::spawn(commit_all(db, health, waiting));
        Self { jobs }
    }

    /// Stores a batch; returns the number of the world's newest operation.
    ///
    /// # Errors
    /// When it is refused, or the database does not take it.
    pub async fn keep(
        &self,
        world_id: &str,
        batch: KeepBatch,
        now_ms: i64,
    ) -> Result<Committed<u64>, ApiError> {
        let (answer, answered) = oneshot::channel();
        let job = Job {
            world_id: world_id.to_owned(),
            batch,
            now_ms,
            answer,
        };
        let gone = || ApiError::unavailable("shutting_down", "the platform is shutting down", 1);
        self.jobs.send(job).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

async fn commit_all(db: AnyPool, health: Arc<WriteHealth>, mut waiting: mpsc::Receiver<Job>) {
    let mut jobs = Vec::new();
    while waiting.recv_many(&mut jobs, TOGETHER_MAX).await > 0 {
        // Callers that gave up ask again: an outage must not leave a backlog of the
        // same batches.
        jobs.retain(|job| !job.answer.is_closed());
        if jobs.is_empty() {
            continue;
        }
        // In the same order everywhere, so that no two wait for each other.
        jobs.sort_by(|a, b| a.world_id.cmp(&b.world_id));
        match commit(&db, &jobs).await {
            Ok(outcomes) => {
                health.committed();
                for (job, outcome) in jobs.drain(..).zip(outcomes) {
                    // A caller that went away asks again.
                    let _ = job.answer.send(outcome);
                }
            }
            Err(error) => {
                tracing::error!(%error, batches = jobs.len(), "batches of worlds were not stored");
                health.failed(&error);
                for job in jobs.drain(..) {
                    let message = "the database does not store this now; try again";
                    let error = ApiError::unavailable("not_stored", message, 1);
                    let _ = job.answer.send(Err(error));
                }
            }
        }
    }
}

/// What became of each batch: stored up to an operation, or refused.
type Outcomes = Vec<Result<Committed<u64>, ApiError>>;

async fn commit(db: &AnyPool, jobs: &[Job]) -> Result<Outcomes, sqlx::Error> {
    let mut transaction = db::begin(db).await?;
    let mut outcomes = Vec::with_capacity(jobs.len());
    for job in jobs {
        outcomes.push(write(&mut transaction, job).await?);
    }
    let outcomes = transaction.commit_as(outcomes).await?;
    Ok(outcomes.transpose())
}

/// Writes one batch, and undoes it alone when it is refused.
async fn write(
    connection: &mut AnyConnection,
    job: &Job,
) -> Result<Result<u64, ApiError>, sqlx::Error> {
    connection.execute("SAVEPOINT batch").await?;
    let mut log = Log {
        connection: &mut *connection,
        world_id: &job.world_id,
        now_ms: job.now_ms,
    };
    let outcome = log.write(&job.batch).await;
    if outcome.is_err() {
        // Fails where the database has ended the whole transaction.
        connection.execute("ROLLBACK TO SAVEPOINT batch").await?;
    }
    connection.execute("RELEASE SAVEPOINT batch").await?;
    Ok(outcome)
}
