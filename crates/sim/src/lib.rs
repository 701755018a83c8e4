//! The shared simulation of characters and their collisions.
//!
//! Start from [`CharacterState`] and [`step_character`]; [`CollisionWorld`] is
//! what they run against, [`scene`] builds it from a package's scene. A
//! [`StepCache`] per character makes its steps cheaper without changing them.
//!
//! The server is authoritative with this crate and the browser predicts with
//! it, so it must be bit-identical on both: no clock, no I/O, no threads, no
//! iteration over unordered maps, and no transcendental function but `libm`'s
//! (the platform's `sin` differs from wasm's in the last bit, and one bit is a
//! visible correction a second later).
#![forbid(unsafe_code)]

pub mod angle;
pub mod around;
mod cache;
pub mod capsule;
mod changes;
pub mod character;
pub mod collision;
mod contact;
mod convex;
pub mod digest;
pub mod flight;
mod ground;
pub mod mesh;
pub mod motion;
pub mod random;
pub mod rotation;
pub mod scene;
pub mod sensor;
pub mod shape;
mod sweep;
mod swim;

pub use angle::Angle;
pub use around::{Around, Surface};
pub use cache::{StepCache, Touch};
pub use character::{
    Buttons, CharacterInput, CharacterParams, CharacterState, step_character, step_character_with,
};
pub use collision::{CollisionWorld, EntityId, RayHit};
pub use ground::TERRAIN;
pub use mesh::{Mesh, MeshId, Meshes};
pub use motion::Motion;
pub use parry3d::math::{Pose3 as Pose, Rot3 as Rotation, Vec3};
pub use shape::Shape;
pub use sweep::Sweeper;
