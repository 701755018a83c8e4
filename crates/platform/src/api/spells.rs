//! What the REST interface and Socket.IO say of spells, their revisions and
//! builds.

use serde::{Deserialize, Serialize};

/// Where a revision is active.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
#[serde(rename_all = "lowercase")]
pub enum SpellChannel {
    /// Built; only its maker casts it.
    Draft,
    /// For whoever asks for it.
    Beta,
    /// For everybody.
    Stable,
}

impl SpellChannel {
    /// As the database and the interface write it.
    pub fn name(self) -> &'static str {
        match self {
            SpellChannel::Draft => "draft",
            SpellChannel::Beta => "beta",
            SpellChannel::Stable => "stable",
        }
    }

    /// From [`SpellChannel::name`]; anything else is a draft, which nobody else sees.
    pub fn from_name(name: &str) -> Self {
        match name {
            "beta" => SpellChannel::Beta,
            "stable" => SpellChannel::Stable,
            _ => SpellChannel::Draft,
        }
    }
}

/// A spell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct SpellInfo {
    /// Small letters, digits, `_` and `-`.
    pub spell_id: String,
    /// Name to show.
    pub display_name: String,
    /// What it does.
    pub description: String,
    /// Who made it.
    pub created_by: String,
    /// Newest build.
    pub active_draft_rev: Option<String>,
    /// What `beta` names.
    pub active_beta_rev: Option<String>,
    /// What everybody casts.
    pub active_stable_rev: Option<String>,
    /// Version of the newest revision; 0 before the first build.
    pub version: u32,
    /// Moderators took it down: only its maker sees it, and nobody casts it.
    pub taken_down: bool,
    /// When it was begun.
    pub created_at: String,
    /// When it was last built or published.
    pub updated_at: String,
}

/// `GET /api/spells`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct SpellList {
    /// The one that changed last first.
    pub spells: Vec<SpellInfo>,
    /// How many there are on all pages.
    pub total: u32,
    /// This page, from 1.
    pub page: u32,
    /// Spells on a full page.
    pub per_page: u32,
    /// Whether spells can be built from a `prompt` here.
    #[serde(default)]
    pub prompts: bool,
}

/// `POST /api/spells`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct CreateSpellRequest {
    /// Wanted id; one is made up without it.
    #[serde(default)]
    #[schema(pattern = "^[a-z0-9_-]{1,64}$")]
    #[cfg_attr(test, ts(optional))]
    pub spell_id: Option<String>,
    /// Name to show; the id without it.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub display_name: Option<String>,
    /// What it does.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub description: Option<String>,
}

/// Answer of `POST /api/spells`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct DraftCreated {
    /// Its id.
    pub spell_id: String,
    /// False when it was yours already.
    pub created: bool,
    /// All of it.
    pub spell: SpellInfo,
}

/// What a cast takes, and what the spell is called.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct BuildOptions {
    /// Name to show.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub name: Option<String>,
    /// What it does.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub description: Option<String>,
    /// Seconds until the same player can cast it again.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 3600)]
    #[cfg_attr(test, ts(optional))]
    pub cooldown_s: Option<f32>,
    /// Of 100 mana.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1000)]
    #[cfg_attr(test, ts(optional))]
    pub cost: Option<f32>,
    /// How far away its target may be, in metres.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1000)]
    #[cfg_attr(test, ts(optional))]
    pub range_m: Option<f32>,
    /// Anything else that your programs want in the manifest; its `name` and `description` count
    /// where those above are not given. At most 4 KiB as JSON.
    #[serde(default)]
    #[schema(value_type = Option<std::collections::BTreeMap<String, serde_json::Value>>)]
    #[cfg_attr(test, ts(optional, type = "Record<string, unknown>"))]
    pub metadata: Option<serde_json::Value>,
}

/// `POST /api/spells/{id}/build`: from code, or from a description in plain
/// language. A prompt with code has the code changed; without either the
/// newest revision is built again, with other options.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct BuildRequest {
    /// What the spell is to do, in plain language.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub prompt: Option<String>,
    /// Luau with a function `on_cast(ctx)`.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub code: Option<String>,
    /// What a cast takes.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub options: Option<BuildOptions>,
    /// The draft that this was made from. When another one is active by now,
    /// the build is refused instead of hiding it.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub parent_revision_id: Option<String>,
}

