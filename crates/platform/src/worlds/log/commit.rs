//! Group commit: waiting batches of many worlds are stored in one transaction, because a disk needs
//! milliseconds per commit regardless of its size. A batch that is refused does not affect the
//! others. A batch is acknowledged only with the value that the commit returns.

use std::sync::Arc;

use frolic_fleet_api::persist::PersistBatch;
use sqlx::{AnyConnection, AnyPool, Executor};
use tokio::sync::{mpsc, oneshot};

use super::Log;
use crate::core::db::{self, Committed};
use crate::core::error::ApiError;
use crate::core::write_health::WriteHealth;

/// Batches that may wait; each world has at most one in flight.
const WAITING_MAX: usize = 1024;
/// Batches per transaction.
const BATCHES_PER_COMMIT_MAX: usize = 64;

/// Handle to the task that commits batches.
#[derive(Clone)]
pub struct Committer {
    jobs: mpsc::Sender<Job>,
}

struct Job {
    world_id: String,
    batch: PersistBatch,
    now_ms: i64,
    reply: oneshot::Sender<Result<Committed<u64>, ApiError>>,
}

impl Committer {
    /// Starts the task. It ends when the last handle is dropped.
    pub fn start(db: AnyPool, health: Arc<WriteHealth>) -> Self {
        let (jobs, waiting) = mpsc::channel(WAITING_MAX);
        tokio::spawn(commit_all(db, health, waiting));
        Self { jobs }
    }

    /// Stores a batch and returns the number of the world's newest operation.
    ///
    /// # Errors
    /// When the batch is refused or the database fails.
    pub async fn store(
        &self,
        world_id: &str,
        batch: PersistBatch,
        now_ms: i64,
    ) -> Result<Committed<u64>, ApiError> {
        let (reply, response) = oneshot::channel();
        let job = Job {
            world_id: world_id.to_owned(),
            batch,
            now_ms,
            reply,
        };
        let gone = || ApiError::unavailable("shutting_down", "the platform is shutting down", 1);
        self.jobs.send(job).await.map_err(|_| gone())?;
        response.await.map_err(|_| gone())?
    }
}

async fn commit_all(db: AnyPool, health: Arc<WriteHealth>, mut waiting: mpsc::Receiver<Job>) {
    let mut jobs = Vec::new();
    while waiting.recv_many(&mut jobs, BATCHES_PER_COMMIT_MAX).await > 0 {
        // Callers that timed out send their batch again, so their old batch is dropped; otherwise
        // an outage would leave a backlog of duplicates.
        jobs.retain(|job| !job.reply.is_closed());
        if jobs.is_empty() {
            continue;
        }
        // Sorted, so that concurrent transactions lock worlds in the same order and cannot
        // deadlock.
        jobs.sort_by(|a, b| a.world_id.cmp(&b.world_id));
        match commit(&db, &jobs).await {
            Ok(outcomes) => {
                health.committed();
                for (job, outcome) in jobs.drain(..).zip(outcomes) {
                    // A caller that has gone sends its batch again.
                    let _ = job.reply.send(outcome);
                }
            }
            Err(error) => {
                tracing::error!(%error, batches = jobs.len(), "could not store batches of worlds");
                health.failed(&error);
                for job in jobs.drain(..) {
                    let message = "the database cannot store data at the moment; try again";
                    let error = ApiError::unavailable("not_stored", message, 1);
                    let _ = job.reply.send(Err(error));
                }
            }
        }
    }
}

/// Result of each batch: the number of the newest stored operation, or an error.
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

/// Writes one batch, and rolls back only this batch if it is refused.
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
        // Fails if the database has ended the whole transaction.
        connection.execute("ROLLBACK TO SAVEPOINT batch").await?;
    }
    connection.execute("RELEASE SAVEPOINT batch").await?;
    Ok(outcome)
}
