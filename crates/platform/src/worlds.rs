//! Worlds as database rows: created, queried and changed. The fleet knows which worlds run;
//! `rest.rs` has the REST interface, `saves.rs` the saved states.

pub mod castable;
pub mod console;
pub mod datastore;
pub mod events;
pub mod helpers;
pub mod internal;
pub mod invites;
pub mod join;
pub mod log;
pub mod remote_commands;
pub mod rest;
pub mod rooms;
pub mod saves;
pub mod scripts;
mod state;

use std::sync::Arc;
use std::time::Duration;

use frolic_protocol::signature::ManifestSigner;
use sqlx::any::AnyRow;
use sqlx::{AnyPool, FromRow, Row};

use self::console::Consoles;
use self::datastore::reservations::Reservations;
use self::join::PendingJoins;
use self::log::Committer;
use self::rooms::Newcomers;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api::{Channel, WorldInfo};
use crate::catalog::Catalog;
use crate::catalog::games::GameRow;
use crate::community::Community;
use crate::core::clock::rfc3339;
use crate::core::db::to_u32;
use crate::core::error::ApiError;
use crate::core::ids;
use crate::core::limits::RateLimiter;
use crate::core::notifier::Notifier;
use crate::core::{Core, Provides};
use crate::fleet::{Fleet, WorldSpec};

pub(crate) use crate::fleet::unknown_world;

/// Maximum length of lists without paging.
const LIST_MAX: i64 = 200;
/// Six characters of 29 collide once in half a billion worlds; three attempts practically always
/// succeed.
const ROOM_CODE_TRIES: usize = 3;
const COLUMNS: &str = "world_id, room_code, name, description, game_id, revision, seed, max_players, \
     idle_stop_s, persistent, player_count, created_at, updated_at, created_by, owner_id, private, version";

/// The services of this layer.
pub struct Worlds {
    pub core: Arc<Core>,
    pub community: Arc<Community>,
    pub catalog: Arc<Catalog>,
    pub fleet: Fleet,
    pub notifier: Arc<dyn Notifier>,
    /// Signs the lists of client scripts.
    signer: ManifestSigner,
    /// Port of the platform, and whether it serves TLS itself.
    port: u16,
    tls: bool,
    committer: Committer,
    pub consoles: Consoles,
    reservations: Reservations,
    pending_joins: PendingJoins,
    newcomers: Newcomers,
    sockets: Arc<Semaphore>,
    socket_rates: RateLimiter,
}

impl Worlds {
    pub fn new(
        catalog: Arc<Catalog>,
        notifier: Arc<dyn Notifier>,
        signer: ManifestSigner,
        (port, tls): (u16, bool),
    ) -> Self {
        let core = catalog.core.clone();
        let limits = &core.settings.limits;
        Self {
            committer: Committer::start(core.db.clone(), core.write_health.clone()),
            consoles: Consoles::default(),
            reservations: Reservations::default(),
            pending_joins: PendingJoins::default(),
            newcomers: Newcomers::new(limits.proxied_newcomers_max),
            sockets: Arc::new(Semaphore::new(limits.proxied_sockets_max)),
            socket_rates: RateLimiter::new(limits),
            community: catalog.community.clone(),
            fleet: catalog.fleet.clone(),
            core,
            catalog,
            notifier,
            signer,
            port,
            tls,
        }
    }

    /// Permission for one more proxied connection.
    fn socket_permit(&self) -> Option<OwnedSemaphorePermit> {
        self.sockets.clone().try_acquire_owned().ok()
    }
}

impl Provides<Community> for Arc<Worlds> {
    fn provide(&self) -> &Community {
        &self.community
    }
}

/// A row of `worlds`.
#[derive(Clone, Debug)]
pub struct WorldRow {
    /// Properties that the fleet needs.
    pub spec: WorldSpec,
    /// Seed of all randomness in the world.
    pub seed: u64,
    /// Display name.
    pub name: String,
    /// Description by the owner.
    pub description: String,
    /// Number of changes of name, description and privacy.
    pub version: u32,
    owner_id: String,
    created_by: String,
    player_count: u32,
    created_at: i64,
    updated_at: i64,
}

/// Properties of a new world.
#[derive(Clone, Copy, Debug)]
pub struct NewWorldSpec<'a> {
    /// Display name.
    pub name: &'a str,
    /// Description.
    pub description: &'a str,
    /// Id of the user who requested it.
    pub created_by: &'a str,
    /// Whether the user owns it; otherwise it was only opened for the user.
    pub owned: bool,
    /// Whether it is stored until its owner deletes it.
    pub kept: bool,
    /// Whether a room code is required to enter.
    pub private: bool,
}

