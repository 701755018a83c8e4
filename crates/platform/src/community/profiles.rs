//! Characters of users: several per user, one of them active. A missing or invalid selection is
//! repaired when it is needed.

mod characters;

pub use characters::{parse_looks, routes, unknown_user};

use frolic_fleet_api::ticket::{CharacterProfile, LOOKS_BYTES_MAX};
use sqlx::{AnyConnection, AnyPool, Row};

/// Id of the character of users who created none.
pub const DEFAULT: &str = "default";
/// Looks of a default character.
const DEFAULT_LOOKS: &str = "{}";
/// Longest id of a character.
const ID_BYTES_MAX: usize = 64;

/// The active character of a user; created or repaired if necessary.
///
/// # Errors
/// When the database fails.
pub async fn active(
    db: &AnyPool,
    user_id: &str,
    username: &str,
    now_ms: i64,
) -> Result<CharacterProfile, sqlx::Error> {
    let row = sqlx::query(
        "SELECT c.character_id, c.looks FROM active_characters a
         JOIN characters c ON c.user_id = a.user_id AND c.character_id = a.character_id
         WHERE a.user_id = $1",
    )
    .bind(user_id)
    .fetch_optional(db)
    .await?;
    let selected = row.as_ref().map(profile).transpose()?;
    match selected.filter(is_valid) {
        Some(profile) => Ok(profile),
        None => repair(db, user_id, username, now_ms).await,
    }
}

fn profile(row: &sqlx::any::AnyRow) -> Result<CharacterProfile, sqlx::Error> {
    Ok(CharacterProfile {
        id: row.try_get("character_id")?,
        looks: row.try_get("looks")?,
    })
}

/// Whether the character can be sent to worlds.
fn is_valid(profile: &CharacterProfile) -> bool {
    let CharacterProfile { id, looks } = profile;
    let looks_ok = looks.len() <= LOOKS_BYTES_MAX
        && serde_json::from_str::<serde_json::Map<_, _>>(looks).is_ok();
    (1..=ID_BYTES_MAX).contains(&id.len()) && looks_ok
}

/// Selects the oldest valid character, and creates the default one if there is none.
async fn repair(
    db: &AnyPool,
    user_id: &str,
    username: &str,
    now_ms: i64,
) -> Result<CharacterProfile, sqlx::Error> {
    let mut transaction = crate::core::db::begin(db).await?;
    // The transaction begins with a write, so that concurrent repairs are serialized.
    let made = sqlx::query(
        "INSERT INTO characters (user_id, character_id, name, looks, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $5) ON CONFLICT (user_id, character_id) DO NOTHING",
    )
    .bind(user_id)
    .bind(DEFAULT)
    .bind(username)
    .bind(DEFAULT_LOOKS)
    .bind(now_ms)
    .execute(&mut *transaction)
    .await?
    .rows_affected();
    let rows = sqlx::query(
        "SELECT character_id, looks FROM characters WHERE user_id = $1
         ORDER BY created_at, character_id LIMIT 100",
    )
    .bind(user_id)
    .fetch_all(&mut *transaction)
    .await?;
    let all = rows.iter().map(profile).collect::<Result<Vec<_>, _>>()?;
    let chosen = match all.into_iter().find(is_valid) {
        Some(chosen) => chosen,
        None => reset_default(&mut transaction, user_id, now_ms).await?,
    };
    sqlx::query(
        "INSERT INTO active_characters (user_id, character_id) VALUES ($1, $2)
         ON CONFLICT (user_id) DO UPDATE SET character_id = excluded.character_id",
    )
    .bind(user_id)
    .bind(&chosen.id)
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    if made > 0 {
        tracing::debug!(user_id, "created a default character");
    } else {
        tracing::info!(
            user_id,
            character = chosen.id,
            "repaired the selection of a character"
        );
    }
    Ok(chosen)
}

/// Resets the looks of a damaged default character.
async fn reset_default(
    connection: &mut AnyConnection,
    user_id: &str,
    now_ms: i64,
) -> Result<CharacterProfile, sqlx::Error> {
    sqlx::query(
        "UPDATE characters SET looks = $1, updated_at = $2 WHERE user_id = $3 AND character_id = $4",
    )
    .bind(DEFAULT_LOOKS)
    .bind(now_ms)
    .bind(user_id)
    .bind(DEFAULT)
    .execute(connection)
    .await?;
    Ok(CharacterProfile {
        id: DEFAULT.to_owned(),
        looks: DEFAULT_LOOKS.to_owned(),
    })
}
