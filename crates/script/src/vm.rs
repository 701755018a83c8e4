//! The server's VM: one per world, all server scripts in it.

use std::cell::RefCell;
use std::rc::Rc;

use crate::compile::CompiledScript;
use crate::engine::{Engine, EntityId};
use crate::event::ScriptEvent;
use crate::limits::VmLimits;

/// A script on an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The entity that the script sees as `entity`.
    pub entity: EntityId,
    /// The script's path, for example `Workspace/KillBrick.luau`.
    pub script: String,
}

/// What the scripts of a world use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Bytes of Luau memory.
    pub memory_bytes: usize,
    /// Time inside the VM during the last tick, events included.
    pub last_tick_us: u64,
    /// Scripts disabled after repeated offences.
    pub disabled_scripts: usize,
}

/// Why a VM could not be made.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    /// Luau was built without a flag that keeps it memory-safe.
    #[error("this Luau build lacks the safety flag {0}")]
    MissingFlag(&'static str),
    /// The engine's own Luau did not load.
    #[error("the built-in scripts did not load: {0}")]
    Builtin(String),
}

/// Runs the server scripts of one world.
pub struct Vm {
    _engine: Rc<RefCell<dyn Engine>>,
}

impl Vm {
    /// Makes a VM for the world behind `engine`. `seed` fixes `Random`.
    ///
    /// # Errors
    /// When Luau or the built-in scripts are not what this crate was made for.
    pub fn new(
        engine: Rc<RefCell<dyn Engine>>,
        _limits: VmLimits,
        _seed: u64,
    ) -> Result<Vm, VmError> {
        Ok(Vm { _engine: engine })
    }

    /// Loads `scripts` (those of the client are ignored), runs the ones that
    /// are not modules, and starts the attached ones for their entities.
    pub fn start(&mut self, _scripts: Vec<CompiledScript>, _attachments: &[Attachment]) {}

    /// Starts a script for an entity that appeared later.
    pub fn attach(&mut self, _entity: EntityId, _path: &str) {}

    /// Runs what is due: waiting tasks, then `OnTick(dt)` handlers.
    pub fn tick(&mut self, _dt: f64) {}

    /// Tells scripts what happened.
    pub fn dispatch(&mut self, _event: ScriptEvent) {}

    /// What the scripts use now.
    pub fn usage(&self) -> Usage {
        Usage::default()
    }
}
