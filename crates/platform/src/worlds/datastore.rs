//! `POST /internal/worlds/{id}/store`: data that scripts persist. A world can access only the data
//! of its own game.
//!
//! A batch with writes is one transaction, which begins by locking the game's row of `store_usage`
//! with a write. On SQLite that takes the only write lock; on Postgres it serializes the writers of
//! this game. Therefore a read followed by a write is atomic with respect to other servers.

mod entries;
mod forget;
mod rankings;
pub mod reservations;

pub use forget::forget_player;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::State;
use frolic_fleet_api::store::{
    BATCH_REQUESTS_MAX, KEY_BYTES_MAX, StoreAction, StoreAnswer, StoreAnswers, StoreBatch,
    StoreRefusal, StoreRequest,
};
use frolic_protocol::{Args, Value};
use serde::{Deserialize, Serialize};
use sqlx::{AnyConnection, Row};

use crate::core::db::from_row;
use crate::core::error::ApiError;
use crate::core::extract::ApiJson;
use crate::core::settings::DatastoreSettings;
use crate::worlds::Worlds;
use crate::worlds::events::Audience;
use crate::worlds::internal::Caller;
use crate::worlds::log;

/// Reason why a request failed.
#[derive(Debug, thiserror::Error)]
enum StoreError {
    /// The request is invalid or exceeds a limit; the message is shown to the creator.
    #[error("{0}")]
    Refused(String),
    /// The whole batch failed.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

impl From<StoreRefusal> for StoreError {
    fn from(refusal: StoreRefusal) -> Self {
        StoreError::Refused(refusal.to_string())
    }
}

/// Result of a write, stored in case the batch is sent again.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Outcome {
    Done,
    Number(f64),
    Was(bool),
    /// The version did not match; the current value is read when the response is built.
    Conflict,
    Refused(String),
}

/// The data of one game, inside a transaction.
struct Game<'a> {
    connection: &'a mut AnyConnection,
    game_id: &'a str,
    limits: &'a DatastoreSettings,
    usage: Usage,
    now_ms: i64,
}

/// Storage that a game uses.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    entries: i64,
    size_bytes: i64,
    changes: i64,
}

/// `POST /internal/worlds/{id}/store`.
///
/// # Errors
/// 400 for a malformed batch, 409 for writes of a process that was replaced, 500 when the database
/// fails. Nothing of the batch is applied in case of an error.
pub async fn handle(
    State(worlds): State<Arc<Worlds>>,
    Caller(server): Caller,
    ApiJson(batch): ApiJson<StoreBatch>,
) -> Result<Json<StoreAnswers>, ApiError> {
    let named = (1..=KEY_BYTES_MAX).contains(&batch.batch.len());
    if !named || batch.requests.is_empty() || batch.requests.len() > BATCH_REQUESTS_MAX {
        let message = format!("a batch needs a name and 1 to {BATCH_REQUESTS_MAX} requests");
        return Err(ApiError::bad_request("invalid_batch", message));
    }
    let (began, spec) = (Instant::now(), &server.spec);
    log::check_store_batch(&batch, spec.persistent)?;
    let allowed = server.take_store_requests(batch.requests.len());
    worlds
        .core
        .metrics
        .store_requests
        .add(batch.requests.len() as u64);
    if !allowed {
        let text =
            "this world sends too many store requests for its number of players; save less often";
        let refuse = |request: &StoreRequest| StoreAnswer {
            id: request.id,
            result: Err(text.to_owned()),
        };
        let answers = batch.requests.iter().map(refuse).collect();
        let kept = None;
        return Ok(Json(StoreAnswers { answers, kept }));
    }
    let writes = batch.requests.iter().any(|request| request.action.writes());
    let (answers, kept) = if writes {
        let reservations = &worlds.reservations;
        let actions: Vec<&StoreAction> = batch.requests.iter().map(|r| &r.action).collect();
        reservations
            .wait(&spec.game_id, &spec.world_id, &actions)
            .await;
        let mut transaction = crate::core::db::begin(&worlds.core.db).await?;
        let usage = lock(&mut transaction, &spec.game_id).await?;
        let now_ms = worlds.core.clock.now_ms();
        let mut game = Game {
            connection: &mut transaction,
            game_id: &spec.game_id,
            limits: &worlds.core.settings.datastore,
            usage,
            now_ms,
        };
        let answers = game.write(&spec.world_id, &batch).await?;
        let kept =
            log::record_store_batch(&mut transaction, &spec.world_id, &batch, now_ms).await?;
        let stored = transaction.commit_as((answers, kept)).await?;
        worlds.core.write_health.committed();
        let (answers, kept) = stored.into_inner();
        publish_ops(&worlds, &spec.world_id, &batch, began);
        for (request, answer) in batch.requests.iter().zip(&answers) {
            if let StoreAction::Swap { at, .. } = &request.action {
                let first = answer.result.as_ref().ok().and_then(|args| args.0.first());
                let done = first != Some(&Value::Bool(false));
                reservations.note_swap(&spec.game_id, &spec.world_id, at, done);
            }
        }
        (answers, Some(kept))
    } else {
        let mut connection = worlds.core.db.acquire().await?;
        let mut game = Game {
            connection: &mut connection,
            game_id: &spec.game_id,
            limits: &worlds.core.settings.datastore,
            usage: Usage::default(),
            now_ms: worlds.core.clock.now_ms(),
        };
        let mut answers = Vec::new();
        for request in &batch.requests {
            let result = game.read(&request.action).await;
            answers.push(answer(request.id, result)?);
        }
        (answers, None)
    };
    Ok(Json(StoreAnswers { answers, kept }))
}

