//! The process of one world: sockets around a [`frolic_world::World`].
//!
//! [`run`] fetches the package from the control plane, loads the world on its own
//! thread, opens WebSocket and WebTransport, and reports readiness. That thread
//! makes every decision and never blocks: once per tick it reads the WebSockets
//! that have data, steps the world, and writes to each of them once. HTTP,
//! WebSocket upgrades and WebTransport run on tokio and reach the thread through
//! one bounded queue. The send queue of each client is bounded; a client that does
//! not read loses snapshots first and its connection last.
//!
//! This crate handles sockets, tickets and the control plane's HTTP API. It has no
//! game rules: those are in `world`, `sim` and scripts.
#![forbid(unsafe_code)]

mod admission;
mod client_logs;
mod config;
mod connection;
mod console;
mod control_plane;
mod decoder;
mod figures;
mod flood;
mod host;
mod http;
mod inbox;
pub mod lockdown;
mod metrics;
mod pace;
mod persistence;
mod player_sessions;
mod pressure;
mod recording;
mod reload;
mod retry;
mod scripts;
mod server;
mod session;
mod sessions;
mod social;
mod store;
mod stored;
mod transport;

pub use config::{GameServerConfig, WorldSource};
pub use frolic_world::InterestPolicy;
pub use server::{GameServerError, run};
