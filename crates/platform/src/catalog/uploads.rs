//! Resumable uploads: created, sent in parts, finished.
//!
//! The bytes are in a file in the data folder. The row stores how many of them are
//! valid, so an interrupted part or a restart leaves no corrupt upload.

use std::io::SeekFrom;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use bytes::Bytes;
use serde::Deserialize;
use sqlx::{AnyPool, Row};
use tokio::fs;
use tokio::io::{AsyncSeekExt, AsyncWriteExt};

use super::created_or_ok;
use super::publish::{self, PublishOptions};
use crate::api::{Channel, PublishResponse, StartUpload, UploadState};
use crate::catalog::Catalog;
use crate::community::auth::Session;
use crate::community::sanctions::ActiveSession;
use crate::core::clock::rfc3339;
use crate::core::db::to_u32;
use crate::core::error::ApiError;
use crate::core::extract::{ApiBytes, ApiJson, ApiPath, ApiQuery};
use crate::core::ids;
use crate::core::locks::LockGuard;

/// Maximum size of a part.
const PART_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum number of open uploads per user, and in total.
const OPEN_PER_USER_MAX: i64 = 4;
const OPEN_MAX: i64 = 200;
/// Time after which an unfinished upload is deleted.
const KEEP_MS: i64 = 24 * 60 * 60 * 1000;
/// Maximum number of files per sweep.
const FILES_SWEPT_MAX: usize = 10_000;

/// Exclusive write access to an upload, until dropped.
async fn lock(catalog: &Catalog, upload_id: &str) -> Result<LockGuard, ApiError> {
    let guard = catalog.core.locks.try_lock(format!("upload:{upload_id}"));
    guard.await.ok_or_else(|| {
        ApiError::new(
            StatusCode::CONFLICT,
            "upload_busy",
            "another part of this upload is being received; send parts one after another",
        )
    })
}

struct Upload {
    upload_id: String,
    size_bytes: u32,
    received_bytes: u32,
    sha256: String,
    channel: Channel,
    notes: String,
    expires_at: i64,
}

impl Upload {
    fn state(&self) -> UploadState {
        UploadState {
            upload_id: self.upload_id.clone(),
            size_bytes: self.size_bytes,
            received_bytes: self.received_bytes,
            part_bytes_max: PART_BYTES_MAX as u32,
            channel: self.channel,
            expires_at: rfc3339(self.expires_at),
        }
    }
}

/// Starts an upload.
///
/// # Errors
/// 400 for an invalid size or hash, 409 with too many open uploads.
#[utoipa::path(
    post, path = "/api/uploads", tag = "store",
    request_body = StartUpload,
    responses(
        (status = 201, body = UploadState),
        (status = 403, description = "You are suspended"),
        (status = 409),
    ),
    security(("bearer" = []))
)]
pub async fn start(
    State(catalog): State<Arc<Catalog>>,
    ActiveSession(session): ActiveSession,
    ApiJson(request): ApiJson<StartUpload>,
) -> Result<(StatusCode, Json<UploadState>), ApiError> {
    let size_max = catalog.core.settings.limits.package_bytes_max;
    if request.size_bytes == 0 {
        return Err(ApiError::bad_request(
            "invalid_field",
            "size_bytes must be the size of the package",
        ));
    }
    if request.size_bytes as usize > size_max {
        return Err(ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "payload_too_large",
            format!("a package may have at most {size_max} bytes"),
        ));
    }
    let sha256 = request.sha256.unwrap_or_default().to_ascii_lowercase();
    if !sha256.is_empty() && !ids::is_sha256_hex(&sha256) {
        return Err(ApiError::bad_request(
            "invalid_field",
            "sha256 must be 64 hexadecimal digits",
        ));
    }
    let now = catalog.core.clock.now_ms();
    let upload = Upload {
        upload_id: ids::new_id("upload"),
        size_bytes: request.size_bytes,
        received_bytes: 0,
        sha256,
        channel: request.channel.unwrap_or_default(),
        notes: publish::notes(request.notes.as_deref())?,
        expires_at: now.saturating_add(KEEP_MS),
    };
    insert(&catalog.core.db, &upload, &session.user_id, now).await?;
    Ok(created_or_ok(true, upload.state()))
}

