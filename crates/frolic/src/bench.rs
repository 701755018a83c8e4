//! Benchmarks that need whole processes, pinned to cores of their own.

pub mod compute;
pub mod crowd;
pub mod floor;
mod game;
pub mod join;
pub mod listings;
mod meadow;
pub mod npcs;
pub mod package;
pub mod physics;
mod process;
pub mod projectiles;
pub mod script;
pub mod snapshot;
pub mod soak;
pub mod sockets;
mod stage_scenes;
pub mod stages;
pub mod step;
mod step_scenes;
pub mod terrain;
mod tools;
