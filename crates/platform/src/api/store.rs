//! The store as types: listings, game pages, uploads, channels, edits.

use serde::{Deserialize, Serialize};

use super::RunningWorld;

/// Which version of a game somebody gets.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// For its creator.
    Dev,
    /// For whoever asks for it.
    Beta,
    /// For everybody.
    #[default]
    Stable,
}

/// Who can find and play a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
#[serde(rename_all = "lowercase")]
pub enum GameVisibility {
    /// Everybody, in the store.
    Public,
    /// Whoever has the link.
    Unlisted,
    /// Its creator.
    Private,
}

/// A game in a listing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct GameSummary {
    /// Slug.
    pub id: String,
    /// Title.
    pub name: String,
    /// What it is, in plain text.
    pub description: String,
    /// Name of its creator.
    pub creator: String,
    /// Picture, when the game has one.
    pub thumbnail_url: Option<String>,
    /// Players in its worlds now.
    pub players_now: u32,
    /// Joins so far.
    pub plays: u32,
    /// Likes so far.
    pub likes: u32,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// What its scripts may use, as `game.toml` declares it: `store`, `chat`…
    pub capabilities: Vec<String>,
    /// Version that everybody gets.
    pub version: String,
    /// Players that fit into one world.
    pub max_players: u32,
}

/// `GET /api/games`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct GameList {
    /// This page.
    pub games: Vec<GameSummary>,
    /// Games on all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Games on a full page.
    pub page_size: u32,
}

/// `GET /api/tags`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct TagList {
    /// The most used first, at most 100.
    pub tags: Vec<TagCount>,
}

/// A tag of the store.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct TagCount {
    /// The word.
    pub tag: String,
    /// Public games that have it.
    pub games: u32,
}

/// `GET /api/games/{id}`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct GameDetail {
    /// What listings show.
    #[serde(flatten)]
    pub summary: GameSummary,
    /// Worlds that run now.
    pub servers: Vec<RunningWorld>,
    /// Versions that everybody could play, newest first; the newest 50.
    pub versions: Vec<GameVersion>,
    /// Id of its creator.
    pub creator_id: String,
    /// Who can find and play it now.
    pub visibility: GameVisibility,
    /// Whether moderators chose it.
    pub featured: bool,
    /// Whether everybody may download the package.
    pub downloads: bool,
    /// Version to be had with `channel: "beta"`, when it is another one.
    pub beta_version: Option<String>,
    /// Pictures, in the creator's order.
    pub screenshots: Vec<Screenshot>,
    /// Whether who asks likes it.
    pub liked: bool,
    /// Whether who asks is its creator.
    pub mine: bool,
    /// RFC 3339.
    pub created_at: String,
    /// When a version or its page last changed, RFC 3339.
    pub updated_at: String,
}

/// One published package.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct GameVersion {
    /// Version in its manifest.
    pub version: String,
    /// SHA-256 of the package.
    pub revision: String,
    /// RFC 3339.
    pub published_at: String,
    /// What its creator says is new; may be empty.
    pub notes: String,
}

/// A picture of a game.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct Screenshot {
    /// Id, to remove and to order it.
    pub id: String,
    /// Where it is.
    pub url: String,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
}

/// `PUT /api/games/{id}/screenshots/order`: the order to show them in.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct ScreenshotOrder {
    /// All ids, each once.
    #[schema(max_items = 8)]
    pub ids: Vec<String>,
}

/// The screenshots of a game.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct ScreenshotList {
    /// In the order in which they are shown; at most 8.
    pub screenshots: Vec<Screenshot>,
}

/// `GET /api/games/{id}/files`: the assets of a revision and where they are.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct GameFiles {
    /// SHA-256 of the package they belong to.
    pub revision: String,
    /// Everything below `assets/`.
    pub files: Vec<GameFile>,
}

/// One asset.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct GameFile {
    /// Path in the package, `assets/…`.
    pub path: String,
    /// `/cdn/{sha256}`: never changes, cache for ever. Of a private game it
    /// has a grant at its end that lasts a while.
    pub url: String,
    /// Media type.
    pub media_type: String,
    /// Size in bytes.
    pub size_bytes: u32,
}

/// `PUT` and `DELETE /api/games/{id}/like`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct LikeState {
    /// Whether you like it now.
    pub liked: bool,
    /// Likes of everybody.
    pub likes: u32,
}

/// `PUT /api/games/{id}/featured`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct FeatureRequest {
    /// Whether the store's front page shows it.
    pub featured: bool,
}