impl<'a> NewWorldSpec<'a> {
    /// A public world without an owner.
    pub fn open_to_all(game: &'a GameRow, created_by: &'a str) -> Self {
        Self {
            name: &game.name,
            description: "",
            created_by,
            owned: false,
            kept: false,
            private: false,
        }
    }
}

/// Creates a world of the current version of `game`.
///
/// # Errors
/// When the database fails.
pub async fn create(
    db: &AnyPool,
    game: &GameRow,
    spec: NewWorldSpec<'_>,
    now_ms: i64,
) -> Result<WorldSpec, sqlx::Error> {
    let world_id = ids::new_id("world");
    let seed = i64::from_le_bytes(ids::random_bytes());
    for _ in 0..ROOM_CODE_TRIES {
        let room_code = ids::new_room_code();
        let inserted = sqlx::query(
            "INSERT INTO worlds (world_id, room_code, name, description, game_id, revision, seed,
               max_players, idle_stop_s, persistent, created_by, owner_id, kept, private,
               player_count, created_at, updated_at, channel)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0, $15, $15, $16)
             ON CONFLICT (room_code) DO NOTHING",
        )
        .bind(&world_id)
        .bind(&room_code)
        .bind(spec.name)
        .bind(spec.description)
        .bind(&game.game_id)
        .bind(&game.revision)
        .bind(seed)
        .bind(i64::from(game.max_players))
        .bind(i64::from(game.idle_stop_s))
        .bind(i64::from(game.persistent))
        .bind(spec.created_by)
        .bind(if spec.owned { spec.created_by } else { "" })
        .bind(i64::from(spec.kept))
        .bind(i64::from(spec.private))
        .bind(now_ms)
        .bind(game.channel.name())
        .execute(db)
        .await?;
        if inserted.rows_affected() == 1 {
            return Ok(WorldSpec {
                world_id,
                game_id: game.game_id.clone(),
                revision: game.revision.clone(),
                room_code,
                max_players: game.max_players,
                idle_stop: Duration::from_secs(u64::from(game.idle_stop_s)),
                persistent: game.persistent,
                private: spec.private,
            });
        }
    }
    Err(sqlx::Error::Protocol(
        "no free room code was found".to_owned(),
    ))
}

/// The world with this id.
///
/// # Errors
/// When the database fails.
pub async fn find(db: &AnyPool, world_id: &str) -> Result<Option<WorldRow>, sqlx::Error> {
    find_by(db, "world_id", world_id).await
}

/// The world with this room code, in any spelling.
///
/// # Errors
/// When the database fails.
pub async fn find_by_room_code(db: &AnyPool, typed: &str) -> Result<Option<WorldRow>, sqlx::Error> {
    match ids::canonical_room_code(typed) {
        Some(code) => find_by(db, "room_code", &code).await,
        None => Ok(None),
    }
}

/// `column` must be a constant of this module, because it is not escaped.
async fn find_by(
    db: &AnyPool,
    column: &'static str,
    value: &str,
) -> Result<Option<WorldRow>, sqlx::Error> {
    let query = format!("SELECT {COLUMNS} FROM worlds WHERE {column} = $1");
    sqlx::query_as(sqlx::AssertSqlSafe(query))
        .bind(value)
        .fetch_optional(db)
        .await
}

/// Public worlds, the fullest first.
///
/// # Errors
/// When the database fails.
pub async fn public(worlds: &Worlds) -> Result<Vec<WorldInfo>, sqlx::Error> {
    let query = format!(
        "SELECT {COLUMNS} FROM worlds WHERE private = 0 AND game_id IN
           (SELECT game_id FROM games WHERE visibility = 'public')
         ORDER BY player_count DESC, updated_at DESC, world_id LIMIT $1"
    );
    let rows: Vec<WorldRow> = sqlx::query_as(sqlx::AssertSqlSafe(query))
        .bind(LIST_MAX)
        .fetch_all(&worlds.core.db)
        .await?;
    Ok(rows.into_iter().map(|row| row.info(worlds)).collect())
}

/// Stores that a world runs another version of its game.
///
/// # Errors
/// When the database fails.
pub async fn set_revision(db: &AnyPool, world_id: &str, revision: &str) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE worlds SET revision = $1 WHERE world_id = $2")
        .bind(revision)
        .bind(world_id)
        .execute(db)
        .await?;
    Ok(())
}

