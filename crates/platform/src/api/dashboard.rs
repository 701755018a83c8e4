//! Types of the creator's pages: own games, channels, statistics.

use serde::{Deserialize, Serialize};

use super::{Channel, GameSummary, GameVisibility, Screenshot};

/// `GET /api/creator/games`: your own games, the last changed first.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CreatorGameList {
    /// This page.
    pub games: Vec<CreatorGame>,
    /// Number of games on all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Page size.
    pub page_size: u32,
}

/// A game as its creator sees it.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CreatorGame {
    /// Its entry in listings.
    #[serde(flatten)]
    pub summary: GameSummary,
    /// Chosen visibility; takes effect while the game is published.
    pub visibility: GameVisibility,
    /// Whether users other than its creator can play it.
    pub published: bool,
    /// Whether moderators took it down; then only its creator sees it.
    pub taken_down: bool,
    /// Whether moderators featured it.
    pub featured: bool,
    /// Whether everyone may download the package.
    pub downloads: bool,
    /// Edit counter. Edits send it back, so that two people (or two tabs) do not
    /// overwrite each other's changes.
    pub edition: u32,
    /// Fields that were edited on the site and no longer follow `game.toml`: `name`,
    /// `description`, `tags`, `visibility`, `thumbnail`.
    pub edited: Vec<String>,
    /// Screenshots, in order.
    pub screenshots: Vec<Screenshot>,
    /// Channels that have a version.
    pub channels: Vec<ChannelInfo>,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub updated_at: String,
}

/// `PATCH /api/games/{id}`: omitted fields stay unchanged.
#[derive(Clone, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EditGame {
    /// The edition that the edit is based on; 409 when it is outdated.
    pub edition: u32,
    /// Title, 1 to 60 characters.
    #[serde(default)]
    pub name: Option<String>,
    /// Plain text, up to 2,000 characters.
    #[serde(default)]
    pub description: Option<String>,
    /// Up to 10, each of at most 24 lower-case letters, digits and dashes.
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// Who can find and play it.
    #[serde(default)]
    pub visibility: Option<GameVisibility>,
    /// Whether everyone may download the package.
    #[serde(default)]
    pub downloads: Option<bool>,
}

/// A release channel of a game.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ChannelInfo {
    /// Name.
    pub channel: Channel,
    /// SHA-256 of the package.
    pub revision: String,
    /// Version in the package's manifest.
    pub version: String,
    /// SHA-256 of the package that is being rolled out.
    #[schema(required)]
    pub next_revision: Option<String>,
    /// Version in that package's manifest.
    #[schema(required)]
    pub next_version: Option<String>,
    /// Percentage of players who get it; 100 when there is no rollout.
    pub rollout_pct: u32,
    /// Version that a rollback would restore; `null` when there is none.
    #[schema(required)]
    pub rollback_version: Option<String>,
    /// RFC 3339.
    pub changed_at: String,
}

/// `GET /api/creator/games/{id}/channels`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct GameChannels {
    /// The game.
    pub game_id: String,
    /// See [`CreatorGame::edition`].
    pub edition: u32,
    /// Channels that have a version.
    pub channels: Vec<ChannelInfo>,
    /// History, newest first; at most 50 changes.
    pub releases: Vec<Release>,
}

/// A change of a channel.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Release {
    /// RFC 3339.
    pub at: String,
    /// Name of the user who made the change.
    pub by: String,
    /// The changed channel.
    pub channel: Channel,
    /// `release`, `rollout` or `rollback`.
    pub action: String,
    /// SHA-256 of the package.
    pub revision: String,
    /// Version in the package's manifest.
    pub version: String,
    /// Percentage of players who got it.
    pub rollout_pct: u32,
}

/// `PUT /api/games/{id}/channels/{channel}`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SetChannel {
    /// The edition that the change is based on; 409 when it is outdated.
    pub edition: u32,
    /// SHA-256 of the package to release.
    pub revision: String,
    /// Percentage of players to roll out to, 1 to 100; all when absent.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 100)]
    pub rollout_pct: Option<u32>,
}

