//! Types of spells, revisions and builds, for REST and Socket.IO.

use serde::{Deserialize, Serialize};

/// Release channel of a spell.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum SpellChannel {
    /// Newest build; only its creator casts it.
    Draft,
    /// For players who request it.
    Beta,
    /// For everyone.
    Stable,
}

impl SpellChannel {
    /// Its name in the database and the API.
    pub fn name(self) -> &'static str {
        match self {
            SpellChannel::Draft => "draft",
            SpellChannel::Beta => "beta",
            SpellChannel::Stable => "stable",
        }
    }

    /// Parses [`SpellChannel::name`]; unknown names mean `Draft`, which only the
    /// creator sees.
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
pub struct SpellInfo {
    /// Spell id: lower-case letters, digits, `_` and `-`.
    pub spell_id: String,
    /// Display name.
    pub display_name: String,
    /// Description.
    pub description: String,
    /// User id of its creator.
    pub created_by: String,
    /// Newest revision.
    #[schema(required)]
    pub active_draft_rev: Option<String>,
    /// Active revision of `beta`.
    #[schema(required)]
    pub active_beta_rev: Option<String>,
    /// Active revision of `stable`.
    #[schema(required)]
    pub active_stable_rev: Option<String>,
    /// Version of the newest revision; 0 before the first build.
    pub version: u32,
    /// Whether moderators took it down: only its creator sees it, and no player can
    /// cast it.
    pub taken_down: bool,
    /// RFC 3339.
    pub created_at: String,
    /// Time of the last build or publication, RFC 3339.
    pub updated_at: String,
}

/// `GET /api/spells`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SpellList {
    /// This page, the last changed first.
    pub spells: Vec<SpellInfo>,
    /// Number of spells on all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Page size.
    pub per_page: u32,
    /// Whether this platform can build spells from a `prompt`.
    #[serde(default)]
    #[schema(required)]
    pub prompts: bool,
}

/// `POST /api/spells`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CreateSpellRequest {
    /// Requested id; generated when absent.
    #[serde(default)]
    #[schema(pattern = "^[a-z0-9_-]{1,64}$")]
    pub spell_id: Option<String>,
    /// Display name; default the id.
    #[serde(default)]
    pub display_name: Option<String>,
    /// Description.
    #[serde(default)]
    pub description: Option<String>,
}

/// Response of `POST /api/spells`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DraftCreated {
    /// Spell id.
    pub spell_id: String,
    /// False when the spell existed already and is yours.
    pub created: bool,
    /// The spell.
    pub spell: SpellInfo,
}

/// Options of a build.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BuildOptions {
    /// Display name.
    #[serde(default)]
    pub name: Option<String>,
    /// Description.
    #[serde(default)]
    pub description: Option<String>,
    /// Cooldown per player, in seconds.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 3600)]
    pub cooldown_s: Option<f32>,
    /// Mana cost, of 100.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1000)]
    pub cost: Option<f32>,
    /// Maximum distance of the target, in metres.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1000)]
    pub range_m: Option<f32>,
    /// Arbitrary metadata for the manifest. Its `name` and `description` are defaults
    /// for the fields above. At most 4 KiB as JSON.
    #[serde(default)]
    #[schema(value_type = Option<std::collections::BTreeMap<String, serde_json::Value>>)]
    pub metadata: Option<serde_json::Value>,
}

/// `POST /api/spells/{id}/build`: builds from code, or from a prompt in natural
/// language. A prompt with code modifies the code. Without either, the newest
/// revision is rebuilt with other options.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BuildRequest {
    /// Description of the spell in natural language.
    #[serde(default)]
    pub prompt: Option<String>,
    /// Luau with a function `on_cast(ctx)`.
    #[serde(default)]
    pub code: Option<String>,
    /// Options.
    #[serde(default)]
    pub options: Option<BuildOptions>,
    /// The draft that this build is based on. The build is rejected when the draft is
    /// outdated.
    #[serde(default)]
    pub parent_revision_id: Option<String>,
}

