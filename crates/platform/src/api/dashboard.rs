//! What creators see of their games, as types: my games, channels, plots.

use serde::{Deserialize, Serialize};

use super::{Channel, GameSummary, GameVisibility, Screenshot};

/// `GET /api/creator/games`: your own games, the last changed first.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct CreatorGameList {
    /// This page.
    pub games: Vec<CreatorGame>,
    /// Games on all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Games on a full page.
    pub page_size: u32,
}

/// A game as its creator sees it.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct CreatorGame {
    /// What listings show, or would.
    #[serde(flatten)]
    pub summary: GameSummary,
    /// Who shall find and play it while it is published.
    pub visibility: GameVisibility,
    /// Whether anybody but its creator can play it.
    pub published: bool,
    /// Whether moderators took it down; then only its creator sees it.
    pub taken_down: bool,
    /// Whether moderators chose it.
    pub featured: bool,
    /// Whether everybody may download the package.
    pub downloads: bool,
    /// Counts the changes; goes along with each edit, so that two people (or
    /// two tabs) do not overwrite each other.
    pub edition: u32,
    /// What was changed here and is not taken from `game.toml` any more:
    /// `name`, `description`, `tags`, `visibility`, `thumbnail`.
    pub edited: Vec<String>,
    /// Pictures, in order.
    pub screenshots: Vec<Screenshot>,
    /// Those that have a version.
    pub channels: Vec<ChannelInfo>,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub updated_at: String,
}

/// `PATCH /api/games/{id}`: what is left out stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct EditGame {
    /// The edition that was looked at; 409 when it is not the newest.
    pub edition: u32,
    /// Title, 1 to 60 characters.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub name: Option<String>,
    /// Plain text, up to 2,000 characters.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub description: Option<String>,
    /// Up to 10, each of at most 24 lower-case letters, digits and dashes.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub tags: Option<Vec<String>>,
    /// Who shall find and play it.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub visibility: Option<GameVisibility>,
    /// Whether everybody may download the package.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub downloads: Option<bool>,
}

/// What a channel gives.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct ChannelInfo {
    /// Which.
    pub channel: Channel,
    /// SHA-256 of the package.
    pub revision: String,
    /// Version in its manifest.
    pub version: String,
    /// The package that is being rolled out, when one is.
    pub next_revision: Option<String>,
    /// Version in its manifest.
    pub next_version: Option<String>,
    /// Share of players who get it, in percent; 100 when nothing is rolled out.
    pub rollout_pct: u32,
    /// Version that a rollback would give; `null` when there is none.
    pub rollback_version: Option<String>,
    /// RFC 3339.
    pub changed_at: String,
}

/// `GET /api/creator/games/{id}/channels`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct GameChannels {
    /// The game.
    pub game_id: String,
    /// See [`CreatorGame::edition`].
    pub edition: u32,
    /// Those that have a version.
    pub channels: Vec<ChannelInfo>,
    /// What happened, newest first; the newest 50.
    pub releases: Vec<Release>,
}

/// A change of a channel.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct Release {
    /// RFC 3339.
    pub at: String,
    /// Name of who did it.
    pub by: String,
    /// Where.
    pub channel: Channel,
    /// `release`, `rollout` or `rollback`.
    pub action: String,
    /// SHA-256 of the package.
    pub revision: String,
    /// Version in its manifest.
    pub version: String,
    /// Share of players who got it, in percent.
    pub rollout_pct: u32,
}

/// `PUT /api/games/{id}/channels/{channel}`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct SetChannel {
    /// The edition that was looked at; 409 when it is not the newest.
    pub edition: u32,
    /// The package to give.
    pub revision: String,
    /// To this share of players only, in percent, 1 to 100; all without it.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 100)]
    #[cfg_attr(test, ts(optional))]
    pub rollout_pct: Option<u32>,
}

/// `POST …/rollback`, `…/publish` and `…/unpublish`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct AtEdition {
    /// The edition that was looked at; 409 when it is not the newest.
    pub edition: u32,
}

/// `GET /api/creator/games/{id}/versions`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct VersionList {
    /// This page, newest first.
    pub versions: Vec<VersionInfo>,
    /// Versions on all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Versions on a full page.
    pub page_size: u32,
}

/// A version as its creator sees it.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct VersionInfo {
    /// Version in its manifest.
    pub version: String,
    /// SHA-256 of the package.
    pub revision: String,
    /// Size of the package.
    pub size_bytes: u32,
    /// Name of who uploaded it.
    pub published_by: String,
    /// RFC 3339.
    pub published_at: String,
    /// What is new.
    pub notes: String,
    /// Channels that give it, also those that roll it out.
    pub channels: Vec<Channel>,
    /// Worlds that run it now.
    pub worlds: u32,
    /// Players in them.
    pub players: u32,
}

/// `GET /api/creator/games/{id}/dashboard?days=28`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct GameDashboard {
    /// The game.
    pub game_id: String,
    /// Its title.
    pub name: String,
    /// Since it is there, and now.
    pub totals: DashboardTotals,
    /// One per day (UTC), oldest first, today last; days without plays too.
    pub days: Vec<DashboardDay>,
    /// Who came back, of those who first played in these days.
    pub retention: Retention,
    /// Seconds between two points of `concurrent`.
    pub sample_s: u32,
    /// The most players at once in each span, oldest first, without gaps.
    pub concurrent: Vec<PlayerSample>,
    /// Errors of scripts, the last seen first; at most 100.
    pub errors: Vec<ScriptErrorInfo>,
}

/// Sums of a game.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct DashboardTotals {
    /// Joins so far.
    pub plays: u32,
    /// Likes now.
    pub likes: u32,
    /// Players now.
    pub players_now: u32,
    /// Worlds that run now.
    pub worlds_now: u32,
}

/// A day of a game.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct DashboardDay {
    /// `2026-11-16`, in UTC.
    pub day: String,
    /// Joins.
    pub plays: u32,
    /// Different people.
    pub players: u32,
    /// Of them, those who never played it before.
    pub new_players: u32,
    /// Of the new ones, those who played again the day after.
    pub back_after_1: u32,
    /// Of the new ones, those who played again 7 days after.
    pub back_after_7: u32,
    /// The most players at once.
    pub peak_players: u32,
    /// Errors that scripts raised.
    pub script_errors: u32,
}

/// Who came back. A share is `null` while nobody could have.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct Retention {
    /// New players whose next day is over or has begun.
    pub d1_of: u32,
    /// Of them, those who came back the day after, in percent.
    pub d1_pct: Option<f64>,
    /// New players whose seventh day is over or has begun.
    pub d7_of: u32,
    /// Of them, those who came back on the seventh day after, in percent.
    pub d7_pct: Option<f64>,
}

/// Players at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct PlayerSample {
    /// Start of the span, RFC 3339.
    pub at: String,
    /// The most players at once in it.
    pub players: u32,
}

/// An error of a script, counted.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct ScriptErrorInfo {
    /// Path of the script.
    pub script: String,
    /// Line in it, when known.
    pub line: Option<u32>,
    /// The text.
    pub message: String,
    /// Version of the package that ran.
    pub version: String,
    /// SHA-256 of that package.
    pub revision: String,
    /// How often.
    pub count: u32,
    /// For an error in players' browsers, where nobody vouches for it: the last
    /// browser it came from.
    pub browser: Option<String>,
    /// RFC 3339.
    pub first_at: String,
    /// RFC 3339.
    pub last_at: String,
}
