//! `/internal/worlds/{id}/keep` and `…/saved`: the persisted operations and checkpoints of a world
//! and its players.
//!
//! A batch is applied as a whole (`commit.rs`). It begins with a write to the world's row of
//! `world_runs` that fails unless the caller's epoch is the newest, so a process that was replaced
//! stores nothing. Operations are numbered, so a batch that is sent again because its response was
//! lost is recognised by its numbers.

mod commit;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use frolic_fleet_api::ops::{LoggedOp, WorldOp};
use frolic_fleet_api::persist::{
    BATCH_OPS_MAX, BATCH_PLAYERS_MAX, CHECKPOINT_BYTES_MAX, Checkpoint, PersistBatch, PersistReply,
    PlayerState, SECTION_BYTES_MAX, SECTIONS_MAX, Saved, SavedPlayer, SavedWorld, Section,
    UNDELIVERED_BYTES_MAX,
};
use frolic_fleet_api::store::{HandledCount, StoreBatch};
use sqlx::{AnyConnection, AnyPool, Row};

use crate::core::db::{Committed, begin_reading, to_u32};
use crate::core::error::ApiError;
use crate::core::extract::ApiJson;
use crate::fleet::lease::RESUMABLE_PLAYERS_MAX;
use crate::worlds::Worlds;
use crate::worlds::events::Audience;
use crate::worlds::internal::Caller;

pub use commit::Committer;

/// Operations that may follow a checkpoint; a game server sends a checkpoint long before.
const OPS_SINCE_CHECKPOINT_MAX: i64 = 100_000;
/// Bytes of a world's checkpoint as text.
const WORLD_BYTES_MAX: i64 = 256 * 1024 * 1024;
/// How long after their last checkpoint players can reconnect with only a resume token.
pub const RESUME_WINDOW_MS: i64 = 180_000;
/// Maximum length of the ids of players and sessions and of section names.
const ID_BYTES_MAX: usize = 128;
/// Separates the parts of undelivered messages; it does not occur in base64.
const PART_SEPARATOR: char = '.';

const NOT_PERSISTENT: &str = "this world is not persistent: only players can be stored";

/// `POST …/keep`. The response means that the whole batch is on disk.
///
/// # Errors
/// 409 for a process that was replaced, 400 for a malformed batch; nothing of the batch is applied
/// then.
pub async fn keep(
    State(worlds): State<Arc<Worlds>>,
    Caller(server): Caller,
    ApiJson(batch): ApiJson<PersistBatch>,
) -> Result<Json<PersistReply>, ApiError> {
    let spec = &server.spec;
    check(&batch, spec.persistent)?;
    let began = Instant::now();
    let (ops, players) = (batch.ops.len(), batch.players.len());
    let now_ms = worlds.core.clock.now_ms();
    let committer = &worlds.committer;
    // Remote followers receive an operation only after it is committed.
    let events = match worlds.notifier.clients_in(&spec.world_id) {
        0 => Vec::new(),
        _ => batch.ops.clone(),
    };
    let followers = Audience::of(&spec.world_id, batch.near_only);
    let stored = committer.store(&spec.world_id, batch, now_ms).await?;
    worlds.notifier.send_ops(&followers, &events);
    worlds
        .core
        .metrics
        .world_persisted(began.elapsed(), ops, players);
    Ok(Json(acknowledge(stored)))
}

/// The only function that acknowledges a batch of a world.
fn acknowledge(stored_up_to: Committed<u64>) -> PersistReply {
    PersistReply {
        seq: stored_up_to.into_inner(),
    }
}

/// `GET …/saved`.
///
/// # Errors
/// When the database fails.
pub async fn saved(
    State(worlds): State<Arc<Worlds>>,
    Caller(server): Caller,
) -> Result<Json<Saved>, ApiError> {
    let world_id = &server.spec.world_id;
    let since = worlds.core.clock.now_ms().saturating_sub(RESUME_WINDOW_MS);
    Ok(Json(Saved {
        world: read_world(&worlds.core.db, world_id).await?,
        players: read_players(&worlds.core.db, world_id, since).await?,
    }))
}

