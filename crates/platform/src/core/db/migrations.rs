//! The migrations of the database schema: the files of `migrations/`, embedded in the program.
//!
//! The macro of sqlx for this list would compile all of sqlx, SQLite and TLS a second time.

use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../migrations/", $name, ".sql")))),*]
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

    /// Beginning of the checksum of each released file. A database refuses to open if the file of an
    /// applied migration has another checksum, even if only a comment differs.
    const RELEASED: [&str; 15] = [
        "d4e90e3c0f8724b9",
        "6f655276beebeee0",
        "7dbdfbb9ec5bffe9",
        "56553f982f3e998f",
        "8a544ded01ca9e7e",
        "a3f94663c01de1df",
        "efcf88a3948cf049",
        "11a75d4597a91b95",
        "392f50d0d3df8d96",
        "1a956562436ce69a",
        "b3da8fbca3bdebed",
        "78b53305eeb95480",
        "c7f2f69e0a69a83f",
        "8fb36b455d9506f5",
        "98ceace5049e9732",
    ];

    #[test]
    fn released_files_never_change() {
        let migrator = migrator();
        let checksums = migrator.iter().map(|one| {
            let bytes = one.checksum.iter().take(8);
            bytes.map(|byte| format!("{byte:02x}")).collect::<String>()
        });
        let released: Vec<String> = checksums.take(RELEASED.len()).collect();
        assert_eq!(released, RELEASED, "add a migration instead");
    }

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
