//! Publishing: a package is checked, kept as a blob, and becomes the newest
//! version of its game, in one transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use bytes::Bytes;
use frolic_package::{Limits, Manifest, Package, Report, Visibility};
use sqlx::{AnyPool, Row};

use crate::Platform;
use crate::api::PublishResponse;
use crate::auth::Session;
use crate::error::ApiError;
use crate::extract::ApiBytes;
use crate::{games, names};

/// Why a package was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// It is not a valid package; the report says everything that is wrong.
    #[error("the package has problems:\n{0}")]
    Invalid(Report),
    /// The game belongs to somebody else.
    #[error(
        "a game with the id '{game_id}' exists already and is not yours; choose another id in game.toml"
    )]
    NotYours {
        /// The id that is taken.
        game_id: String,
    },
    /// The database refused.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] std::io::Error),
}

/// `POST /api/games` with the bytes of a `.game` file.
///
/// # Errors
/// 422 with the validation report in `details`, 403 for somebody else's game.
pub async fn upload(
    State(platform): State<Platform>,
    session: Session,
    ApiBytes(archive): ApiBytes,
) -> Result<(StatusCode, Json<PublishResponse>), ApiError> {
    // Unpacking costs memory: a few at a time, the rest waits its turn.
    let _turn = platform.upload_turn().await?;
    let published = publish_package(&platform, archive, &session.user_id).await?;
    let status = if published.new_revision {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(published)))
}

/// Publishes a package for the user `creator_id`. Publishing the newest
/// package again changes nothing.
///
/// # Errors
/// [`PublishError`]; nothing is listed then.
pub async fn publish_package(
    platform: &Platform,
    archive: Bytes,
    creator_id: &str,
) -> Result<PublishResponse, PublishError> {
    let package = check(archive.clone()).await?;
    let game_id = &package.manifest.game.id;
    if let Some(game) = games::find(platform.db(), game_id).await? {
        if game.creator_id != creator_id {
            return Err(PublishError::NotYours {
                game_id: game_id.clone(),
            });
        }
        if game.revision == package.revision {
            return Ok(response(&package, false));
        }
    }
    // Blobs first: a row never names a blob that is not there.
    platform.blobs().put(&archive).await?;
    let assets = keep_assets(platform, &package).await?;
    store(platform, &package, archive.len(), &assets, creator_id).await?;
    tracing::info!(
        game = game_id,
        version = package.manifest.game.version,
        revision = package.revision,
        "published"
    );
    Ok(response(&package, true))
}

/// Makes sure that the platform's own creator exists; sample games are theirs.
///
/// # Errors
/// When the database refuses.
pub async fn ensure_house_account(
    db: &AnyPool,
    name: &str,
    now_ms: i64,
) -> Result<String, sqlx::Error> {
    let user_id = format!("user_{}", names::key(name));
    sqlx::query(
        "INSERT INTO users (user_id, username, username_key, kind, role, created_at, last_seen_at)
         VALUES ($1, $2, $3, 'house', 'creator', $4, $4) ON CONFLICT DO NOTHING",
    )
    .bind(&user_id)
    .bind(name)
    .bind(names::key(name))
    .bind(now_ms)
    .execute(db)
    .await?;
    // A guest may have taken the name before: the account is found by its id.
    let row = sqlx::query("SELECT user_id FROM users WHERE user_id = $1 OR username_key = $2")
        .bind(&user_id)
        .bind(names::key(name))
        .fetch_one(db)
        .await?;
    row.try_get("user_id")
}

/// One asset of a package, kept.
struct Asset {
    path: String,
    sha256: String,
    media_type: &'static str,
    size_bytes: usize,
}

/// Reading is pure computing on hostile bytes: off the async threads.
async fn check(archive: Bytes) -> Result<Arc<Package>, PublishError> {
    let read = tokio::task::spawn_blocking(move || Package::read(&archive, &Limits::default()));
    match read.await {
        Ok(Ok(package)) => Ok(Arc::new(package)),
        Ok(Err(report)) => Err(PublishError::Invalid(report)),
        Err(panic) => Err(PublishError::Disk(std::io::Error::other(panic))),
    }
}

async fn keep_assets(platform: &Platform, package: &Package) -> Result<Vec<Asset>, PublishError> {
    let mut assets = Vec::new();
    for (path, bytes) in asset_files(&package.files) {
        let Some(media_type) = media_type(path) else {
            continue;
        };
        assets.push(Asset {
            path: path.to_owned(),
            sha256: platform.blobs().put(bytes).await?,
            media_type,
            size_bytes: bytes.len(),
        });
    }
    Ok(assets)
}

fn asset_files(files: &BTreeMap<String, Vec<u8>>) -> impl Iterator<Item = (&str, &[u8])> {
    files
        .iter()
        .filter(|(path, _)| path.starts_with("assets/"))
        .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
}

