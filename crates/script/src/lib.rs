//! Luau for Frolic: compile, run in a sandbox, and give scripts the engine's
//! API.
//!
//! Start from [`compile()`], which turns one source file into a
//! [`CompiledScript`], from [`Vm`], which runs a world's server scripts, and
//! from [`Engine`], the trait through which a [`Vm`] reads and changes its
//! world. Most of the API that creators use is Luau itself: `builtin/common`
//! runs on the server and in the browser, `builtin/server` and `builtin/client`
//! on one side only ([`builtin`]).
//!
//! Scripts are untrusted. They are contained by [`limits`] (numbers), [`guard`]
//! (time, memory; the only unsafe code here) and `builtin/common/caps.luau`
//! (native functions that could run for ever). This crate has no sockets, no
//! wall clock and no database.
#![deny(unsafe_code)]

pub mod api;
mod budget;
pub mod builtin;
pub mod compile;
pub mod convert;
pub mod engine;
pub mod event;
pub mod guard;
mod host;
pub mod ids;
pub mod limits;
pub mod log;
mod memory_store;
mod npc;
pub mod reload;
pub mod service;
pub mod tree;
pub mod vm;
pub mod weapon;

pub use builtin::client_builtin;
pub use compile::{CompileError, CompiledScript, compile};
pub use engine::{
    BuildRequest, Built, Engine, EngineError, PlayerProperty, Property, RaycastHit, RaycastRequest,
    Recipient, SpawnRequest, SpawnSource, Spawned, TerrainHit, TerrainInfo,
};
pub use event::ScriptEvent;
pub use frolic_protocol::script::RunContext;
pub use ids::{EntityId, PlayerId};
pub use limits::VmLimits;
pub use log::{LogLevel, Origin, ScriptLog};
pub use memory_store::MemoryStore;
pub use npc::{NpcFacts, NpcHappening, NpcOrder, NpcPlace, NpcState};
pub use reload::Swap;
pub use service::Service;
pub use tree::{ModuleTree, Requires};
pub use vm::{Attachment, ScriptCost, Usage, Vm, VmError};
pub use weapon::{FireRequest, HitReport, WeaponSpec};