/// Response of `POST /api/spells/{id}/build`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BuildStarted {
    /// Job id, for `/api/jobs/{id}`.
    pub job_id: String,
    /// The spell.
    pub spell_id: String,
}

/// State of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobStatus {
    /// Waiting for a worker.
    Queued,
    /// In progress.
    Running,
    /// Finished with a revision.
    Done,
    /// Failed; the message says why.
    Failed,
    /// Cancelled by the user.
    Cancelled,
}

/// `GET /api/jobs/{id}`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct JobInfo {
    /// Job id.
    pub job_id: String,
    /// The spell that is built.
    pub spell_id: String,
    /// State.
    pub status: JobStatus,
    /// `prepare`, `assemble_package`, `validate`, `finalize` or `done`.
    pub stage: String,
    /// Progress, 0 to 100.
    pub progress_pct: u32,
    /// Build log.
    pub logs: Vec<String>,
    /// Why it failed.
    #[schema(required)]
    pub error_message: Option<String>,
    /// The built revision.
    #[schema(required)]
    pub result_revision_id: Option<String>,
    /// Number of attempts.
    pub attempts: u32,
    /// RFC 3339.
    pub created_at: String,
    /// Time of the last progress, RFC 3339.
    pub updated_at: String,
}

/// One file of a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SpellFile {
    /// Path, such as `spell.luau`.
    pub path: String,
    /// SHA-256 of the content in hex.
    pub sha256: String,
    /// Media type.
    pub media_type: String,
    /// Size in bytes.
    pub size_bytes: u32,
}

/// Manifest of a revision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SpellManifest {
    /// The spell.
    pub spell_id: String,
    /// This revision.
    pub revision_id: String,
    /// The revision it is based on.
    #[schema(required)]
    pub parent_revision_id: Option<String>,
    /// Version number of the spell, from 1.
    pub version: u32,
    /// Display name.
    pub name: String,
    /// Description.
    pub description: String,
    /// The file that defines `on_cast(ctx)`.
    pub entry: String,
    /// SHA-256 of that file; worlds identify the code by it.
    pub code_sha256: String,
    /// Cooldown per player, in seconds.
    pub cooldown_s: f32,
    /// Mana cost, of 100.
    pub cost: f32,
    /// Maximum distance of the target, in metres.
    pub range_m: f32,
    /// All files.
    pub files: Vec<SpellFile>,
    /// `code` or `prompt`.
    pub made_from: String,
    /// The `options.metadata` of the build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::BTreeMap<String, serde_json::Value>>)]
    pub metadata: Option<serde_json::Value>,
    /// User id of its creator.
    pub created_by: String,
    /// RFC 3339.
    pub created_at: String,
}

/// A revision in a list.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RevisionInfo {
    /// Revision id.
    pub revision_id: String,
    /// The spell.
    pub spell_id: String,
    /// The revision it is based on.
    #[schema(required)]
    pub parent_revision_id: Option<String>,
    /// The highest channel it was published to.
    pub channel: SpellChannel,
    /// Version number of the spell, from 1.
    pub version: u32,
    /// RFC 3339.
    pub created_at: String,
    /// Its manifest.
    pub manifest: SpellManifest,
}

/// `GET /api/spells/{id}/revisions`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RevisionList {
    /// The spell.
    pub spell_id: String,
    /// This page, newest first, without other users' drafts.
    pub revisions: Vec<RevisionInfo>,
    /// Number of revisions on all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Page size.
    pub per_page: u32,
}

/// `POST /api/spells/{id}/publish`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PublishSpellRequest {
    /// A revision of this spell.
    pub revision_id: String,
    /// The channel where it becomes active.
    pub channel: SpellChannel,
}

/// Response of `POST /api/spells/{id}/publish`, and content of `spell.active_update`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SpellPublished {
    /// The spell.
    pub spell_id: String,
    /// The revision that is active now.
    pub revision_id: String,
    /// Its channel.
    pub channel: SpellChannel,
    /// The spell with its channels.
    pub spell: SpellInfo,
    /// The manifest of the revision.
    pub manifest: SpellManifest,
}
