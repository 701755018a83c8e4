//! `spell.…`, `content.…` and `job.…`: the REST API of spells as events.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde_json::{Value, json};

use super::connection::{HandlerResult, Reply, parsed, text};
use super::visitor::Visitor;
use crate::Platform;
use crate::api::{BuildRequest, CreateSpellRequest, PublishSpellRequest, RevisionInfo};
use crate::core::error::ApiError;
use crate::core::paging::{PER_PAGE, Page};
use crate::spells as makes;
use crate::spells::drafts::SpellFilter;
use crate::spells::{content, drafts, jobs};

/// `spell.create_draft`.
pub async fn create_draft(platform: &Platform, visitor: &Visitor, data: &Value) -> HandlerResult {
    let request: CreateSpellRequest = parsed(data)?;
    if visitor.actor.is_anonymous() {
        super::worlds::limit_anonymous(platform, "spells").await?;
    }
    let created = drafts::create(&platform.spells, &visitor.actor, &request).await?;
    Ok(Reply::Event("spell.draft_created", json!(created)))
}

/// `spell.start_build`.
pub async fn start_build(platform: &Platform, visitor: &Visitor, data: &Value) -> HandlerResult {
    let spell_id = text(data, "spell_id")?;
    let request: BuildRequest = parsed(data)?;
    if visitor.actor.is_anonymous() {
        super::worlds::limit_anonymous(platform, "spells").await?;
    }
    let started = jobs::start(&platform.spells, &visitor.actor, &spell_id, request).await?;
    Ok(Reply::Event("spell.build_started", json!(started)))
}

/// `spell.publish`: notifies every client, including the sender.
pub async fn publish(platform: &Platform, visitor: &Visitor, data: &Value) -> HandlerResult {
    let spell_id = text(data, "spell_id")?;
    let mut data = data.clone();
    if data.get("channel").is_none_or(Value::is_null) {
        data["channel"] = json!("stable");
    }
    let request: PublishSpellRequest = parsed(&data)?;
    let published = makes::publish(&platform.spells, &visitor.actor, &spell_id, &request).await?;
    Ok(Reply::Acknowledge(json!(published)))
}

/// `spell.list`.
pub async fn list(platform: &Platform, visitor: &Visitor, data: &Value) -> HandlerResult {
    #[derive(Default, Deserialize)]
    struct SpellQuery {
        #[serde(default)]
        q: Option<String>,
        #[serde(default)]
        mine: Option<bool>,
        #[serde(default)]
        page: Option<u32>,
        #[serde(default)]
        per_page: Option<u32>,
    }
    let asked: SpellQuery = parsed(data)?;
    let filter = SpellFilter {
        query: asked.q.unwrap_or_default(),
        mine: asked.mine.unwrap_or(false),
        page: Page::of(asked.page, asked.per_page, PER_PAGE)?,
    };
    let listed = drafts::list(&platform.spells, &visitor.actor, &filter).await?;
    Ok(Reply::Event("spell.list_result", json!(listed)))
}

/// `spell.get_revisions`.
pub async fn revisions(platform: &Platform, visitor: &Visitor, data: &Value) -> HandlerResult {
    let spell_id = text(data, "spell_id")?;
    let number = |name: &str| {
        let number = data.get(name).and_then(Value::as_u64);
        number.map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    };
    let page = Page::of(number("page"), number("per_page"), PER_PAGE)?;
    let listed = content::revisions(&platform.core.db, &visitor.actor, &spell_id, page).await?;
    Ok(Reply::Event("spell.revisions_result", json!(listed)))
}

/// The named revision, or the active one.
async fn requested_revision(
    platform: &Platform,
    visitor: &Visitor,
    data: &Value,
) -> Result<RevisionInfo, ApiError> {
    let spell_id = text(data, "spell_id")?;
    let revision_id = match super::connection::optional(data, "revision_id")? {
        Some(revision_id) => revision_id,
        None => {
            let spell = drafts::show(&platform.core.db, &visitor.actor, &spell_id).await?;
            let draft = spell.active_draft_rev;
            let active = spell.active_stable_rev.or(spell.active_beta_rev).or(draft);
            active.ok_or_else(|| {
                ApiError::not_found("revision_not_found", "this spell has no revision yet")
            })?
        }
    };
    content::revision(&platform.core.db, &visitor.actor, &spell_id, &revision_id).await
}

/// `content.get_manifest`.
pub async fn manifest(platform: &Platform, visitor: &Visitor, data: &Value) -> HandlerResult {
    let revision = requested_revision(platform, visitor, data).await?;
    let data = json!({
        "spell_id": revision.spell_id,
        "revision_id": revision.revision_id,
        "manifest": revision.manifest,
    });
    Ok(Reply::Event("content.manifest", data))
}

/// `content.get_file`.
pub async fn file(platform: &Platform, visitor: &Visitor, data: &Value) -> HandlerResult {
    let path = text(data, "path")?;
    let revision = requested_revision(platform, visitor, data).await?;
    let (file, bytes) = content::file(&platform.spells, &revision, &path).await?;
    let data = json!({
        "spell_id": revision.spell_id,
        "revision_id": revision.revision_id,
        "path": file.path,
        "content": BASE64.encode(&bytes),
        "encoding": "base64",
        "size": bytes.len(),
        "sha256": file.sha256,
        "media_type": file.media_type,
    });
    Ok(Reply::Event("content.file", data))
}

/// `content.list_files`.
pub async fn files(platform: &Platform, visitor: &Visitor, data: &Value) -> HandlerResult {
    let revision = requested_revision(platform, visitor, data).await?;
    let data = json!({
        "spell_id": revision.spell_id,
        "revision_id": revision.revision_id,
        "files": revision.manifest.files,
    });
    Ok(Reply::Event("content.files_list", data))
}

/// `job.get`: the state of a build, for clients that missed progress events.
pub async fn job(platform: &Platform, visitor: &Visitor, data: &Value) -> HandlerResult {
    let job = jobs::show(&platform.core.db, &visitor.actor, &text(data, "job_id")?).await?;
    Ok(Reply::Event("job.info", json!(job.info)))
}

/// `job.cancel`.
pub async fn cancel(platform: &Platform, visitor: &Visitor, data: &Value) -> HandlerResult {
    let job = jobs::cancel(&platform.spells, &visitor.actor, &text(data, "job_id")?).await?;
    Ok(Reply::Event("job.info", json!(job.info)))
}
