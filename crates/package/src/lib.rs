//! The `.game` format: what is in a package, and how it is read, checked and written.
//!
//! Start from [`Scene`] (scene.json), [`Manifest`] (game.toml) and [`Report`] (every problem
//! found, with its place). The crate does no file I/O: it takes bytes and gives values, and it
//! treats all of those bytes as hostile. Feature `archive` adds `Package` and `pack`; without it
//! the crate builds for the browser, whose client core reads scenes with this very code.
#![forbid(unsafe_code)]

mod limits;
mod mesh;
mod report;

mod manifest;
mod scene;

#[cfg(feature = "archive")]
mod archive;
#[cfg(feature = "archive")]
mod package;
#[cfg(feature = "archive")]
mod remotes;

mod json;
#[cfg(feature = "archive")]
pub mod layout;
#[cfg(feature = "archive")]
mod names;
#[cfg(feature = "archive")]
pub mod soul;
#[cfg(feature = "archive")]
pub mod spells;
mod text;

#[cfg(feature = "archive")]
pub use archive::{PackError, pack};
pub use limits::Limits;
pub use manifest::{
    Capabilities, GameInfo, Manifest, SimulationSettings, Visibility, WorldSettings,
};
#[cfg(feature = "archive")]
pub use mesh::MeshError;
pub use mesh::{CORNERS_MAX, TRIANGLES_MAX, Triangles};
#[cfg(feature = "archive")]
pub use package::{Package, manifest_of};
#[cfg(feature = "archive")]
pub use remotes::Remote;
pub use report::{Problem, Report, Rule, Severity};
pub use scene::{
    Attribute, Body, BodyKind, Color, ComponentProblem, Components, Groups, Hostility, Joint,
    JointKind, Light, LightKind, Material, Model, NetworkIdentity, Npc, PatrolPoint, Pattern,
    Prefab, SCENE_FORMAT, Scene, SceneEntity, ScriptRef, Shape, Sound, SpawnPoint, Transform,
    Trigger, without_effect,
};
pub use text::{NAME_BYTES_MAX, check_name, is_visible};
