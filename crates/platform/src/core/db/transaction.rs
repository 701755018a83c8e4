//! Write transactions, and the proof that one of them was committed.
//!
//! The driver counts the nesting depth of transactions on a connection. SQLite ends a transaction
//! by itself when the disk is full, and then the count is wrong: the next "transaction" on that
//! connection is a savepoint, and its "commit" stores nothing. Therefore a transaction begins only
//! where the count is zero and ends with the database's own COMMIT, and a connection that is
//! returned inside a transaction is closed (`is_clean`).

use std::ops::{Deref, DerefMut};

use sqlx::{Any, AnyConnection, AnyPool, Connection, Executor, Row, Transaction};

use super::{Kind, sqlite};

/// A write transaction. It is rolled back when dropped without a commit.
pub(crate) struct WriteTransaction {
    inner: Transaction<'static, Any>,
    kind: Kind,
}

/// A committed value. Only a commit creates one, so its owner may acknowledge the value.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a committed value should be acknowledged"]
pub(crate) struct Committed<T>(T);

impl<T> Committed<T> {
    /// The committed value.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T, E> Committed<Vec<Result<T, E>>> {
    /// Splits a committed list; refused elements stay errors.
    pub fn transpose(self) -> Vec<Result<Committed<T>, E>> {
        let parts = self.0.into_iter();
        parts.map(|part| part.map(Committed)).collect()
    }
}

/// Begins a write transaction.
///
/// # Errors
/// When the database refuses, or the connection is already inside a transaction.
pub(crate) async fn begin(db: &AnyPool) -> Result<WriteTransaction, sqlx::Error> {
    let kind = kind_of(db);
    // With an explicit statement, the driver refuses to begin a savepoint. SQLite waits for its
    // write lock here and not in the middle of the transaction.
    let statement = match kind {
        Kind::Sqlite => "BEGIN IMMEDIATE",
        Kind::Postgres => "BEGIN",
    };
    let inner = db.begin_with(statement).await?;
    Ok(WriteTransaction { inner, kind })
}

impl WriteTransaction {
    /// Commits the transaction.
    ///
    /// # Errors
    /// When the database fails; callers must then assume that nothing is stored.
    pub async fn commit(self) -> Result<(), sqlx::Error> {
        self.commit_as(()).await.map(Committed::into_inner)
    }

    /// Rolls back and waits until that is done.
    ///
    /// # Errors
    /// When the database fails; the changes are rolled back anyway.
    pub async fn rollback(self) -> Result<(), sqlx::Error> {
        self.inner.rollback().await
    }

    /// Commits and returns `stored` as proof that it may be acknowledged.
    ///
    /// # Errors
    /// As for [`WriteTransaction::commit`].
    pub async fn commit_as<T>(mut self, stored: T) -> Result<Committed<T>, sqlx::Error> {
        match self.kind {
            // After a failed statement, COMMIT is a ROLLBACK that reports no error. Any other
            // statement reports one.
            Kind::Postgres => {
                self.inner.execute("SELECT 1").await?;
            }
            // Waits until earlier statements are finished, so that the transaction count is up to
            // date.
            Kind::Sqlite => self.inner.ping().await?,
        }
        // Outside a transaction the driver commits nothing and reports no error.
        if !self.inner.is_in_transaction() {
            return Err(sqlx::Error::Protocol(
                "the transaction ended before its commit".into(),
            ));
        }
        self.inner.commit().await?;
        Ok(Committed(stored))
    }
}

impl Deref for WriteTransaction {
    type Target = AnyConnection;

    fn deref(&self) -> &AnyConnection {
        &self.inner
    }
}

impl DerefMut for WriteTransaction {
    fn deref_mut(&mut self) -> &mut AnyConnection {
        &mut self.inner
    }
}

