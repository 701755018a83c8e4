//! Recordings attached to reports: moderators download one and replay the world with
//! `frolic replay`.
//!
//! Game servers write recordings to one folder, which operators may clean up. A
//! reported recording gets a hard link in a subfolder: it keeps growing while the
//! world runs, takes no extra space, and survives the deletion of the original.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use frolic_fleet_api::recording_name::RecordingName;
use futures_util::stream;
use sqlx::AnyPool;
use tokio::io::{AsyncRead, AsyncReadExt};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::audit::{self, LogRecord};
use super::{Moderator, reports};
use crate::Platform;
use crate::api::ReportRecording;
use crate::core::clock::rfc3339;
use crate::core::error::ApiError;
use crate::core::extract::ApiPath;

/// Subfolder of reported recordings.
const REPORTED: &str = "reported";
const PIECE_BYTES: usize = 64 * 1024;
/// Typical time from an incident to its report.
const TIME_TO_REPORT_MS: i64 = 20_000;
/// A user who left the world longer ago than this cannot attach its recording.
const AWAY_MS_MAX: i64 = 10 * 60 * 1000;

pub fn routes() -> OpenApiRouter<Platform> {
    OpenApiRouter::new().routes(routes!(download))
}

/// Links the recording of a world to a new report, if the reporter was in that world.
/// Failures are only logged: a report without a recording is better than no report.
pub async fn attach(platform: &Platform, report_id: &str, reporter_id: &str, world_id: &str) {
    let Some(folder) = platform.core.settings.record_dir.clone() else {
        return;
    };
    let now_ms = platform.core.clock.now_ms();
    let attached = async {
        let db = &platform.core.db;
        if !was_in_world(db, reporter_id, world_id, now_ms).await? {
            return Ok(());
        }
        if let Some(name) = link(folder, world_id.to_owned(), now_ms).await? {
            sqlx::query("UPDATE reports SET recording = $1 WHERE report_id = $2")
                .bind(name)
                .bind(report_id)
                .execute(db)
                .await
                .map_err(io::Error::other)?;
        }
        Ok::<(), io::Error>(())
    };
    if let Err(error) = attached.await {
        tracing::warn!(%error, report_id, "could not attach a recording to a report");
    }
}

/// Whether the user was recently in the world. Worlds persist the position of their
/// players about once a second.
async fn was_in_world(
    db: &AnyPool,
    user_id: &str,
    world_id: &str,
    now_ms: i64,
) -> io::Result<bool> {
    let row = sqlx::query(
        "SELECT player_id FROM player_checkpoints
         WHERE world_id = $1 AND player_id = $2 AND saved_at >= $3",
    )
    .bind(world_id)
    .bind(user_id)
    .bind(now_ms.saturating_sub(AWAY_MS_MAX))
    .fetch_optional(db)
    .await;
    Ok(row.map_err(io::Error::other)?.is_some())
}

/// Links the current recording of a world and returns its name.
async fn link(folder: PathBuf, world_id: String, now_ms: i64) -> io::Result<Option<String>> {
    let happened_ms = now_ms.saturating_sub(TIME_TO_REPORT_MS).cast_unsigned();
    let kept = tokio::task::spawn_blocking(move || link_newest(&folder, &world_id, happened_ms));
    kept.await
        .unwrap_or_else(|panic| Err(io::Error::other(panic)))
}

fn link_newest(folder: &Path, world_id: &str, happened_ms: u64) -> io::Result<Option<String>> {
    // A process that started after the incident did not record it.
    let rank = |name: &RecordingName| {
        let started = name.started_unix_ms();
        (started <= happened_ms, started)
    };
    let mut newest: Option<RecordingName> = None;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_str().and_then(RecordingName::parse);
        let name = name.filter(|name| name.world() == world_id);
        // Exclude symbolic links, because moderators download the content.
        let name = name.filter(|_| entry.file_type().is_ok_and(|kind| kind.is_file()));
        newest = newest.into_iter().chain(name).max_by_key(rank);
    }
    let Some(name) = newest.map(|name| name.to_string()) else {
        return Ok(None);
    };
    let reported = folder.join(REPORTED);
    fs::create_dir_all(&reported)?;
    match fs::hard_link(folder.join(&name), reported.join(&name)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(Some(name)),
    }
}

