//! Inputs, states and paths of moving things: what the simulation computes with and messages
//! carry.
//!
//! Data and closed forms only; the steps themselves, which collide, are in the crate `sim`.
//! Results are bit-identical on the server and in browsers: trigonometry is `libm`'s.
#![forbid(unsafe_code)]

mod angle;
mod character;
mod flight;
mod path;

pub use angle::Angle;
pub use character::{Buttons, CharacterInput, CharacterParams, CharacterState};
pub use flight::{Flight, FlightParams};
pub use glamx::{Pose3 as Pose, Rot3 as Rotation, Vec3};
pub use path::Motion;

/// An entity's network id.
pub type EntityId = u32;
