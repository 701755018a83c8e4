//! The store's listings and game pages (PLAT-9), and the files of games.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Deserialize;
use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row};

use crate::Platform;
use crate::api::{GameDetail, GameFile, GameFiles, GameList, GameSummary, GameVersion};
use crate::clock::rfc3339;
use crate::db::to_u32;
use crate::error::ApiError;
use crate::extract::{ApiPath, ApiQuery};
use crate::ids;

const SCRIPT_MEDIA_TYPE: &str = "application/octet-stream";
const PAGE_SIZE: u32 = 24;
/// Pages past this are somebody's mistake; the offset stays cheap.
const PAGE_MAX: u32 = 10_000;
const QUERY_CHARS_MAX: usize = 64;
const VERSIONS_SHOWN: i64 = 50;
/// Summary columns; `players_now` is a sum over the game's worlds.
const SUMMARY: &str =
    "SELECT g.game_id, g.name, g.description, g.tags, g.capabilities, g.version, g.max_players,
       g.thumbnail_sha256, g.plays, g.likes, u.username AS creator,
       CAST(COALESCE(p.players, 0) AS BIGINT) AS players_now
     FROM games g JOIN users u ON u.user_id = g.creator_id
     LEFT JOIN (SELECT game_id, SUM(player_count) AS players FROM worlds
                WHERE player_count > 0 GROUP BY game_id) p ON p.game_id = g.game_id";

/// What is needed of a game to make worlds of it.
#[derive(Clone, Debug)]
pub struct GameRow {
    /// Slug.
    pub game_id: String,
    /// Title.
    pub name: String,
    /// Who may change it.
    pub creator_id: String,
    /// Newest package.
    pub revision: String,
    /// Players that fit into one world.
    pub max_players: u32,
    /// How long its worlds may be empty.
    pub idle_stop_s: u32,
    /// Whether its worlds are kept.
    pub persistent: bool,
    private: bool,
}

impl GameRow {
    /// Whether this person may see and play it.
    pub fn open_to(&self, user_id: &str) -> bool {
        !self.private || self.creator_id == user_id
    }
}

/// Query of `GET /api/games`.
#[derive(Debug, Default, Deserialize)]
pub struct ListQuery {
    #[serde(default)]
    sort: Sort,
    #[serde(default)]
    q: String,
    page: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Sort {
    #[default]
    Popular,
    New,
    Featured,
}

impl Sort {
    fn order(self) -> &'static str {
        match self {
            Sort::Popular | Sort::Featured => {
                "players_now DESC, g.plays + 5 * g.likes DESC, g.created_at DESC, g.game_id"
            }
            Sort::New => "g.created_at DESC, g.game_id",
        }
    }

    fn filter(self) -> &'static str {
        match self {
            Sort::Featured => " AND g.featured = 1",
            Sort::Popular | Sort::New => "",
        }
    }
}

/// `GET /api/games?sort=&q=&page=`.
///
/// # Errors
/// 400 for a query that means nothing.
pub async fn list(
    State(platform): State<Platform>,
    ApiQuery(query): ApiQuery<ListQuery>,
) -> Result<Json<GameList>, ApiError> {
    let page = query.page.unwrap_or(1).clamp(1, PAGE_MAX);
    let pattern = like_pattern(&query.q);
    let filter = format!(
        "g.visibility = 'public'{} AND (LOWER(g.name) LIKE $1 ESCAPE '!'
          OR LOWER(g.description) LIKE $1 ESCAPE '!' OR LOWER(g.tags) LIKE $1 ESCAPE '!')",
        query.sort.filter()
    );
    let count = format!("SELECT COUNT(*) AS total FROM games g WHERE {filter}");
    let total: i64 = sqlx::query(sqlx::AssertSqlSafe(count))
        .bind(&pattern)
        .fetch_one(platform.db())
        .await?
        .try_get("total")?;
    let select = format!(
        "{SUMMARY} WHERE {filter} ORDER BY {} LIMIT $2 OFFSET $3",
        query.sort.order()
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(select))
        .bind(&pattern)
        .bind(i64::from(PAGE_SIZE))
        .bind(i64::from(page - 1) * i64::from(PAGE_SIZE))
        .fetch_all(platform.db())
        .await?;
    let games = rows.iter().map(summary).collect::<Result<_, _>>()?;
    Ok(Json(GameList {
        games,
        total: to_u32(total),
        page,
        page_size: PAGE_SIZE,
    }))
}