/// Whether a connection that is returned to the pool is outside any transaction, by the driver's
/// count and by the database's.
pub(super) async fn is_clean(connection: &mut AnyConnection) -> Result<bool, sqlx::Error> {
    if connection.backend_name() == "PostgreSQL" {
        // The driver does not count a BEGIN whose caller was dropped. Outside a transaction, a
        // statement is its own transaction and begins at the same time.
        let row = connection
            .fetch_one("SELECT CAST(now() = statement_timestamp() AS INTEGER) AS idle")
            .await?;
        let is_idle = row.try_get::<i32, _>("idle")? == 1;
        return Ok(is_idle && !connection.is_in_transaction());
    }
    // Waits for a rollback that was started.
    connection.ping().await?;
    Ok(!connection.is_in_transaction() && !sqlite::is_read_only(connection).await?)
}

fn kind_of(db: &AnyPool) -> Kind {
    match Kind::of(db.connect_options().database_url.as_str()) {
        Some(Kind::Postgres) => Kind::Postgres,
        // `open` accepts no other kind.
        Some(Kind::Sqlite) | None => Kind::Sqlite,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            let folder = std::env::temp_dir().join(crate::core::ids::new_id("db"));
            std::fs::create_dir(&folder).unwrap();
            Self(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// A small database, and a second pool for the same file.
    async fn databases(folder: &Folder) -> (AnyPool, AnyPool) {
        let url = super::super::default_url(&folder.0);
        let db = super::super::pool(&url, 1).await.unwrap();
        db.execute("CREATE TABLE entries (id BIGINT PRIMARY KEY, value TEXT NOT NULL)")
            .await
            .unwrap();
        let other = super::super::pool(&url, 1).await.unwrap();
        (db, other)
    }

    async fn insert(
        connection: &mut AnyConnection,
        id: i64,
        bytes: usize,
    ) -> Result<(), sqlx::Error> {
        sqlx::query("INSERT INTO entries (id, value) VALUES ($1, $2)")
            .bind(id)
            .bind("x".repeat(bytes))
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn ids(db: &AnyPool) -> Vec<i64> {
        let rows = sqlx::query("SELECT id FROM entries ORDER BY id")
            .fetch_all(db)
            .await
            .unwrap();
        rows.iter().map(|row| row.get("id")).collect()
    }

    /// Makes SQLite report a full disk. The setting applies to one connection.
    async fn limit_pages(db: &AnyPool, pages: u32) {
        let limit = format!("PRAGMA max_page_count = {pages}");
        db.execute(sqlx::AssertSqlSafe(limit)).await.unwrap();
    }

    #[tokio::test]
    async fn a_commit_after_a_full_disk_is_stored() {
        let folder = Folder::new();
        let (db, other) = databases(&folder).await;
        limit_pages(&db, 4).await;
        let mut transaction = begin(&db).await.unwrap();
        let error = insert(&mut transaction, 1, 1 << 20).await.unwrap_err();
        assert!(error.to_string().contains("full"), "{error}");
        drop(transaction);
        // SQLite has ended the transaction by itself, unknown to the driver. An error that does not
        // end the transaction used to leave the next one open.
        let mut transaction = begin(&db).await.unwrap();
        insert(&mut transaction, 2, 1).await.unwrap();
        insert(&mut transaction, 2, 1).await.unwrap_err();
        drop(transaction);
        let mut transaction = begin(&db).await.unwrap();
        insert(&mut transaction, 3, 1).await.unwrap();
        let stored = transaction.commit_as(3).await.unwrap();
        assert_eq!(stored.into_inner(), 3);
        assert_eq!(ids(&other).await, [3]);
        // The write lock must be free.
        let mut transaction = begin(&other).await.unwrap();
        insert(&mut transaction, 4, 1).await.unwrap();
        transaction.commit().await.unwrap();
        assert_eq!(ids(&db).await, [3, 4]);
    }

    #[tokio::test]
    async fn a_transaction_that_the_database_has_ended_is_not_committed() {
        let folder = Folder::new();
        let (db, other) = databases(&folder).await;
        limit_pages(&db, 4).await;
        let mut transaction = begin(&db).await.unwrap();
        insert(&mut transaction, 1, 1).await.unwrap();
        insert(&mut transaction, 2, 1 << 20).await.unwrap_err();
        // Continuing after the error must not yield a proof.
        transaction.commit_as(1).await.unwrap_err();
        assert_eq!(ids(&other).await, Vec::<i64>::new());
    }
}
