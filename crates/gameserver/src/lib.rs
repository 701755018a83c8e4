//! The process of one world: sockets around a [`frolic_world::World`].
//!
//! [`run`] fetches the package from the control plane, loads the world on a
//! thread of its own, opens WebSocket and WebTransport, and says it is ready.
//! Transport tasks decode and limit what clients send and hand it to the
//! world's thread through one bounded queue; that thread owns every decision
//! and never waits for a socket. Each client has a bounded queue back; a
//! client that does not read loses snapshots first and its connection last.
//!
//! This crate knows sockets, tickets and the control plane's HTTP. It holds
//! no game rules: those are in `world`, `sim` and scripts.
#![forbid(unsafe_code)]

mod admission;
mod boot;
mod config;
mod flood;
mod host;
mod link;
mod metrics;
mod recording;
mod scripts;
mod server;
mod session;
mod transport;

pub use config::{GameServerConfig, WorldSource};
pub use server::{GameServerError, run};