/// `GET /api/games/{id}`. Unlisted games are found by whoever has the link.
///
/// # Errors
/// 404 when there is no such game.
pub async fn show(
    State(platform): State<Platform>,
    ApiPath(game_id): ApiPath<String>,
) -> Result<Json<GameDetail>, ApiError> {
    let select = format!("{SUMMARY} WHERE g.game_id = $1 AND g.visibility <> 'private'");
    let row = sqlx::query(sqlx::AssertSqlSafe(select))
        .bind(&game_id)
        .fetch_optional(platform.db())
        .await?
        .ok_or_else(unknown_game)?;
    let servers = platform
        .fleet()
        .all()
        .into_iter()
        .filter(|server| server.spec.game_id == game_id)
        .map(|server| server.running_world())
        .collect();
    Ok(Json(GameDetail {
        summary: summary(&row)?,
        servers,
        versions: versions(platform.db(), &game_id).await?,
    }))
}

/// `GET /api/games/{id}/files`.
///
/// # Errors
/// 404 when there is no such game.
pub async fn files(
    State(platform): State<Platform>,
    ApiPath(game_id): ApiPath<String>,
) -> Result<Json<GameFiles>, ApiError> {
    let game = find(platform.db(), &game_id)
        .await?
        .filter(|game| !game.private)
        .ok_or_else(unknown_game)?;
    let rows = sqlx::query(
        "SELECT path, sha256, media_type, size_bytes FROM version_files WHERE revision = $1 ORDER BY path",
    )
    .bind(&game.revision)
    .fetch_all(platform.db())
    .await?;
    let files = rows
        .iter()
        .map(|row| {
            Ok(GameFile {
                path: row.try_get("path")?,
                url: format!("/cdn/{}", row.try_get::<String, _>("sha256")?),
                media_type: row.try_get("media_type")?,
                size_bytes: to_u32(row.try_get("size_bytes")?),
            })
        })
        .collect::<Result<_, sqlx::Error>>()?;
    Ok(Json(GameFiles {
        revision: game.revision,
        files,
    }))
}

/// `GET /api/games/{id}/thumbnail`: follows the game's newest version.
///
/// # Errors
/// 404 when there is no such game, or it has no picture.
pub async fn thumbnail(
    State(platform): State<Platform>,
    ApiPath(game_id): ApiPath<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let row = sqlx::query(
        "SELECT thumbnail_sha256 FROM games WHERE game_id = $1 AND visibility <> 'private'",
    )
    .bind(&game_id)
    .fetch_optional(platform.db())
    .await?
    .ok_or_else(unknown_game)?;
    let sha256: Option<String> = row.try_get("thumbnail_sha256")?;
    let sha256 =
        sha256.ok_or_else(|| ApiError::not_found("no_thumbnail", "this game has no thumbnail"))?;
    asset(&platform, &sha256, &headers, "public, max-age=300").await
}

/// `GET /cdn/{sha256}`: assets of published packages, never the packages.
///
/// # Errors
/// 404 for anything that is not the hash of such an asset.
pub async fn cdn(
    State(platform): State<Platform>,
    ApiPath(sha256): ApiPath<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    asset(
        &platform,
        &sha256,
        &headers,
        "public, max-age=31536000, immutable",
    )
    .await
}

async fn asset(
    platform: &Platform,
    sha256: &str,
    request: &HeaderMap,
    cache: &'static str,
) -> Result<Response, ApiError> {
    let unknown = || ApiError::not_found("file_not_found", "there is no such file");
    if !ids::is_sha256_hex(sha256) {
        return Err(unknown());
    }
    let row = sqlx::query("SELECT media_type FROM version_files WHERE sha256 = $1 LIMIT 1")
        .bind(sha256)
        .fetch_optional(platform.db())
        .await?;
    let (blobs, media_type) = match row {
        Some(row) => (platform.blobs(), row.try_get("media_type")?),
        // Compiled scripts are no files of any package.
        None => (platform.script_blobs(), SCRIPT_MEDIA_TYPE.to_owned()),
    };
    if !blobs.has(sha256).await? {
        return Err(unknown());
    }
    let etag = format!("\"{sha256}\"");
    if request
        .get(header::IF_NONE_MATCH)
        .is_some_and(|given| given.as_bytes() == etag.as_bytes())
    {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, etag)]).into_response());
    }
    let bytes = blobs.get(sha256).await?.ok_or_else(unknown)?;
    Ok(asset_response(bytes, &media_type, &etag, cache))
}

