//! Leases of worlds in the database: which process runs a world. They guarantee that no world runs
//! twice, also across a restart of the control plane.
//!
//! Every launch increments the epoch of the world. Writes of a process are refused unless its epoch
//! is the newest (`log.rs`), so a process that was given up can do no harm. The row also
//! contains what is needed to find a process that survived the control plane (`fleet/adopt.rs`).

use frolic_fleet_api::process::{ServerReady, WebTransportEndpoint};
use sqlx::{AnyPool, Row};

use super::{Endpoints, WorldSpec, spec};

/// Players that are sent to a starting game server.
pub const RESUMABLE_PLAYERS_MAX: i64 = 4096;
/// Players whose last checkpoint is this much older than the newest of their world were not present
/// at the end.
const PRESENT_WITHIN_MS: i64 = 60_000;

/// The lease of a process that may still be running.
#[derive(Clone, Debug)]
pub struct Lease {
    /// World of the process.
    pub world: WorldSpec,
    /// Epoch that [`begin`] returned.
    pub epoch: u64,
    /// SHA-256 of its token, in hex.
    pub token_sha256: String,
    /// Process id; 0 if it was not ready yet.
    pub pid: u32,
    /// Ports of the process.
    pub endpoints: Endpoints,
    /// Scripts that the process does not run.
    pub disabled_scripts: Vec<String>,
}

/// Starts a lease for a launch and returns its epoch.
///
/// # Errors
/// When the database fails, or the world was deleted.
pub async fn begin(
    db: &AnyPool,
    world_id: &str,
    token_sha256: &str,
    disabled_scripts: &[String],
) -> Result<u64, sqlx::Error> {
    let disabled = serde_json::to_string(disabled_scripts).unwrap_or_default();
    let mut transaction = crate::core::db::begin(db).await?;
    sqlx::query(
        "INSERT INTO world_runs (world_id, epoch, op_seq, checkpoint_seq, token_sha256, pid,
           websocket_port, webtransport, disabled_scripts)
         VALUES ($1, 1, 0, 0, $2, 0, 0, '', $3)
         ON CONFLICT (world_id) DO UPDATE SET epoch = world_runs.epoch + 1,
           token_sha256 = excluded.token_sha256, pid = 0, websocket_port = 0, webtransport = '',
           disabled_scripts = excluded.disabled_scripts",
    )
    .bind(world_id)
    .bind(token_sha256)
    .bind(disabled)
    .execute(&mut *transaction)
    .await?;
    let row = sqlx::query("SELECT epoch FROM world_runs WHERE world_id = $1")
        .bind(world_id)
        .fetch_one(&mut *transaction)
        .await?;
    let epoch: i64 = row.try_get("epoch")?;
    transaction.commit().await?;
    Ok(epoch.cast_unsigned())
}

/// Stores the process id and ports of a process that is ready.
///
/// # Errors
/// When the database fails.
pub async fn ready(
    db: &AnyPool,
    world_id: &str,
    epoch: u64,
    ready: &ServerReady,
) -> Result<(), sqlx::Error> {
    let webtransport = ready.webtransport.as_ref();
    let webtransport = webtransport.and_then(|endpoint| serde_json::to_string(endpoint).ok());
    sqlx::query(
        "UPDATE world_runs SET pid = $1, websocket_port = $2, webtransport = $3
         WHERE world_id = $4 AND epoch = $5",
    )
    .bind(i64::from(ready.pid))
    .bind(i64::from(ready.websocket_port))
    .bind(webtransport.unwrap_or_default())
    .bind(world_id)
    .bind(epoch.cast_signed())
    .execute(db)
    .await?;
    Ok(())
}

/// Ends the lease of a process that has ended.
///
/// # Errors
/// When the database fails.
pub async fn end(db: &AnyPool, world_id: &str, epoch: u64) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE world_runs SET token_sha256 = '', pid = 0 WHERE world_id = $1 AND epoch = $2",
    )
    .bind(world_id)
    .bind(epoch.cast_signed())
    .execute(db)
    .await?;
    Ok(())
}

/// Leases of processes that may still run after a restart.
///
/// # Errors
/// When the database fails.
pub async fn open(db: &AnyPool) -> Result<Vec<Lease>, sqlx::Error> {
    let rows = sqlx::query(
        "SELECT world_id, epoch, token_sha256, pid, websocket_port, webtransport, disabled_scripts
         FROM world_runs WHERE token_sha256 <> '' ORDER BY world_id",
    )
    .fetch_all(db)
    .await?;
    let mut leases = Vec::new();
    for row in rows {
        let world_id: String = row.try_get("world_id")?;
        let Some(world) = spec::find_spec(db, &world_id).await? else {
            continue;
        };
        let port: i64 = row.try_get("websocket_port")?;
        let webtransport: String = row.try_get("webtransport")?;
        let webtransport: Option<WebTransportEndpoint> = serde_json::from_str(&webtransport).ok();
        let disabled: String = row.try_get("disabled_scripts")?;
        leases.push(Lease {
            world,
            epoch: row.try_get::<i64, _>("epoch")?.cast_unsigned(),
            token_sha256: row.try_get("token_sha256")?,
            pid: crate::core::db::to_u32(row.try_get("pid")?),
            endpoints: Endpoints {
                websocket_port: u16::try_from(port).unwrap_or(0),
                webtransport,
            },
            disabled_scripts: serde_json::from_str(&disabled).unwrap_or_default(),
        });
    }
    Ok(leases)
}

/// Ids of the players who were in a world at its last checkpoint or could still reconnect; empty if
/// that was before `since_ms`.
///
/// # Errors
/// When the database fails.
pub async fn players_present(
    db: &AnyPool,
    world_id: &str,
    since_ms: i64,
) -> Result<Vec<String>, sqlx::Error> {
    // Players who have left for good have no session. Players who were present when an earlier
    // process ended and have not returned have a much older checkpoint.
    sqlx::query_scalar(
        "SELECT player_id FROM player_checkpoints WHERE world_id = $1 AND session <> ''
           AND saved_at >= (SELECT MAX(saved_at) FROM player_checkpoints WHERE world_id = $1) - $2
           AND (SELECT MAX(saved_at) FROM player_checkpoints WHERE world_id = $1) >= $3
         ORDER BY saved_at DESC LIMIT $4",
    )
    .bind(world_id)
    .bind(PRESENT_WITHIN_MS)
    .bind(since_ms)
    .bind(RESUMABLE_PLAYERS_MAX)
    .fetch_all(db)
    .await
}
