//! Game rows, and the page of one game.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row};

use super::access::{self, OptionalSession};
use super::{TaggedBody, assets, channels, pictures};
use crate::api::{Channel, GameDetail, GameSummary, GameVersion, GameVisibility, RunningWorld};
use crate::catalog::Catalog;
use crate::core::clock::rfc3339;
use crate::core::db::{from_row, to_u32};
use crate::core::error::ApiError;
use crate::core::extract::ApiPath;

const VERSIONS_SHOWN: i64 = 50;
/// Maximum number of worlds on a game's page, the fullest first.
const SERVERS_SHOWN: usize = 100;
/// Columns that [`summary`] reads, of `games g JOIN users u`.
pub(super) const SUMMARY_COLUMNS: &str = "g.game_id, g.name, g.description, g.tags, \
     g.capabilities, g.version, g.max_players, g.thumbnail_sha256, g.plays, g.likes, \
     u.username AS creator";

/// The fields of a game that are needed to start worlds.
#[derive(Clone, Debug)]
pub struct GameRow {
    /// Game id (slug).
    pub game_id: String,
    /// Title.
    pub name: String,
    /// The creator's user id.
    pub creator_id: String,
    /// The package to run.
    pub revision: String,
    /// The channel of that revision.
    pub channel: Channel,
    /// Maximum number of players per world.
    pub max_players: u32,
    /// Seconds until an empty world stops.
    pub idle_stop_s: u32,
    /// Whether its worlds persist.
    pub persistent: bool,
    /// Effective visibility.
    pub visibility: GameVisibility,
    /// A rollout in progress.
    pub rollout: Option<Rollout>,
    /// Edit counter, for conflict detection.
    pub edition: u32,
}

/// A package that is released to a percentage of the players.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollout {
    /// The package.
    pub revision: String,
    /// Percentage of players.
    pub pct: u32,
}

impl GameRow {
    /// Whether this user may see and play the game.
    pub fn open_to(&self, user_id: &str) -> bool {
        self.visibility != GameVisibility::Private || self.creator_id == user_id
    }
}

/// The page of one game.
///
/// Unlisted games are visible to users with the link, private ones to their creator.
///
/// # Errors
/// 404 when the game does not exist.
#[utoipa::path(
    get, path = "/api/games/{id}", tag = "store",
    responses(
        (status = 200, body = GameDetail),
        (status = 304, description = "Not modified since `If-None-Match`"),
    ),
    security((), ("bearer" = []))
)]
pub async fn show(
    State(catalog): State<Arc<Catalog>>,
    viewer: OptionalSession,
    ApiPath(game_id): ApiPath<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (db, now_s) = (&catalog.core.db, catalog.core.clock.now_s());
    // A player who has just joined must see their own play counted.
    catalog.recorder.flush_game(&catalog, &game_id).await?;
    let game = access::visible(db, &game_id, &viewer).await?;
    let query = format!(
        "SELECT {SUMMARY_COLUMNS}, g.featured, g.downloads, g.created_at, g.updated_at
         FROM games g JOIN users u ON u.user_id = g.creator_id WHERE g.game_id = $1"
    );
    let row = sqlx::query(sqlx::AssertSqlSafe(query))
        .bind(&game_id)
        .fetch_optional(db)
        .await?
        .ok_or_else(unknown_game)?;
    let grants = assets::Grants::of(&catalog, game.visibility, now_s);
    let servers = running_worlds(&catalog, &game_id);
    let detail = GameDetail {
        summary: summary(&row, players_now(&catalog, &game_id), &grants)?,
        servers,
        versions: versions(db, &game_id).await?,
        featured: row.try_get::<i64, _>("featured")? != 0,
        downloads: row.try_get::<i64, _>("downloads")? != 0,
        beta_version: channels::beta_version(db, &game).await?,
        screenshots: pictures::of_game(db, &game_id, &grants).await?,
        liked: match viewer.user_id() {
            Some(user_id) => super::likes::likes(db, &game_id, user_id).await?,
            None => false,
        },
        mine: viewer.user_id() == Some(game.creator_id.as_str()),
        creator_id: game.creator_id,
        visibility: game.visibility,
        created_at: rfc3339(row.try_get("created_at")?),
        updated_at: rfc3339(row.try_get("updated_at")?),
    };
    Ok(TaggedBody::json(&detail)?.answer(&headers))
}

