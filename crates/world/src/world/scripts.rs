//! The scripts of a world: which run, what they ask of the host, and their cost.

use frolic_fleet_api::store::StoreRequest;
use frolic_script::{Attachment, CompileError, CompiledScript, Engine, ScriptCost, ScriptLog};

use super::World;

impl World {
    /// Store requests of scripts since the last call; each is answered with
    /// [`StoreAnswered`](super::input::StoreAnswered).
    pub fn take_store_requests(&mut self) -> Vec<StoreRequest> {
        self.state.borrow_mut().store.take()
    }

    /// Log lines of scripts since the last call.
    pub fn take_logs(&mut self) -> Vec<ScriptLog> {
        self.state.borrow_mut().space.console.take()
    }

    /// The cost of each script so far; intended for once a second, not every
    /// tick.
    pub fn script_costs(&self) -> Vec<ScriptCost> {
        self.vm.costs()
    }

    /// All compiled scripts, in the order of their paths.
    pub fn scripts(&self) -> impl Iterator<Item = &CompiledScript> {
        self.code.scripts.values()
    }

    /// Entities that a script is attached to.
    pub fn entities_with_script(&self, path: &str) -> Vec<u32> {
        let state = self.state.borrow();
        let entities = state.space.entities.iter();
        entities
            .filter(|entity| {
                let script = entity.components.script.as_ref();
                entity.is_of_scene() && script.is_some_and(|script| script.path == path)
            })
            .map(|entity| entity.id)
            .collect()
    }

    /// The errors of scripts that did not compile.
    pub fn compile_errors(&self) -> &[CompileError] {
        &self.compile_errors
    }

    /// Errors that scripts raised since the world started.
    pub fn script_errors(&self) -> u64 {
        self.state.borrow().space.console.errors()
    }

    /// How often a limit stopped or paused scripts.
    pub fn script_cuts(&self) -> u64 {
        self.vm.usage().cuts
    }

    /// The text of one line of a script for display; none if it is blank or
    /// does not exist.
    pub fn source_line(&self, path: &str, line: u32) -> Option<String> {
        self.code.source_line(path, line)
    }

    /// SHA-256 of a script's bytecode, in hex.
    pub fn script_hash(&self, path: &str) -> Option<String> {
        let script = self.code.scripts.get(path)?;
        Some(script.sha256_hex.clone())
    }

    /// SHA-256 of the package whose scripts run.
    pub fn revision(&self) -> &str {
        &self.code.revision
    }

    /// Incremented with every change of any script, from 1.
    pub fn script_version(&self) -> u32 {
        self.script_version
    }

    /// Returns why the scripts of the last reload should be rolled back at
    /// once: one of them failed at start. The caller rolls back with
    /// [`SwapBack`](super::input::SwapBack).
    pub fn failed_reload(&mut self) -> Option<String> {
        let reason = self.watch.failed_start()?;
        // They count against the rolled-back scripts, not the restored ones.
        self.judged_errors = self.script_errors();
        Some(reason)
    }

    /// Call once after every step with the time that scripts took; returns why
    /// the scripts of the last reload should be rolled back. Not part of the
    /// world's state; the caller rolls back with
    /// [`SwapBack`](super::input::SwapBack), which is.
    pub fn judge_reload(&mut self, script_us: u64) -> Option<String> {
        let total = self.script_errors();
        let errors = total.saturating_sub(self.judged_errors);
        self.judged_errors = total;
        self.watch
            .tick(u32::try_from(errors).unwrap_or(u32::MAX), script_us)
    }

    /// Stamps the state with the current script versions, for log lines.
    pub(super) fn stamp(&mut self) {
        let hashes = self.code.scripts.iter();
        let mut state = self.state.borrow_mut();
        let hashes = hashes.map(|(path, script)| (path.clone(), script.sha256_hex.clone()));
        let console = &mut state.space.console;
        console.stamp(hashes.collect(), &self.code.revision);
        state.script_version = self.script_version;
    }

    /// Writes a line to the creator's console.
    pub(super) fn log(&mut self, line: ScriptLog) {
        Engine::log(&mut *self.state.borrow_mut(), line);
    }

    /// All entities with a script, in the current world.
    pub(super) fn attachments(&self) -> Vec<Attachment> {
        let state = self.state.borrow();
        let alive = state
            .space
            .entities
            .iter()
            .filter(|entity| !entity.destroyed);
        alive
            .filter_map(|entity| {
                let script = entity.components.script.as_ref()?;
                Some(Attachment {
                    entity: entity.id,
                    script: script.path.clone(),
                })
            })
            .collect()
    }
}
