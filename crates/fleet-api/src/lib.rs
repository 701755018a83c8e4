//! What the control plane and its game servers exchange over HTTP, and what both
//! must know alike: tickets, persisted data of worlds and games, and the text filter.
//!
//! Start from [`process`], the life of a game server's process, and [`persist`].
//! Requests of a game server go below `/internal/worlds/{world_id}` of the control
//! plane; those of the control plane go to `/internal` of the process.
#![forbid(unsafe_code)]

pub mod console;
pub mod filter;
pub mod ops;
pub mod persist;
pub mod process;
pub mod recording_name;
pub mod remote_commands;
pub mod store;
pub mod ticket;
