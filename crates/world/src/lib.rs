//! One authoritative world: entities, players, scripts, and what each client
//! sees.
//!
//! Start from [`World`]: load a package, [apply](World::apply) the
//! [inputs](input) of players and a [`Step`](input::Step) per tick, and send its
//! messages. A tick runs the stages of
//! [`Stage`] in order; the host takes snapshots when they are due.
//!
//! A world is a library. It does no I/O, has no clock and no threads (the
//! length of a step follows from the tick rate), and the same inputs and seed
//! give the same states; a test can run an hour in a second.
#![forbid(unsafe_code)]

mod avatar;
mod bodies;
mod character;
mod definitions;
mod engine;
mod entity;
mod history;
mod inputs;
mod interact;
mod interest;
pub mod lag_compensation;
mod leaderstats;
mod life;
mod nav;
mod npcs;
mod player;
mod projectiles;
mod registry;
mod reload;
mod remote_commands;
pub mod replay;
mod saved;
mod search;
mod spawning;
mod spells;
mod stage;
mod state;
mod string_quota;
mod structures;
mod terrain;
mod trigger;
mod world;

pub use inputs::InputQueue;
pub use interest::{ClientView, Delivery, InterestPolicy, JsonView};
pub use npcs::NpcReport;
pub use player::PlayerNumber;
pub use reload::{Changes, Reloaded};
pub use remote_commands::LearnRefusal;
pub use saved::{Marks, marks_of};
pub use search::EntityRecord;
pub use spells::CastRefusal;
pub use stage::{Stage, StepTimes, Stopwatch};
pub use state::Outgoing;
pub use terrain::{Place, TerraformError, TerrainView};
pub use world::{ChatRefusal, LoadError, StepReport, World, WorldFigures, WorldOptions, input};
