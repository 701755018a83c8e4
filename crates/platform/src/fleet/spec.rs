//! The worlds that the fleet runs, as it reads and updates them in the database.

use std::time::Duration;

use sqlx::any::AnyRow;
use sqlx::{AnyPool, FromRow, Row};

use crate::core::db::to_u32;
use crate::core::error::ApiError;

/// The properties of a world that the fleet needs.
#[derive(Clone, Debug)]
pub struct WorldSpec {
    /// Id of the world.
    pub world_id: String,
    /// Game of which it is an instance.
    pub game_id: String,
    /// Package revision that it runs.
    pub revision: String,
    /// Room code of the world.
    pub room_code: String,
    /// Player limit of the world.
    pub max_players: u32,
    /// Time after which an empty world is stopped.
    pub idle_stop: Duration,
    /// Whether operations in the world outlive its process.
    pub persistent: bool,
    /// Whether a room code is required to enter.
    pub private: bool,
}

impl FromRow<'_, AnyRow> for WorldSpec {
    fn from_row(row: &AnyRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            world_id: row.try_get("world_id")?,
            game_id: row.try_get("game_id")?,
            revision: row.try_get("revision")?,
            room_code: row.try_get("room_code")?,
            max_players: to_u32(row.try_get("max_players")?),
            idle_stop: Duration::from_secs(u64::from(to_u32(row.try_get("idle_stop_s")?))),
            persistent: row.try_get::<i64, _>("persistent")? != 0,
            private: row.try_get::<i64, _>("private")? != 0,
        })
    }
}

/// The world with this id.
///
/// # Errors
/// When the database fails.
pub async fn find_spec(db: &AnyPool, world_id: &str) -> Result<Option<WorldSpec>, sqlx::Error> {
    sqlx::query_as(
        "SELECT world_id, game_id, revision, room_code, max_players, idle_stop_s, persistent, private
         FROM worlds WHERE world_id = $1",
    )
    .bind(world_id)
    .fetch_optional(db)
    .await
}

/// Stores the number of players in a world, for listings.
///
/// # Errors
/// When the database fails.
pub async fn set_player_count(
    db: &AnyPool,
    world_id: &str,
    players: u32,
    now_ms: Option<i64>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE worlds SET player_count = $1, updated_at = COALESCE($2, updated_at) WHERE world_id = $3",
    )
    .bind(i64::from(players))
    .bind(now_ms)
    .bind(world_id)
    .execute(db)
    .await?;
    Ok(())
}

/// 404 response for a world.
pub fn unknown_world() -> ApiError {
    ApiError::not_found(
        "world_not_found",
        "this world does not exist or was deleted; join a game to get a new one",
    )
}
