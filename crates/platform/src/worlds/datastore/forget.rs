//! Deletes the data of a player who deleted their account: their keys and their entries in
//! rankings, in all games, and subtracts the bytes from each game's usage.

use sqlx::{AnyConnection, Row};

use super::lock;
use crate::worlds::Worlds;

/// Rows deleted per transaction. It is limited because the transaction locks the game's data.
const ROWS_PER_TRANSACTION: i64 = 500;

/// Deletes all data that games store about a player.
///
/// # Errors
/// When the database fails. Data deleted before that stays deleted.
pub async fn forget_player(worlds: &Worlds, player_id: &str) -> Result<(), sqlx::Error> {
    let rows = sqlx::query(
        "SELECT game_id FROM store_entries WHERE player = $1
         UNION SELECT game_id FROM store_ranks WHERE key = $2",
    )
    .bind(player_id)
    .bind(player_id)
    .fetch_all(&worlds.core.db)
    .await?;
    for row in rows {
        let game_id: String = row.try_get("game_id")?;
        loop {
            let mut transaction = crate::core::db::begin(&worlds.core.db).await?;
            lock(&mut transaction, &game_id).await?;
            let removed = forget_page(&mut transaction, &game_id, player_id).await?;
            transaction.commit().await?;
            if removed == 0 {
                break;
            }
        }
    }
    Ok(())
}

async fn forget_page(
    connection: &mut AnyConnection,
    game_id: &str,
    player_id: &str,
) -> Result<i64, sqlx::Error> {
    let entries = sqlx::query(
        "SELECT key, value FROM store_entries WHERE game_id = $1 AND player = $2 LIMIT $3",
    )
    .bind(game_id)
    .bind(player_id)
    .bind(ROWS_PER_TRANSACTION)
    .fetch_all(&mut *connection)
    .await?;
    let ranks =
        sqlx::query("SELECT ranking FROM store_ranks WHERE game_id = $1 AND key = $2 LIMIT $3")
            .bind(game_id)
            .bind(player_id)
            .bind(ROWS_PER_TRANSACTION)
            .fetch_all(&mut *connection)
            .await?;
    // Sizes are computed here, because the length functions of the two databases count differently.
    let mut bytes = 0;
    for row in &entries {
        let (key, value): (String, String) = (row.try_get("key")?, row.try_get("value")?);
        bytes += key.len() + player_id.len() + value.len();
        sqlx::query("DELETE FROM store_entries WHERE game_id = $1 AND player = $2 AND key = $3")
            .bind(game_id)
            .bind(player_id)
            .bind(key)
            .execute(&mut *connection)
            .await?;
    }
    for row in &ranks {
        let ranking: String = row.try_get("ranking")?;
        bytes += super::rankings::entry_size(&ranking, player_id);
        sqlx::query("DELETE FROM store_ranks WHERE game_id = $1 AND ranking = $2 AND key = $3")
            .bind(game_id)
            .bind(ranking)
            .bind(player_id)
            .execute(&mut *connection)
            .await?;
    }
    let removed = i64::try_from(entries.len() + ranks.len()).unwrap_or(i64::MAX);
    sqlx::query(
        "UPDATE store_usage SET entries = entries - $1, size_bytes = size_bytes - $2 WHERE game_id = $3",
    )
    .bind(removed)
    .bind(i64::try_from(bytes).unwrap_or(0))
    .bind(game_id)
    .execute(connection)
    .await?;
    Ok(removed)
}