/// Types of PKG-2. Nothing in this list can carry a script.
fn media_type(path: &str) -> Option<&'static str> {
    let (_, extension) = path.rsplit_once('.')?;
    Some(match extension.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "gltf" => "model/gltf+json",
        "glb" => "model/gltf-binary",
        "ogg" => "audio/ogg",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        _ => return None,
    })
}

async fn store(
    platform: &Platform,
    package: &Package,
    size_bytes: usize,
    assets: &[Asset],
    creator_id: &str,
) -> Result<(), PublishError> {
    let now = platform.clock().now_ms();
    let manifest = &package.manifest;
    let mut transaction = platform.db().begin().await?;
    let written = upsert_game(manifest, &package.revision, assets, creator_id, now)
        .execute(&mut *transaction)
        .await?;
    // The condition in the statement, not the look before it, keeps two
    // creators from taking the same id at the same moment.
    if written.rows_affected() == 0 {
        return Err(PublishError::NotYours {
            game_id: manifest.game.id.clone(),
        });
    }
    sqlx::query(
        "INSERT INTO game_versions (game_id, revision, version, size_bytes, published_by, published_at)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (game_id, revision) DO UPDATE SET published_at = excluded.published_at",
    )
    .bind(&manifest.game.id)
    .bind(&package.revision)
    .bind(&manifest.game.version)
    .bind(i64::try_from(size_bytes).unwrap_or(i64::MAX))
    .bind(creator_id)
    .bind(now)
    .execute(&mut *transaction)
    .await?;
    for asset in assets {
        sqlx::query(
            "INSERT INTO version_files (revision, path, sha256, media_type, size_bytes)
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (revision, path) DO NOTHING",
        )
        .bind(&package.revision)
        .bind(&asset.path)
        .bind(&asset.sha256)
        .bind(asset.media_type)
        .bind(i64::try_from(asset.size_bytes).unwrap_or(i64::MAX))
        .execute(&mut *transaction)
        .await?;
    }
    transaction.commit().await?;
    Ok(())
}

fn upsert_game<'q>(
    manifest: &'q Manifest,
    revision: &'q str,
    assets: &'q [Asset],
    creator_id: &'q str,
    now: i64,
) -> sqlx::query::Query<'q, sqlx::Any, sqlx::any::AnyArguments> {
    let game = &manifest.game;
    let thumbnail = game
        .thumbnail
        .as_ref()
        .and_then(|path| assets.iter().find(|asset| asset.path == *path))
        .map(|asset| asset.sha256.as_str());
    let visibility = match game.visibility {
        Visibility::Public => "public",
        Visibility::Unlisted => "unlisted",
        Visibility::Private => "private",
    };
    let capabilities: Vec<&str> = manifest.capabilities.names().collect();
    sqlx::query(
        "INSERT INTO games (game_id, creator_id, name, description, tags, visibility, version, revision,
           max_players, idle_stop_s, persistent, thumbnail_sha256, featured, plays, likes, created_at, updated_at,
           capabilities)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0, 0, 0, $13, $13, $14)
         ON CONFLICT (game_id) DO UPDATE SET name = excluded.name, description = excluded.description,
           tags = excluded.tags, visibility = excluded.visibility, version = excluded.version,
           revision = excluded.revision, max_players = excluded.max_players,
           idle_stop_s = excluded.idle_stop_s, persistent = excluded.persistent,
           thumbnail_sha256 = excluded.thumbnail_sha256, capabilities = excluded.capabilities,
           updated_at = excluded.updated_at
         WHERE games.creator_id = excluded.creator_id",
    )
    .bind(&game.id)
    .bind(creator_id)
    .bind(&game.name)
    .bind(&game.description)
    .bind(serde_json::to_string(&game.tags).unwrap_or_else(|_| "[]".to_owned()))
    .bind(visibility)
    .bind(&game.version)
    .bind(revision)
    .bind(i64::from(game.max_players))
    .bind(i64::from(manifest.world.idle_stop_s))
    .bind(i64::from(manifest.world.persistent))
    .bind(thumbnail)
    .bind(now)
    .bind(serde_json::to_string(&capabilities).unwrap_or_else(|_| "[]".to_owned()))
}

fn response(package: &Package, new_revision: bool) -> PublishResponse {
    PublishResponse {
        game_id: package.manifest.game.id.clone(),
        version: package.manifest.game.version.clone(),
        revision: package.revision.clone(),
        new_revision,
    }
}

impl From<PublishError> for ApiError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Invalid(report) => {
                let details = serde_json::to_value(&report).unwrap_or_default();
                ApiError::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "invalid_package",
                    format!("the package has problems: {report}"),
                )
                .with_details(details)
            }
            PublishError::NotYours { .. } => ApiError::forbidden(error.to_string()),
            PublishError::Database(error) => error.into(),
            PublishError::Disk(error) => error.into(),
        }
    }
}