/// Last position of a player in a world.
///
/// # Errors
/// When the database fails.
pub async fn last_state(
    db: &AnyPool,
    world_id: &str,
    player_id: &str,
) -> Result<Option<PlayerState>, sqlx::Error> {
    let row =
        sqlx::query("SELECT state FROM player_checkpoints WHERE world_id = $1 AND player_id = $2")
            .bind(world_id)
            .bind(player_id)
            .fetch_optional(db)
            .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let text: String = row.try_get("state")?;
    // An unreadable position must not prevent the player from joining.
    Ok(serde_json::from_str(&text).ok())
}

/// Replaces the persisted state of a world by `world`, inside a transaction that began with a write
/// to its row of `world_runs`.
///
/// # Errors
/// When the state is too large, or the database fails.
pub async fn replace_world(
    connection: &mut AnyConnection,
    world_id: &str,
    world: &SavedWorld,
    now_ms: i64,
) -> Result<(), ApiError> {
    let mut log = Log {
        connection,
        world_id,
        now_ms,
    };
    log.replace(world).await
}

/// Validates the operations and message counts that are committed together with data store writes.
///
/// # Errors
/// 400 for a malformed batch.
pub fn check_store_batch(batch: &StoreBatch, persistent: bool) -> Result<(), ApiError> {
    let too_long = |count: &HandledCount| {
        let ids = count.player_id.len().max(count.session.len());
        let messages = count.undelivered.len().max(count.calls.len());
        ids > ID_BYTES_MAX || messages > UNDELIVERED_BYTES_MAX
    };
    if batch.handled.len() > BATCH_PLAYERS_MAX || batch.handled.iter().any(too_long) {
        return Err(refused(
            "too many players in one batch, or an id or the undelivered messages are too long",
        ));
    }
    check_ops(&batch.ops, persistent)
}

/// Stores the operations and received-message counts of a batch inside the transaction that stores
/// its data store writes. Returns the number of the newest operation. Counts are stored only for
/// sessions that exist, so that a player who has left for good cannot return.
///
/// # Errors
/// 409 for a process that was replaced, 400 for operations with a gap.
pub async fn record_store_batch(
    connection: &mut AnyConnection,
    world_id: &str,
    batch: &StoreBatch,
    now_ms: i64,
) -> Result<u64, ApiError> {
    let mut log = Log {
        connection,
        world_id,
        now_ms,
    };
    let (known, compacted) = log.lock(batch.epoch).await?;
    let newest = log.add_fresh(&batch.ops, known).await?;
    if newest != known {
        log.set_seqs(newest, compacted).await?;
    }
    for count in &batch.handled {
        log.set_received(count).await?;
    }
    Ok(newest)
}

fn refused(message: impl Into<String>) -> ApiError {
    ApiError::bad_request("invalid_batch", message)
}

fn check(batch: &PersistBatch, persistent: bool) -> Result<(), ApiError> {
    let (ops, players) = (&batch.ops, &batch.players);
    if players.len() + batch.forget.len() > BATCH_PLAYERS_MAX {
        return Err(refused("too many players in one batch"));
    }
    if !persistent && batch.checkpoint.is_some() {
        return Err(refused(NOT_PERSISTENT));
    }
    let ids = players.iter().map(|player| &player.player_id);
    let ids = ids.chain(&batch.forget);
    let sessions = players.iter().map(|player| &player.session);
    if ids.chain(sessions).any(|id| id.len() > ID_BYTES_MAX) {
        return Err(refused("an id is too long"));
    }
    if players
        .iter()
        .any(|player| player.undelivered.len() > UNDELIVERED_BYTES_MAX)
    {
        return Err(refused("the undelivered messages of a player are too long"));
    }
    check_ops(ops, persistent)?;
    let Some(checkpoint) = &batch.checkpoint else {
        return Ok(());
    };
    let sections = &checkpoint.sections;
    let bytes: usize = sections.values().map(|section| section.bytes.len()).sum();
    let largest = sections.values().map(|section| section.bytes.len()).max();
    if sections.len() > SECTIONS_MAX
        || bytes > CHECKPOINT_BYTES_MAX
        || largest > Some(SECTION_BYTES_MAX)
        || sections.keys().any(|name| name.len() > ID_BYTES_MAX)
    {
        return Err(refused("the checkpoint is too large"));
    }
    Ok(())
}

