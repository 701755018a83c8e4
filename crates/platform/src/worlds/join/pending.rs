//! Joins that are waiting, one task each, polled by their client. A join whose
//! client stops polling is cancelled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::matchmaker::{JoinStatus, Matchmaker, WaitPolicy};
use super::place::Target;
use crate::api::{JoinProgress, JoinStage};
use crate::community::auth::Session;
use crate::core::error::ApiError;
use crate::core::ids;
use crate::fleet::Placement;
use crate::worlds::Worlds;

/// Pending joins at the same time.
const PENDING_MAX: usize = 5000;
/// Pending joins of one user; enough for a few browser tabs.
const PENDING_PER_USER_MAX: usize = 4;
/// A join that is not polled for this long is cancelled.
const POLL_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum duration of a pending join.
const PENDING_TIME_MAX: Duration = Duration::from_secs(30 * 60);
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// All pending joins.
#[derive(Default)]
pub struct PendingJoins {
    all: Mutex<HashMap<String, Arc<PendingJoin>>>,
}

/// One pending join.
pub struct PendingJoin {
    join_id: String,
    user_id: String,
    begun: Instant,
    state: watch::Sender<State>,
    cancelled: watch::Sender<bool>,
    polled_at: Mutex<Instant>,
    outcome: Mutex<Option<Result<Placement, ApiError>>>,
}

#[derive(Clone, Debug, Default)]
struct State {
    /// Number of status changes.
    step: u32,
    status: Option<JoinStatus>,
    /// Whether there is an outcome.
    done: bool,
}

/// Response to a poll.
pub enum JoinUpdate {
    /// The join is still waiting.
    Waiting(JoinProgress),
    /// A slot is reserved in a world that is ready.
    Placed(Box<Placement>),
    /// The join failed.
    Failed(ApiError),
}

