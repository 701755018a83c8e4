//! Publishing: validates a package, stores it as a blob, and makes it the newest
//! version of its game in one transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use bytes::Bytes;
use frolic_package::{Limits, Manifest, Package, Report, Severity, Visibility};
use serde::Deserialize;
use sqlx::{AnyPool, Row};

use super::channels::{self, ChannelChange};
use super::{created_or_ok, games};
use crate::api::limits::RELEASE_NOTES_CHARS_MAX;
use crate::api::{
    Channel, GameVisibility, PackageProblem, PackageReport, PublishResponse, ValidPackage,
    ValidationReport,
};
use crate::catalog::Catalog;
use crate::community::auth::Session;
use crate::community::sanctions::ActiveSession;
use crate::core::error::ApiError;
use crate::core::extract::{ApiBytes, ApiQuery};
use crate::core::names;
use crate::core::texts;

/// Why a package was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The package is invalid; the report lists every problem.
    #[error("the package has problems:\n{0}")]
    Invalid(Report),
    /// The game belongs to another user.
    #[error(
        "a game with the id '{game_id}' exists already and is not yours; choose another id in game.toml"
    )]
    NotYours {
        /// The requested id.
        game_id: String,
    },
    /// The id conflicts with another route below `/api/games/`.
    #[error("the game id '{game_id}' is reserved; choose another id in game.toml")]
    Reserved {
        /// The requested id.
        game_id: String,
    },
    /// The database failed.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// The blob could not be stored.
    #[error(transparent)]
    Disk(#[from] std::io::Error),
    /// The channel change was rejected.
    #[error(transparent)]
    Channel(Box<ApiError>),
}

/// Reports errors in the scripts of a package. The binary provides it, because this
/// crate does not depend on Luau.
pub trait ScriptChecker: Send + Sync + 'static {
    /// Reports every script that does not compile, with its line. The files are
    /// untrusted.
    fn check(&self, files: &BTreeMap<String, Vec<u8>>, limits: &Limits) -> Report;
}

impl<F> ScriptChecker for F
where
    F: Fn(&BTreeMap<String, Vec<u8>>, &Limits) -> Report + Send + Sync + 'static,
{
    fn check(&self, files: &BTreeMap<String, Vec<u8>>, limits: &Limits) -> Report {
        self(files, limits)
    }
}

/// Ids that conflict with another route below `/api/games/`.
const RESERVED_IDS: [&str; 1] = ["validate"];

/// Options of a publication.
#[derive(Clone, Debug, Default)]
pub struct PublishOptions {
    /// The channel that receives the version.
    pub channel: Channel,
    /// Release notes for players.
    pub notes: String,
}

/// Query of `POST /api/games`.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct UploadQuery {
    /// The channel that receives the version; default `stable`, which is for
    /// everyone.
    #[param(inline)]
    channel: Option<Channel>,
    /// Release notes for players.
    notes: Option<String>,
}

/// Publishes a package.
///
/// The first package of a game creates the game. On `dev` or `beta` it stays private
/// to its creator until a version is released to `stable`.
///
/// # Errors
/// 422 with the validation report in `details`, 403 for another creator's game.
#[utoipa::path(
    post, path = "/api/games", tag = "store",
    params(UploadQuery),
    request_body(
        content = Vec<u8>, content_type = "application/octet-stream",
        description = "A `.game` file"
    ),
    responses(
        (status = 200, description = "The game has this exact package already", body = PublishResponse),
        (status = 201, body = PublishResponse),
        (status = 403), (status = 409),
        (status = 422, description = "`details` is a PackageReport"),
    ),
    security(("bearer" = []))
)]
pub async fn upload(
    State(catalog): State<Arc<Catalog>>,
    ActiveSession(session): ActiveSession,
    ApiQuery(query): ApiQuery<UploadQuery>,
    ApiBytes(archive): ApiBytes,
) -> Result<(StatusCode, Json<PublishResponse>), ApiError> {
    let options = PublishOptions {
        channel: query.channel.unwrap_or_default(),
        notes: notes(query.notes.as_deref())?,
    };
    // Unpacking needs memory: bound the number of concurrent uploads.
    let _turn = catalog.upload_permit().await?;
    let published = publish_package(&catalog, archive, &session.user_id, options).await?;
    Ok(created_or_ok(published.new_revision, published))
}