fn check_ops(ops: &[LoggedOp], persistent: bool) -> Result<(), ApiError> {
    if ops.len() > BATCH_OPS_MAX {
        return Err(refused("too many operations in one batch"));
    }
    if !persistent && !ops.is_empty() {
        return Err(refused(NOT_PERSISTENT));
    }
    let in_order = ops.windows(2).all(|pair| pair[1].seq == pair[0].seq + 1);
    if !in_order {
        return Err(refused("operations must be numbered without gaps"));
    }
    Ok(())
}

/// The log of one world, inside a transaction.
struct Log<'a> {
    connection: &'a mut AnyConnection,
    world_id: &'a str,
    now_ms: i64,
}

impl Log<'_> {
    async fn write(&mut self, batch: &PersistBatch) -> Result<u64, ApiError> {
        let (known, checkpoint_seq) = self.lock(batch.epoch).await?;
        self.set_near_only(batch.near_only).await?;
        let newest = self.add_fresh(&batch.ops, known).await?;
        for player in &batch.players {
            self.save_player(player).await?;
        }
        for player_id in &batch.forget {
            self.forget_player(player_id).await?;
        }
        let mut compacted = checkpoint_seq;
        if let Some(checkpoint) = &batch.checkpoint {
            if checkpoint.seq > newest {
                return Err(refused("the checkpoint is newer than the operations"));
            }
            if checkpoint.seq >= checkpoint_seq {
                self.compact(checkpoint).await?;
                compacted = checkpoint.seq;
            }
        }
        if newest.saturating_sub(compacted).cast_signed() > OPS_SINCE_CHECKPOINT_MAX {
            return Err(refused("too many operations without a checkpoint"));
        }
        if (newest, compacted) != (known, checkpoint_seq) {
            self.set_seqs(newest, compacted).await?;
        }
        Ok(newest)
    }

    /// Stores the numbers of the newest operation and of the last one in the checkpoint.
    async fn set_seqs(&mut self, newest: u64, compacted: u64) -> Result<(), sqlx::Error> {
        sqlx::query("UPDATE world_runs SET op_seq = $1, checkpoint_seq = $2 WHERE world_id = $3")
            .bind(newest.cast_signed())
            .bind(compacted.cast_signed())
            .bind(self.world_id)
            .execute(&mut *self.connection)
            .await?;
        Ok(())
    }

    /// Appends operations newer than `known` and returns the number of the newest.
    async fn add_fresh(&mut self, ops: &[LoggedOp], known: u64) -> Result<u64, ApiError> {
        let fresh: Vec<&LoggedOp> = ops.iter().filter(|op| op.seq > known).collect();
        if let Some(first) = fresh.first()
            && first.seq != known + 1
        {
            let message = format!("operation {} cannot follow {known}", first.seq);
            return Err(refused(message));
        }
        let newest = fresh.last().map_or(known, |op| op.seq);
        for op in fresh {
            self.add(op).await?;
        }
        Ok(newest)
    }

    /// Stores how many messages of a player were received.
    async fn set_received(&mut self, count: &HandledCount) -> Result<(), sqlx::Error> {
        // Without a new list of undelivered messages, the stored list stays; pending calls are
        // appended to it.
        let calls = match count.calls.is_empty() {
            true => String::new(),
            false => format!("{PART_SEPARATOR}{}", BASE64.encode(&count.calls)),
        };
        sqlx::query(
            "UPDATE player_checkpoints SET received = $1,
               sent = CASE WHEN $5 <> '' THEN $6 ELSE sent END,
               told = CASE WHEN $5 <> '' THEN $5 ELSE told || $7 END
             WHERE world_id = $2 AND player_id = $3 AND session = $4 AND received < $1",
        )
        .bind(i64::from(count.received))
        .bind(self.world_id)
        .bind(&count.player_id)
        .bind(&count.session)
        .bind(BASE64.encode(&count.undelivered))
        .bind(i64::from(count.sent))
        .bind(calls)
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }

    /// Locks the world by a write, so that no other process interferes. Returns the numbers of the
    /// newest operation and of the last one in the checkpoint.
    async fn lock(&mut self, epoch: u64) -> Result<(u64, u64), ApiError> {
        let ours =
            sqlx::query("UPDATE world_runs SET epoch = epoch WHERE world_id = $1 AND epoch = $2")
                .bind(self.world_id)
                .bind(epoch.cast_signed())
                .execute(&mut *self.connection)
                .await?;
        let row =
            sqlx::query("SELECT epoch, op_seq, checkpoint_seq FROM world_runs WHERE world_id = $1")
                .bind(self.world_id)
                .fetch_optional(&mut *self.connection)
                .await?;
        let Some(row) = row.as_ref().filter(|_| ours.rows_affected() == 1) else {
            let newest: i64 = row.as_ref().map_or(Ok(0), |row| row.try_get("epoch"))?;
            let message = format!("process {epoch} of this world was replaced by {newest}; stop");
            let error = ApiError::new(StatusCode::CONFLICT, "replaced", message);
            return Err(error.with_details(serde_json::json!({ "epoch": newest })));
        };
        let seq = |name| row.try_get::<i64, _>(name).map(i64::cast_unsigned);
        Ok((seq("op_seq")?, seq("checkpoint_seq")?))
    }

    /// Stores whether operations are replicated only to players near them; rarely changes.
    async fn set_near_only(&mut self, near_only: bool) -> Result<(), sqlx::Error> {
        sqlx::query("UPDATE world_runs SET near_only = $1 WHERE world_id = $2 AND near_only <> $1")
            .bind(i64::from(near_only))
            .bind(self.world_id)
            .execute(&mut *self.connection)
            .await?;
        Ok(())
    }

    async fn add(&mut self, logged: &LoggedOp) -> Result<(), ApiError> {
        let kind = match &logged.op {
            WorldOp::Terrain(_) => "terrain",
            WorldOp::Build(_) => "build",
            WorldOp::Unbuild { .. } => "unbuild",
            WorldOp::Clear => "clear",
        };
        let data = serde_json::to_string(&logged.op)
            .map_err(|_| refused("an operation contains a number that is not finite"))?;
        sqlx::query(
            "INSERT INTO world_ops (world_id, op_id, op_type, op_data, player_id, created_at)
             VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(self.world_id)
        .bind(logged.seq.cast_signed())
        .bind(kind)
        .bind(data)
        .bind(logged.by.as_deref().unwrap_or_default())
        .bind(self.now_ms)
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }

    async fn save_player(&mut self, player: &SavedPlayer) -> Result<(), ApiError> {
        // A number that is not finite could not be parsed from the stored text.
        let state = serde_json::to_string(&player.state).ok();
        let Some(state) = state.filter(|_| player.state.is_sound()) else {
            return Ok(());
        };
        // Counts stored by `record_store_batch` in the meantime may be newer within the same session.
        sqlx::query(
            "INSERT INTO player_checkpoints (world_id, player_id, state, online, session, received, sent, told, saved_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
             ON CONFLICT (world_id, player_id) DO UPDATE SET state = excluded.state,
               online = excluded.online, session = excluded.session,
               received = CASE WHEN player_checkpoints.session = excluded.session
                 AND player_checkpoints.received > excluded.received
                 THEN player_checkpoints.received ELSE excluded.received END,
               sent = CASE WHEN player_checkpoints.session = excluded.session
                 AND player_checkpoints.sent > excluded.sent
                 THEN player_checkpoints.sent ELSE excluded.sent END,
               told = CASE WHEN player_checkpoints.session = excluded.session
                 AND (player_checkpoints.sent > excluded.sent
                   OR player_checkpoints.sent = excluded.sent
                   AND player_checkpoints.received > excluded.received)
                 THEN player_checkpoints.told ELSE excluded.told END,
               saved_at = excluded.saved_at",
        )
        .bind(self.world_id)
        .bind(&player.player_id)
        .bind(state)
        .bind(i64::from(player.online))
        .bind(&player.session)
        .bind(i64::from(player.received))
        .bind(i64::from(player.sent))
        .bind(BASE64.encode(&player.undelivered))
        .bind(self.now_ms)
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }

    async fn forget_player(&mut self, player_id: &str) -> Result<(), sqlx::Error> {
        sqlx::query("DELETE FROM player_checkpoints WHERE world_id = $1 AND player_id = $2")
            .bind(self.world_id)
            .bind(player_id)
            .execute(&mut *self.connection)
            .await?;
        Ok(())
    }

    /// Replaces the persisted state of this world by `world`.
    async fn replace(&mut self, world: &SavedWorld) -> Result<(), ApiError> {
        for table in ["world_sections", "world_ops"] {
            let delete = format!("DELETE FROM {table} WHERE world_id = $1");
            sqlx::query(sqlx::AssertSqlSafe(delete))
                .bind(self.world_id)
                .execute(&mut *self.connection)
                .await?;
        }
        self.compact(&world.checkpoint).await?;
        for op in &world.ops {
            self.add(op).await?;
        }
        self.set_seqs(world.newest(), world.checkpoint.seq).await?;
        Ok(())
    }

    /// Stores a checkpoint and deletes the operations that it contains.
    async fn compact(&mut self, checkpoint: &Checkpoint) -> Result<(), ApiError> {
        for (name, section) in &checkpoint.sections {
            if section.bytes.is_empty() {
                sqlx::query("DELETE FROM world_sections WHERE world_id = $1 AND name = $2")
                    .bind(self.world_id)
                    .bind(name)
                    .execute(&mut *self.connection)
                    .await?;
                continue;
            }
            sqlx::query(
                "INSERT INTO world_sections (world_id, name, version, data) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (world_id, name) DO UPDATE SET version = excluded.version,
                   data = excluded.data",
            )
            .bind(self.world_id)
            .bind(name)
            .bind(i64::from(section.version))
            .bind(BASE64.encode(&section.bytes))
            .execute(&mut *self.connection)
            .await?;
        }
        sqlx::query("DELETE FROM world_ops WHERE world_id = $1 AND op_id <= $2")
            .bind(self.world_id)
            .bind(checkpoint.seq.cast_signed())
            .execute(&mut *self.connection)
            .await?;
        let row = sqlx::query(
            "SELECT CAST(COALESCE(SUM(LENGTH(data)), 0) AS BIGINT) AS bytes
             FROM world_sections WHERE world_id = $1",
        )
        .bind(self.world_id)
        .fetch_one(&mut *self.connection)
        .await?;
        if row.try_get::<i64, _>("bytes")? > WORLD_BYTES_MAX {
            return Err(refused("the persisted state of this world is too large"));
        }
        Ok(())
    }
}

