//! Casts requested from outside a world: selects the revision and checks permissions;
//! the world decides the rest.

use frolic_fleet_api::remote_commands::{OutsideReply, OutsideRequest};
use serde_json::Value;

use super::{content, drafts, refuse_taken_down, teach, unknown_revision, unknown_spell};
use crate::api::{RevisionInfo, SpellChannel, SpellInfo};
use crate::community::auth::Principal;
use crate::core::error::ApiError;
use crate::spells::Spells;
use crate::worlds::remote_commands::{self, WorldRef};

/// Maximum size of the cast parameters.
const PARAMS_BYTES_MAX: usize = 8 * 1024;

/// A cast request.
#[derive(Clone, Debug)]
pub struct CastRequest {
    /// Id of the spell, of the platform or of the world's own game.
    pub spell_id: String,
    /// The revision; default the stable one.
    pub revision_id: Option<String>,
    /// Parameters for the spell's script.
    pub params: Value,
}

/// Casts a spell in a world. The world broadcasts the cast to its players.
///
/// # Errors
/// When the user may not cast the spell, or the world rejects the cast.
pub async fn cast(
    spells: &Spells,
    actor: &Principal,
    place: &WorldRef,
    request: &CastRequest,
) -> Result<(), ApiError> {
    if request.params.to_string().len() > PARAMS_BYTES_MAX {
        let message = format!("params may have at most {PARAMS_BYTES_MAX} bytes");
        return Err(ApiError::bad_request("params_too_large", message));
    }
    let spec = remote_commands::editable_world(&spells.worlds, actor, place)
        .await?
        .spec;
    let (name, revision) = choose(spells, actor, request).await?;
    let server = spells.fleet.wake(&spec).await?;
    let request = OutsideRequest::Cast {
        by: actor.user_id.clone(),
        spell: name,
        revision: revision
            .as_ref()
            .map(|(revision, _)| revision.revision_id.clone()),
        params: request.params.clone(),
    };
    let mut taught = false;
    loop {
        match remote_commands::send(&spells.worlds, &server, &request).await? {
            OutsideReply::Done => return Ok(()),
            OutsideReply::Refused { code, message } => match &revision {
                // The world has not loaded this revision yet.
                Some((revision, channel)) if code == "no_such_spell" && !taught => {
                    teach::teach(spells, &server, revision, *channel).await?;
                    taught = true;
                }
                _ => return Err(remote_commands::refused(&code, message)),
            },
        }
    }
}

/// The spell's name in worlds, and the revision to teach; no revision for a spell of
/// the world's own game.
async fn choose(
    spells: &Spells,
    actor: &Principal,
    request: &CastRequest,
) -> Result<(String, Option<(RevisionInfo, SpellChannel)>), ApiError> {
    let db = &spells.core.db;
    let spell_id = &request.spell_id;
    let Some(spell) = drafts::find(db, spell_id).await? else {
        // The world's game may include this spell.
        if frolic_package::spells::is_id(spell_id) {
            return Ok((spell_id.clone(), None));
        }
        return Err(unknown_spell());
    };
    refuse_taken_down(&spell)?;
    let (revision_id, channel) = match &request.revision_id {
        Some(revision) => (revision.clone(), channel_of(&spell, revision, actor)?),
        None => active_for(&spell, actor)?,
    };
    let revision = content::find(db, &revision_id)
        .await?
        .filter(|revision| revision.spell_id == *spell_id)
        .ok_or_else(unknown_revision)?;
    let name = teach::name_in_worlds(spell_id, channel);
    Ok((name, Some((revision, channel))))
}

/// The channel where a revision is active. Creators may cast any of their own
/// revisions.
fn channel_of(
    spell: &SpellInfo,
    revision: &str,
    actor: &Principal,
) -> Result<SpellChannel, ApiError> {
    let is = |active: &Option<String>| active.as_deref() == Some(revision);
    if is(&spell.active_stable_rev) {
        Ok(SpellChannel::Stable)
    } else if is(&spell.active_beta_rev) {
        Ok(SpellChannel::Beta)
    } else if actor.owns(&spell.created_by) {
        Ok(SpellChannel::Draft)
    } else {
        Err(ApiError::new(
            axum::http::StatusCode::CONFLICT,
            "revision_not_active",
            "this revision is not active; omit revision_id to cast the active one",
        ))
    }
}

fn active_for(spell: &SpellInfo, actor: &Principal) -> Result<(String, SpellChannel), ApiError> {
    if let Some(stable) = &spell.active_stable_rev {
        return Ok((stable.clone(), SpellChannel::Stable));
    }
    if let Some(beta) = &spell.active_beta_rev {
        return Ok((beta.clone(), SpellChannel::Beta));
    }
    let draft = spell.active_draft_rev.as_ref();
    match draft.filter(|_| actor.owns(&spell.created_by)) {
        Some(draft) => Ok((draft.clone(), SpellChannel::Draft)),
        None => Err(ApiError::new(
            axum::http::StatusCode::CONFLICT,
            "spell_not_published",
            "this spell has no revision that you may cast; its creator must publish one",
        )),
    }
}
