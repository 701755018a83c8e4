//! Every message on the wire, in its binary and its JSON form.
//!
//! Start from [`message::ClientMessage`] and [`message::ServerMessage`]; [`packet`]
//! frames them, the world's state is replicated as [`snapshot`] deltas, and
//! [`json`] maps the same messages to the text form for third-party clients. What
//! control plane and game servers exchange is in the crate `fleet-api`.
//!
//! This crate converts bytes into values and back. It has no sockets, no clock and
//! no world; every decoder here is total: hostile bytes yield an error, never a
//! panic, and never allocate more than they justify.
#![forbid(unsafe_code)]

pub mod avatar;
pub mod bits;
pub mod client_log;
pub mod details;
pub mod entity;
pub mod fragment;
pub mod inputs;
pub mod json;
pub mod message;
pub mod npc;
pub mod packet;
pub mod projectile;
pub mod quantize;
pub mod resume;
#[cfg(feature = "samples")]
pub mod samples;
pub mod script;
pub mod signature;
pub mod snapshot;
pub mod spell;
pub mod terrain;
pub mod token_bucket;
pub mod value;
pub mod websocket;
mod whole;

pub use entity::{EntityKind, EntityState};
pub use inputs::{Inputs, NumberedInput};
pub use message::{ClientMessage, PacketAck, PlayerInfo, ServerMessage, Shown, Welcome};
pub use value::{Args, Value, ValueError, ValueLimits};
