//! The definition of the script API, from `api/*.toml`.
//!
//! It is the single source for all documentation: [`typedefs::definitions`]
//! writes type definitions for luau-lsp (`frolic types`), the site's reference
//! page and the editor's completion read the same pages as JSON
//! (`web/src/generated/api.json`), and tests compare the definition with the
//! implementations on the server and in the browser.

pub mod typedefs;

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// A library, a class, or another group of members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "api.ts"))]
pub struct Page {
    /// As scripts see it.
    pub name: String,
    /// Its description.
    pub kind: PageKind,
    /// Where it exists.
    pub side: Side,
    /// One or two sentences.
    pub about: String,
    /// The capability that `game.toml` must declare before scripts may use it.
    #[serde(default)]
    pub capability: Option<String>,
    /// Other names of the same table.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Type parameters of a class, such as `T...`.
    #[serde(default)]
    pub generic: Option<String>,
    /// All members, in reading order.
    #[serde(rename = "member")]
    pub members: Vec<Member>,
}

/// The content of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "api.ts"))]
pub enum PageKind {
    /// A global table.
    Library,
    /// Objects with methods; members marked `static` are in a global table.
    Class,
    /// A plain table with these fields.
    Record,
    /// Globals without a table.
    Globals,
}

/// Where something exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "api.ts"))]
pub enum Side {
    /// In server scripts only.
    Server,
    /// In client scripts only.
    Client,
    /// In both.
    Both,
}

/// A named member of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "api.ts"))]
pub struct Member {
    /// As scripts write it.
    pub name: String,
    /// Its description.
    pub kind: MemberKind,
    /// Narrower than the page's, if given.
    #[serde(default)]
    pub side: Option<Side>,
    /// Its Luau type; methods without `self`.
    #[serde(rename = "type")]
    pub luau_type: String,
    /// Whether a script may set it (on the server, where both sides have it
    /// and the client only reads).
    #[serde(default)]
    pub writable: bool,
    /// In the global table of a class, not in its objects.
    #[serde(default, rename = "static")]
    pub is_static: bool,
    /// One or two sentences.
    pub about: String,
    /// A few lines of Luau.
    #[serde(default)]
    pub example: Option<String>,
}

/// The kind of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "api.ts"))]
pub enum MemberKind {
    /// Called on its table.
    Function,
    /// Called on an object, with `.` or `:`.
    Method,
    /// A value.
    Property,
    /// A [`Signal`](https://luau.org) to connect to.
    Signal,
    /// A function that a script defines and the engine calls.
    Callback,
}

impl Side {
    /// Whether something on this side exists on the given side.
    pub fn includes(self, side: Side) -> bool {
        self == Side::Both || side == Side::Both || self == side
    }
}

impl Page {
    /// Where a member exists.
    pub fn side_of(&self, member: &Member) -> Side {
        member.side.unwrap_or(self.side)
    }
}

/// (file name, text) pairs of `api/`.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../api/", $name, ".toml")))),*]
    };
}

/// In the order of the reference page.
const FILES: &[(&str, &str)] = files![
    "Globals",
    "World",
    "Terrain",
    "Entity",
    "Players",
    "Player",
    "Network",
    "Store",
    "PlayerStore",
    "Ranking",
    "Projectile",
    "Chat",
    "Npc",
    "Input",
    "Camera",
    "UI",
    "Widget",
    "Sound",
    "Effects",
    "task",
    "Signal",
    "Connection",
    "Vector3",
    "Color",
    "Random",
    "JSON",
    "DateTime",
    "os",
    "debug",
    "RaycastHit",
    "RaycastOptions",
    "WeaponOptions",
    "FireOptions",
    "ProjectileHit",
    "InputEvent",
    "WidgetProperties",
    "SoundOptions",
    "Spell",
    "PlayingSound",
    "ParticleOptions",
    "BeamOptions",
    "Moment",
    "Script",
    "Roblox",
];

/// The whole API.
pub fn pages() -> &'static [Page] {
    static PAGES: OnceLock<Vec<Page>> = OnceLock::new();
    PAGES.get_or_init(|| {
        FILES
            .iter()
            .map(|(name, text)| {
                toml::from_str(text).unwrap_or_else(|error| {
                    unreachable!("api/{name}.toml is read by every test: {error}")
                })
            })
            .collect()
    })
}

#[cfg(test)]
mod tests;
