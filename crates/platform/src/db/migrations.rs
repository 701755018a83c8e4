//! The migrations of the database schema: the files of `migrations/`, embedded in the program.
//!
//! The macro of sqlx for this list would compile all of sqlx, SQLite and TLS a second time.

use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../migrations/", $name, ".sql")))),*]
    };
}

/// Name and content of each file. A released file never changes, because databases store its
/// checksum.
const FILES: &[(&str, &str)] = files![
    "0001_start",
    "0002_store",
    "0003_capabilities",
    "0004_lasting",
    "0005_accounts",
    "0006_store",
    "0007_spells",
    "0008_social",
    "0009_joining",
    "0010_spell_takedown",
    "0011_report_recording",
    "0012_left_to_tell",
    "0013_write_probe",
    "0014_client_errors",
    "0015_helpers",
];

/// A migrator that runs the migrations which a database is missing.
pub(super) fn migrator() -> Migrator {
    let migrations = FILES.iter().map(|&(name, sql)| {
        let (version, description) = name.split_once('_').expect("number_description");
        Migration::new(
            version.parse().expect("number_description"),
            description.replace('_', " ").into(),
            MigrationType::Simple,
            sql.into_sql_str(),
            false,
        )
    });
    Migrator::with_migrations(migrations.collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The result must equal what sqlx reads from the folder, because databases in use have these
    /// checksums.
    #[tokio::test]
    async fn the_list_matches_the_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
        let folder = Migrator::new(folder).await.expect("our own files");
        let described = |migrator: &Migrator| -> Vec<_> {
            let describe = |one: &Migration| {
                let (kind, checksum) = (one.migration_type, one.checksum.clone());
                (one.version, one.description.clone(), kind, checksum)
            };
            migrator.iter().map(describe).collect()
        };
        assert_eq!(described(&migrator()), described(&folder));
    }
}