/// `GET /api/ranking`: how Popular is ordered.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct RankingFormula {
    /// The whole of it, in one line.
    pub formula: String,
    /// Its parts.
    pub parts: Vec<RankingPart>,
}

/// One part of the formula of Popular.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct RankingPart {
    /// For programs: `players`, `plays` or `likes`.
    pub name: String,
    /// For people.
    pub label: String,
    /// Points for each doubling.
    pub weight: f64,
    /// After so many days one counts half; `null` when only now counts.
    pub half_life_days: Option<f64>,
    /// What is counted, and how.
    pub meaning: String,
}

/// `GET /api/games/{id}/ranking`: why a game is where it is.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct RankingBreakdown {
    /// The game.
    pub game_id: String,
    /// Sum of the points.
    pub score: f64,
    /// Place in Popular, from 1; `null` for a game that is not listed.
    pub rank: Option<u32>,
    /// Games in Popular.
    pub of: u32,
    /// Where the points come from.
    pub parts: Vec<RankingShare>,
}

/// What one part of the formula gives to a game.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct RankingShare {
    /// As in [`RankingPart`].
    pub name: String,
    /// As in [`RankingPart`].
    pub label: String,
    /// What was counted, after decay.
    pub value: f64,
    /// As in [`RankingPart`].
    pub weight: f64,
    /// `weight × log2(1 + value)`.
    pub points: f64,
}

/// Answer of `POST /api/games` and `POST /api/uploads/{id}/finish`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct PublishResponse {
    /// Slug of the game.
    pub game_id: String,
    /// Version in the manifest.
    pub version: String,
    /// SHA-256 of the package.
    pub revision: String,
    /// False when this very package was there already.
    pub new_revision: bool,
    /// The channel that has it now.
    pub channel: Channel,
    /// Who can find and play the game now.
    pub visibility: GameVisibility,
    /// What is allowed but probably not meant.
    pub report: PackageReport,
}

/// `POST /api/games/validate`: a package looked at and not kept.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct ValidationReport {
    /// Whether it would be taken.
    pub ok: bool,
    /// What it is, when it would be taken.
    pub package: Option<ValidPackage>,
    /// Everything that is wrong or odd.
    pub report: PackageReport,
}

/// What a valid package says of itself.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct ValidPackage {
    /// Slug of the game.
    pub game_id: String,
    /// Title.
    pub name: String,
    /// Version.
    pub version: String,
    /// SHA-256 of the package.
    pub revision: String,
    /// Files in it.
    pub files: u32,
    /// Size of the archive.
    pub size_bytes: u32,
    /// What its scripts may use.
    pub capabilities: Vec<String>,
}

/// Problems of a package; also the `details` of a refused upload.
#[derive(Clone, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct PackageReport {
    /// In the order of files and lines; at most 100.
    pub problems: Vec<PackageProblem>,
    /// How many more there were.
    #[serde(default)]
    pub omitted: u32,
}

/// One thing that is wrong or odd in a package.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct PackageProblem {
    /// `error`: refused for it. `warning`: probably not meant.
    pub severity: String,
    /// Stable name of the rule.
    pub rule: String,
    /// Path in the package; empty for the archive as a whole.
    pub file: String,
    /// Line, from 1, when known.
    #[serde(default)]
    pub line: Option<u32>,
    /// Column, from 1, when known.
    #[serde(default)]
    pub column: Option<u32>,
    /// What is wrong and what to do.
    pub message: String,
}

/// `POST /api/uploads`: begins an upload that can be taken up again.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct StartUpload {
    /// Size of the whole package.
    #[schema(value_type = u64, minimum = 1, maximum = 4_294_967_295_u64)]
    pub size_bytes: u32,
    /// SHA-256 of the whole package in hex; checked at the end when given.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub sha256: Option<String>,
    /// The channel to put it on; `stable` without it.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub channel: Option<Channel>,
    /// What is new, for players.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub notes: Option<String>,
}

/// An upload on its way.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct UploadState {
    /// Id for the other calls.
    pub upload_id: String,
    /// Size of the whole package.
    pub size_bytes: u32,
    /// Bytes that are kept: the offset of the next part.
    pub received_bytes: u32,
    /// Largest part.
    pub part_bytes_max: u32,
    /// The channel it will be put on.
    pub channel: Channel,
    /// When it is given up, RFC 3339.
    pub expires_at: String,
}