/// Inserts the upload unless there are too many.
async fn insert(db: &AnyPool, upload: &Upload, user_id: &str, now: i64) -> Result<(), ApiError> {
    let mut transaction = crate::core::db::begin(db).await?;
    sqlx::query(
        "INSERT INTO uploads (upload_id, user_id, size_bytes, received_bytes, sha256, channel, notes,
           created_at, expires_at) VALUES ($1, $2, $3, 0, $4, $5, $6, $7, $8)",
    )
    .bind(&upload.upload_id)
    .bind(user_id)
    .bind(i64::from(upload.size_bytes))
    .bind(&upload.sha256)
    .bind(upload.channel.name())
    .bind(&upload.notes)
    .bind(now)
    .bind(upload.expires_at)
    .execute(&mut *transaction)
    .await?;
    let row = sqlx::query(
        "SELECT COUNT(*) AS all_open,
           CAST(COALESCE(SUM(CASE WHEN user_id = $1 THEN 1 ELSE 0 END), 0) AS BIGINT) AS own
         FROM uploads WHERE expires_at > $2",
    )
    .bind(user_id)
    .bind(now)
    .fetch_one(&mut *transaction)
    .await?;
    if row.try_get::<i64, _>("own")? > OPEN_PER_USER_MAX {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "too_many_uploads",
            format!("you have {OPEN_PER_USER_MAX} uploads open; finish or delete one first"),
        ));
    }
    if row.try_get::<i64, _>("all_open")? > OPEN_MAX {
        let message = "too many uploads are open on this platform; try again later";
        return Err(ApiError::unavailable("uploads_full", message, 60));
    }
    transaction.commit().await?;
    Ok(())
}

/// The state of an upload: where to resume.
///
/// # Errors
/// 404 when the upload does not exist or is not yours.
#[utoipa::path(
    get, path = "/api/uploads/{id}", tag = "store",
    responses((status = 200, body = UploadState)),
    security(("bearer" = []))
)]
pub async fn show(
    State(catalog): State<Arc<Catalog>>,
    session: Session,
    ApiPath(upload_id): ApiPath<String>,
) -> Result<Json<UploadState>, ApiError> {
    let upload = find(&catalog, &upload_id, &session).await?;
    Ok(Json(upload.state()))
}

/// Query of `PUT /api/uploads/{id}/part`.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PartQuery {
    /// Offset of the part in the package: `received_bytes` of the upload.
    offset: u32,
}

/// Sends the next part.
///
/// # Errors
/// 409 for an unexpected offset, with `received_bytes` in `details`.
#[utoipa::path(
    put, path = "/api/uploads/{id}/part", tag = "store",
    params(PartQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, body = UploadState),
        (status = 403, description = "You are suspended"),
        (status = 409),
    ),
    security(("bearer" = []))
)]
pub async fn put_part(
    State(catalog): State<Arc<Catalog>>,
    ActiveSession(session): ActiveSession,
    ApiPath(upload_id): ApiPath<String>,
    ApiQuery(query): ApiQuery<PartQuery>,
    ApiBytes(part): ApiBytes,
) -> Result<Json<UploadState>, ApiError> {
    let mut upload = find(&catalog, &upload_id, &session).await?;
    let _turn = lock(&catalog, &upload_id).await?;
    let received = find(&catalog, &upload_id, &session).await?.received_bytes;
    if query.offset != received {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "wrong_offset",
            format!("the next part begins at {received}"),
        )
        .with_details(serde_json::json!({ "received_bytes": received })));
    }
    let after = u32::try_from(part.len()).map(|length| received.saturating_add(length));
    let after = after.unwrap_or(u32::MAX);
    if part.is_empty() || part.len() > PART_BYTES_MAX || after > upload.size_bytes {
        return Err(ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "bad_part",
            format!(
                "a part must have 1 to {PART_BYTES_MAX} bytes and end within the {} bytes of the \
                    package",
                upload.size_bytes
            ),
        ));
    }
    write_part(&catalog, &upload_id, u64::from(received), &part).await?;
    // Sync the file before the row counts the bytes.
    let counted = sqlx::query(
        "UPDATE uploads SET received_bytes = $1 WHERE upload_id = $2 AND received_bytes = $3",
    )
    .bind(i64::from(after))
    .bind(&upload_id)
    .bind(i64::from(received))
    .execute(&catalog.core.db)
    .await?;
    if counted.rows_affected() == 0 {
        return Err(unknown_upload());
    }
    upload.received_bytes = after;
    Ok(Json(upload.state()))
}

