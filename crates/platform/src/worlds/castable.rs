//! Worlds into which a user may cast without joining them first: worlds in which the user plays,
//! which the user owns, or of which the user is a helper; and only if their game allows spells.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use frolic_package::Limits;

use super::{COLUMNS, WorldRow};
use crate::api::WorldInfo;
use crate::community::auth::Principal;
use crate::core::error::ApiError;
use crate::worlds::Worlds;
use crate::worlds::remote_commands;

/// Worlds in the list.
const LIST_MAX: i64 = 50;
/// Revisions in the cache.
const REMEMBERED_MAX: usize = 10_000;

/// Whether packages allow spells, by revision. A revision is a hash, so entries never become
/// outdated.
static ALLOWED: Mutex<Option<HashMap<String, bool>>> = Mutex::new(None);

/// The worlds, the most recently used first.
///
/// # Errors
/// When the database or the blob store fails.
pub async fn of(worlds: &Worlds, actor: &Principal) -> Result<Vec<WorldInfo>, ApiError> {
    let query = format!(
        "SELECT {COLUMNS} FROM worlds WHERE owner_id = $1
           OR world_id IN (SELECT world_id FROM world_helpers WHERE user_id = $1)
           OR world_id IN (SELECT world_id FROM player_checkpoints WHERE player_id = $1 AND online = 1)
         ORDER BY updated_at DESC, world_id LIMIT $2"
    );
    let rows: Vec<WorldRow> = sqlx::query_as(sqlx::AssertSqlSafe(query))
        .bind(&actor.user_id)
        .bind(LIST_MAX)
        .fetch_all(&worlds.core.db)
        .await?;
    let mut castable = Vec::new();
    for world in rows {
        let allowed = remote_commands::is_trusted(worlds, actor, &world).await?
            || remote_commands::plays_in(worlds, actor, &world).await?;
        if allowed && allows_spells(worlds, &world.spec.revision).await? {
            castable.push(world.info(worlds));
        }
    }
    Ok(castable)
}

/// Whether a package allows spells.
async fn allows_spells(worlds: &Worlds, revision: &str) -> Result<bool, ApiError> {
    let known = {
        let allowed = ALLOWED.lock().unwrap_or_else(PoisonError::into_inner);
        allowed
            .as_ref()
            .and_then(|allowed| allowed.get(revision).copied())
    };
    if let Some(known) = known {
        return Ok(known);
    }
    let Some(archive) = worlds.core.blobs.get(revision).await? else {
        return Ok(false);
    };
    let read = move || frolic_package::manifest_of(&archive, &Limits::default());
    let manifest = tokio::task::spawn_blocking(read).await;
    let allows = matches!(manifest, Ok(Ok(manifest)) if manifest.world.spells);
    let mut allowed = ALLOWED.lock().unwrap_or_else(PoisonError::into_inner);
    let allowed = allowed.get_or_insert_default();
    if allowed.len() >= REMEMBERED_MAX {
        allowed.clear();
    }
    allowed.insert(revision.to_owned(), allows);
    Ok(allows)
}
