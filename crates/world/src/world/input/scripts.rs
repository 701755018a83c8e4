//! Hot reload: replaces scripts between two ticks, and restores them.

use std::collections::{BTreeMap, BTreeSet};

use frolic_script::{CompileError, CompiledScript, LogLevel, Swap, compile, log};
use serde::{Deserialize, Serialize};

use super::{Effect, Input, World};
use crate::reload::{Changes, Reloaded, compile_log, reload_log};

/// Replaces scripts now, between two ticks. Changed scripts restart and receive
/// their old state through `OnReload`. The outcome is none if nothing differs
/// from what runs, and compile errors if the world continues unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reload {
    /// SHA-256 of the package that they belong to.
    pub revision: String,
    /// New and changed scripts, and those to remove; see
    /// [`World::changes_to`].
    pub changes: Changes,
}

impl Effect for Reload {
    type Outcome = Result<Option<Reloaded>, Vec<CompileError>>;

    fn recorded(&self, world: &World) -> Option<Input> {
        let changes = self.changes.iter();
        let changes = changes.filter(|(path, source)| !world.code.has(path, source.as_deref()));
        let changes: Changes = changes
            .map(|(path, source)| (path.clone(), source.clone()))
            .collect();
        let revision = self.revision.clone();
        (!changes.is_empty()).then(|| Self { revision, changes }.into())
    }

    fn run(self, world: &mut World) -> Self::Outcome {
        let Self {
            revision,
            mut changes,
        } = self;
        changes.retain(|path, source| !world.code.has(path, source.as_deref()));
        let mut scripts = BTreeMap::new();
        let mut errors = Vec::new();
        for (path, source) in &changes {
            let compiled = source.as_deref().map(|source| compile(path, source));
            match compiled.transpose() {
                Ok(script) => {
                    scripts.insert(path.clone(), script);
                }
                Err(error) => errors.push(error),
            }
        }
        if !errors.is_empty() {
            for error in &errors {
                let source = changes.get(&error.path).and_then(Option::as_deref);
                world.log(compile_log(error, source.unwrap_or("")));
            }
            // Reported, but no running script has failed.
            world.judged_errors += errors.len() as u64;
            return Err(errors);
        }
        if changes.is_empty() {
            return Ok(None);
        }
        let mut next = world.code.clone();
        next.revision.clone_from(&revision);
        for (path, script) in &scripts {
            next.broken.remove(path);
            match script {
                Some(script) => next.scripts.insert(path.clone(), script.clone()),
                None => next.scripts.remove(path),
            };
        }
        let touched: BTreeSet<String> = scripts.keys().cloned().collect();
        let old = std::mem::replace(&mut world.code, next);
        world.previous = Some(old);
        let failed = world.swap(scripts, false);
        world.watch.reloaded(&touched, failed);
        let reloaded = world.reloaded(touched);
        let (changed, removed) = (reloaded.changed.len(), reloaded.removed.len());
        let revision = log::short(&revision);
        let message = format!("revision {revision} is live: {changed} changed, {removed} removed");
        world.log(reload_log(LogLevel::Info, message));
        Ok(Some(reloaded))
    }
}

/// Restores the scripts before the last reload, with the state they had then.
/// The outcome is none if there was no reload, or it was rolled back already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapBack {
    /// Why, for the creator's log.
    pub reason: String,
}

impl Effect for SwapBack {
    type Outcome = Option<Reloaded>;

    fn recorded(&self, world: &World) -> Option<Input> {
        world.previous.is_some().then(|| self.clone().into())
    }

    fn run(self, world: &mut World) -> Option<Reloaded> {
        let old = world.previous.take()?;
        let new = std::mem::replace(&mut world.code, old);
        let mut scripts = BTreeMap::new();
        let paths = new.scripts.keys().chain(world.code.scripts.keys());
        for path in paths {
            let script = world.code.scripts.get(path);
            let same =
                new.scripts.get(path).map(|s| &s.sha256_hex) == script.map(|s| &s.sha256_hex);
            if !same {
                scripts.insert(path.clone(), script.cloned());
            }
        }
        let touched: BTreeSet<String> = scripts.keys().cloned().collect();
        world.swap(scripts, true);
        world.watch.swapped_back(&touched);
        let (from, to) = (log::short(&new.revision), log::short(&world.code.revision));
        let message = format!("swapped back from revision {from} to {to}: {}", self.reason);
        world.log(reload_log(LogLevel::Warn, message));
        Some(world.reloaded(touched))
    }
}

impl World {
    /// What has to change so that the world runs the scripts of a package, by
    /// path. Spells that it learned belong to no package, and stay.
    pub fn changes_to(&self, sources: &BTreeMap<String, String>) -> Changes {
        let known = self.code.scripts.keys().chain(self.code.broken.keys());
        // A `.soul` is natural language; the code generated from it is a file
        // of its own.
        let is_code = |path: &str| !path.ends_with(".soul");
        let learned = self.state.borrow().spells.learned_paths();
        let mut changes: Changes = known
            .filter(|path| !sources.contains_key(*path) && is_code(path))
            .filter(|path| !learned.contains(*path))
            .map(|path| (path.clone(), None))
            .collect();
        for (path, source) in sources {
            if is_code(path) && !self.code.has(path, Some(source)) {
                changes.insert(path.clone(), Some(source.clone()));
            }
        }
        changes
    }

    /// Loads `self.code` into the VM. Returns the scripts that raised an error
    /// at start.
    fn swap(
        &mut self,
        scripts: BTreeMap<String, Option<CompiledScript>>,
        back: bool,
    ) -> BTreeSet<String> {
        self.script_version += 1;
        self.stamp();
        let attachments = self.attachments();
        let first = self.state.borrow().space.console.lines().len();
        self.vm.reload(Swap {
            scripts,
            attachments,
            back,
        });
        self.note_cuts();
        let state = self.state.borrow();
        let lines = state.space.console.lines().iter().skip(first);
        let errors = lines.filter(|line| line.level == LogLevel::Error);
        errors.map(|line| line.script.clone()).collect()
    }

    /// The outcome of a reload that touched these scripts.
    fn reloaded(&self, touched: BTreeSet<String>) -> Reloaded {
        let exists = |path: &String| self.code.scripts.contains_key(path);
        let (changed, removed) = touched.into_iter().partition(exists);
        Reloaded {
            version: self.script_version,
            changed,
            removed,
        }
    }
}
