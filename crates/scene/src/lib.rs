//! The scene model: components, entities, prefabs, and how scene.json is read, checked and written.
//!
//! Start from [`Scene`]. The crate does no file I/O and treats all bytes as hostile. Server, client
//! core, packages and tools use this one model, so they cannot disagree about a scene.
#![forbid(unsafe_code)]

mod attributes;
mod canonical;
mod check;
mod color;
mod component;
mod components;
mod expand;
mod field;
mod hierarchy;
mod json;
mod label;
mod limits;
mod material;
mod mesh;
mod npc;
mod overrides;
mod parse;
mod physics;
mod quaternion;
mod report;
mod scene;
#[cfg(feature = "schema")]
mod schema;
mod shape;
mod suggest;
pub mod text;
mod transform;
mod write;

pub use attributes::{ATTRIBUTES_MAX, Attribute, Attributes};
pub use check::{Checker, ComponentProblem};
pub use color::Color;
pub use component::{Component, Merge, Reader};
pub use components::{
    ComponentKind, Components, Light, LightKind, Model, NetworkIdentity, ScriptRef, Sound,
    SpawnPoint, TAGS_MAX, Tags, Trigger,
};
pub use expand::{PREFAB_PARTS_MAX, PrefabPart};
pub use field::Field;
pub use label::Label;
pub use limits::{Limits, PACKAGE_BYTES_MAX};
pub use material::{Material, Pattern};
pub use mesh::{CORNERS_MAX, TRIANGLES_MAX, Triangles};
pub use npc::{Hostility, Npc, PATROL_POINTS_MAX, PatrolPoint};
pub use overrides::{Fields, Overrides};
pub use parse::inert::without_effect;
pub use physics::{Body, BodyKind, Groups, Joint, JointKind};
pub use quaternion::{degrees_from_quaternion, quaternion_from_degrees};
pub use report::{Problem, Report, Rule, Severity, Subject};
pub use scene::{InstanceChild, Prefab, PrefabChild, SCENE_FORMAT, Scene, SceneEntity, Terrain};
#[cfg(feature = "schema")]
pub use schema::scene_schema;
pub use shape::Shape;
pub use text::{NAME_BYTES_MAX, check_name, is_visible};
pub use transform::Transform;

#[cfg(test)]
mod tests;
