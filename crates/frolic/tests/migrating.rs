//! A start that migrates an earlier version's SQLite file and is killed in between:
//! the next start continues, with the result of a start that was not killed. (Postgres:
//! `crates/platform/tests/platform/migrating.rs`.)
// Covers: crates/platform

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::disk::Faults;
use crate::support::{earlier, scratch, serve};
use sqlx::{AnyConnection, Connection as _, Row as _};

const SIGKILL: i32 = 9;
/// Statements of the migrations since, and one commit for each of them.
const WRITES_MIN: u32 = 12;

/// Starts on a folder until its database is ready; killed before a write to the
/// database file or its log if there are as many. False if it was killed.
fn migrate(faults: &Faults, data: &Path, kill_at: Option<u32>) -> bool {
    let mut command = serve(data, "0");
    faults.preload(&mut command, &data.join("frolic.db"));
    command.env("FAULT_END_AT", "database  ready");
    if let Some(write) = kill_at {
        command.env("FAULT_KILL_AT", write.to_string());
    }
    let status = command.stdout(Stdio::piped()).output().expect("it starts");
    let killed = status.status.signal() == Some(SIGKILL);
    assert!(killed || status.status.success(), "{status:?}");
    !killed
}

/// Definitions and rows of all tables; without the times of migrations.
async fn contents(data: &Path) -> Vec<String> {
    sqlx::any::install_default_drivers();
    let url = format!("sqlite://{}", data.join("frolic.db").display());
    let mut db = AnyConnection::connect(&url).await.expect("a database");
    let mut texts = async |query: String| -> Vec<String> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(query))
            .fetch_all(&mut db)
            .await;
        let rows = rows.expect("a query");
        rows.iter().map(|row| row.get::<String, _>(0)).collect()
    };
    let schema =
        "SELECT type || ' ' || name || ' ' || COALESCE(sql, '') FROM sqlite_schema ORDER BY 1";
    let mut found = texts(schema.to_owned()).await;
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1";
    for table in texts(tables.to_owned()).await {
        let columns = format!(
            "SELECT name FROM pragma_table_info('{table}')
             WHERE name NOT IN ('installed_on', 'execution_time') ORDER BY 1"
        );
        let columns = texts(columns).await;
        let columns: Vec<String> = columns
            .iter()
            .map(|name| format!("quote({name})"))
            .collect();
        let columns = columns.join(" || ',' || ");
        let rows = texts(format!("SELECT {columns} FROM {table} ORDER BY 1")).await;
        found.extend(rows.into_iter().map(|row| format!("{table}: {row}")));
    }
    found
}

/// A folder with nothing but the database of the fixture.
fn copy_database(name: &str, from: &Path) -> PathBuf {
    let data = scratch(name);
    std::fs::copy(from.join("frolic.db"), data.join("frolic.db")).expect("a file");
    data
}

#[tokio::test]
async fn a_killed_migration_continues_at_the_next_start() {
    let before = earlier::unpack("migrating-before");
    let faults = Faults::build("migrating");
    let whole = copy_database("migrating-whole", &before);
    assert!(migrate(&faults, &whole, None));
    let expected = contents(&whole).await;

    let mut write = 1;
    loop {
        let data = copy_database("migrating-killed", &before);
        if migrate(&faults, &data, Some(write)) {
            break;
        }
        assert!(
            migrate(&faults, &data, None),
            "after a kill at write {write}"
        );
        assert_eq!(
            contents(&data).await,
            expected,
            "after a kill at write {write}"
        );
        write += 1;
    }
    println!("killed at {} writes", write - 1);
    assert!(write > WRITES_MIN, "only {write} writes");
}