/// Validates a package without storing it.
///
/// # Errors
/// 401 without a valid session, 413 for a package that is too large.
#[utoipa::path(
    post, path = "/api/games/validate", tag = "store",
    request_body(
        content = Vec<u8>, content_type = "application/octet-stream",
        description = "A `.game` file"
    ),
    responses((status = 200, body = ValidationReport)),
    security(("bearer" = []))
)]
pub async fn validate(
    State(catalog): State<Arc<Catalog>>,
    _: Session,
    ApiBytes(archive): ApiBytes,
) -> Result<Json<ValidationReport>, ApiError> {
    if archive.is_empty() {
        let advice = "send the package as the body of the request";
        return Err(ApiError::bad_request("empty_body", advice));
    }
    let _turn = catalog.upload_permit().await?;
    let size_bytes = u32::try_from(archive.len()).unwrap_or(u32::MAX);
    let found = match check(&catalog, archive).await {
        Ok(package) => ValidationReport {
            ok: true,
            report: report(&package.warnings),
            package: Some(ValidPackage {
                game_id: package.manifest.game.id.clone(),
                name: package.manifest.game.name.clone(),
                version: package.manifest.game.version.clone(),
                revision: package.revision.clone(),
                files: u32::try_from(package.files.len()).unwrap_or(u32::MAX),
                size_bytes,
                capabilities: capabilities(&package.manifest),
            }),
        },
        Err(PublishError::Invalid(problems)) => ValidationReport {
            ok: false,
            package: None,
            report: report(&problems),
        },
        Err(other) => return Err(other.into()),
    };
    Ok(Json(found))
}

/// Cleans release notes.
///
/// # Errors
/// 400 when they are too long.
pub fn notes(typed: Option<&str>) -> Result<String, ApiError> {
    texts::whole_lines(typed.unwrap_or(""), RELEASE_NOTES_CHARS_MAX).ok_or_else(|| {
        ApiError::bad_request(
            "invalid_field",
            format!(
                "notes must have at most {} characters",
                RELEASE_NOTES_CHARS_MAX
            ),
        )
    })
}

/// Publishes a package for the user `creator_id`. Publishing the package that the
/// channel has already changes nothing.
///
/// # Errors
/// [`PublishError`]; nothing is published then.
pub async fn publish_package(
    catalog: &Catalog,
    archive: Bytes,
    creator_id: &str,
    options: PublishOptions,
) -> Result<PublishResponse, PublishError> {
    let package = check(catalog, archive.clone()).await?;
    let game_id = &package.manifest.game.id;
    if RESERVED_IDS.contains(&game_id.as_str()) {
        return Err(PublishError::Reserved {
            game_id: game_id.clone(),
        });
    }
    if let Some(game) = games::find(&catalog.core.db, game_id).await? {
        if game.creator_id != creator_id {
            return Err(PublishError::NotYours {
                game_id: game_id.clone(),
            });
        }
        let given = channels::given(&catalog.core.db, game_id, options.channel).await?;
        if given
            .is_some_and(|(revision, rollout)| revision == package.revision && rollout.is_none())
        {
            return Ok(response(&package, options.channel, game.visibility, false));
        }
    }
    // Blobs first: a row must never reference a missing blob.
    catalog.core.blobs.put(&archive).await?;
    let assets = store_assets(catalog, &package).await?;
    store(
        catalog,
        &package,
        archive.len(),
        &assets,
        creator_id,
        &options,
    )
    .await?;
    super::game_changed(catalog, game_id).await?;
    tracing::info!(
        game = game_id,
        version = package.manifest.game.version,
        revision = package.revision,
        channel = options.channel.name(),
        "published"
    );
    let game = games::find(&catalog.core.db, game_id).await?;
    let visibility = game.map_or(GameVisibility::Private, |game| game.visibility);
    Ok(response(&package, options.channel, visibility, true))
}

/// Creates the platform's built-in account if it is missing. It owns the sample
/// games.
///
/// # Errors
/// When the database fails.
pub async fn ensure_builtin_account(
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
    // Look up by id as well: a guest may have taken the name.
    let row = sqlx::query("SELECT user_id FROM users WHERE user_id = $1 OR username_key = $2")
        .bind(&user_id)
        .bind(names::key(name))
        .fetch_one(db)
        .await?;
    row.try_get("user_id")
}

