//! Benchmarks, many of them of whole processes that are pinned to cores of their own.
//!
//! `frolic bench` is [`run`]; the processes under test are this program with other arguments.
#![forbid(unsafe_code)]

mod command;
mod compute;
mod crowd;
mod floor;
mod game;
mod join;
mod listings;
mod meadow;
mod npcs;
mod package;
mod physics;
mod process;
mod projectiles;
mod script;
mod snapshot;
mod soak;
mod sockets;
mod stage_scenes;
mod stages;
mod step;
mod step_scenes;
mod terrain;
mod tools;

pub use command::{Benchmark, run};
