//! One build: turns a build request into a revision, stage by stage.

use std::collections::BTreeMap;
use std::sync::Arc;

use frolic_package::spells::{self as format, SpellSettings};

use super::content::{self, ENTRY};
use super::jobs::Job;
use super::text::DESCRIPTION_CHARS_MAX;
use super::{SpellCompiler, WriteError, drafts};
use crate::api::SpellChannel;
use crate::api::limits::SPELL_NAME_CHARS_MAX;
use crate::api::{BuildOptions, BuildRequest, RevisionInfo, SpellFile, SpellManifest};
use crate::core::clock::rfc3339;
use crate::core::error::ApiError;
use crate::core::ids;
use crate::core::texts;
use crate::spells::Spells;

const SETTINGS: &str = "spell.toml";
const PROMPT: &str = "prompt.txt";

/// Message for players where no language model is configured.
pub const NO_PROMPTS: &str =
    "Spells can't be written from a description here right now. Write the code instead.";

/// Why a build produced no revision.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The request cannot be built.
    #[error("{0}")]
    Rejected(String),
    /// A retry may succeed.
    #[error("{0}")]
    Retryable(String),
    /// The job was cancelled or belongs to another worker now.
    #[error("the build was cancelled")]
    Cancelled,
}

impl From<ApiError> for BuildError {
    fn from(error: ApiError) -> Self {
        if error.is_transient() {
            BuildError::Retryable(error.message().to_owned())
        } else {
            BuildError::Rejected(error.message().to_owned())
        }
    }
}

impl From<sqlx::Error> for BuildError {
    fn from(error: sqlx::Error) -> Self {
        ApiError::from(error).into()
    }
}

impl From<std::io::Error> for BuildError {
    fn from(error: std::io::Error) -> Self {
        ApiError::from(error).into()
    }
}

/// The inputs of a build.
pub struct Prepared {
    code: String,
    settings: SpellSettings,
    prompt: Option<String>,
    parent: Option<String>,
    metadata: Option<serde_json::Value>,
}

/// A checked revision that is not stored yet.
pub struct Assembled {
    files: BTreeMap<String, Vec<u8>>,
    prepared: Prepared,
}

