//! Revisions and their files. Published ones are visible to everyone, drafts to their
//! creator.

use bytes::Bytes;
use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row};

use super::drafts;
use super::{unknown_revision, unknown_spell};
use crate::api::{RevisionInfo, RevisionList, SpellChannel, SpellFile, SpellManifest};
use crate::community::auth::Principal;
use crate::core::clock::rfc3339;
use crate::core::db::to_u32;
use crate::core::error::ApiError;
use crate::core::paging::Page;
use crate::spells::Spells;

const COLUMNS: &str =
    "revision_id, spell_id, parent_revision_id, channel, version, manifest_json, created_at";

/// The file that defines `on_cast(ctx)`.
pub const ENTRY: &str = "spell.luau";

/// A page of a spell's revisions, the newest first.
///
/// # Errors
/// 404 when the spell does not exist or is not visible to the user.
pub async fn revisions(
    db: &AnyPool,
    actor: &Principal,
    spell_id: &str,
    page: Page,
) -> Result<RevisionList, ApiError> {
    let spell = drafts::show(db, actor, spell_id).await?;
    let filter = if actor.owns(&spell.created_by) {
        "spell_id = $1"
    } else {
        "spell_id = $1 AND channel <> 'draft'"
    };
    let count = format!("SELECT COUNT(*) AS total FROM revisions WHERE {filter}");
    let total: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(count))
        .bind(spell_id)
        .fetch_one(db)
        .await?;
    let select = format!(
        "SELECT {COLUMNS} FROM revisions WHERE {filter} ORDER BY version DESC LIMIT $2 OFFSET $3"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(select))
        .bind(spell_id)
        .bind(page.limit())
        .bind(page.offset())
        .fetch_all(db)
        .await?;
    Ok(RevisionList {
        spell_id: spell_id.to_owned(),
        revisions: rows.iter().map(read).collect::<Result<_, _>>()?,
        total: to_u32(total),
        page: page.page,
        per_page: page.per_page,
    })
}

/// One revision.
///
/// # Errors
/// 404 when it does not exist or is not visible to the user.
pub async fn revision(
    db: &AnyPool,
    actor: &Principal,
    spell_id: &str,
    revision_id: &str,
) -> Result<RevisionInfo, ApiError> {
    let spell = drafts::find(db, spell_id)
        .await?
        .ok_or_else(unknown_spell)?;
    let found = find(db, revision_id).await?;
    found
        .filter(|revision| revision.spell_id == spell_id)
        .filter(|revision| {
            let shown = revision.channel > SpellChannel::Draft && !spell.taken_down;
            shown || actor.owns(&spell.created_by)
        })
        .ok_or_else(unknown_revision)
}

/// The revision with this id.
///
/// # Errors
/// When the database fails.
pub async fn find(db: &AnyPool, revision_id: &str) -> Result<Option<RevisionInfo>, sqlx::Error> {
    if !super::is_generated_id(revision_id) {
        return Ok(None);
    }
    let query = format!("SELECT {COLUMNS} FROM revisions WHERE revision_id = $1");
    sqlx::query(sqlx::AssertSqlSafe(query))
        .bind(revision_id)
        .fetch_optional(db)
        .await?
        .map(|row| read(&row))
        .transpose()
}

/// A file of a revision.
///
/// # Errors
/// 404 when the revision has no such file.
pub async fn file(
    spells: &Spells,
    revision: &RevisionInfo,
    path: &str,
) -> Result<(SpellFile, Bytes), ApiError> {
    let missing = || {
        let paths: Vec<&str> = revision
            .manifest
            .files
            .iter()
            .map(|f| f.path.as_str())
            .collect();
        ApiError::not_found(
            "file_not_found",
            format!("this revision has only these files: {}", paths.join(", ")),
        )
    };
    let files = revision.manifest.files.iter();
    let file = files.into_iter().find(|file| file.path == path);
    let file = file.ok_or_else(missing)?;
    let bytes = spells.core.blobs.get(&file.sha256).await?;
    Ok((file.clone(), bytes.ok_or_else(missing)?))
}

fn read(row: &AnyRow) -> Result<RevisionInfo, sqlx::Error> {
    let text: String = row.try_get("manifest_json")?;
    let manifest: SpellManifest = serde_json::from_str(&text)
        .map_err(|error| sqlx::Error::Decode(format!("invalid spell manifest: {error}").into()))?;
    let parent: String = row.try_get("parent_revision_id")?;
    Ok(RevisionInfo {
        revision_id: row.try_get("revision_id")?,
        spell_id: row.try_get("spell_id")?,
        parent_revision_id: Some(parent).filter(|parent| !parent.is_empty()),
        channel: SpellChannel::from_name(row.try_get("channel")?),
        version: to_u32(row.try_get("version")?),
        created_at: rfc3339(row.try_get("created_at")?),
        manifest,
    })
}
