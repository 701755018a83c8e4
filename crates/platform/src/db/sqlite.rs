//! What SQLite needs to be as strict as Postgres.

use std::sync::Mutex;

use sqlx::{AnyConnection, Connection, Executor, Row};

use super::Trouble;

/// A connection that is open as long as the pool is, and does nothing. All connections
/// of a process share one view of the index of the log; the first one decides whether
/// it can be written. Without this one, that might be one of a moment in which the
/// disk was read-only.
pub(super) async fn anchor(url: &str) -> Result<Mutex<AnyConnection>, sqlx::Error> {
    let mut connection = AnyConnection::connect(url).await?;
    prepare(&mut connection).await?;
    connection.execute("SELECT 1 FROM sqlite_schema").await?;
    Ok(Mutex::new(connection))
}

/// Makes a new connection what the platform relies on.
pub(super) async fn prepare(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    // Readers do not wait for the writer. What was acknowledged is on the disk,
    // not only in the memory of the system: it survives kill -9 and a power cut.
    connection.execute("PRAGMA journal_mode = WAL").await?;
    connection.execute("PRAGMA synchronous = FULL").await?;
    connection.execute("PRAGMA foreign_keys = ON").await?;
    // A file that cannot be written is opened for reading, without an error. Such a
    // connection would refuse writes long after the disk takes them again, so it is
    // marked, and used once.
    if !can_write(connection).await? {
        connection.execute("PRAGMA query_only = ON").await?;
    }
    connection.execute("PRAGMA busy_timeout = 20000").await?;
    Ok(())
}

/// Whether a connection was opened while its file could only be read.
pub(super) async fn is_read_only(connection: &mut AnyConnection) -> Result<bool, sqlx::Error> {
    let row = connection.fetch_one("PRAGMA query_only").await?;
    Ok(row.try_get::<i64, _>(0)? != 0)
}

/// Tries to be the writer for a moment, without waiting for another one.
async fn can_write(connection: &mut AnyConnection) -> Result<bool, sqlx::Error> {
    connection.execute("PRAGMA busy_timeout = 0").await?;
    match connection.execute("BEGIN IMMEDIATE").await {
        Ok(_) => {
            connection.execute("ROLLBACK").await?;
            Ok(true)
        }
        // Somebody writes, so it can be written.
        Err(error) => Ok(Trouble::of(&error) == Trouble::Busy),
    }
}
