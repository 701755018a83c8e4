//! Group commit: batches of many worlds that wait at the same time are stored
//! in one transaction, because a disk takes milliseconds for a commit, whatever
//! is in it. One batch that is refused does not take the others along.

use frolic_protocol::keep::KeepBatch;
use sqlx::{AnyConnection, AnyPool, Connection};
use tokio::sync::{mpsc, oneshot};

use super::Log;
use crate::error::ApiError;

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
    answer: oneshot::Sender<Result<u64, ApiError>>,
}

impl Committer {
    /// Starts it; it ends when the last handle is gone.
    pub fn start(db: AnyPool) -> Self {
        let (jobs, waiting) = mpsc::channel(WAITING_MAX);
        tokio::spawn(commit_all(db, waiting));
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
    ) -> Result<u64, ApiError> {
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

async fn commit_all(db: AnyPool, mut waiting: mpsc::Receiver<Job>) {
    let mut jobs = Vec::new();
    while waiting.recv_many(&mut jobs, TOGETHER_MAX).await > 0 {
        // In the same order everywhere, so that no two wait for each other.
        jobs.sort_by(|a, b| a.world_id.cmp(&b.world_id));
        match commit(&db, &jobs).await {
            Ok(outcomes) => {
                for (job, outcome) in jobs.drain(..).zip(outcomes) {
                    // A caller that went away asks again.
                    let _ = job.answer.send(outcome);
                }
            }
            Err(error) => {
                tracing::error!(%error, batches = jobs.len(), "what lasts was not stored");
                for job in jobs.drain(..) {
                    let message = "the database refuses; try again";
                    let error = ApiError::unavailable("not_stored", message, 1);
                    let _ = job.answer.send(Err(error));
                }
            }
        }
    }
}

async fn commit(db: &AnyPool, jobs: &[Job]) -> Result<Vec<Result<u64, ApiError>>, sqlx::Error> {
    let mut transaction = db.begin().await?;
    let mut outcomes = Vec::with_capacity(jobs.len());
    for job in jobs {
        outcomes.push(one(&mut transaction, job).await?);
    }
    transaction.commit().await?;
    Ok(outcomes)
}

/// One batch, undone alone when it is refused.
async fn one(
    connection: &mut AnyConnection,
    job: &Job,
) -> Result<Result<u64, ApiError>, sqlx::Error> {
    let mut inner = connection.begin().await?;
    let mut log = Log {
        connection: &mut inner,
        world_id: &job.world_id,
        now_ms: job.now_ms,
    };
    let outcome = log.write(&job.batch).await;
    match &outcome {
        Ok(_) => inner.commit().await?,
        Err(_) => inner.rollback().await?,
    }
    Ok(outcome)
}
