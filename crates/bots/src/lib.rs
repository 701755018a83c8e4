//! Bots: players without a screen, on the real client core; or, for a crowd
//! that one core of the machine is to carry, most of them light ones.
//!
//! Start from [`Swarm`]; `frolic bots` is [`run`].
#![forbid(unsafe_code)]

mod behaviour;
mod bot;
mod cache;
mod command;
mod door;
mod light;
mod outcome;
mod report;
mod run_clock;
mod swarm;

pub use behaviour::Behaviour;
pub use bot::connect;
pub use cache::ScriptCache;
pub use command::{BotsArgs, run};
pub use door::Door;
pub use report::{SwarmReport, quantile};
pub use run_clock::RunClock;
pub use swarm::Swarm;
