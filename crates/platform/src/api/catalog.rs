//! Types of the game catalog: listings, game pages, uploads, channels, edits.

use serde::{Deserialize, Serialize};

use super::RunningWorld;

/// Release channel of a game.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// For its creator.
    Dev,
    /// For players who request it.
    Beta,
    /// For everyone.
    #[default]
    Stable,
}

/// Who can find and play a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum GameVisibility {
    /// Everyone; listed in the store.
    Public,
    /// Everyone with the link; not listed.
    Unlisted,
    /// Only its creator.
    Private,
}

/// A game in a listing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct GameSummary {
    /// Game id (slug).
    pub id: String,
    /// Title.
    pub name: String,
    /// Description in plain text.
    pub description: String,
    /// Name of its creator.
    pub creator: String,
    /// URL of the thumbnail, if the game has one.
    #[schema(required)]
    pub thumbnail_url: Option<String>,
    /// Current players in its worlds.
    pub players_now: u32,
    /// Total joins.
    pub plays: u32,
    /// Likes.
    pub likes: u32,
    /// Search tags.
    pub tags: Vec<String>,
    /// Script capabilities declared in `game.toml`: `store`, `chat`…
    pub capabilities: Vec<String>,
    /// Version on the stable channel.
    pub version: String,
    /// Maximum number of players per world.
    pub max_players: u32,
}

/// `GET /api/games`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct GameList {
    /// This page.
    pub games: Vec<GameSummary>,
    /// Number of games on all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Page size.
    pub page_size: u32,
}

/// `GET /api/tags`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TagList {
    /// The most used first, at most 100.
    pub tags: Vec<TagCount>,
}

/// A tag of the store.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TagCount {
    /// The word.
    pub tag: String,
    /// Number of public games with this tag.
    pub games: u32,
}

/// `GET /api/games/{id}`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct GameDetail {
    /// Its entry in listings.
    #[serde(flatten)]
    pub summary: GameSummary,
    /// Running worlds.
    pub servers: Vec<RunningWorld>,
    /// Released versions, newest first; at most 50.
    pub versions: Vec<GameVersion>,
    /// User id of its creator.
    pub creator_id: String,
    /// Effective visibility.
    pub visibility: GameVisibility,
    /// Whether moderators featured it.
    pub featured: bool,
    /// Whether everyone may download the package.
    pub downloads: bool,
    /// Version available with `channel: "beta"`, if it differs from the stable
    /// version.
    #[schema(required)]
    pub beta_version: Option<String>,
    /// Screenshots, in the creator's order.
    pub screenshots: Vec<Screenshot>,
    /// Whether the current user likes it.
    pub liked: bool,
    /// Whether the current user is its creator.
    pub mine: bool,
    /// RFC 3339.
    pub created_at: String,
    /// Time of the last release or edit, RFC 3339.
    pub updated_at: String,
}

/// One published package.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct GameVersion {
    /// Version in its manifest.
    pub version: String,
    /// SHA-256 of the package.
    pub revision: String,
    /// RFC 3339.
    pub published_at: String,
    /// Release notes; may be empty.
    pub notes: String,
}

/// A screenshot of a game.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Screenshot {
    /// Screenshot id, to remove or reorder it.
    pub id: String,
    /// URL.
    pub url: String,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
}

/// `PUT /api/games/{id}/screenshots/order`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ScreenshotOrder {
    /// All screenshot ids in the new order, each exactly once.
    #[schema(max_items = 8)]
    pub ids: Vec<String>,
}

/// The screenshots of a game.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ScreenshotList {
    /// The screenshots in display order; at most 8.
    pub screenshots: Vec<Screenshot>,
}

/// `GET /api/games/{id}/files`: the assets of a revision with their URLs.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct GameFiles {
    /// SHA-256 of the package.
    pub revision: String,
    /// All files below `assets/`.
    pub files: Vec<GameFile>,
}

/// One asset.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct GameFile {
    /// Path in the package, `assets/…`.
    pub path: String,
    /// `/cdn/{sha256}`: immutable and cacheable forever. The URL of a private game's
    /// file ends with a grant that expires.
    pub url: String,
    /// Media type.
    pub media_type: String,
    /// Size in bytes.
    pub size_bytes: u32,
}

/// `PUT` and `DELETE /api/games/{id}/like`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LikeState {
    /// Whether you like it now.
    pub liked: bool,
    /// Total likes.
    pub likes: u32,
}

/// `PUT /api/games/{id}/featured`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FeatureRequest {
    /// Whether the game is shown on the store's front page.
    pub featured: bool,
}