/// The API type for a stored recording name.
pub fn shown(file: Option<String>, reported_at_ms: i64) -> Option<ReportRecording> {
    let name = RecordingName::parse(&file?)?;
    let started = i64::try_from(name.started_unix_ms()).ok()?;
    Some(ReportRecording {
        file: name.to_string(),
        started_at: rfc3339(started),
        reported_after_s: u32::try_from((reported_at_ms - started) / 1000).unwrap_or(0),
    })
}

/// The recording of a report, for `frolic replay`
#[utoipa::path(get, path = "/api/moderation/reports/{id}/recording", tag = "moderation",
    security(("bearer" = [])),
    responses((status = 200, description = "A `.replay` file; may still be growing", content_type = "application/octet-stream"),
        (status = 403)))]
async fn download(
    State(platform): State<Platform>,
    Moderator(moderator): Moderator,
    ApiPath(id): ApiPath<String>,
) -> Result<Response, ApiError> {
    let report = reports::find(&platform.core.db, &id).await?;
    let recording = report.recording.ok_or_else(|| {
        let message = "this report has no recording: recording was off (RECORD_DIR), or the \
            report names no world";
        ApiError::not_found("no_recording", message)
    })?;
    let gone = || {
        let message = "the recording was deleted, or is on another machine";
        ApiError::not_found("recording_gone", message)
    };
    let folder = platform
        .core
        .settings
        .record_dir
        .as_ref()
        .ok_or_else(gone)?;
    let path = folder.join(REPORTED).join(&recording.file);
    let is_file = tokio::fs::symlink_metadata(&path).await;
    if !is_file.is_ok_and(|found| found.is_file()) {
        return Err(gone());
    }
    let file = tokio::fs::File::open(&path).await?;
    let bytes = file.metadata().await?.len();
    // It contains everything that the players did and said, so the download is
    // logged.
    let entry = LogRecord {
        actor: (&moderator.user_id, &moderator.username),
        action: "recording",
        target_kind: report.target_kind.name(),
        target_id: &report.target_id,
        target_name: &report.target_name,
        rule: &report.rule.id,
        summary: &recording.file,
    };
    let mut connection = platform.core.db.acquire().await?;
    audit::write(&mut connection, platform.core.clock.now_ms(), entry).await?;
    let mut response = Response::new(stream_body(file.take(bytes)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
    let kind = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, kind);
    let name = format!("attachment; filename=\"{}\"", recording.file);
    let name = HeaderValue::from_str(&name).unwrap_or(HeaderValue::from_static("attachment"));
    headers.insert(header::CONTENT_DISPOSITION, name);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// A body that streams the file.
fn stream_body(file: impl AsyncRead + Send + Unpin + 'static) -> Body {
    Body::from_stream(stream::try_unfold(file, |mut file| async move {
        let mut piece = vec![0; PIECE_BYTES];
        let read = file.read(&mut piece).await?;
        piece.truncate(read);
        Ok::<_, io::Error>((read > 0).then_some((piece, file)))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_that_world_is_kept_when_the_folder_is_tidied() {
        let folder = std::env::temp_dir().join(format!("frolic-reported-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in [
            ("world_1-100.replay", "older"),
            ("world_1-2000.replay", "newer"),
            ("world_1-x-3000.replay", "of another world"),
            ("world_2-9000.replay", "of another world"),
            ("world_1-4000.txt", "something else"),
        ] {
            fs::write(folder.join(name), text).unwrap();
        }
        fs::create_dir(folder.join("world_1-5000.replay")).unwrap();
        let link = |world: &str, happened_ms| link_newest(&folder, world, happened_ms).unwrap();
        let kept = Some("world_1-2000.replay".to_owned());
        assert_eq!(link("world_1", 2500), kept);
        assert_eq!(link("world_1", 2500), kept, "again");
        let before = Some("world_1-100.replay".to_owned());
        assert_eq!(link("world_1", 1999), before, "of the process before");
        assert_eq!(link("world_1", 99), kept, "nothing is as old");
        assert_eq!(link("world_3", 2500), None);
        fs::remove_file(folder.join("world_1-2000.replay")).unwrap();
        let text = fs::read_to_string(folder.join(REPORTED).join("world_1-2000.replay"));
        assert_eq!(text.unwrap(), "newer");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_report_says_how_far_into_the_recording_it_was_made() {
        let shown = shown(
            Some("world_1-1763250000000.replay".into()),
            1_763_250_061_500,
        )
        .unwrap();
        assert_eq!(shown.reported_after_s, 61);
        assert_eq!(shown.started_at, rfc3339(1_763_250_000_000));
    }
}
