//! Which database the tests run on. SQLite, unless FROLIC_TEST_DATABASE says
//! `postgres`: then this process starts a private server when the first test
//! needs it, and every platform gets a database of its own in it.

use std::path::Path;
use std::sync::OnceLock;

use sqlx::{AnyConnection, Connection, Executor};

use super::postgres::PrivatePostgres;

/// The variable that chooses.
const VARIABLE: &str = "FROLIC_TEST_DATABASE";

/// Ends with this process.
static SHARED: OnceLock<PrivatePostgres> = OnceLock::new();

/// Whether tests run on Postgres.
pub fn is_postgres() -> bool {
    match std::env::var(VARIABLE).as_deref() {
        Err(_) | Ok("" | "sqlite") => false,
        Ok("postgres") => true,
        Ok(other) => panic!("{VARIABLE} is 'sqlite' or 'postgres', not '{other}'"),
    }
}

/// The database of the platform in `data_dir`, made when it is not there.
pub fn url(data_dir: &Path) -> String {
    if is_postgres() {
        let server = SHARED.get_or_init(PrivatePostgres::start_shared);
        let name = name_of(data_dir);
        make(server, &name);
        server.url(&name)
    } else {
        std::fs::create_dir_all(data_dir).unwrap();
        let path = data_dir.join("frolic.db");
        format!("sqlite://{}?mode=rwc", path.display())
    }
}

/// Forgets what [`url`] made, where it is not a file in `data_dir`.
pub fn forget(data_dir: &Path) {
    if let Some(server) = SHARED.get() {
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", name_of(data_dir));
        let server = server.url("postgres");
        // Nobody waits for it: the whole server is thrown away in the end.
        std::thread::spawn(move || run(&server, &statement));
    }
}

/// Makes a database unless it is there.
pub fn make(server: &PrivatePostgres, name: &str) {
    let made = run(&server.url("postgres"), &format!("CREATE DATABASE {name}"));
    if let Err(error) = made {
        let database = error.as_database_error();
        let exists = database
            .and_then(|e| e.code())
            .is_some_and(|c| c == "42P04");
        assert!(exists, "no database {name}: {error}");
    }
}

/// A name that needs no quotes.
fn name_of(data_dir: &Path) -> String {
    let name = data_dir.file_name().unwrap().to_string_lossy();
    let clean = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.to_lowercase().chars().map(clean).collect()
}

/// One statement, on a thread of its own: a connection belongs to a runtime,
/// and every test has another.
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