/// Publishes an upload whose parts are complete.
///
/// # Errors
/// 409 while parts are missing, 422 for an invalid package; the upload is deleted
/// then.
#[utoipa::path(
    post, path = "/api/uploads/{id}/finish", tag = "store",
    responses(
        (status = 200, description = "The game has this exact package already", body = PublishResponse),
        (status = 201, body = PublishResponse),
        (status = 403), (status = 409),
        (status = 422, description = "`details` is a PackageReport"),
    ),
    security(("bearer" = []))
)]
pub async fn finish(
    State(catalog): State<Arc<Catalog>>,
    ActiveSession(session): ActiveSession,
    ApiPath(upload_id): ApiPath<String>,
) -> Result<(StatusCode, Json<PublishResponse>), ApiError> {
    find(&catalog, &upload_id, &session).await?;
    let _turn = lock(&catalog, &upload_id).await?;
    let upload = find(&catalog, &upload_id, &session).await?;
    if upload.received_bytes != upload.size_bytes {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "upload_incomplete",
            format!(
                "{} of {} bytes were received; send the rest first",
                upload.received_bytes, upload.size_bytes
            ),
        )
        .with_details(serde_json::json!({ "received_bytes": upload.received_bytes })));
    }
    let _unpacking = catalog.upload_permit().await?;
    let mut archive = fs::read(file(&catalog, &upload_id)).await?;
    // Bytes after the received ones belong to an interrupted part.
    archive.truncate(upload.size_bytes as usize);
    if !upload.sha256.is_empty() && ids::sha256_hex(&archive) != upload.sha256 {
        remove(&catalog, &upload_id).await?;
        return Err(ApiError::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "wrong_hash",
            "the uploaded bytes do not match the SHA-256; upload the package again",
        ));
    }
    let options = PublishOptions {
        channel: upload.channel,
        notes: upload.notes,
    };
    let archive = Bytes::from(archive);
    let published = publish::publish_package(&catalog, archive, &session.user_id, options).await;
    // A rejected package stays invalid, so its upload is deleted. After a database
    // error, finishing can be retried.
    use publish::PublishError::{Channel, Invalid, NotYours, Reserved};
    if matches!(
        published,
        Ok(_) | Err(Invalid(_) | NotYours { .. } | Reserved { .. } | Channel(_))
    ) {
        remove(&catalog, &upload_id).await?;
    }
    let published = published?;
    Ok(created_or_ok(published.new_revision, published))
}