fn asset_response(bytes: Bytes, media_type: &str, etag: &str, cache: &'static str) -> Response {
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    let media_type = HeaderValue::from_str(media_type)
        .unwrap_or(HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_TYPE, media_type);
    if let Ok(etag) = HeaderValue::from_str(etag) {
        headers.insert(header::ETAG, etag);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; sandbox"),
    );
    response
}

/// The game with this id.
///
/// # Errors
/// When the database refuses.
pub async fn find(db: &AnyPool, game_id: &str) -> Result<Option<GameRow>, sqlx::Error> {
    let row = sqlx::query(
        "SELECT game_id, name, creator_id, revision, max_players, idle_stop_s, persistent, visibility
         FROM games WHERE game_id = $1",
    )
    .bind(game_id)
    .fetch_optional(db)
    .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    Ok(Some(GameRow {
        game_id: row.try_get("game_id")?,
        name: row.try_get("name")?,
        creator_id: row.try_get("creator_id")?,
        revision: row.try_get("revision")?,
        max_players: to_u32(row.try_get("max_players")?),
        idle_stop_s: to_u32(row.try_get("idle_stop_s")?),
        persistent: row.try_get::<i64, _>("persistent")? != 0,
        private: row.try_get::<String, _>("visibility")? == "private",
    }))
}

/// Counts one more play.
///
/// # Errors
/// When the database refuses.
pub async fn count_play(db: &AnyPool, game_id: &str) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE games SET plays = plays + 1 WHERE game_id = $1")
        .bind(game_id)
        .execute(db)
        .await?;
    Ok(())
}

/// 404 for a game.
pub fn unknown_game() -> ApiError {
    ApiError::not_found("game_not_found", "there is no such game in the store")
}

async fn versions(db: &AnyPool, game_id: &str) -> Result<Vec<GameVersion>, sqlx::Error> {
    let rows = sqlx::query(
        "SELECT version, revision, published_at FROM game_versions WHERE game_id = $1
         ORDER BY published_at DESC, revision LIMIT $2",
    )
    .bind(game_id)
    .bind(VERSIONS_SHOWN)
    .fetch_all(db)
    .await?;
    rows.iter()
        .map(|row| {
            Ok(GameVersion {
                version: row.try_get("version")?,
                revision: row.try_get("revision")?,
                published_at: rfc3339(row.try_get("published_at")?),
            })
        })
        .collect()
}

fn summary(row: &AnyRow) -> Result<GameSummary, sqlx::Error> {
    let id: String = row.try_get("game_id")?;
    let thumbnail: Option<String> = row.try_get("thumbnail_sha256")?;
    let tags: String = row.try_get("tags")?;
    let capabilities: String = row.try_get("capabilities")?;
    Ok(GameSummary {
        // The hash makes the address change with the picture.
        thumbnail_url: thumbnail.map(|sha256| {
            format!(
                "/api/games/{id}/thumbnail?v={}",
                sha256.get(..8).unwrap_or("")
            )
        }),
        id,
        name: row.try_get("name")?,
        description: row.try_get("description")?,
        creator: row.try_get("creator")?,
        players_now: to_u32(row.try_get("players_now")?),
        plays: to_u32(row.try_get("plays")?),
        likes: to_u32(row.try_get("likes")?),
        tags: serde_json::from_str(&tags).unwrap_or_default(),
        capabilities: serde_json::from_str(&capabilities).unwrap_or_default(),
        version: row.try_get("version")?,
        max_players: to_u32(row.try_get("max_players")?),
    })
}

/// A pattern that finds `typed` anywhere, with its wildcards taken literally.
fn like_pattern(typed: &str) -> String {
    let mut pattern = String::from("%");
    for c in typed
        .trim()
        .chars()
        .take(QUERY_CHARS_MAX)
        .flat_map(char::to_lowercase)
    {
        if matches!(c, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_in_a_search_are_literal() {
        assert_eq!(like_pattern(" 100%_Fun! "), "%100!%!_fun!!%");
        assert_eq!(like_pattern(""), "%%");
    }
}
