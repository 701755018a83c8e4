//! Makes Postgres behave like SQLite where the defaults differ.

use sqlx::{AnyPool, Row};

/// Text columns of our tables that use another collation than "C".
const OTHERWISE_SORTED: &str =
    "SELECT CAST(c.relname AS TEXT) AS table_name, CAST(a.attname AS TEXT) AS column_name
     FROM pg_attribute a
     JOIN pg_class c ON c.oid = a.attrelid
     JOIN pg_collation o ON o.oid = a.attcollation
     WHERE c.relnamespace = CAST(CAST(current_schema() AS TEXT) AS regnamespace)
       AND c.relkind = 'r' AND NOT a.attisdropped AND a.attnum > 0
       AND a.atttypid = CAST('text' AS regtype) AND o.collname <> 'C'
       AND c.relname <> '_sqlx_migrations'
     ORDER BY c.relname, a.attnum";

/// Makes every text column sort by its bytes, as SQLite does, because pages of keys would otherwise
/// depend on the server's locale. Does nothing if the columns already do.
pub async fn sort_by_bytes(db: &AnyPool) -> Result<(), sqlx::Error> {
    let rows = sqlx::query(OTHERWISE_SORTED).fetch_all(db).await?;
    let mut changes: Vec<(String, Vec<String>)> = Vec::new();
    for row in rows {
        let table: String = row.try_get("table_name")?;
        let column: String = row.try_get("column_name")?;
        let change = format!("ALTER COLUMN \"{column}\" TYPE TEXT COLLATE \"C\"");
        match changes.last_mut() {
            Some((last, columns)) if *last == table => columns.push(change),
            _ => changes.push((table, vec![change])),
        }
    }
    for (table, columns) in changes {
        let statement = format!("ALTER TABLE \"{table}\" {}", columns.join(", "));
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .execute(db)
            .await?;
    }
    Ok(())
}
