//! Who played with whom by invitation: the right people, whose worlds come first
//! when somebody looks for one.

use sqlx::{AnyPool, Row};

/// Worlds that are looked at; those met last come first.
const WORLDS_MAX: i64 = 20;

/// Remembers that `guest` came by an invitation of `host`.
///
/// # Errors
/// When the database refuses.
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

/// Worlds of a game in which companions of this person are, but for those
/// with whom one of the two wants nothing to do.
///
/// # Errors
/// When the database refuses.
pub async fn worlds_of(
    db: &AnyPool,
    user_id: &str,
    game_id: &str,
) -> Result<Vec<String>, sqlx::Error> {
    let rows = sqlx::query(
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
    .await?;
    rows.iter().map(|row| row.try_get("world_id")).collect()
}