/// Sends the operations that were committed with the writes to remote followers of the world.
fn publish_ops(worlds: &Worlds, world_id: &str, batch: &StoreBatch, began: Instant) {
    if !batch.ops.is_empty() {
        let followers = Audience::of(world_id, batch.near_only);
        worlds.notifier.send_ops(&followers, &batch.ops);
        worlds
            .core
            .metrics
            .world_persisted(began.elapsed(), batch.ops.len(), 0);
    }
}

from_row!(Usage {
    entries,
    size_bytes,
    changes
});

/// Begins the transaction with a write and returns the storage that the game uses.
async fn lock(connection: &mut AnyConnection, game_id: &str) -> Result<Usage, sqlx::Error> {
    sqlx::query(
        "INSERT INTO store_usage (game_id, entries, size_bytes, changes) VALUES ($1, 0, 0, 0)
         ON CONFLICT (game_id) DO UPDATE SET entries = store_usage.entries",
    )
    .bind(game_id)
    .execute(&mut *connection)
    .await?;
    sqlx::query_as("SELECT entries, size_bytes, changes FROM store_usage WHERE game_id = $1")
        .bind(game_id)
        .fetch_one(connection)
        .await
}

fn answer(id: u32, result: Result<Vec<Value>, StoreError>) -> Result<StoreAnswer, sqlx::Error> {
    let result = match result {
        Ok(values) => Ok(Args(values)),
        Err(StoreError::Refused(text)) => Err(text),
        Err(StoreError::Database(error)) => return Err(error),
    };
    Ok(StoreAnswer { id, result })
}

