//! The database of the tests: SQLite, unless FROLIC_TEST_DATABASE is `postgres`. Then this process
//! starts a private server when the first test needs it, and every platform gets its own database
//! in it.

use std::path::Path;
use std::sync::OnceLock;

use sqlx::{AnyConnection, Connection, Executor};

use super::postgres::PrivatePostgres;

/// The environment variable that chooses the database.
const VARIABLE: &str = "FROLIC_TEST_DATABASE";

/// Stopped with this process.
static SHARED: OnceLock<PrivatePostgres> = OnceLock::new();

/// Whether tests run on Postgres.
pub fn is_postgres() -> bool {
    match std::env::var(VARIABLE).as_deref() {
        Err(_) | Ok("" | "sqlite") => false,
        Ok("postgres") => true,
        Ok(other) => panic!("{VARIABLE} must be 'sqlite' or 'postgres', not '{other}'"),
    }
}

/// URL of the database of the platform in `data_dir`; created if necessary.
pub fn url(data_dir: &Path) -> String {
    if is_postgres() {
        let server = SHARED.get_or_init(PrivatePostgres::start_shared);
        let name = name_of(data_dir);
        create(server, &name);
        server.url(&name)
    } else {
        std::fs::create_dir_all(data_dir).unwrap();
        let path = data_dir.join("frolic.db");
        format!("sqlite://{}?mode=rwc", path.display())
    }
}

/// Deletes the database that [`url`] created, unless it is a file in `data_dir`.
pub fn forget(data_dir: &Path) {
    if let Some(server) = SHARED.get() {
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", name_of(data_dir));
        let server = server.url("postgres");
        // Runs in the background, because the whole server is deleted in the end.
        std::thread::spawn(move || run(&server, &statement));
    }
}

/// Creates a database if it does not exist.
pub fn create(server: &PrivatePostgres, name: &str) {
    let created = run(&server.url("postgres"), &format!("CREATE DATABASE {name}"));
    if let Err(error) = created {
        let database = error.as_database_error();
        let exists = database
            .and_then(|e| e.code())
            .is_some_and(|c| c == "42P04");
        assert!(exists, "could not create the database {name}: {error}");
    }
}

/// A database name that needs no quotes.
fn name_of(data_dir: &Path) -> String {
    let name = data_dir.file_name().unwrap().to_string_lossy();
    let clean = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.to_lowercase().chars().map(clean).collect()
}

/// Runs one statement on its own thread, because a connection belongs to a runtime and every test
/// has another one.
pub fn run(url: &str, statement: &str) -> Result<(), sqlx::Error> {
    let (url, statement) = (url.to_owned(), statement.to_owned());
    let worker = std::thread::spawn(move || {
        sqlx::any::install_default_drivers();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(async move {
            let mut connection = AnyConnection::connect(&url).await?;
            let statement = sqlx::raw_sql(sqlx::AssertSqlSafe(statement));
            connection.execute(statement).await?;
            connection.close().await
        })
    });
    worker.join().unwrap()
}