/// Cancels an upload.
///
/// # Errors
/// 404 when the upload does not exist or is not yours.
#[utoipa::path(
    delete, path = "/api/uploads/{id}", tag = "store",
    responses(
        (status = 204, description = "Gone"),
        (status = 409),
    ),
    security(("bearer" = []))
)]
pub async fn give_up(
    State(catalog): State<Arc<Catalog>>,
    session: Session,
    ApiPath(upload_id): ApiPath<String>,
) -> Result<StatusCode, ApiError> {
    find(&catalog, &upload_id, &session).await?;
    let _turn = lock(&catalog, &upload_id).await?;
    remove(&catalog, &upload_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes expired uploads.
///
/// # Errors
/// When the database fails.
pub async fn sweep(catalog: &Catalog, now_ms: i64) -> Result<(), sqlx::Error> {
    let rows = sqlx::query("SELECT upload_id FROM uploads WHERE expires_at <= $1 LIMIT 1000")
        .bind(now_ms)
        .fetch_all(&catalog.core.db)
        .await?;
    for row in &rows {
        let upload_id: String = row.try_get("upload_id")?;
        let Ok(_turn) = lock(catalog, &upload_id).await else {
            continue;
        };
        if let Err(error) = remove(catalog, &upload_id).await {
            tracing::warn!(%error, upload_id, "could not remove an upload");
        }
    }
    sweep_files(catalog).await
}

/// Deletes files of uploads whose rows were deleted with their owner.
async fn sweep_files(catalog: &Catalog) -> Result<(), sqlx::Error> {
    let folder = catalog.core.settings.data_dir.join("uploads");
    let Ok(mut files) = fs::read_dir(folder).await else {
        return Ok(()); // no part was ever sent
    };
    for _ in 0..FILES_SWEPT_MAX {
        let Ok(Some(entry)) = files.next_entry().await else {
            break;
        };
        let name = entry.file_name();
        let Some(upload_id) = name.to_str().and_then(|name| name.strip_suffix(".part")) else {
            continue;
        };
        let row = sqlx::query("SELECT upload_id FROM uploads WHERE upload_id = $1")
            .bind(upload_id)
            .fetch_optional(&catalog.core.db)
            .await?;
        if row.is_none()
            && let Err(error) = fs::remove_file(entry.path()).await
        {
            tracing::warn!(%error, upload_id, "could not remove the file of an upload");
        }
    }
    Ok(())
}

async fn find(catalog: &Catalog, upload_id: &str, session: &Session) -> Result<Upload, ApiError> {
    let row = sqlx::query(
        "SELECT size_bytes, received_bytes, sha256, channel, notes, expires_at FROM uploads
         WHERE upload_id = $1 AND user_id = $2 AND expires_at > $3",
    )
    .bind(upload_id)
    .bind(&session.user_id)
    .bind(catalog.core.clock.now_ms())
    .fetch_optional(&catalog.core.db)
    .await?
    .ok_or_else(unknown_upload)?;
    Ok(Upload {
        upload_id: upload_id.to_owned(),
        size_bytes: to_u32(row.try_get("size_bytes")?),
        received_bytes: to_u32(row.try_get("received_bytes")?),
        sha256: row.try_get("sha256")?,
        channel: Channel::from_name(row.try_get("channel")?),
        notes: row.try_get("notes")?,
        expires_at: row.try_get("expires_at")?,
    })
}

fn unknown_upload() -> ApiError {
    ApiError::not_found("upload_not_found", "upload not found; start a new one")
}

/// Ids are generated here and looked up first, so a client cannot choose the path.
fn file(catalog: &Catalog, upload_id: &str) -> PathBuf {
    let folder = catalog.core.settings.data_dir.join("uploads");
    folder.join(format!("{upload_id}.part"))
}

async fn write_part(
    catalog: &Catalog,
    upload_id: &str,
    offset: u64,
    part: &[u8],
) -> std::io::Result<()> {
    let path = file(catalog, upload_id);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).await?;
    }
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .await?;
    file.seek(SeekFrom::Start(offset)).await?;
    file.write_all(part).await?;
    file.sync_all().await
}

async fn remove(catalog: &Catalog, upload_id: &str) -> Result<(), ApiError> {
    sqlx::query("DELETE FROM uploads WHERE upload_id = $1")
        .bind(upload_id)
        .execute(&catalog.core.db)
        .await?;
    match fs::remove_file(file(catalog, upload_id)).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
