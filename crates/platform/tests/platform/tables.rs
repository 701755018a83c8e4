//! Checks the columns that external programs read from the database.

use sqlx::any::AnyPoolOptions;

use crate::support::TestPlatform;

const TABLES: [(&str, &str); 5] = [
    (
        "worlds",
        "world_id, name, description, created_by, player_count, created_at, updated_at",
    ),
    ("world_ops", "op_id, world_id, op_type, op_data, created_at"),
    (
        "spells",
        "spell_id, display_name, active_draft_rev, active_beta_rev, active_stable_rev, created_at, updated_at",
    ),
    (
        "revisions",
        "revision_id, spell_id, parent_revision_id, channel, version, manifest_json, created_at",
    ),
    (
        "jobs",
        "job_id, spell_id, draft_id, status, stage, progress_pct, logs, error_message, \
         result_revision_id, created_at, updated_at",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn tables_have_the_columns_that_readers_expect() {
    let test = TestPlatform::start().await;
    let db = AnyPoolOptions::new()
        .connect(&test.database_url)
        .await
        .unwrap();
    for (table, columns) in TABLES {
        let query = format!("SELECT {columns} FROM {table} LIMIT 1");
        let read = sqlx::query(sqlx::AssertSqlSafe(query))
            .fetch_optional(&db)
            .await;
        assert!(read.is_ok(), "{table}: {}", read.err().unwrap());
    }
    db.close().await;
}