/// Stage `prepare`: reads the code, or has the language model write it.
///
/// # Errors
/// [`BuildError`].
pub async fn prepare(
    spells: &Spells,
    compiler: &Arc<dyn SpellCompiler>,
    job: &Job,
    say: &mut (dyn FnMut(String) + Send),
) -> Result<Prepared, BuildError> {
    let db = &spells.core.db;
    let spell_id = &job.info.spell_id;
    let spell = drafts::find(db, spell_id).await?;
    let spell =
        spell.ok_or_else(|| BuildError::Rejected("the spell no longer exists".to_owned()))?;
    let parent = match &spell.active_draft_rev {
        Some(revision) => content::find(db, revision).await?,
        None => None,
    };
    let request = &job.request;
    let filled = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let (given, prompt) = (filled(&request.code), filled(&request.prompt));
    let code = match (&prompt, given) {
        (None, Some(code)) => {
            say(format!("building from code, {} bytes", code.len()));
            code
        }
        (Some(prompt), given) => {
            say("building from a description: the language model writes the code".to_owned());
            let code = write(compiler, spell_id, prompt, given).await?;
            say(format!("the model wrote {} bytes", code.len()));
            code
        }
        (None, None) => {
            // No code and no prompt: rebuild the newest revision with other settings.
            let nothing = || BuildError::Rejected("there is nothing to build".to_owned());
            let newest = parent.as_ref().ok_or_else(nothing)?;
            let (_, bytes) = content::file(spells, newest, ENTRY).await?;
            say("building from the newest revision".to_owned());
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    let before = parent.as_ref().map(|revision| &revision.manifest);
    let options = request.options.as_ref();
    let metadata = options.and_then(|options| options.metadata.clone());
    Ok(Prepared {
        metadata: metadata.or_else(|| before?.metadata.clone()),
        settings: settings_of(request, before, &spell.display_name, &spell.description),
        code,
        prompt,
        parent: parent.map(|revision| revision.revision_id),
    })
}

async fn write(
    compiler: &Arc<dyn SpellCompiler>,
    spell_id: &str,
    prompt: &str,
    code: Option<String>,
) -> Result<String, BuildError> {
    let (compiler, spell_id) = (compiler.clone(), spell_id.to_owned());
    let prompt = prompt.to_owned();
    // The client of the language model blocks for a long time.
    let written =
        tokio::task::spawn_blocking(move || compiler.write(&spell_id, &prompt, code.as_deref()));
    match written.await {
        Ok(Ok(code)) => Ok(code),
        Ok(Err(WriteError::Rejected(why))) => Err(BuildError::Rejected(why)),
        Ok(Err(WriteError::Retryable(detail))) => {
            tracing::warn!(detail, "language model request failed");
            Err(BuildError::Retryable(
                "the language model is busy".to_owned(),
            ))
        }
        Ok(Err(WriteError::Unavailable(detail))) => {
            tracing::warn!(detail, "language model unavailable");
            Err(BuildError::Rejected(NO_PROMPTS.to_owned()))
        }
        Err(_) => Err(BuildError::Retryable(
            "the language model is busy".to_owned(),
        )),
    }
}

/// The settings of the request, with those of the last revision and the defaults as
/// fallbacks.
fn settings_of(
    request: &BuildRequest,
    before: Option<&SpellManifest>,
    name: &str,
    description: &str,
) -> SpellSettings {
    let plain = SpellSettings::default();
    let mut options: BuildOptions = request.options.clone().unwrap_or_default();
    let in_metadata = |name: &str| {
        let text = options.metadata.as_ref()?.get(name)?.as_str()?;
        Some(text.to_owned())
    };
    options.name = options.name.clone().or_else(|| in_metadata("name"));
    options.description = (options.description.clone()).or_else(|| in_metadata("description"));
    let text = |given: Option<String>, most, before: &str| {
        given
            .map(|text| texts::line(&text, most))
            .filter(|text| !text.is_empty())
            .unwrap_or_else(|| before.to_owned())
    };
    let number = |given: Option<f32>, before: Option<f32>, plain| given.or(before).unwrap_or(plain);
    SpellSettings {
        name: text(options.name, SPELL_NAME_CHARS_MAX, name),
        description: text(options.description, DESCRIPTION_CHARS_MAX, description),
        cooldown_s: number(
            options.cooldown_s,
            before.map(|m| m.cooldown_s),
            plain.cooldown_s,
        ),
        cost: number(options.cost, before.map(|m| m.cost), plain.cost),
        range_m: number(options.range_m, before.map(|m| m.range_m), plain.range_m),
    }
}

/// Stage `assemble_package`: creates the files of the revision.
pub fn assemble(prepared: Prepared) -> Assembled {
    let mut files = BTreeMap::from([
        (ENTRY.to_owned(), prepared.code.clone().into_bytes()),
        (
            SETTINGS.to_owned(),
            prepared.settings.to_toml().into_bytes(),
        ),
    ]);
    if let Some(prompt) = &prepared.prompt {
        files.insert(PROMPT.to_owned(), prompt.clone().into_bytes());
    }
    Assembled { files, prepared }
}

/// Stage `validate`: checks the settings and compiles the code as a world would.
///
/// # Errors
/// The first problem, with its line.
pub async fn validate(
    compiler: &Arc<dyn SpellCompiler>,
    spell_id: &str,
    assembled: &Assembled,
) -> Result<(), BuildError> {
    format::check(spell_id, &assembled.files).map_err(BuildError::Rejected)?;
    let (compiler, spell_id) = (compiler.clone(), spell_id.to_owned());
    let code = assembled.prepared.code.clone();
    let checked = tokio::task::spawn_blocking(move || compiler.check(&spell_id, &code));
    match checked.await {
        Ok(checked) => checked.map_err(BuildError::Rejected),
        Err(_) => Err(BuildError::Rejected(
            "the compiler crashed on this code".to_owned(),
        )),
    }
}

/// Stage `finalize`: stores the files and makes the revision the draft, in one
/// transaction, unless the job was cancelled.
///
/// # Errors
/// [`BuildError`].
pub async fn finalize(
    spells: &Spells,
    owner: &str,
    job: &Job,
    assembled: Assembled,
    logs: &[String],
) -> Result<RevisionInfo, BuildError> {
    let mut files = Vec::new();
    for (path, bytes) in &assembled.files {
        files.push(SpellFile {
            path: path.clone(),
            sha256: spells.core.blobs.put(bytes).await?,
            media_type: "text/plain; charset=utf-8".to_owned(),
            size_bytes: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
        });
    }
    let Prepared {
        settings,
        parent,
        prompt,
        code,
        metadata,
    } = assembled.prepared;
    let (spell_id, now) = (&job.info.spell_id, spells.core.clock.now_ms());
    let revision_id = ids::new_id("rev");
    let mut transaction = crate::core::db::begin(&spells.core.db).await?;
    let ours = sqlx::query(
        "UPDATE jobs SET status = 'done', stage = 'done', progress_pct = 100, result_revision_id = $1,
           logs = $2, error_message = '', lease_owner = '', lease_until = 0, updated_at = $3
         WHERE job_id = $4 AND lease_owner = $5 AND status = 'running' AND cancel_requested = 0",
    )
    .bind(&revision_id)
    .bind(logs.join("\n"))
    .bind(now)
    .bind(&job.info.job_id)
    .bind(owner)
    .execute(&mut *transaction)
    .await?;
    if ours.rows_affected() == 0 {
        return Err(BuildError::Cancelled);
    }
    // A build with a stated parent must not overwrite a newer draft.
    let expected = job.request.parent_revision_id.clone().unwrap_or_default();
    let moved = sqlx::query(
        "UPDATE spells SET active_draft_rev = $1, version_count = version_count + 1, updated_at = $2,
           display_name = CASE WHEN active_stable_rev = '' THEN $3 ELSE display_name END,
           description = CASE WHEN active_stable_rev = '' THEN $4 ELSE description END
         WHERE spell_id = $5 AND ($6 = '' OR active_draft_rev = $7)",
    )
    .bind(&revision_id)
    .bind(now)
    .bind(&settings.name)
    .bind(&settings.description)
    .bind(spell_id)
    .bind(&expected)
    .bind(&expected)
    .execute(&mut *transaction)
    .await?;
    if moved.rows_affected() == 0 {
        return Err(super::jobs::draft_changed(None).into());
    }
    let version: i64 = sqlx::query_scalar("SELECT version_count FROM spells WHERE spell_id = $1")
        .bind(spell_id)
        .fetch_one(&mut *transaction)
        .await?;
    let manifest = SpellManifest {
        spell_id: spell_id.clone(),
        revision_id: revision_id.clone(),
        parent_revision_id: parent.clone(),
        version: crate::core::db::to_u32(version),
        name: settings.name,
        description: settings.description,
        entry: ENTRY.to_owned(),
        code_sha256: ids::sha256_hex(code.as_bytes()),
        cooldown_s: settings.cooldown_s,
        cost: settings.cost,
        range_m: settings.range_m,
        files,
        made_from: if prompt.is_some() { "prompt" } else { "code" }.to_owned(),
        metadata,
        created_by: job.created_by.clone(),
        created_at: rfc3339(now),
    };
    let text = serde_json::to_string(&manifest).map_err(|_| {
        BuildError::Rejected("the settings contain a number that is not finite".to_owned())
    })?;
    sqlx::query(
        "INSERT INTO revisions (revision_id, spell_id, parent_revision_id, channel, version,
           manifest_json, created_by, created_at) VALUES ($1, $2, $3, 'draft', $4, $5, $6, $7)",
    )
    .bind(&revision_id)
    .bind(spell_id)
    .bind(parent.clone().unwrap_or_default())
    .bind(version)
    .bind(text)
    .bind(&job.created_by)
    .bind(now)
    .execute(&mut *transaction)
    .await?;
    for file in &manifest.files {
        sqlx::query(
            "INSERT INTO spell_files (revision_id, path, sha256, media_type, size_bytes)
             VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(&revision_id)
        .bind(&file.path)
        .bind(&file.sha256)
        .bind(&file.media_type)
        .bind(i64::from(file.size_bytes))
        .execute(&mut *transaction)
        .await?;
    }
    transaction.commit().await?;
    Ok(RevisionInfo {
        revision_id,
        spell_id: spell_id.clone(),
        parent_revision_id: parent,
        channel: SpellChannel::Draft,
        version: manifest.version,
        created_at: rfc3339(now),
        manifest,
    })
}
