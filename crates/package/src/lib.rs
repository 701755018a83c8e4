//! The `.game` format: what is in a package, and how it is read, checked and written.
//!
//! Start from [`Manifest`] (game.toml), `Package` and [`Report`] (every problem found, with its
//! place); the scene is that of `frolic_scene`. The crate does no file I/O: it takes bytes and
//! gives values, and it treats all of those bytes as hostile. Feature `archive` adds `Package` and
//! `pack`; without it there is only the manifest.
#![forbid(unsafe_code)]

mod manifest;

#[cfg(feature = "archive")]
mod archive;
#[cfg(feature = "archive")]
pub mod gltf;
#[cfg(feature = "archive")]
pub mod layout;
#[cfg(feature = "archive")]
mod limits;
#[cfg(feature = "archive")]
mod names;
#[cfg(feature = "archive")]
mod package;
#[cfg(feature = "archive")]
mod remotes;
#[cfg(feature = "archive")]
pub mod soul;
#[cfg(feature = "archive")]
pub mod spells;

#[cfg(feature = "archive")]
pub use archive::{PackError, pack};
pub use frolic_scene::{
    Limits, PACKAGE_BYTES_MAX, Problem, Report, Rule, Scene, Severity, Triangles,
};
pub use manifest::{
    Capabilities, DESCRIPTION_CHARS_MAX, GameInfo, Manifest, NAME_CHARS_MAX, SimulationSettings,
    TAG_CHARS_MAX, TAGS_MAX, Visibility, WorldSettings, is_tag,
};
#[cfg(feature = "archive")]
pub use package::{Package, manifest_of};
#[cfg(feature = "archive")]
pub use remotes::Remote;
