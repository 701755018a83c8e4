//! game.toml: what a game is called, how its worlds run, what its scripts may use.

mod parse;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Limits, Report};

pub use parse::{DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX, TAG_CHARS_MAX, TAGS_MAX, is_tag};

/// The content of game.toml. Only `[game]` with `id` and `name` is required.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// `[game]`: what the store shows.
    pub game: GameInfo,
    /// `[capabilities]`: what the scripts may use.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// `[world]`: how worlds of this game live.
    #[serde(default)]
    pub world: WorldSettings,
    /// `[simulation]`: how they run.
    #[serde(default)]
    pub simulation: SimulationSettings,
    /// `[bundles]`: scripts that travel together, by the bundle's name.
    #[serde(default)]
    pub bundles: BTreeMap<String, Vec<String>>,
}

/// Properties of a game for the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GameInfo {
    /// The game's address in the store: lower-case letters, digits and single dashes.
    pub id: String,
    /// The name that people read.
    pub name: String,
    /// A few sentences.
    #[serde(default)]
    pub description: String,
    /// Semantic version of this package.
    #[serde(default = "default_version")]
    pub version: String,
    /// How many players one world holds.
    #[serde(default = "default_max_players")]
    pub max_players: u32,
    /// Words to find the game by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Path of a picture below assets/, 16:9.
    #[serde(default)]
    pub thumbnail: Option<String>,
    /// Its visibility in the store.
    #[serde(default)]
    pub visibility: Visibility,
}

fn default_version() -> String {
    "0.1.0".to_owned()
}

fn default_max_players() -> u32 {
    50
}

/// The users who can find a game.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// All users, in the store.
    #[default]
    Public,
    /// Users who have the link.
    Unlisted,
    /// Its creator.
    Private,
}

/// Capabilities of a game's scripts. All are off unless declared, so that players see them in the
/// store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Capabilities {
    /// Keep data with `Store`.
    pub store: bool,
    /// Write to the chat.
    pub chat: bool,
    /// Send players to other games.
    pub teleport: bool,
    /// Call the web from the server.
    pub http: bool,
}

impl Capabilities {
    /// The names of what is declared, as in `game.toml`.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("store", self.store),
            ("chat", self.chat),
            ("teleport", self.teleport),
            ("http", self.http),
        ];
        all.into_iter()
            .filter_map(|(name, declared)| declared.then_some(name))
    }
}

/// How the worlds of a game live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorldSettings {
    /// Worlds are named and kept; others vanish some time after the last player leaves.
    pub persistent: bool,
    /// Players may cast spells.
    pub spells: bool,
    /// Seconds after which an empty world stops.
    pub idle_stop_s: u32,
}

impl Default for WorldSettings {
    fn default() -> Self {
        WorldSettings {
            persistent: false,
            spells: false,
            idle_stop_s: 60,
        }
    }
}

/// How the worlds of a game run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SimulationSettings {
    /// Steps per second: 60 or 30.
    pub tick_hz: u32,
    /// Updates to clients per second: 20 or 10.
    pub snapshot_hz: u32,
    /// Downward acceleration in m/s².
    pub gravity: f32,
    /// Characters below this height die and return to a spawn point.
    pub kill_height: f32,
    /// Entities further away than this, in metres, are not replicated to a client.
    pub interest_radius: Option<f32>,
}

impl Default for SimulationSettings {
    fn default() -> Self {
        SimulationSettings {
            tick_hz: 60,
            snapshot_hz: 20,
            gravity: 25.0,
            kill_height: -100.0,
            interest_radius: None,
        }
    }
}

impl Manifest {
    /// Reads and checks game.toml.
    ///
    /// # Errors
    /// All problems found, each with its line and column; an unknown key is one of them.
    pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Manifest, Report> {
        parse::parse(bytes, limits).map(|(manifest, _)| manifest)
    }

    #[cfg(feature = "archive")]
    pub(crate) fn parse_with_places(
        bytes: &[u8],
        limits: &Limits,
    ) -> Result<(Manifest, Places), Report> {
        parse::parse(bytes, limits)
    }
}

/// Where the manifest names files of the package, for problems found once the files are known; and
/// what deserves a warning by itself.
#[derive(Default)]
pub(crate) struct Places {
    pub(crate) warnings: Report,
    pub(crate) thumbnail: Option<(u32, u32)>,
    pub(crate) bundles: BTreeMap<String, (u32, u32)>,
}

#[cfg(test)]
mod tests;
