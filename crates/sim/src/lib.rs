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

pub mod around;
mod block;
mod cache;
pub mod capsule;
mod changes;
pub mod character;
pub mod collision;
mod contact;
mod convex;
pub mod digest;
pub mod flight;
pub mod mesh;
mod obstacle;
pub mod random;
pub mod scene;
pub mod sensor;
pub mod shape;
mod solid;
mod sweep;
mod swim;

pub use around::{Around, Surface};
pub use block::TERRAIN;
pub use cache::{StepCache, Touch};
pub use character::{step_character, step_character_with};
pub use collision::{CollisionWorld, RayHit};
pub use frolic_motion::{
    Angle, Buttons, CharacterInput, CharacterParams, CharacterState, EntityId, Flight,
    FlightParams, Motion, Pose, Rotation, Vec3,
};
pub use mesh::{Mesh, Meshes};
pub use shape::{MeshId, Shape};
pub use sweep::Sweeper;