/// Updates every world of a game to another version.
///
/// # Errors
/// When the database fails.
pub async fn set_revision_of_game(
    db: &AnyPool,
    game_id: &str,
    revision: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE worlds SET revision = $1 WHERE game_id = $2")
        .bind(revision)
        .bind(game_id)
        .execute(db)
        .await?;
    Ok(())
}

/// Public persistent worlds of a channel of a game, the most recently played first.
///
/// # Errors
/// When the database fails.
pub async fn persistent_of_game(
    db: &AnyPool,
    game_id: &str,
    channel: Channel,
) -> Result<Vec<WorldRow>, sqlx::Error> {
    let query = format!(
        "SELECT {COLUMNS} FROM worlds WHERE game_id = $1 AND persistent = 1 AND private = 0
           AND channel = $2 ORDER BY updated_at DESC, world_id LIMIT $3"
    );
    sqlx::query_as(sqlx::AssertSqlSafe(query))
        .bind(game_id)
        .bind(channel.name())
        .bind(LIST_MAX)
        .fetch_all(db)
        .await
}

/// Marks a world as used, so that the cleanup does not delete it.
///
/// # Errors
/// 404 when the world has been deleted in the meantime.
pub async fn touch(db: &AnyPool, world_id: &str, now_ms: i64) -> Result<(), ApiError> {
    let touched = sqlx::query("UPDATE worlds SET updated_at = $1 WHERE world_id = $2")
        .bind(now_ms)
        .bind(world_id)
        .execute(db)
        .await?;
    if touched.rows_affected() == 0 {
        return Err(unknown_world());
    }
    Ok(())
}

/// Deletes a world.
///
/// # Errors
/// When the database fails.
pub async fn delete(db: &AnyPool, world_id: &str) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM worlds WHERE world_id = $1")
        .bind(world_id)
        .execute(db)
        .await?;
    Ok(())
}

/// Deletes a world that was not used since `before`; returns the number of deleted worlds.
///
/// # Errors
/// When the database fails.
pub async fn delete_unused(db: &AnyPool, world_id: &str, before: i64) -> Result<u32, sqlx::Error> {
    let deleted = sqlx::query("DELETE FROM worlds WHERE world_id = $1 AND updated_at < $2")
        .bind(world_id)
        .bind(before)
        .execute(db)
        .await?;
    Ok(u32::try_from(deleted.rows_affected()).unwrap_or(u32::MAX))
}

/// 404 response for a room code.
pub fn unknown_room() -> ApiError {
    ApiError::not_found("room_not_found", "there is no room with this code")
}

impl FromRow<'_, AnyRow> for WorldRow {
    fn from_row(row: &AnyRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            spec: WorldSpec::from_row(row)?,
            seed: row.try_get::<i64, _>("seed")?.cast_unsigned(),
            name: row.try_get("name")?,
            description: row.try_get("description")?,
            version: to_u32(row.try_get("version")?),
            owner_id: row.try_get("owner_id")?,
            created_by: row.try_get("created_by")?,
            player_count: to_u32(row.try_get("player_count")?),
            created_at: row.try_get("created_at")?,
            updated_at: row.try_get("updated_at")?,
        })
    }
}

impl WorldRow {
    /// Whether this user owns the world.
    pub fn is_owned_by(&self, user_id: &str) -> bool {
        !user_id.is_empty() && self.owner_id == user_id
    }

    /// Id of the owner; empty for a world without an owner.
    pub fn owner_id(&self) -> &str {
        &self.owner_id
    }

    /// Description of the world for the REST API.
    pub fn info(self, worlds: &Worlds) -> WorldInfo {
        let server = worlds.fleet.server(&self.spec.world_id);
        let player_count = server.as_ref().map_or(self.player_count, |s| s.players());
        WorldInfo {
            running: server.is_some(),
            player_count,
            world_id: self.spec.world_id,
            room_code: self.spec.room_code,
            name: self.name,
            description: self.description,
            game_id: self.spec.game_id,
            revision: self.spec.revision,
            created_by: self.created_by,
            owner_id: Some(self.owner_id).filter(|owner| !owner.is_empty()),
            private: self.spec.private,
            persistent: self.spec.persistent,
            max_players: self.spec.max_players,
            version: self.version,
            created_at: rfc3339(self.created_at),
            updated_at: rfc3339(self.updated_at),
        }
    }
}