impl PendingJoins {
    /// Starts a pending join for `target`.
    ///
    /// # Errors
    /// 429 for a user with too many pending joins, 503 when there are too many in total.
    pub fn begin(
        &self,
        worlds: &Arc<Worlds>,
        session: &Session,
        target: Target,
    ) -> Result<Arc<PendingJoin>, ApiError> {
        let pending = Arc::new(PendingJoin::new(&session.user_id));
        let mut all = self.all();
        if all.len() >= PENDING_MAX {
            let message = "too many players are joining at the moment; try again in a few seconds";
            return Err(ApiError::unavailable("too_many_joins", message, 5));
        }
        let same = all
            .values()
            .filter(|known| known.user_id == pending.user_id);
        if same.count() >= PENDING_PER_USER_MAX {
            return Err(ApiError::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_joins",
                "you already have several pending joins; cancel one first (DELETE /join/{id})",
            ));
        }
        all.insert(pending.join_id.clone(), pending.clone());
        drop(all);
        tokio::spawn(run(
            worlds.clone(),
            session.clone(),
            target,
            pending.clone(),
        ));
        Ok(pending)
    }

    /// Finds a pending join of a user.
    ///
    /// # Errors
    /// 404 when there is none, or it belongs to another user.
    pub fn find(&self, join_id: &str, user_id: &str) -> Result<Arc<PendingJoin>, ApiError> {
        let found = self.all().get(join_id).cloned();
        found
            .filter(|pending| pending.user_id == user_id)
            .ok_or_else(unknown)
    }

    fn remove(&self, join_id: &str) {
        self.all().remove(join_id);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<PendingJoin>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingJoin {
    fn new(user_id: &str) -> Self {
        let now = Instant::now();
        Self {
            join_id: ids::new_id("join"),
            user_id: user_id.to_owned(),
            begun: now,
            state: watch::Sender::default(),
            cancelled: watch::Sender::new(false),
            polled_at: Mutex::new(now),
            outcome: Mutex::new(None),
        }
    }

    /// Waits for a status after step `seen` or until `wait` has passed, but always for the
    /// first status.
    pub async fn poll(&self, wait: Duration, seen: u32) -> JoinUpdate {
        self.note_poll();
        let mut state = self.state.subscribe();
        let first = state.wait_for(|state| state.done || state.step > 0);
        // The task reports a first status at once; without it there is nothing to return.
        let _ = timeout(POLL_TIMEOUT, first).await;
        let fresh = state.wait_for(|state| state.done || state.step > seen);
        let _ = timeout(wait, fresh).await;
        // The first poll also waits for the outcome, as the client prefers.
        if seen == 0 && !wait.is_zero() {
            let left = wait.saturating_sub(self.begun.elapsed());
            let _ = timeout(left, state.wait_for(|state| state.done)).await;
        }
        self.note_poll();
        let state = self.state.borrow().clone();
        if !state.done {
            return JoinUpdate::Waiting(self.progress(&state));
        }
        match self.outcome().take() {
            Some(Ok(placement)) => JoinUpdate::Placed(Box::new(placement)),
            Some(Err(error)) => JoinUpdate::Failed(error),
            // Another poll received the outcome.
            None => JoinUpdate::Failed(unknown()),
        }
    }

    /// Cancels the join.
    pub fn cancel(&self) {
        self.cancelled.send_replace(true);
    }

    fn progress(&self, state: &State) -> JoinProgress {
        let looking = || JoinStatus {
            stage: JoinStage::Looking,
            message: "Looking for a world".to_owned(),
            queue: None,
            expected: None,
        };
        let status = state.status.clone().unwrap_or_else(looking);
        JoinProgress {
            join_id: self.join_id.clone(),
            stage: status.stage,
            message: status.message,
            position: status.queue.map(|(position, _)| position),
            waiting: status.queue.map(|(_, waiting)| waiting),
            expected_s: status.expected.map(|expected| expected.as_secs_f32()),
            waited_s: self.begun.elapsed().as_secs_f32(),
            step: state.step,
        }
    }

    fn report(&self, status: JoinStatus) {
        self.state.send_if_modified(|state| {
            let known = state.status.as_ref();
            // The expected time changes every second; that alone is not a new status.
            let changed = known.is_none_or(|known| {
                (known.stage, known.queue, &known.message)
                    != (status.stage, status.queue, &status.message)
            });
            state.status = Some(status);
            if changed {
                state.step += 1;
            }
            changed
        });
    }

    fn finish(&self, outcome: Result<Placement, ApiError>) {
        *self.outcome() = Some(outcome);
        self.state.send_modify(|state| {
            state.step += 1;
            state.done = true;
        });
    }

    /// Completes when the client has cancelled the join or stopped polling.
    async fn abandoned(&self) {
        let mut cancelled = self.cancelled.subscribe();
        loop {
            let cancel = cancelled.wait_for(|cancelled| *cancelled);
            if timeout(CHECK_INTERVAL, cancel).await.is_ok() {
                return;
            }
            // A waiting request counts as polling.
            let polling = self.state.receiver_count() > 0;
            if !polling && self.polled_at().elapsed() > POLL_TIMEOUT {
                return;
            }
            if self.begun.elapsed() > PENDING_TIME_MAX {
                return;
            }
        }
    }

    fn note_poll(&self) {
        *self.polled_at() = Instant::now();
    }

    fn polled_at(&self) -> MutexGuard<'_, Instant> {
        self.polled_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn outcome(&self) -> MutexGuard<'_, Option<Result<Placement, ApiError>>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Task of one pending join.
async fn run(worlds: Arc<Worlds>, session: Session, target: Target, pending: Arc<PendingJoin>) {
    let matchmaker = Matchmaker::new(&worlds, &session, target, WaitPolicy::WhilePolled);
    let outcome = tokio::select! {
        outcome = matchmaker.enter(|status| pending.report(status)) => Some(outcome),
        () = pending.abandoned() => None,
    };
    if let Some(outcome) = outcome {
        let took = pending.begun.elapsed();
        worlds.core.metrics.join_finished(took, outcome.is_ok());
        pending.finish(outcome);
        collected(&pending).await;
        // Release a slot that the client did not fetch.
        if let Some(Ok(placement)) = pending.outcome().take()
            && let Some(server) = worlds.fleet.server(&placement.spec.world_id)
        {
            server.release(&session.user_id);
        }
    } else {
        let gone = ApiError::not_found("join_not_found", "this join was cancelled; join again");
        pending.finish(Err(gone));
    }
    worlds.pending_joins.remove(&pending.join_id);
}

/// Waits until the client has fetched the outcome or stopped polling.
async fn collected(pending: &PendingJoin) {
    let fetched = async {
        while pending.outcome().is_some() {
            sleep(CHECK_INTERVAL).await;
        }
    };
    tokio::select! {
        () = fetched => {}
        () = pending.abandoned() => {}
    }
}

fn unknown() -> ApiError {
    ApiError::not_found("join_not_found", "unknown or expired join; join again")
}