/// `POST …/rollback`, `…/publish` and `…/unpublish`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AtEdition {
    /// The edition that the change is based on; 409 when it is outdated.
    pub edition: u32,
}

/// `GET /api/creator/games/{id}/versions`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct VersionList {
    /// This page, newest first.
    pub versions: Vec<VersionInfo>,
    /// Number of versions on all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Page size.
    pub page_size: u32,
}

/// A version as its creator sees it.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct VersionInfo {
    /// Version in its manifest.
    pub version: String,
    /// SHA-256 of the package.
    pub revision: String,
    /// Size of the package.
    pub size_bytes: u32,
    /// Name of the user who uploaded it.
    pub published_by: String,
    /// RFC 3339.
    pub published_at: String,
    /// Release notes.
    pub notes: String,
    /// Channels that release it or roll it out.
    pub channels: Vec<Channel>,
    /// Worlds that run it now.
    pub worlds: u32,
    /// Players in them.
    pub players: u32,
}

/// `GET /api/creator/games/{id}/dashboard?days=28`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct GameDashboard {
    /// The game.
    pub game_id: String,
    /// Its title.
    pub name: String,
    /// All-time and current totals.
    pub totals: DashboardTotals,
    /// One entry per UTC day, oldest first and today last, including days without
    /// plays.
    pub days: Vec<DashboardDay>,
    /// Retention of players who first played in these days.
    pub retention: Retention,
    /// Seconds between two points of `concurrent`.
    pub sample_s: u32,
    /// Peak concurrent players per interval, oldest first, without gaps.
    pub concurrent: Vec<PlayerSample>,
    /// Script errors, the latest first; at most 100.
    pub errors: Vec<ScriptErrorInfo>,
}

/// Totals of a game.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DashboardTotals {
    /// Total joins.
    pub plays: u32,
    /// Current likes.
    pub likes: u32,
    /// Current players.
    pub players_now: u32,
    /// Running worlds.
    pub worlds_now: u32,
}

/// Statistics of one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DashboardDay {
    /// `2026-11-16`, in UTC.
    pub day: String,
    /// Joins.
    pub plays: u32,
    /// Distinct players.
    pub players: u32,
    /// Players who had never played it before.
    pub new_players: u32,
    /// New players who played again on the next day.
    pub back_after_1: u32,
    /// New players who played again 7 days later.
    pub back_after_7: u32,
    /// Peak concurrent players.
    pub peak_players: u32,
    /// Script errors.
    pub script_errors: u32,
}

/// Retention rates. A rate is `null` while no player could have returned yet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Retention {
    /// New players whose next day has begun.
    pub d1_of: u32,
    /// Percentage of them who returned on the next day.
    #[schema(required)]
    pub d1_pct: Option<f64>,
    /// New players whose seventh day after has begun.
    pub d7_of: u32,
    /// Percentage of them who returned on the seventh day after.
    #[schema(required)]
    pub d7_pct: Option<f64>,
}

/// Peak concurrent players in one interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PlayerSample {
    /// Start of the interval, RFC 3339.
    pub at: String,
    /// Peak concurrent players.
    pub players: u32,
}

/// A script error with its count.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ScriptErrorInfo {
    /// Path of the script.
    pub script: String,
    /// Line number, when known.
    #[schema(required)]
    pub line: Option<u32>,
    /// The text.
    pub message: String,
    /// Version of the package that ran.
    pub version: String,
    /// SHA-256 of that package.
    pub revision: String,
    /// Number of occurrences.
    pub count: u32,
    /// For an unverified error reported by players' browsers: the last browser.
    #[schema(required)]
    pub browser: Option<String>,
    /// RFC 3339.
    pub first_at: String,
    /// RFC 3339.
    pub last_at: String,
}
