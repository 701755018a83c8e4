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

mod bodies;
mod characters;
mod commit_gate;
mod console;
mod definitions;
mod engine;
mod entities;
mod fingerprint;
mod gait;
mod history;
mod inputs;
mod interest;
pub mod lag_compensation;
mod leaderstats;
mod moment;
mod nav;
mod npcs;
mod outbox;
mod player;
mod policy;
mod presence;
mod projectiles;
mod reload;
mod remote_commands;
mod saved;
mod search;
mod space;
mod spells;
mod stage;
mod state;
mod store;
mod string_quota;
mod structures;
mod terrain;
mod trigger;
mod updates;
mod world;

pub use commit_gate::CommitGate;
pub use inputs::InputQueue;
pub use interest::{ClientView, Delivery, JsonView};
pub use npcs::NpcReport;
pub use outbox::Outgoing;
pub use player::PlayerNumber;
pub use policy::InterestPolicy;
pub use reload::{Changes, Reloaded};
pub use remote_commands::LearnRefusal;
pub use saved::{Marks, marks_of};
pub use spells::CastRefusal;
pub use stage::{Stage, StepTimes, Stopwatch};
pub use terrain::{Place, TerraformError, TerrainView};
pub use world::{
    AsSeen, ChatRefusal, EntityRecord, LoadError, StepReport, World, WorldFigures, WorldOptions,
    input, replay,
};
