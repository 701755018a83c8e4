//! Opens the database and brings its schema up to date.
//!
//! The `Any` driver keeps one set of queries for SQLite and Postgres: `$1`
//! placeholders, no dialect. Transactions that write begin with a write,
//! because SQLite refuses to upgrade a reader while another writes.

use std::path::Path;
use std::time::Duration;

use sqlx::any::AnyPoolOptions;
use sqlx::{AnyPool, Executor};

/// Enough for readers beside SQLite's single writer.
const CONNECTIONS_MAX: u32 = 8;
/// How long a request waits for a connection before it is told to come back.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// Why the database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenDatabaseError {
    /// The server or the file cannot be reached.
    #[error("could not open the database at {url}: {source}")]
    Connect {
        /// Without any password.
        url: String,
        /// What the driver says.
        source: sqlx::Error,
    },
    /// A migration failed, or the database is newer than this program.
    #[error("could not bring the database schema up to date: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
}

/// URL of the SQLite file in `data_dir`.
pub fn default_url(data_dir: &Path) -> String {
    // Only these characters end a path in the driver's URL.
    let path = data_dir
        .join("frolic.db")
        .to_string_lossy()
        .replace('%', "%25")
        .replace('?', "%3F")
        .replace('#', "%23");
    format!("sqlite://{path}?mode=rwc")
}

/// Connects and migrates.
///
/// # Errors
/// [`OpenDatabaseError`].
pub async fn open(url: &str) -> Result<AnyPool, OpenDatabaseError> {
    sqlx::any::install_default_drivers();
    let is_sqlite = url.starts_with("sqlite:");
    let pool = AnyPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .after_connect(move |connection, _| {
            Box::pin(async move {
                if is_sqlite {
                    // Readers do not wait for the writer. What was acknowledged
                    // is on the disk, not only in the memory of the system: it
                    // survives kill -9 and a power cut.
                    connection.execute("PRAGMA journal_mode = WAL").await?;
                    connection.execute("PRAGMA synchronous = FULL").await?;
                    connection.execute("PRAGMA foreign_keys = ON").await?;
                    connection.execute("PRAGMA busy_timeout = 5000").await?;
                }
                Ok(())
            })
        })
        .connect(url)
        .await
        .map_err(|source| OpenDatabaseError::Connect {
            url: without_password(url),
            source,
        })?;
    sqlx::migrate!("./migrations").run(&pool).await?;
    Ok(pool)
}

/// A database URL that can be logged.
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://…@{host}"),
        None => url.to_owned(),
    }
}

/// Reads a count or size column: rows are our own, but never trusted to be
/// in range.
pub(crate) fn to_u32(value: i64) -> u32 {
    u32::try_from(value.max(0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_stay_out_of_logs() {
        assert_eq!(
            without_password("postgres://frolic:hun@ter2@db:5432/frolic"),
            "postgres://…@db:5432/frolic"
        );
        assert_eq!(without_password("sqlite://data/x.db"), "sqlite://data/x.db");
    }
}
