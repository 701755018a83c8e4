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
use crate::Platform;
use crate::api::{JoinProgress, JoinStage};
use crate::auth::Session;
use crate::error::ApiError;
use crate::fleet::Placement;
use crate::ids;

/// Joins that wait at once.
const WAITS_MAX: usize = 5000;
/// Those of one person: a few tabs.
const WAITS_PER_PERSON_MAX: usize = 4;
/// Whoever has not asked for so long has given up.
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// Longest wait of all, however often somebody asks.
const WAIT_MAX: Duration = Duration::from_secs(30 * 60);
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// All joins that wait.
#[derive(Default)]
pub struct PendingJoins {
    all: Mutex<HashMap<String, Arc<Wait>>>,
}

/// One join that waits.
pub struct Wait {
    join_id: String,
    user_id: String,
    begun: Instant,
    state: watch::Sender<State>,
    given_up: watch::Sender<bool>,
    asked_at: Mutex<Instant>,
    outcome: Mutex<Option<Result<Placement, ApiError>>>,
}

#[derive(Clone, Debug, Default)]
struct State {
    /// Counts what was said.
    step: u32,
    standing: Option<JoinStatus>,
    /// There is an outcome.
    done: bool,
}

/// What there is to say of a join.
pub enum News {
    /// It still waits.
    Waiting(JoinProgress),
    /// It has a place.
    Placed(Box<Placement>),
    /// There is none for it.
    Failed(ApiError),
}

