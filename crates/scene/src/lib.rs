//! The scene model: components, entities, prefabs, and how scene.json is read, checked and written.
//!
//! Start from [`Scene`]. The crate does no file I/O and treats all bytes as hostile. Server, client
//! core, packages and tools use this one model, so they cannot disagree about a scene.
#![forbid(unsafe_code)]

mod canonical;
mod check;
mod components;
mod hierarchy;
mod json;
mod limits;
mod mesh;
mod npc;
mod parse;
mod physics;
mod quaternion;
mod report;
mod scene;
pub mod text;

pub use check::ComponentProblem;
pub use components::{
    Attribute, Color, Components, Light, LightKind, Material, Model, NetworkIdentity, Pattern,
    ScriptRef, Shape, Sound, SpawnPoint, Transform, Trigger,
};
pub use limits::Limits;
pub use mesh::{CORNERS_MAX, TRIANGLES_MAX, Triangles};
pub use npc::{Hostility, Npc, PatrolPoint};
pub use parse::inert::without_effect;
pub use physics::{Body, BodyKind, Groups, Joint, JointKind};
pub use report::{Problem, Report, Rule, Severity};
pub use scene::{Prefab, SCENE_FORMAT, Scene, SceneEntity, Terrain};
pub use text::{NAME_BYTES_MAX, check_name, is_visible};

#[cfg(test)]
mod tests;