/// `GET /api/ranking`: the formula of the Popular order.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RankingFormula {
    /// The formula in one line.
    pub formula: String,
    /// Its terms.
    pub parts: Vec<RankingPart>,
}

/// One term of the Popular formula.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RankingPart {
    /// Stable name for programs: `players`, `plays` or `likes`.
    pub name: String,
    /// Label for people.
    pub label: String,
    /// Points for each doubling.
    pub weight: f64,
    /// Half-life in days; `null` when only the current value counts.
    #[schema(required)]
    pub half_life_days: Option<f64>,
    /// What is counted, and how.
    pub meaning: String,
}

/// `GET /api/games/{id}/ranking`: how a game's score is computed.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RankingBreakdown {
    /// The game.
    pub game_id: String,
    /// Total points.
    pub score: f64,
    /// Rank in Popular, from 1; `null` for an unlisted game.
    #[schema(required)]
    pub rank: Option<u32>,
    /// Number of games in Popular.
    pub of: u32,
    /// Points by term.
    pub parts: Vec<RankingShare>,
}

/// One term of a game's score.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RankingShare {
    /// As in [`RankingPart`].
    pub name: String,
    /// As in [`RankingPart`].
    pub label: String,
    /// The count after decay.
    pub value: f64,
    /// As in [`RankingPart`].
    pub weight: f64,
    /// `weight × log2(1 + value)`.
    pub points: f64,
}

/// Response of `POST /api/games` and `POST /api/uploads/{id}/finish`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PublishResponse {
    /// Game id (slug).
    pub game_id: String,
    /// Version in the manifest.
    pub version: String,
    /// SHA-256 of the package.
    pub revision: String,
    /// False when the game had this exact package already.
    pub new_revision: bool,
    /// The channel that received it.
    pub channel: Channel,
    /// The game's effective visibility.
    pub visibility: GameVisibility,
    /// Warnings.
    pub report: PackageReport,
}

/// `POST /api/games/validate`: the result of checking a package without publishing
/// it.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ValidationReport {
    /// Whether the package is valid.
    pub ok: bool,
    /// Summary of a valid package.
    #[schema(required)]
    pub package: Option<ValidPackage>,
    /// All errors and warnings.
    pub report: PackageReport,
}

/// Summary of a valid package.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ValidPackage {
    /// Game id (slug).
    pub game_id: String,
    /// Title.
    pub name: String,
    /// Version.
    pub version: String,
    /// SHA-256 of the package.
    pub revision: String,
    /// Number of files.
    pub files: u32,
    /// Size of the archive.
    pub size_bytes: u32,
    /// Script capabilities.
    pub capabilities: Vec<String>,
}

/// Problems of a package; also the `details` of a rejected upload.
#[derive(Clone, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PackageReport {
    /// Ordered by file and line; at most 100.
    pub problems: Vec<PackageProblem>,
    /// Number of further problems.
    #[serde(default)]
    #[schema(required)]
    pub omitted: u32,
}

/// One error or warning about a package.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PackageProblem {
    /// `error`: the package is rejected. `warning`: probably a mistake.
    pub severity: String,
    /// Stable name of the rule.
    pub rule: String,
    /// Path in the package; empty for the archive as a whole.
    pub file: String,
    /// Line, from 1, when known.
    #[serde(default)]
    #[schema(required)]
    pub line: Option<u32>,
    /// Column, from 1, when known.
    #[serde(default)]
    #[schema(required)]
    pub column: Option<u32>,
    /// The problem and what to do about it.
    pub message: String,
}

/// `POST /api/uploads`: starts a resumable upload.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StartUpload {
    /// Size of the whole package.
    #[schema(value_type = u64, minimum = 1, maximum = 4_294_967_295_u64)]
    pub size_bytes: u32,
    /// SHA-256 of the whole package in hex; verified at the end when given.
    #[serde(default)]
    pub sha256: Option<String>,
    /// The channel that receives the version; default `stable`.
    #[serde(default)]
    pub channel: Option<Channel>,
    /// Release notes for players.
    #[serde(default)]
    pub notes: Option<String>,
}

/// An upload in progress.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct UploadState {
    /// Upload id.
    pub upload_id: String,
    /// Size of the whole package.
    pub size_bytes: u32,
    /// Bytes received so far: the offset of the next part.
    pub received_bytes: u32,
    /// Maximum size of a part.
    pub part_bytes_max: u32,
    /// The channel that will receive the version.
    pub channel: Channel,
    /// When the upload expires, RFC 3339.
    pub expires_at: String,
}
