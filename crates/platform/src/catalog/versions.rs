//! Versions of a game: every published package, with fields of its manifest.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use sqlx::{AnyPool, Row};

use super::access;
use crate::api::{Channel, VersionInfo, VersionList};
use crate::catalog::Catalog;
use crate::community::auth::Session;
use crate::core::clock::rfc3339;
use crate::core::db::to_u32;
use crate::core::error::ApiError;
use crate::core::extract::{ApiPath, ApiQuery};
use crate::core::paging::PageQuery;

/// The fields of a version that its worlds need.
#[derive(Clone, Debug)]
pub struct VersionRow {
    /// Its package.
    pub revision: String,
    /// Maximum number of players per world.
    pub max_players: u32,
    /// Seconds until an empty world stops.
    pub idle_stop_s: u32,
    /// Whether its worlds persist.
    pub persistent: bool,
}

/// A version of a game.
///
/// # Errors
/// When the database fails.
pub async fn find<'c>(
    db: impl sqlx::Executor<'c, Database = sqlx::Any>,
    game_id: &str,
    revision: &str,
) -> Result<Option<VersionRow>, sqlx::Error> {
    let row = sqlx::query(
        "SELECT revision, max_players, idle_stop_s, persistent FROM game_versions
         WHERE game_id = $1 AND revision = $2",
    )
    .bind(game_id)
    .bind(revision)
    .fetch_optional(db)
    .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    Ok(Some(VersionRow {
        revision: row.try_get("revision")?,
        max_players: to_u32(row.try_get("max_players")?),
        idle_stop_s: to_u32(row.try_get("idle_stop_s")?),
        persistent: row.try_get::<i64, _>("persistent")? != 0,
    }))
}

/// 404 for an unknown version.
pub fn unknown_version() -> ApiError {
    ApiError::not_found(
        "version_not_found",
        "this game has no version with this revision; upload it first",
    )
}

/// All versions of your game, the newest first.
///
/// # Errors
/// 404 for a game you cannot see, 403 for another creator's.
#[utoipa::path(
    get, path = "/api/creator/games/{id}/versions", tag = "creator",
    params(PageQuery),
    responses(
        (status = 200, body = VersionList),
        (status = 403),
    ),
    security(("bearer" = []))
)]
pub async fn list(
    State(catalog): State<Arc<Catalog>>,
    session: Session,
    ApiPath(game_id): ApiPath<String>,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Result<Json<VersionList>, ApiError> {
    let db = &catalog.core.db;
    let paging = query.page()?;
    access::owned(db, &game_id, &session).await?;
    let total = sqlx::query("SELECT COUNT(*) AS total FROM game_versions WHERE game_id = $1")
        .bind(&game_id)
        .fetch_one(db)
        .await?;
    let rows = sqlx::query(
        "SELECT v.version, v.revision, v.size_bytes, v.published_at, v.notes,
           COALESCE(u.username, '') AS published_by
         FROM game_versions v LEFT JOIN users u ON u.user_id = v.published_by
         WHERE v.game_id = $1 ORDER BY v.published_at DESC, v.revision LIMIT $2 OFFSET $3",
    )
    .bind(&game_id)
    .bind(paging.limit())
    .bind(paging.offset())
    .fetch_all(db)
    .await?;
    let on_channels = channels_of(db, &game_id).await?;
    let running = running(&catalog, &game_id);
    let versions = rows
        .iter()
        .map(|row| {
            let revision: String = row.try_get("revision")?;
            let (worlds, players) = running.get(&revision).copied().unwrap_or_default();
            Ok(VersionInfo {
                version: row.try_get("version")?,
                size_bytes: to_u32(row.try_get("size_bytes")?),
                published_by: row.try_get("published_by")?,
                published_at: rfc3339(row.try_get("published_at")?),
                notes: row.try_get("notes")?,
                channels: on_channels.get(&revision).cloned().unwrap_or_default(),
                worlds,
                players,
                revision,
            })
        })
        .collect::<Result<_, sqlx::Error>>()?;
    Ok(Json(VersionList {
        versions,
        total: to_u32(total.try_get("total")?),
        page: paging.page,
        page_size: paging.per_page,
    }))
}

async fn channels_of(
    db: &AnyPool,
    game_id: &str,
) -> Result<HashMap<String, Vec<Channel>>, sqlx::Error> {
    let rows = sqlx::query(
        "SELECT channel, revision, next_revision FROM game_channels WHERE game_id = $1 ORDER BY channel",
    )
    .bind(game_id)
    .fetch_all(db)
    .await?;
    let mut channels: HashMap<String, Vec<Channel>> = HashMap::new();
    for row in &rows {
        let channel = Channel::from_name(row.try_get("channel")?);
        for column in ["revision", "next_revision"] {
            let revision: String = row.try_get(column)?;
            if !revision.is_empty() {
                channels.entry(revision).or_default().push(channel);
            }
        }
    }
    Ok(channels)
}

/// Worlds and players by running revision.
fn running(catalog: &Catalog, game_id: &str) -> HashMap<String, (u32, u32)> {
    let mut running: HashMap<String, (u32, u32)> = HashMap::new();
    for server in catalog.fleet.all() {
        if server.spec.game_id == game_id {
            let (worlds, players) = running.entry(server.revision()).or_default();
            *worlds += 1;
            *players = players.saturating_add(server.players());
        }
    }
    running
}