impl Game<'_> {
    /// Applies a batch with writes. If the batch was applied before, returns the stored outcomes.
    async fn write(
        &mut self,
        world_id: &str,
        batch: &StoreBatch,
    ) -> Result<Vec<StoreAnswer>, sqlx::Error> {
        let done = self.stored_outcomes(world_id, &batch.batch).await?;
        let mut outcomes = HashMap::new();
        let mut answers = Vec::new();
        for request in &batch.requests {
            let (id, action) = (request.id, &request.action);
            if !action.writes() {
                let result = self.read(action).await;
                answers.push(answer(id, result)?);
                continue;
            }
            let outcome = match done.as_ref().and_then(|done| done.get(&id)) {
                Some(outcome) => outcome.clone(),
                None => match self.apply(action).await {
                    Ok(outcome) => outcome,
                    Err(StoreError::Refused(text)) => Outcome::Refused(text),
                    Err(StoreError::Database(error)) => return Err(error),
                },
            };
            let result = self.values_of(action, &outcome).await;
            answers.push(answer(id, result)?);
            outcomes.insert(id, outcome);
        }
        if done.is_none() {
            self.save_usage().await?;
            self.save_outcomes(world_id, &batch.batch, &outcomes)
                .await?;
        }
        Ok(answers)
    }

    async fn read(&mut self, action: &StoreAction) -> Result<Vec<Value>, StoreError> {
        action.check()?;
        match action {
            StoreAction::Get(at) => self.get(at).await,
            StoreAction::List { prefix, after } => self.list(prefix, after.as_deref()).await,
            StoreAction::RankTop {
                ranking,
                best,
                count,
            } => self.top(ranking, *best, *count).await,
            StoreAction::RankOf { at, best } => self.rank_of(at, *best).await,
            _ => Err(StoreError::Refused("this is not a read".to_owned())),
        }
    }

    async fn apply(&mut self, action: &StoreAction) -> Result<Outcome, StoreError> {
        action.check()?;
        match action {
            StoreAction::Set { at, value } => self.set(at, value, None).await,
            StoreAction::Swap { at, value, version } => self.set(at, value, Some(*version)).await,
            StoreAction::Increment { at, by } => self.increment(at, *by).await,
            StoreAction::Remove(at) => self.remove(at).await,
            StoreAction::RankSet { at, score } => self.rank_set(at, *score).await,
            StoreAction::RankIncrement { at, by } => self.rank_increment(at, *by).await,
            StoreAction::RankRemove(at) => self.rank_remove(at).await,
            _ => Err(StoreError::Refused("this is not a write".to_owned())),
        }
    }

    /// The values of the response for an outcome.
    async fn values_of(
        &mut self,
        action: &StoreAction,
        outcome: &Outcome,
    ) -> Result<Vec<Value>, StoreError> {
        Ok(match (outcome, action) {
            (Outcome::Done, StoreAction::Swap { .. }) => vec![Value::Bool(true)],
            (Outcome::Done, _) => vec![],
            (Outcome::Number(number), _) => vec![Value::Number(*number)],
            (Outcome::Was(was), _) => vec![Value::Bool(*was)],
            (Outcome::Conflict, StoreAction::Swap { at, .. }) => {
                let mut now = self.get(at).await?;
                now.insert(0, Value::Bool(false));
                now
            }
            (Outcome::Conflict, _) => vec![Value::Bool(false)],
            (Outcome::Refused(text), _) => return Err(StoreError::Refused(text.clone())),
        })
    }

    /// Adds `entries` and `bytes`, which may be negative, to the game's usage and checks its
    /// limits.
    fn charge(&mut self, entries: i64, bytes: i64) -> Result<(), StoreError> {
        let (entries, size_bytes) = (self.usage.entries + entries, self.usage.size_bytes + bytes);
        let grows = entries > self.usage.entries || size_bytes > self.usage.size_bytes;
        if grows && entries > self.limits.keys_per_game {
            let max = self.limits.keys_per_game;
            let text = format!("this game's store is full: {max} keys; remove some first");
            return Err(StoreError::Refused(text));
        }
        if grows && size_bytes > self.limits.bytes_per_game {
            let max = self.limits.bytes_per_game;
            let text = format!("this game's store is full: {max} bytes; remove some keys first");
            return Err(StoreError::Refused(text));
        }
        (self.usage.entries, self.usage.size_bytes) = (entries, size_bytes);
        self.usage.changes += 1;
        Ok(())
    }

    async fn save_usage(&mut self) -> Result<(), sqlx::Error> {
        sqlx::query(
            "UPDATE store_usage SET entries = $1, size_bytes = $2, changes = $3 WHERE game_id = $4",
        )
        .bind(self.usage.entries)
        .bind(self.usage.size_bytes)
        .bind(self.usage.changes)
        .bind(self.game_id)
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }

    async fn stored_outcomes(
        &mut self,
        world_id: &str,
        batch: &str,
    ) -> Result<Option<HashMap<u32, Outcome>>, sqlx::Error> {
        let row =
            sqlx::query("SELECT outcomes FROM store_batches WHERE world_id = $1 AND batch = $2")
                .bind(world_id)
                .bind(batch)
                .fetch_optional(&mut *self.connection)
                .await?;
        let Some(row) = row else {
            return Ok(None);
        };
        let text: String = row.try_get("outcomes")?;
        Ok(serde_json::from_str(&text).ok())
    }

    async fn save_outcomes(
        &mut self,
        world_id: &str,
        batch: &str,
        outcomes: &HashMap<u32, Outcome>,
    ) -> Result<(), sqlx::Error> {
        sqlx::query(
            "INSERT INTO store_batches (world_id, batch, outcomes) VALUES ($1, $2, $3)
             ON CONFLICT (world_id) DO UPDATE SET batch = excluded.batch, outcomes = excluded.outcomes",
        )
        .bind(world_id)
        .bind(batch)
        .bind(serde_json::to_string(outcomes).unwrap_or_default())
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }
}
