//! Opens the database and brings its schema up to date.
//!
//! The `Any` driver allows the same queries for SQLite and Postgres: `$1` placeholders, no dialect.
//! Transactions with writes must begin as write transactions (`transaction.rs`), because SQLite
//! refuses to upgrade a reader while another connection writes. Both databases compare and sort
//! text by its bytes (`postgres.rs`).

mod error_kind;
mod migrations;
mod postgres;
mod rows;
mod sqlite;
mod transaction;

use std::path::Path;
use std::time::Duration;

use sqlx::any::AnyPoolOptions;
use sqlx::{Any, AnyPool, Executor, Transaction};

pub(crate) use error_kind::DbErrorKind;
pub(crate) use rows::{flag, from_row, json, non_empty};
pub(crate) use transaction::{Committed, begin};

/// Enough for readers beside SQLite's single writer.
const SQLITE_CONNECTIONS_MAX: u32 = 8;
/// Postgres supports concurrent writers; by default it allows 100 connections in total.
const POSTGRES_CONNECTIONS_MAX: u32 = 16;
/// How long a request waits for a connection before it fails with 503. A Postgres server may be
/// down. A SQLite file is only busy: many simultaneous logins have to wait for its single writer.
const POSTGRES_ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
const SQLITE_ACQUIRE_TIMEOUT: Duration = Duration::from_secs(20);

/// Reason why the database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenDatabaseError {
    /// The server or the file cannot be opened.
    #[error("could not open the database at {url}: {source}")]
    Connect {
        /// URL without the password.
        url: String,
        /// Error of the driver.
        source: sqlx::Error,
    },
    /// The URL names an unsupported kind of database.
    #[error(
        "DATABASE_URL must start with sqlite: or postgres:, such as sqlite://data/frolic.db or \
         postgres://user:password@host/database"
    )]
    UnknownKind,
    /// A migration failed, or the schema is newer than this program.
    #[error("could not bring the database schema up to date: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// Postgres refused to change the collation of text columns.
    #[error("could not set the collation of text columns: {0}")]
    Collate(#[source] sqlx::Error),
}

/// Kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A SQLite file.
    Sqlite,
    /// A Postgres server.
    Postgres,
}

impl Kind {
    /// Kind of database that a URL names; `None` if it is not supported.
    pub fn of(url: &str) -> Option<Self> {
        match url.split_once(':')?.0 {
            "sqlite" => Some(Kind::Sqlite),
            "postgres" | "postgresql" => Some(Kind::Postgres),
            _ => None,
        }
    }
}

/// URL of the SQLite file in `data_dir`.
pub fn default_url(data_dir: &Path) -> String {
    // Only these characters have a meaning in the path of the driver's URL.
    let path = data_dir
        .join("frolic.db")
        .to_string_lossy()
        .replace('%', "%25")
        .replace('?', "%3F")
        .replace('#', "%23");
    format!("sqlite://{path}?mode=rwc")
}

/// Opens the database and runs missing migrations.
///
/// # Errors
/// [`OpenDatabaseError`] when the database cannot be opened or migrated.
pub async fn open(url: &str) -> Result<AnyPool, OpenDatabaseError> {
    let kind = Kind::of(url).ok_or(OpenDatabaseError::UnknownKind)?;
    let connections_max = match kind {
        Kind::Sqlite => SQLITE_CONNECTIONS_MAX,
        Kind::Postgres => POSTGRES_CONNECTIONS_MAX,
    };
    let pool = pool(url, connections_max).await?;
    migrations::migrator().run(&pool).await?;
    if kind == Kind::Postgres {
        postgres::sort_by_bytes(&pool)
            .await
            .map_err(OpenDatabaseError::Collate)?;
    }
    Ok(pool)
}

/// Connects without migrating.
async fn pool(url: &str, connections_max: u32) -> Result<AnyPool, OpenDatabaseError> {
    sqlx::any::install_default_drivers();
    let kind = Kind::of(url).ok_or(OpenDatabaseError::UnknownKind)?;
    let connect_error = |source| OpenDatabaseError::Connect {
        url: without_password(url),
        source,
    };
    let anchor = match kind {
        Kind::Sqlite => Some(sqlite::anchor(url).await.map_err(connect_error)?),
        Kind::Postgres => None,
    };
    AnyPoolOptions::new()
        .max_connections(connections_max)
        .acquire_timeout(match kind {
            Kind::Sqlite => SQLITE_ACQUIRE_TIMEOUT,
            Kind::Postgres => POSTGRES_ACQUIRE_TIMEOUT,
        })
        .after_connect(move |connection, _| {
            // Owning the anchor in this closure keeps it open as long as the pool.
            let is_sqlite = anchor.is_some();
            Box::pin(async move {
                match is_sqlite {
                    true => sqlite::prepare(connection).await,
                    false => Ok(()),
                }
            })
        })
        // A connection that is still in a transaction is closed and replaced.
        .after_release(|connection, _| Box::pin(transaction::is_clean(connection)))
        .connect(url)
        .await
        .map_err(connect_error)
}

/// Begins a read-only transaction that sees one snapshot of the data.
///
/// # Errors
/// When the database fails.
pub(crate) async fn begin_reading(db: &AnyPool) -> Result<Transaction<'static, Any>, sqlx::Error> {
    // The driver refuses this statement on a connection that is already in a transaction.
    let mut transaction = db.begin_with("BEGIN").await?;
    // SQLite reads one snapshot by default; Postgres would take a new one for each statement.
    if transaction.backend_name() == "PostgreSQL" {
        transaction
            .execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            .await?;
    }
    Ok(transaction)
}

/// A database URL without its password, for logs.
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://…@{host}"),
        None => url.to_owned(),
    }
}

/// Converts a count or size column and clamps it, because a stored value may be out of range.
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

    #[test]
    fn kinds_of_databases_are_recognised() {
        assert_eq!(Kind::of("postgres://a@b/c"), Some(Kind::Postgres));
        assert_eq!(Kind::of("postgresql:///c?host=/tmp"), Some(Kind::Postgres));
        assert_eq!(Kind::of("sqlite://data/x.db"), Some(Kind::Sqlite));
        for other in ["mysql://a@b/c", "data/x.db", "", "postgres"] {
            assert_eq!(Kind::of(other), None, "{other}");
        }
    }
}