async fn read_world(db: &AnyPool, world_id: &str) -> Result<SavedWorld, sqlx::Error> {
    // One transaction, because a batch in between would make checkpoint and operations
    // inconsistent.
    let mut transaction = begin_reading(db).await?;
    let world = read_world_in(&mut transaction, world_id).await?;
    transaction.commit().await?;
    Ok(world)
}

/// Reads the persisted state of a world inside a transaction.
///
/// # Errors
/// When the database fails.
pub async fn read_world_in(
    connection: &mut AnyConnection,
    world_id: &str,
) -> Result<SavedWorld, sqlx::Error> {
    let row = sqlx::query("SELECT checkpoint_seq FROM world_runs WHERE world_id = $1")
        .bind(world_id)
        .fetch_optional(&mut *connection)
        .await?;
    let seq: i64 = row.map_or(Ok(0), |row| row.try_get("checkpoint_seq"))?;
    let rows = sqlx::query("SELECT name, version, data FROM world_sections WHERE world_id = $1")
        .bind(world_id)
        .fetch_all(&mut *connection)
        .await?;
    let mut sections = BTreeMap::new();
    for row in rows {
        let (name, data): (String, String) = (row.try_get("name")?, row.try_get("data")?);
        let version = to_u32(row.try_get("version")?);
        match BASE64.decode(data) {
            Ok(bytes) => {
                sections.insert(name, Section { version, bytes });
            }
            Err(error) => {
                tracing::error!(world_id, name, %error, "a section of a checkpoint is damaged")
            }
        }
    }
    let rows = sqlx::query(
        "SELECT op_id, op_data, player_id FROM world_ops
         WHERE world_id = $1 AND op_id > $2 ORDER BY op_id",
    )
    .bind(world_id)
    .bind(seq)
    .fetch_all(&mut *connection)
    .await?;
    let mut ops = Vec::new();
    for row in rows {
        let seq = row.try_get::<i64, _>("op_id")?.cast_unsigned();
        let (data, by): (String, String) = (row.try_get("op_data")?, row.try_get("player_id")?);
        match serde_json::from_str(&data) {
            Ok(op) => {
                let by = Some(by).filter(|by| !by.is_empty());
                ops.push(LoggedOp { seq, by, op });
            }
            Err(error) => tracing::error!(world_id, seq, %error, "an operation is damaged"),
        }
    }
    Ok(SavedWorld {
        checkpoint: Checkpoint {
            seq: seq.cast_unsigned(),
            sections,
        },
        ops,
    })
}