/// A stored asset of a package.
struct Asset {
    path: String,
    sha256: String,
    media_type: &'static str,
    size_bytes: usize,
}

/// Validation is CPU-bound work on untrusted bytes, so it runs on a blocking thread.
async fn check(catalog: &Catalog, archive: Bytes) -> Result<Arc<Package>, PublishError> {
    let checker = catalog.script_checker.clone();
    let read = tokio::task::spawn_blocking(move || {
        let limits = Limits::default();
        let mut package = Package::read(&archive, &limits)?;
        package
            .warnings
            .append(checker.check(&package.files, &limits));
        match package.warnings.has_errors() {
            true => Err(package.warnings),
            false => Ok(package),
        }
    });
    match read.await {
        Ok(Ok(package)) => Ok(Arc::new(package)),
        Ok(Err(report)) => Err(PublishError::Invalid(report)),
        Err(panic) => Err(PublishError::Disk(std::io::Error::other(panic))),
    }
}

async fn store_assets(catalog: &Catalog, package: &Package) -> Result<Vec<Asset>, PublishError> {
    let mut assets = Vec::new();
    for (path, bytes) in asset_files(&package.files) {
        let Some(media_type) = media_type(path) else {
            continue;
        };
        assets.push(Asset {
            path: path.to_owned(),
            sha256: catalog.core.blobs.put(bytes).await?,
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

/// Media types of assets. None of them can execute scripts in a browser.
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
    catalog: &Catalog,
    package: &Package,
    size_bytes: usize,
    assets: &[Asset],
    creator_id: &str,
    options: &PublishOptions,
) -> Result<(), PublishError> {
    let now = catalog.core.clock.now_ms();
    let manifest = &package.manifest;
    let game_id = &manifest.game.id;
    let mut transaction = crate::core::db::begin(&catalog.core.db).await?;
    let written = upsert_game(package, creator_id, options.channel, now)
        .execute(&mut *transaction)
        .await?;
    // The condition in the statement, not the earlier check, prevents two creators
    // from taking the same id concurrently.
    if written.rows_affected() == 0 {
        return Err(PublishError::NotYours {
            game_id: game_id.clone(),
        });
    }
    insert_version(package, size_bytes, assets, creator_id, &options.notes, now)
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
    let change = ChannelChange::Release(&package.revision);
    channels::apply(
        &mut transaction,
        game_id,
        options.channel,
        change,
        creator_id,
        now,
    )
    .await?;
    if options.channel == Channel::Stable {
        sqlx::query(
            "UPDATE games SET chosen_visibility =
               CASE WHEN edited LIKE '%\"visibility\"%' THEN chosen_visibility ELSE $1 END
             WHERE game_id = $2",
        )
        .bind(visibility(manifest).name())
        .bind(game_id)
        .execute(&mut *transaction)
        .await?;
        channels::refresh_visibility(&mut transaction, game_id).await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// Creates the game, or locks its row and increments its edition. A game whose first
/// version is not on `stable` starts unpublished.
fn upsert_game<'q>(
    package: &'q Package,
    creator_id: &'q str,
    channel: Channel,
    now: i64,
) -> sqlx::query::Query<'q, sqlx::Any, sqlx::any::AnyArguments> {
    let manifest = &package.manifest;
    let game = &manifest.game;
    let chosen = visibility(manifest);
    let published = channel == Channel::Stable;
    let now_visible = match published {
        true => chosen,
        false => GameVisibility::Private,
    };
    sqlx::query(
        "INSERT INTO games (game_id, creator_id, name, description, tags, visibility, version, revision,
           max_players, idle_stop_s, persistent, thumbnail_sha256, featured, plays, likes, created_at, updated_at,
           capabilities, chosen_visibility, published)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, '', 0, 0, 0, $12, $12, $13, $14, $15)
         ON CONFLICT (game_id) DO UPDATE SET edition = games.edition + 1, updated_at = excluded.updated_at
         WHERE games.creator_id = excluded.creator_id",
    )
    .bind(&game.id)
    .bind(creator_id)
    .bind(&game.name)
    .bind(&game.description)
    .bind(json_list(&game.tags))
    .bind(now_visible.name())
    .bind(&game.version)
    .bind(&package.revision)
    .bind(i64::from(game.max_players))
    .bind(i64::from(manifest.world.idle_stop_s))
    .bind(i64::from(manifest.world.persistent))
    .bind(now)
    .bind(json_list(&capabilities(manifest)))
    .bind(chosen.name())
    .bind(i64::from(published))
}

fn insert_version<'q>(
    package: &'q Package,
    size_bytes: usize,
    assets: &'q [Asset],
    creator_id: &'q str,
    notes: &'q str,
    now: i64,
) -> sqlx::query::Query<'q, sqlx::Any, sqlx::any::AnyArguments> {
    let manifest = &package.manifest;
    let game = &manifest.game;
    let thumbnail = game
        .thumbnail
        .as_ref()
        .and_then(|path| assets.iter().find(|asset| asset.path == *path))
        .map_or("", |asset| asset.sha256.as_str());
    sqlx::query(
        "INSERT INTO game_versions (game_id, revision, version, size_bytes, published_by, published_at,
           name, description, tags, capabilities, thumbnail_sha256, max_players, idle_stop_s, persistent, notes)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
         ON CONFLICT (game_id, revision) DO UPDATE SET published_at = excluded.published_at,
           notes = CASE WHEN excluded.notes = '' THEN game_versions.notes ELSE excluded.notes END",
    )
    .bind(&game.id)
    .bind(&package.revision)
    .bind(&game.version)
    .bind(i64::try_from(size_bytes).unwrap_or(i64::MAX))
    .bind(creator_id)
    .bind(now)
    .bind(&game.name)
    .bind(&game.description)
    .bind(json_list(&game.tags))
    .bind(json_list(&capabilities(manifest)))
    .bind(thumbnail)
    .bind(i64::from(game.max_players))
    .bind(i64::from(manifest.world.idle_stop_s))
    .bind(i64::from(manifest.world.persistent))
    .bind(notes)
}

