//! Companions: users who joined each other by invitation. Matchmaking prefers worlds in which they
//! are.

use sqlx::AnyPool;

/// Maximum number of worlds; those of the most recent companions come first.
const WORLDS_MAX: i64 = 20;

/// Stores that `guest` joined by an invitation of `host`.
///
/// # Errors
/// When the database fails.
pub async fn met(db: &AnyPool, host: &str, guest: &str, now_ms: i64) -> Result<(), sqlx::Error> {
    if host == guest {
        return Ok(());
    }
    for (user_id, companion_id) in [(host, guest), (guest, host)] {
        sqlx::query(
            "INSERT INTO companions (user_id, companion_id, met_at) VALUES ($1, $2, $3)
             ON CONFLICT (user_id, companion_id) DO UPDATE SET met_at = excluded.met_at",
        )
        .bind(user_id)
        .bind(companion_id)
        .bind(now_ms)
        .execute(db)
        .await?;
    }
    Ok(())
}

/// Worlds of a game in which companions of this user are. Companions are left out if either of the
/// two has blocked the other.
///
/// # Errors
/// When the database fails.
pub async fn worlds_of(
    db: &AnyPool,
    user_id: &str,
    game_id: &str,
) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT p.world_id FROM companions c
         JOIN player_checkpoints p ON p.player_id = c.companion_id AND p.online = 1
         JOIN worlds w ON w.world_id = p.world_id
         WHERE c.user_id = $1 AND w.game_id = $2 AND NOT EXISTS
           (SELECT 1 FROM blocks b WHERE (b.user_id = c.user_id AND b.blocked_id = c.companion_id)
              OR (b.user_id = c.companion_id AND b.blocked_id = c.user_id))
         ORDER BY c.met_at DESC, p.world_id LIMIT $3",
    )
    .bind(user_id)
    .bind(game_id)
    .bind(WORLDS_MAX)
    .fetch_all(db)
    .await
}