impl PendingJoins {
    /// Begins to wait for `target`.
    ///
    /// # Errors
    /// 429 for a person with too many such joins, 503 when there are too many
    /// of them altogether.
    pub fn begin(
        &self,
        platform: &Platform,
        session: &Session,
        target: Target,
    ) -> Result<Arc<Wait>, ApiError> {
        let wait = Arc::new(Wait::new(&session.user_id));
        let mut all = self.all();
        if all.len() >= WAITS_MAX {
            let message = "very many people wait already; try again in a moment";
            return Err(ApiError::unavailable("too_many_joins", message, 5));
        }
        let same = all.values().filter(|known| known.user_id == wait.user_id);
        if same.count() >= WAITS_PER_PERSON_MAX {
            return Err(ApiError::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_joins",
                "you wait for several worlds already; give one up first (DELETE /join/{id})",
            ));
        }
        all.insert(wait.join_id.clone(), wait.clone());
        drop(all);
        tokio::spawn(run(platform.clone(), session.clone(), target, wait.clone()));
        Ok(wait)
    }

    /// A join of this person's.
    ///
    /// # Errors
    /// 404; the same for those of others.
    pub fn find(&self, join_id: &str, user_id: &str) -> Result<Arc<Wait>, ApiError> {
        let found = self.all().get(join_id).cloned();
        found
            .filter(|wait| wait.user_id == user_id)
            .ok_or_else(unknown)
    }

    fn remove(&self, join_id: &str) {
        self.all().remove(join_id);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<Wait>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wait {
    fn new(user_id: &str) -> Self {
        let now = Instant::now();
        Self {
            join_id: ids::new_id("join"),
            user_id: user_id.to_owned(),
            begun: now,
            state: watch::Sender::default(),
            given_up: watch::Sender::new(false),
            asked_at: Mutex::new(now),
            outcome: Mutex::new(None),
        }
    }

    /// What there is to say after step `seen`; at the latest when `patience`
    /// is over, and not before the first thing is known.
    pub async fn news(&self, patience: Duration, seen: u32) -> News {
        self.asked();
        let mut state = self.state.subscribe();
        let first = state.wait_for(|state| state.done || state.step > 0);
        // The task says something at once; without it there is nothing to say.
        let _ = timeout(SILENCE_MAX, first).await;
        let fresh = state.wait_for(|state| state.done || state.step > seen);
        let _ = timeout(patience, fresh).await;
        // Who prefers to wait does so also after a first word.
        if seen == 0 && !patience.is_zero() {
            let left = patience.saturating_sub(self.begun.elapsed());
            let _ = timeout(left, state.wait_for(|state| state.done)).await;
        }
        self.asked();
        let state = self.state.borrow().clone();
        if !state.done {
            return News::Waiting(self.progress(&state));
        }
        match self.outcome().take() {
            Some(Ok(placement)) => News::Placed(Box::new(placement)),
            Some(Err(error)) => News::Failed(error),
            // Somebody was told already.
            None => News::Failed(unknown()),
        }
    }

    /// Nobody asks any more.
    pub fn give_up(&self) {
        self.given_up.send_replace(true);
    }

    fn progress(&self, state: &State) -> JoinProgress {
        let looking = || JoinStatus {
            stage: JoinStage::Looking,
            message: "Looking for a world".to_owned(),
            queue: None,
            expected: None,
        };
        let standing = state.standing.clone().unwrap_or_else(looking);
        JoinProgress {
            join_id: self.join_id.clone(),
            stage: standing.stage,
            message: standing.message,
            position: standing.queue.map(|(position, _)| position),
            waiting: standing.queue.map(|(_, waiting)| waiting),
            expected_s: standing.expected.map(|expected| expected.as_secs_f32()),
            waited_s: self.begun.elapsed().as_secs_f32(),
            step: state.step,
        }
    }

    fn tell(&self, standing: JoinStatus) {
        self.state.send_if_modified(|state| {
            let known = state.standing.as_ref();
            // What is expected changes every second; that alone is no news.
            let news = known.is_none_or(|known| {
                (known.stage, known.queue, &known.message)
                    != (standing.stage, standing.queue, &standing.message)
            });
            state.standing = Some(standing);
            if news {
                state.step += 1;
            }
            news
        });
    }

    fn finish(&self, outcome: Result<Placement, ApiError>) {
        *self.outcome() = Some(outcome);
        self.state.send_modify(|state| {
            state.step += 1;
            state.done = true;
        });
    }

    /// Completes when nobody asks after it any more.
    async fn abandoned(&self) {
        let mut given_up = self.given_up.subscribe();
        loop {
            let said = given_up.wait_for(|given_up| *given_up);
            if timeout(LOOK_EVERY, said).await.is_ok() {
                return;
            }
            // A request that waits asks all the time.
            let listening = self.state.receiver_count() > 0;
            if !listening && self.asked_at().elapsed() > SILENCE_MAX {
                return;
            }
            if self.begun.elapsed() > WAIT_MAX {
                return;
            }
        }
    }

    fn asked(&self) {
        *self.asked_at() = Instant::now();
    }

    fn asked_at(&self) -> MutexGuard<'_, Instant> {
        self.asked_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outcome(&self) -> MutexGuard<'_, Option<Result<Placement, ApiError>>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The life of a join that waits.
async fn run(platform: Platform, session: Session, target: Target, wait: Arc<Wait>) {
    let seeker = Matchmaker::new(&platform, &session, target, WaitPolicy::AsLongAsAsked);
    let outcome = tokio::select! {
        outcome = seeker.enter(|standing| wait.tell(standing)) => Some(outcome),
        () = wait.abandoned() => None,
    };
    if let Some(outcome) = outcome {
        let took = wait.begun.elapsed();
        platform.metrics().join_finished(took, outcome.is_ok());
        wait.finish(outcome);
        collected(&wait).await;
        // A place that nobody fetched is free again.
        if let Some(Ok(placement)) = wait.outcome().take()
            && let Some(server) = platform.fleet().server(&placement.spec.world_id)
        {
            server.release(&session.user_id);
        }
    } else {
        let gone = ApiError::not_found("join_not_found", "this join was given up; join again");
        wait.finish(Err(gone));
    }
    platform.waits().remove(&wait.join_id);
}

/// PendingJoins until the outcome was fetched, or nobody comes for it.
async fn collected(wait: &Wait) {
    let fetched = async {
        while wait.outcome().is_some() {
            sleep(LOOK_EVERY).await;
        }
    };
    tokio::select! {
        () = fetched => {}
        () = wait.abandoned() => {}
    }
}

fn unknown() -> ApiError {
    ApiError::not_found(
        "join_not_found",
        "this join is over (nobody asked after it for a while); join again",
    )
}