fn json_list(words: &[String]) -> String {
    serde_json::to_string(words).unwrap_or_else(|_| "[]".to_owned())
}

fn capabilities(manifest: &Manifest) -> Vec<String> {
    manifest.capabilities.names().map(str::to_owned).collect()
}

fn visibility(manifest: &Manifest) -> GameVisibility {
    match manifest.game.visibility {
        Visibility::Public => GameVisibility::Public,
        Visibility::Unlisted => GameVisibility::Unlisted,
        Visibility::Private => GameVisibility::Private,
    }
}

fn report(report: &Report) -> PackageReport {
    let problems = report.problems.iter();
    PackageReport {
        problems: problems
            .map(|problem| PackageProblem {
                severity: match problem.severity {
                    Severity::Error => "error",
                    Severity::Warning => "warning",
                }
                .to_owned(),
                rule: problem.rule.name(),
                file: problem.file.clone(),
                line: problem.line,
                column: problem.column,
                message: problem.message.clone(),
            })
            .collect(),
        omitted: u32::try_from(report.omitted).unwrap_or(u32::MAX),
    }
}

fn response(
    package: &Package,
    channel: Channel,
    visibility: GameVisibility,
    new_revision: bool,
) -> PublishResponse {
    PublishResponse {
        game_id: package.manifest.game.id.clone(),
        version: package.manifest.game.version.clone(),
        revision: package.revision.clone(),
        new_revision,
        channel,
        visibility,
        report: report(&package.warnings),
    }
}

impl From<PublishError> for ApiError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Invalid(report) => {
                let details = serde_json::to_value(self::report(&report)).unwrap_or_default();
                ApiError::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "invalid_package",
                    format!("the package has problems: {report}"),
                )
                .with_details(details)
            }
            PublishError::NotYours { .. } => ApiError::forbidden(error.to_string()),
            PublishError::Reserved { .. } => {
                ApiError::new(StatusCode::CONFLICT, "reserved_id", error.to_string())
            }
            PublishError::Database(error) => error.into(),
            PublishError::Disk(error) => error.into(),
            PublishError::Channel(error) => *error,
        }
    }
}

impl From<ApiError> for PublishError {
    fn from(error: ApiError) -> Self {
        PublishError::Channel(Box::new(error))
    }
}
