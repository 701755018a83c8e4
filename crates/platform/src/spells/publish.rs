//! Publishing: makes a revision the active one of a channel, notifies clients, and
//! delivers it to running worlds.

use std::sync::Arc;

use super::{content, drafts, must_own, refuse_taken_down, teach, unknown_revision, unknown_spell};
use crate::api::{PublishSpellRequest, SpellChannel, SpellPublished};
use crate::community::auth::Principal;
use crate::core::error::ApiError;
use crate::spells::Spells;

/// Makes a revision the active one of a channel.
///
/// # Errors
/// 403 for another user's spell, 404 for an unknown revision.
pub async fn publish(
    spells: &Arc<Spells>,
    actor: &Principal,
    spell_id: &str,
    request: &PublishSpellRequest,
) -> Result<SpellPublished, ApiError> {
    let db = &spells.core.db;
    let spell = drafts::show(db, actor, spell_id).await?;
    must_own(actor, &spell.created_by)?;
    refuse_taken_down(&spell)?;
    let revision = content::find(db, &request.revision_id)
        .await?
        .filter(|revision| revision.spell_id == spell_id)
        .ok_or_else(unknown_revision)?;
    let channel = request.channel;
    let column = match channel {
        SpellChannel::Draft => "active_draft_rev",
        SpellChannel::Beta => "active_beta_rev",
        SpellChannel::Stable => "active_stable_rev",
    };
    let mut transaction = crate::core::db::begin(db).await?;
    let update = format!(
        "UPDATE spells SET {column} = $1, display_name = $2, description = $3, updated_at = $4
         WHERE spell_id = $5"
    );
    let updated = sqlx::query(sqlx::AssertSqlSafe(update))
        .bind(&revision.revision_id)
        .bind(&revision.manifest.name)
        .bind(&revision.manifest.description)
        .bind(spells.core.clock.now_ms())
        .bind(spell_id)
        .execute(&mut *transaction)
        .await?;
    if updated.rows_affected() == 0 {
        return Err(unknown_spell());
    }
    if channel > revision.channel {
        sqlx::query("UPDATE revisions SET channel = $1 WHERE revision_id = $2")
            .bind(channel.name())
            .bind(&revision.revision_id)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    let spell = drafts::find(db, spell_id)
        .await?
        .ok_or_else(unknown_spell)?;
    let published = SpellPublished {
        spell_id: spell_id.to_owned(),
        revision_id: revision.revision_id.clone(),
        channel,
        spell,
        manifest: revision.manifest.clone(),
    };
    if channel == SpellChannel::Draft {
        // Only the creator may know about a draft.
        let maker = &published.spell.created_by;
        spells
            .worlds
            .notifier
            .send_to_user(maker, "spell.active_update", &published);
    } else {
        spells
            .worlds
            .notifier
            .broadcast("spell.active_update", &published);
    }
    teach::teach_running_worlds(spells, &revision, channel);
    Ok(published)
}
