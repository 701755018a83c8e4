//! Spell rows: create, find, list.

use frolic_package::spells::is_id;
use sqlx::AnyPool;

use super::text::{DESCRIPTION_CHARS_MAX, id_of};
use super::{must_own, unknown_spell};
use crate::api::limits::SPELL_NAME_CHARS_MAX;
use crate::api::{CreateSpellRequest, DraftCreated, SpellInfo, SpellList};
use crate::community::auth::Principal;
use crate::core::clock::rfc3339;
use crate::core::db::{flag, from_row, non_empty, to_u32};
use crate::core::error::ApiError;
use crate::core::ids;
use crate::core::paging::Page;
use crate::core::texts;
use crate::spells::Spells;

from_row!(SpellInfo {
    spell_id, display_name, description, created_by, active_draft_rev => non_empty,
    active_beta_rev => non_empty, active_stable_rev => non_empty,
    version: "version_count" => to_u32, taken_down => flag, created_at => rfc3339,
    updated_at => rfc3339
});

/// Maximum number of spells per user.
const SPELLS_PER_USER: i64 = 500;
const COLUMNS: &str = "spell_id, display_name, description, created_by, active_draft_rev, \
     active_beta_rev, active_stable_rev, version_count, taken_down, created_at, updated_at";

/// Filter of a list of spells.
#[derive(Clone, Debug)]
pub struct SpellFilter {
    /// Substring of the name or description.
    pub query: String,
    /// List only the user's own spells, including drafts; otherwise published and own
    /// ones.
    pub mine: bool,
    /// The page to return.
    pub page: Page,
}

/// Creates a spell, or returns the existing one with this id if the user owns it.
///
/// # Errors
/// 400 for an invalid id, 409 for an id that is taken, 429 for too many spells.
pub async fn create(
    spells: &Spells,
    actor: &Principal,
    request: &CreateSpellRequest,
) -> Result<DraftCreated, ApiError> {
    let db = &spells.core.db;
    let name = request
        .display_name
        .as_deref()
        .map(|name| texts::line(name, SPELL_NAME_CHARS_MAX))
        .filter(|name| !name.is_empty());
    let spell_id = match request.spell_id.as_deref() {
        Some(id) if is_id(id) => id.to_owned(),
        Some(_) => {
            return Err(ApiError::bad_request(
                "invalid_spell_id",
                "a spell id has 1 to 64 lower-case letters, digits, _ and -",
            ));
        }
        None => generate_id(name.as_deref().unwrap_or("spell")),
    };
    if let Some(spell) = find(db, &spell_id).await? {
        if !actor.owns(&spell.created_by) {
            return Err(ApiError::new(
                axum::http::StatusCode::CONFLICT,
                "spell_id_taken",
                "this spell id is taken by another user; choose another",
            ));
        }
        return Ok(DraftCreated {
            spell_id,
            created: false,
            spell,
        });
    }
    let owned: i64 =
        sqlx::query_scalar("SELECT COUNT(*) AS owned FROM spells WHERE created_by = $1")
            .bind(&actor.user_id)
            .fetch_one(db)
            .await?;
    if owned >= SPELLS_PER_USER {
        return Err(ApiError::new(
            axum::http::StatusCode::TOO_MANY_REQUESTS,
            "too_many_spells",
            format!(
                "you have {SPELLS_PER_USER} spells, which is the maximum; change one of them \
                instead"
            ),
        ));
    }
    let now = spells.core.clock.now_ms();
    let description = request.description.as_deref().unwrap_or_default();
    let inserted = sqlx::query(
        "INSERT INTO spells (spell_id, display_name, description, created_by, active_draft_rev,
           active_beta_rev, active_stable_rev, version_count, created_at, updated_at)
         VALUES ($1, $2, $3, $4, '', '', '', 0, $5, $5) ON CONFLICT (spell_id) DO NOTHING",
    )
    .bind(&spell_id)
    .bind(name.as_deref().unwrap_or(&spell_id))
    .bind(texts::line(description, DESCRIPTION_CHARS_MAX))
    .bind(&actor.user_id)
    .bind(now)
    .execute(db)
    .await?;
    let spell = find(db, &spell_id).await?.ok_or_else(unknown_spell)?;
    // Another request may have created it concurrently.
    must_own(actor, &spell.created_by)?;
    Ok(DraftCreated {
        spell_id,
        created: inserted.rows_affected() == 1,
        spell,
    })
}

fn generate_id(name: &str) -> String {
    let random = hex::encode(ids::random_bytes::<4>());
    let stem = id_of(name);
    if stem.is_empty() {
        format!("spell-{random}")
    } else {
        format!("{stem}-{random}")
    }
}

/// The spell with this id.
///
/// # Errors
/// When the database fails.
pub async fn find(db: &AnyPool, spell_id: &str) -> Result<Option<SpellInfo>, sqlx::Error> {
    // Do not query texts that cannot be an id: some of them are invalid as database
    // text.
    if !is_id(spell_id) {
        return Ok(None);
    }
    let query = format!("SELECT {COLUMNS} FROM spells WHERE spell_id = $1");
    sqlx::query_as(sqlx::AssertSqlSafe(query))
        .bind(spell_id)
        .fetch_optional(db)
        .await
}

/// The spell as this user may see it.
///
/// # Errors
/// 404 when it does not exist or is not visible to the user.
pub async fn show(db: &AnyPool, actor: &Principal, spell_id: &str) -> Result<SpellInfo, ApiError> {
    let spell = find(db, spell_id).await?.ok_or_else(unknown_spell)?;
    let published = spell.active_beta_rev.is_some() || spell.active_stable_rev.is_some();
    if published && !spell.taken_down || actor.owns(&spell.created_by) {
        Ok(spell)
    } else {
        Err(unknown_spell())
    }
}

/// A page of spells: published ones, and the user's own.
///
/// # Errors
/// When the database fails.
pub async fn list(
    spells: &Spells,
    actor: &Principal,
    filter: &SpellFilter,
) -> Result<SpellList, sqlx::Error> {
    let db = &spells.core.db;
    let page = filter.page;
    let whose = if filter.mine {
        "created_by = $1"
    } else {
        "(created_by = $1 OR taken_down = 0 AND (active_stable_rev <> '' OR active_beta_rev <> ''))"
    };
    let condition = format!(
        "{whose} AND (LOWER(display_name) LIKE $2 ESCAPE '!' OR LOWER(description) LIKE $2 ESCAPE '!'
           OR spell_id LIKE $2 ESCAPE '!')"
    );
    let pattern = pattern(&filter.query);
    let count = format!("SELECT COUNT(*) AS total FROM spells WHERE {condition}");
    let total: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(count))
        .bind(&actor.user_id)
        .bind(&pattern)
        .fetch_one(db)
        .await?;
    let select = format!(
        "SELECT {COLUMNS} FROM spells WHERE {condition}
         ORDER BY updated_at DESC, spell_id LIMIT $3 OFFSET $4"
    );
    let listed = sqlx::query_as(sqlx::AssertSqlSafe(select))
        .bind(&actor.user_id)
        .bind(&pattern)
        .bind(page.limit())
        .bind(page.offset())
        .fetch_all(db)
        .await?;
    Ok(SpellList {
        spells: listed,
        total: to_u32(total),
        page: page.page,
        per_page: page.per_page,
        prompts: spells.compiler.supports_prompts(),
    })
}

fn pattern(query: &str) -> String {
    let mut pattern = String::from("%");
    let typed = query.trim().to_lowercase();
    for c in typed.chars().filter(|c| !c.is_control()).take(64) {
        if matches!(c, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}