fn running_worlds(catalog: &Catalog, game_id: &str) -> Vec<RunningWorld> {
    let servers = catalog.fleet.all().into_iter();
    let mut worlds: Vec<RunningWorld> = servers
        .filter(|server| server.spec.game_id == game_id)
        .map(|server| server.running_world())
        .collect();
    worlds.sort_by_key(|world| std::cmp::Reverse(world.players));
    worlds.truncate(SERVERS_SHOWN);
    worlds
}

/// Number of players in all worlds of a game.
pub(super) fn players_now(catalog: &Catalog, game_id: &str) -> u32 {
    let servers = catalog.fleet.all().into_iter();
    let of_game = servers.filter(|server| server.spec.game_id == game_id);
    of_game.fold(0, |sum, server| sum.saturating_add(server.players()))
}

/// The game with this id, on its stable channel.
///
/// # Errors
/// When the database fails.
pub async fn find(db: &AnyPool, game_id: &str) -> Result<Option<GameRow>, sqlx::Error> {
    let row = sqlx::query(
        "SELECT g.game_id, g.name, g.creator_id, g.revision, g.max_players, g.idle_stop_s,
           g.persistent, g.visibility, g.edition, COALESCE(c.next_revision, '') AS next_revision,
           COALESCE(c.rollout_pct, 100) AS rollout_pct
         FROM games g LEFT JOIN game_channels c ON c.game_id = g.game_id AND c.channel = 'stable'
         WHERE g.game_id = $1",
    )
    .bind(game_id)
    .fetch_optional(db)
    .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let next: String = row.try_get("next_revision")?;
    let pct = to_u32(row.try_get("rollout_pct")?);
    let visibility: String = row.try_get("visibility")?;
    Ok(Some(GameRow {
        game_id: row.try_get("game_id")?,
        name: row.try_get("name")?,
        creator_id: row.try_get("creator_id")?,
        revision: row.try_get("revision")?,
        channel: Channel::Stable,
        max_players: to_u32(row.try_get("max_players")?),
        idle_stop_s: to_u32(row.try_get("idle_stop_s")?),
        persistent: row.try_get::<i64, _>("persistent")? != 0,
        visibility: GameVisibility::from_name(&visibility),
        rollout: (!next.is_empty()).then_some(Rollout {
            revision: next,
            pct,
        }),
        edition: to_u32(row.try_get("edition")?),
    }))
}

/// 404 for an unknown game.
pub fn unknown_game() -> ApiError {
    ApiError::not_found("game_not_found", "game not found")
}

from_row!(GameVersion { version, revision, published_at => rfc3339, notes });

async fn versions(db: &AnyPool, game_id: &str) -> Result<Vec<GameVersion>, sqlx::Error> {
    sqlx::query_as(
        "SELECT version, revision, published_at, notes FROM game_versions
         WHERE game_id = $1 AND released_at > 0
         ORDER BY published_at DESC, revision LIMIT $2",
    )
    .bind(game_id)
    .bind(VERSIONS_SHOWN)
    .fetch_all(db)
    .await
}

/// Reads [`SUMMARY_COLUMNS`].
pub(super) fn summary(
    row: &AnyRow,
    players_now: u32,
    grants: &assets::Grants,
) -> Result<GameSummary, sqlx::Error> {
    let id: String = row.try_get("game_id")?;
    let thumbnail: Option<String> = row.try_get("thumbnail_sha256")?;
    let tags: String = row.try_get("tags")?;
    let capabilities: String = row.try_get("capabilities")?;
    Ok(GameSummary {
        thumbnail_url: thumbnail
            .filter(|sha256| !sha256.is_empty())
            .map(|sha256| grants.thumbnail_url(&id, &sha256)),
        id,
        name: row.try_get("name")?,
        description: row.try_get("description")?,
        creator: row.try_get("creator")?,
        players_now,
        plays: to_u32(row.try_get("plays")?),
        likes: to_u32(row.try_get("likes")?),
        tags: serde_json::from_str(&tags).unwrap_or_default(),
        capabilities: serde_json::from_str(&capabilities).unwrap_or_default(),
        version: row.try_get("version")?,
        max_players: to_u32(row.try_get("max_players")?),
    })
}