async fn read_players(
    db: &AnyPool,
    world_id: &str,
    since: i64,
) -> Result<Vec<SavedPlayer>, sqlx::Error> {
    let rows = sqlx::query(
        "SELECT player_id, state, online, session, received, sent, told FROM player_checkpoints
         WHERE world_id = $1 AND saved_at >= $2 ORDER BY saved_at DESC LIMIT $3",
    )
    .bind(world_id)
    .bind(since)
    .bind(RESUMABLE_PLAYERS_MAX)
    .fetch_all(db)
    .await?;
    let mut players = Vec::new();
    for row in rows {
        let state: String = row.try_get("state")?;
        let Ok(state) = serde_json::from_str(&state) else {
            continue;
        };
        let undelivered: String = row.try_get("told")?;
        players.push(SavedPlayer {
            player_id: row.try_get("player_id")?,
            state,
            online: row.try_get::<i64, _>("online")? != 0,
            session: row.try_get("session")?,
            received: to_u32(row.try_get("received")?),
            sent: to_u32(row.try_get("sent")?),
            undelivered: read_undelivered(&undelivered),
        });
    }
    Ok(players)
}

/// Joins all parts of the undelivered messages. Damaged text counts as empty, so that the player
/// can still join.
fn read_undelivered(text: &str) -> Vec<u8> {
    let parts = text.split(PART_SEPARATOR).map(|part| BASE64.decode(part));
    let parts: Result<Vec<Vec<u8>>, _> = parts.collect();
    parts.unwrap_or_default().concat()
}
