//! A start that migrates an earlier version's Postgres database and loses its connection after any
//! statement: the next start continues, with the result of a start that was not interrupted.
//! (SQLite: `crates/frolic/tests/migrating.rs`.)

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use frolic_platform::{Clock, OpenError, Platform, Settings, ids};
use sqlx::migrate::Migrator;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor, Row};

use crate::support::gameserver::Stage;
use crate::support::postgres::PrivatePostgres;
use crate::support::{SECRET, START_MS, database, parts};

/// Newest migration of the earlier version.
const EARLIER_VERSION: i64 = 12;
/// Statements of the migrations since, and the row that records each of them.
const STATEMENTS_MIN: i64 = 12;

/// Ends the connection after statement number `n` that changes something. Sequences count beyond
/// transactions that are rolled back.
const INTERRUPTION: &str = "
CREATE SCHEMA interruption;
CREATE SEQUENCE interruption.statements;
CREATE TABLE interruption.point (n BIGINT);
INSERT INTO interruption.point VALUES (0);
CREATE FUNCTION interruption.step() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    IF nextval('interruption.statements') = (SELECT n FROM interruption.point) THEN
        PERFORM pg_terminate_backend(pg_backend_pid());
    END IF;
END $$;
CREATE FUNCTION interruption.on_row() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM interruption.step(); RETURN NULL; END $$;
CREATE TRIGGER interruption AFTER INSERT OR UPDATE ON _sqlx_migrations
    FOR EACH STATEMENT EXECUTE FUNCTION interruption.on_row();
CREATE TRIGGER interruption AFTER UPDATE ON jobs
    FOR EACH STATEMENT EXECUTE FUNCTION interruption.on_row();
CREATE FUNCTION interruption.on_ddl() RETURNS event_trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM interruption.step(); END $$;
CREATE EVENT TRIGGER interruption ON ddl_command_end EXECUTE FUNCTION interruption.on_ddl();
";

/// Columns, indexes, constraints; then the rows of each table.
const SCHEMA: [&str; 3] = [
    "SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default,
         collation_name) FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1",
    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
    "SELECT concat_ws(' ', conrelid::regclass, pg_get_constraintdef(oid)) FROM pg_constraint
     WHERE connamespace = 'public'::regnamespace ORDER BY 1",
];

async fn connect(url: &str) -> AnyConnection {
    sqlx::any::install_default_drivers();
    AnyConnection::connect(url).await.unwrap()
}

async fn run(db: &mut AnyConnection, statements: String) {
    let run = db.execute(sqlx::raw_sql(AssertSqlSafe(statements))).await;
    run.unwrap_or_else(|error| panic!("{error}"));
}

async fn texts(db: &mut AnyConnection, query: &str) -> Vec<String> {
    let rows = sqlx::query(AssertSqlSafe(query.to_owned()))
        .fetch_all(db)
        .await
        .unwrap_or_else(|error| panic!("{query}: {error}"));
    rows.iter().map(|row| row.get::<String, _>(0)).collect()
}

/// The folder of an earlier version, see its README.
fn unpack_earlier() -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../frolic/tests/fixtures/bea8b59");
    let folder = std::env::temp_dir().join(ids::new_id("earlier"));
    std::fs::create_dir(&folder).unwrap();
    let unpacked = Command::new("tar")
        .arg("-xzf")
        .arg(fixtures.join("data.tar.gz"))
        .arg("-C")
        .arg(&folder)
        .status();
    assert!(unpacked.unwrap().success());
    folder
}

