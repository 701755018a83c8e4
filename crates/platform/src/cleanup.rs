//! Deletes expired sessions, old guests and worlds that are no longer used.

use std::time::Duration;

use sqlx::Row;

use crate::Platform;
use crate::api::CleanupReport;
use crate::catalog;
use crate::worlds::{self, invites, log};

/// Time between two cleanups.
const INTERVAL: Duration = Duration::from_secs(15 * 60);

/// How long the position of a player in a world that is not persistent is stored.
const POSITION_LIFETIME_MS: i64 = 10 * 60 * 1000;

/// Cleans up periodically until the platform's task is dropped.
pub async fn run_forever(platform: Platform) {
    let mut interval = tokio::time::interval(INTERVAL);
    loop {
        interval.tick().await;
        match run(&platform).await {
            Ok(report) if report != CleanupReport::default() => {
                tracing::info!(?report, "cleaned up");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "could not clean up"),
        }
    }
}

/// Cleans up once.
///
/// # Errors
/// When the database refuses.
pub async fn run(platform: &Platform) -> Result<CleanupReport, sqlx::Error> {
    let db = &platform.core.db;
    let now = platform.core.clock.now_ms();
    // A player in a world is using their session, even if its expiry was not written recently.
    let sessions = sqlx::query(
        "DELETE FROM sessions WHERE expires_at <= $1 AND NOT (idle_ms > 0 AND EXISTS
           (SELECT 1 FROM player_checkpoints p
            WHERE p.player_id = sessions.user_id AND p.saved_at > $1 - sessions.idle_ms))",
    )
    .bind(now)
    .execute(db)
    .await?
    .rows_affected();
    // A guest who created something is not deleted, so that their name stays.
    let guests = sqlx::query(
        "DELETE FROM users WHERE kind = 'guest'
           AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.user_id = users.user_id)
           AND NOT EXISTS (SELECT 1 FROM games g WHERE g.creator_id = users.user_id)
           AND NOT EXISTS (SELECT 1 FROM worlds w WHERE w.created_by = users.user_id AND (w.persistent = 1 OR w.kept = 1))",
    )
    .execute(db)
    .await?
    .rows_affected();
    delete_positions(platform, now).await?;
    invites::delete_expired(db, now).await?;
    catalog::sweep(&platform.catalog, now).await?;
    Ok(CleanupReport {
        sessions: u32::try_from(sessions).unwrap_or(u32::MAX),
        guests: u32::try_from(guests).unwrap_or(u32::MAX),
        worlds: delete_old_worlds(platform, now).await?,
    })
}

/// Deletes checkpoints of players who cannot return: the world is not persistent and the time to
/// return is over, or the user no longer exists. Also deletes undelivered messages of players whose
/// time to return is over.
async fn delete_positions(platform: &Platform, now: i64) -> Result<(), sqlx::Error> {
    sqlx::query(
        "DELETE FROM player_checkpoints WHERE saved_at < $1 AND world_id IN
           (SELECT world_id FROM worlds WHERE persistent = 0)",
    )
    .bind(now.saturating_sub(POSITION_LIFETIME_MS))
    .execute(&platform.core.db)
    .await?;
    sqlx::query("UPDATE player_checkpoints SET told = '' WHERE told <> '' AND saved_at < $1")
        .bind(now.saturating_sub(log::RESUME_WINDOW_MS))
        .execute(&platform.core.db)
        .await?;
    sqlx::query(
        "DELETE FROM player_checkpoints WHERE NOT EXISTS
           (SELECT 1 FROM users u WHERE u.user_id = player_checkpoints.player_id)",
    )
    .execute(&platform.core.db)
    .await?;
    Ok(())
}

async fn delete_old_worlds(platform: &Platform, now: i64) -> Result<u32, sqlx::Error> {
    let keep_ms =
        i64::try_from(platform.core.settings.world_retention.as_millis()).unwrap_or(i64::MAX);
    let before = now.saturating_sub(keep_ms);
    let rows = sqlx::query(
        "SELECT world_id FROM worlds WHERE persistent = 0 AND kept = 0 AND updated_at < $1",
    )
    .bind(before)
    .fetch_all(&platform.core.db)
    .await?;
    let mut deleted = 0;
    for row in rows {
        let world_id: String = row.try_get("world_id")?;
        if platform.worlds.fleet.server(&world_id).is_some() {
            continue;
        }
        // Deleted with the same condition, because a join may have touched the world since.
        deleted += worlds::delete_unused(&platform.core.db, &world_id, before).await?;
    }
    Ok(deleted)
}
