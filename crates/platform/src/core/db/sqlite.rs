//! Makes SQLite as strict as Postgres.

use std::sync::Mutex;

use sqlx::{AnyConnection, Connection, Executor, Row};

use super::DbErrorKind;

/// An idle connection that stays open as long as the pool. All connections of a process share one
/// view of the WAL index, and the first one decides whether it is writable. Without this
/// connection, the first one might be opened while the disk is read-only.
pub(super) async fn anchor(url: &str) -> Result<Mutex<AnyConnection>, sqlx::Error> {
    let mut connection = AnyConnection::connect(url).await?;
    prepare(&mut connection).await?;
    connection.execute("SELECT 1 FROM sqlite_schema").await?;
    Ok(Mutex::new(connection))
}

/// Configures a new connection as the platform requires.
pub(super) async fn prepare(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    // WAL: readers do not wait for the writer. FULL: acknowledged data is on the disk and not only
    // in the system's memory, so it survives kill -9 and a power failure.
    connection.execute("PRAGMA journal_mode = WAL").await?;
    connection.execute("PRAGMA synchronous = FULL").await?;
    connection.execute("PRAGMA foreign_keys = ON").await?;
    // SQLite opens a file that cannot be written as read-only, without an error. Such a connection
    // would refuse writes long after the disk is writable again, so it is marked here and not
    // reused.
    if !can_write(connection).await? {
        connection.execute("PRAGMA query_only = ON").await?;
    }
    connection.execute("PRAGMA busy_timeout = 20000").await?;
    Ok(())
}

/// Whether a connection was opened while its file was read-only.
pub(super) async fn is_read_only(connection: &mut AnyConnection) -> Result<bool, sqlx::Error> {
    let row = connection.fetch_one("PRAGMA query_only").await?;
    Ok(row.try_get::<i64, _>(0)? != 0)
}

/// Tries to acquire the write lock without waiting.
async fn can_write(connection: &mut AnyConnection) -> Result<bool, sqlx::Error> {
    connection.execute("PRAGMA busy_timeout = 0").await?;
    match connection.execute("BEGIN IMMEDIATE").await {
        Ok(_) => {
            connection.execute("ROLLBACK").await?;
            Ok(true)
        }
        // Another connection holds the write lock, so the file is writable.
        Err(error) => Ok(DbErrorKind::of(&error) == DbErrorKind::Conflict),
    }
}
