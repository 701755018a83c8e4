//! The process of one world: sockets around a [`frolic_world::World`].
//!
//! [`run`] fetches the package from the control plane, loads the world on a
//! thread of its own, opens WebSocket and WebTransport, and says it is ready.
//! That thread owns every decision and never waits: once per tick it reads
//! the WebSockets that have something, steps the world, and writes each of
//! them once. HTTP, the upgrade of WebSockets and WebTransport run on tokio and
//! reach the thread through one bounded queue. What waits for a client is
//! bounded; one that does not read loses snapshots first and its connection last.
//!
//! This crate knows sockets, tickets and the control plane's HTTP. It holds
//! no game rules: those are in `world`, `sim` and scripts.
#![forbid(unsafe_code)]

mod admission;
mod client_logs;
mod config;
mod console;
mod control_plane;
mod figures;
mod flood;
mod host;
mod http;
mod line;
mod link;
pub mod lockdown;
mod metrics;
mod pace;
mod persistence;
mod pressure;
mod recording;
mod reload;
mod retry;
mod scripts;
mod seats;
mod server;
mod session;
mod sessions;
mod social;
mod store;
mod transport;

pub use config::{GameServerConfig, WorldSource};
pub use frolic_world::InterestPolicy;
pub use server::{GameServerError, run};