/// Answer of `POST /api/spells/{id}/build`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct BuildStarted {
    /// To ask `/api/jobs/{id}` about.
    pub job_id: String,
    /// The spell.
    pub spell_id: String,
}

/// Where a build is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
#[serde(rename_all = "lowercase")]
pub enum JobStatus {
    /// Waits for its turn.
    Queued,
    /// Is worked on.
    Running,
    /// There is a revision.
    Done,
    /// There is none; the message says why.
    Failed,
    /// Somebody stopped it.
    Cancelled,
}

/// `GET /api/jobs/{id}`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct JobInfo {
    /// Its id.
    pub job_id: String,
    /// What is built.
    pub spell_id: String,
    /// Where it is.
    pub status: JobStatus,
    /// prepare, assemble_package, validate, finalize or done.
    pub stage: String,
    /// 0 to 100.
    pub progress_pct: u32,
    /// What was said on the way.
    pub logs: Vec<String>,
    /// Why it failed.
    pub error_message: Option<String>,
    /// What came of it.
    pub result_revision_id: Option<String>,
    /// How often it was begun.
    pub attempts: u32,
    /// When it was asked for.
    pub created_at: String,
    /// When it last moved.
    pub updated_at: String,
}

/// One file of a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct SpellFile {
    /// Such as `spell.luau`.
    pub path: String,
    /// Of its content, in hex.
    pub sha256: String,
    /// What it is.
    pub media_type: String,
    /// Its size.
    pub size_bytes: u32,
}

/// What a revision is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct SpellManifest {
    /// The spell.
    pub spell_id: String,
    /// This revision.
    pub revision_id: String,
    /// What it was made from.
    pub parent_revision_id: Option<String>,
    /// Counts the revisions of the spell, from 1.
    pub version: u32,
    /// Name to show.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The file that defines `on_cast(ctx)`.
    pub entry: String,
    /// Of that file: what worlds call the revision.
    pub code_sha256: String,
    /// Seconds until the same player can cast it again.
    pub cooldown_s: f32,
    /// Of 100 mana.
    pub cost: f32,
    /// How far away its target may be, in metres.
    pub range_m: f32,
    /// All files.
    pub files: Vec<SpellFile>,
    /// `code` or `prompt`.
    pub made_from: String,
    /// What the build was given as `options.metadata`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::BTreeMap<String, serde_json::Value>>)]
    #[cfg_attr(test, ts(optional, type = "Record<string, unknown>"))]
    pub metadata: Option<serde_json::Value>,
    /// Who made it.
    pub created_by: String,
    /// When.
    pub created_at: String,
}

/// A revision in a list.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct RevisionInfo {
    /// Its id.
    pub revision_id: String,
    /// The spell.
    pub spell_id: String,
    /// What it was made from.
    pub parent_revision_id: Option<String>,
    /// The highest channel it was published to.
    pub channel: SpellChannel,
    /// Counts the revisions of the spell, from 1.
    pub version: u32,
    /// When it was built.
    pub created_at: String,
    /// What it is.
    pub manifest: SpellManifest,
}

/// `GET /api/spells/{id}/revisions`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct RevisionList {
    /// The spell.
    pub spell_id: String,
    /// The newest first; others' drafts are not among them.
    pub revisions: Vec<RevisionInfo>,
    /// How many there are on all pages.
    pub total: u32,
    /// This page, from 1.
    pub page: u32,
    /// Revisions on a full page.
    pub per_page: u32,
}

/// `POST /api/spells/{id}/publish`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct PublishSpellRequest {
    /// A revision of this spell.
    pub revision_id: String,
    /// Where it becomes the active one.
    pub channel: SpellChannel,
}

/// Answer of `POST /api/spells/{id}/publish`, and `spell.active_update`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct SpellPublished {
    /// The spell.
    pub spell_id: String,
    /// What is active now.
    pub revision_id: String,
    /// Where.
    pub channel: SpellChannel,
    /// The spell with its channels.
    pub spell: SpellInfo,
    /// What the revision is.
    pub manifest: SpellManifest,
}