/// Fills a database with the tables and rows of the earlier version.
async fn restore_earlier(url: &str) {
    let folder = unpack_earlier();
    let mut old = connect(&format!("sqlite://{}/frolic.db", folder.display())).await;
    let mut db = connect(url).await;
    let all = Migrator::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations")).await;
    let all = all.unwrap();
    let earlier = all.iter().filter(|one| one.version <= EARLIER_VERSION);
    let earlier = Migrator::with_migrations(earlier.cloned().collect());
    earlier.run_direct(None, &mut db, false).await.unwrap();
    // Rows in any order.
    run(&mut db, "SET session_replication_role = replica".to_owned()).await;
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '\\_sqlx%' ESCAPE '\\'";
    for table in texts(&mut old, tables).await {
        let columns = format!("SELECT name FROM pragma_table_info('{table}')");
        let columns = texts(&mut old, &columns).await;
        let values: Vec<String> = columns
            .iter()
            .map(|name| format!("quote({name})"))
            .collect();
        let values = values.join(" || ', ' || ");
        let columns = columns.join(", ");
        for row in texts(&mut old, &format!("SELECT {values} FROM {table}")).await {
            run(
                &mut db,
                format!("INSERT INTO {table} ({columns}) VALUES ({row})"),
            )
            .await;
        }
    }
    run(&mut db, INTERRUPTION.to_owned()).await;
    db.close().await.unwrap();
    old.close().await.unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

/// Everything in a database; without the times of migrations.
async fn contents(url: &str) -> Vec<String> {
    let mut db = connect(url).await;
    let mut found = Vec::new();
    for query in SCHEMA {
        found.extend(texts(&mut db, query).await);
    }
    let tables = "SELECT table_name::text FROM information_schema.tables
         WHERE table_schema = 'public' ORDER BY 1";
    for table in texts(&mut db, tables).await {
        let row = match table.as_str() {
            "_sqlx_migrations" => "concat_ws(' ', version, description, success, checksum)",
            _ => "t::text",
        };
        found.push(table.clone());
        found.extend(texts(&mut db, &format!("SELECT {row} FROM {table} t ORDER BY 1")).await);
    }
    db.close().await.unwrap();
    found
}

/// Opens a database as a platform does; interrupted after statement `interruption`, if it is not 0.
async fn open(url: &str, interruption: i64) -> Result<(), OpenError> {
    let mut db = connect(url).await;
    let reset = format!(
        "UPDATE interruption.point SET n = {interruption};
         ALTER SEQUENCE interruption.statements RESTART"
    );
    run(
        &mut db,
        format!("SET session_replication_role = replica; {reset}"),
    )
    .await;
    db.close().await.unwrap();
    let folder = std::env::temp_dir().join(ids::new_id("migrating"));
    let mut settings = Settings::new(folder.clone(), SECRET.to_vec());
    settings.database_url = Some(url.to_owned());
    let (clock, _) = Clock::manual(START_MS);
    let parts = parts(
        Arc::new(Stage::default()),
        clock,
        ([127, 0, 0, 1], 1).into(),
    );
    let opened = Platform::open(settings, parts).await.map(drop);
    std::fs::remove_dir_all(folder).unwrap();
    opened
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_migration_continues_at_the_next_start() {
    let server = PrivatePostgres::start_alone();
    database::create(&server, "earlier");
    restore_earlier(&server.url("earlier")).await;
    let copy = |name: String| {
        let statement = format!("CREATE DATABASE {name} TEMPLATE earlier");
        database::run(&server.url("postgres"), &statement).unwrap();
        server.url(&name)
    };
    let whole = copy("whole".to_owned());
    open(&whole, 0).await.unwrap();
    let expected = contents(&whole).await;

    let mut statement = 1;
    loop {
        let url = copy(format!("after_{statement}"));
        let Err(error) = open(&url, statement).await else {
            break;
        };
        assert!(matches!(error, OpenError::Database(_)), "{error}");
        open(&url, 0).await.unwrap();
        assert_eq!(
            contents(&url).await,
            expected,
            "after statement {statement}"
        );
        statement += 1;
    }
    println!("interrupted after {} statements", statement - 1);
    assert!(statement > STATEMENTS_MIN, "only {statement} statements");
}
