//! The client core: everything a client of a world does except drawing it.
//!
//! Start from [`Client`]. Feed it bytes and the time, take bytes and events from
//! it, query it for what to draw. The browser wraps it in `client-wasm`, bots drive
//! it natively; so both predict with the same code that the server runs.
//!
//! No sockets, no clock, no rendering: time is passed in as milliseconds of any
//! steady clock. Server data is validated like any other input; a hostile server
//! can make this client wrong, never make it panic.
#![forbid(unsafe_code)]

mod client;
mod connection;
mod drawn;
mod event;
mod interaction;
mod joined;
mod liveness;
mod outbox;
mod output;
mod pacing;
mod parts;
mod playback;
mod players;
mod prediction;
mod queries;
mod reconnect;
mod reliable;
mod replica;
mod replication;
mod scene;
mod scripting;
mod scripts;
mod shots;
mod stats;
mod track;

pub use client::{Client, ClientError};
pub use drawn::{Drawn, DrawnKind};
pub use event::ClientEvent;
pub use interaction::Interaction;
pub use liveness::Liveness;
pub use pacing::Pacing;
pub use parts::{Part, PartChanges};
pub use queries::{KnownEntity, Queries, RayQuery};
pub use reconnect::{NextStep, ReconnectPolicy, SessionEnd};
pub use replica::Replica;
pub use scene::parts_of_scene;
pub use scripting::ClientScripts;
pub use scripts::ScriptUnit;
pub use shots::DrawnShot;
pub use stats::Stats;
