//! Hot reload of scripts: atomic, between two ticks, with rollback if the new
//! scripts perform worse.

mod watch;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use frolic_script::{
    Attachment, CompileError, CompiledScript, LogLevel, ScriptLog, Swap, compile, log,
};

pub(crate) use watch::Watch;

use crate::replay::Record;
use crate::world::World;

/// Sources by path below `scripts/`; none for a removed file.
pub type Changes = BTreeMap<String, Option<String>>;

/// Characters of a source line that are shown.
const SOURCE_CHARS_MAX: usize = 200;
/// Bytes of source in one record of a recording.
const RECORD_TEXT_BYTES: usize = 32 * 1024;

/// The outcome of a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reloaded {
    /// The script version from now on.
    pub version: u32,
    /// Paths of new and changed scripts.
    pub changed: Vec<String>,
    /// Paths of removed scripts.
    pub removed: Vec<String>,
}

/// The code that a world runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    /// SHA-256 of its package.
    pub revision: String,
    /// Compiled scripts by path.
    pub scripts: BTreeMap<String, CompiledScript>,
    /// Sources that did not compile, by path.
    pub broken: BTreeMap<String, String>,
}

impl Code {
    /// Whether a file already has this text.
    fn has(&self, path: &str, text: Option<&str>) -> bool {
        let known = self.scripts.get(path).map(CompiledScript::source);
        let known = known.or_else(|| self.broken.get(path).map(String::as_str));
        known == text.map(|text| text.strip_prefix('\u{feff}').unwrap_or(text))
    }
}

impl World {
    /// Replaces the world's scripts by those of a package, by path. See
    /// [`World::apply`].
    ///
    /// # Errors
    /// As [`World::apply`].
    pub fn reload(
        &mut self,
        revision: &str,
        sources: &BTreeMap<String, String>,
    ) -> Result<Option<Reloaded>, Vec<CompileError>> {
        let gone = self.code.scripts.keys().chain(self.code.broken.keys());
        // A `.soul` is natural language; the code generated from it is a file
        // of its own.
        let is_code = |path: &str| !path.ends_with(".soul");
        // Spells learned while the world runs belong to no package.
        let learned = self.borrow_state().spells.learned_paths();
        let mut changes: Changes = gone
            .filter(|path| !sources.contains_key(*path) && is_code(path))
            .filter(|path| !learned.contains(*path))
            .map(|path| (path.clone(), None))
            .collect();
        for (path, source) in sources {
            if is_code(path) && !self.code.has(path, Some(source)) {
                changes.insert(path.clone(), Some(source.clone()));
            }
        }
        self.apply(revision, changes)
    }

    /// Replaces scripts now, between two ticks. Changed scripts restart and
    /// receive their old state through `OnReload`. None: nothing differs from
    /// what runs.
    ///
    /// # Errors
    /// Compile errors; the world continues unchanged.
    pub fn apply(
        &mut self,
        revision: &str,
        mut changes: Changes,
    ) -> Result<Option<Reloaded>, Vec<CompileError>> {
        changes.retain(|path, source| !self.code.has(path, source.as_deref()));
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
                self.say(compile_log(error, source.unwrap_or("")));
            }
            // Reported, but no running script has failed.
            self.judged_errors += errors.len() as u64;
            return Err(errors);
        }
        if changes.is_empty() {
            return Ok(None);
        }
        self.note_changes(revision, &changes);
        let mut next = self.code.clone();
        next.revision = revision.to_owned();
        for (path, script) in &scripts {
            next.broken.remove(path);
            match script {
                Some(script) => next.scripts.insert(path.clone(), script.clone()),
                None => next.scripts.remove(path),
            };
        }
        let (gone, changed): (Vec<_>, Vec<_>) = scripts
            .iter()
            .map(|(path, script)| (path.clone(), script.is_none()))
            .partition(|(_, gone)| *gone);
        let paths = |list: Vec<(String, bool)>| list.into_iter().map(|(path, _)| path).collect();
        let (removed, changed): (Vec<String>, Vec<String>) = (paths(gone), paths(changed));
        let touched: BTreeSet<String> = scripts.keys().cloned().collect();
        let old = std::mem::replace(&mut self.code, next);
        self.previous = Some(old);
        let failed = self.swap(scripts, false);
        self.watch.reloaded(&touched, failed);
        self.say(reload_log(
            LogLevel::Info,
            format!(
                "revision {} is live: {} changed, {} removed",
                log::short(revision),
                changed.len(),
                removed.len()
            ),
        ));
        Ok(Some(Reloaded {
            version: self.script_version,
            changed,
            removed,
        }))
    }

    /// Returns why the scripts of the last reload should be rolled back at
    /// once: one of them failed at start. The caller rolls back with
    /// [`World::swap_back`].
    pub fn failed_reload(&mut self) -> Option<String> {
        let reason = self.watch.failed_start()?;
        // They count against the rolled-back scripts, not the restored ones.
        self.judged_errors = self.script_errors();
        Some(reason)
    }

    /// Call once after every step with the time that scripts took; returns why
    /// the scripts of the last reload should be rolled back. Not part of the
    /// world's state; the caller rolls back with [`World::swap_back`], which
    /// is.
    pub fn judge_reload(&mut self, script_us: u64) -> Option<String> {
        let total = self.script_errors();
        let errors = total.saturating_sub(self.judged_errors);
        self.judged_errors = total;
        self.watch
            .tick(u32::try_from(errors).unwrap_or(u32::MAX), script_us)
    }

    /// Restores the scripts before the last reload, with the state they had
    /// then. None: there was no reload, or it was rolled back already.
    pub fn swap_back(&mut self, reason: &str) -> Option<Reloaded> {
        let old = self.previous.take()?;
        self.note(&Record::SwapBack);
        let new = std::mem::replace(&mut self.code, old);
        let mut scripts = BTreeMap::new();
        let paths: BTreeSet<String> = new
            .scripts
            .keys()
            .chain(self.code.scripts.keys())
            .cloned()
            .collect();
        for path in paths {
            let script = self.code.scripts.get(&path);
            let same =
                new.scripts.get(&path).map(|s| &s.sha256_hex) == script.map(|s| &s.sha256_hex);
            if !same {
                scripts.insert(path, script.cloned());
            }
        }
        let touched: BTreeSet<String> = scripts.keys().cloned().collect();
        let (removed, changed): (Vec<String>, Vec<String>) = touched
            .iter()
            .cloned()
            .partition(|path| !self.code.scripts.contains_key(path));
        self.swap(scripts, true);
        self.watch.swapped_back(&touched);
        self.say(reload_log(
            LogLevel::Warn,
            format!(
                "swapped back from revision {} to {}: {reason}",
                log::short(&new.revision),
                log::short(&self.code.revision)
            ),
        ));
        Some(Reloaded {
            version: self.script_version,
            changed,
            removed,
        })
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
        let first = self.borrow_state().logs.len();
        self.vm_mut().reload(Swap {
            scripts,
            attachments,
            back,
        });
        self.note_cuts();
        let state = self.borrow_state();
        let lines = state.logs.get(first..).unwrap_or_default().iter();
        let errors = lines.filter(|line| line.level == LogLevel::Error);
        errors.map(|line| line.script.clone()).collect()
    }

    /// All entities with a script, in the current world.
    pub(crate) fn attachments(&self) -> Vec<Attachment> {
        let state = self.borrow_state();
        let alive = state.entities.values().filter(|entity| !entity.destroyed);
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

    fn note_changes(&mut self, revision: &str, changes: &Changes) {
        for (path, source) in changes {
            let Some(source) = source else {
                continue;
            };
            let mut rest = source.as_str();
            loop {
                let cut = floor_boundary(rest, RECORD_TEXT_BYTES);
                let (text, after) = rest.split_at(cut);
                self.note(&Record::Script {
                    path: Cow::Borrowed(path),
                    text: Cow::Borrowed(text),
                });
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
        }
        let removed = changes.iter().filter(|(_, source)| source.is_none());
        self.note(&Record::Reload {
            revision: Cow::Borrowed(revision),
            removed: removed.map(|(path, _)| path.clone()).collect(),
        });
    }

    /// The text of one line of a script for display; none if it is blank or
    /// does not exist.
    pub fn source_line(&self, path: &str, line: u32) -> Option<String> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        let text = self.code.scripts.get(path)?.source().lines().nth(index)?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.chars().take(SOURCE_CHARS_MAX).collect())
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
}

/// A log line about the scripts as a whole.
fn reload_log(level: LogLevel, message: String) -> ScriptLog {
    ScriptLog {
        level,
        script: "@reload".to_owned(),
        line: None,
        message,
        source_line: None,
        traceback: String::new(),
        origin: None,
    }
}

/// The creator's log line about a file that does not compile.
pub(crate) fn compile_log(error: &CompileError, source: &str) -> ScriptLog {
    let line = usize::try_from(error.line).unwrap_or(0).saturating_sub(1);
    let text = source.lines().nth(line).map(str::trim);
    ScriptLog {
        level: LogLevel::Error,
        script: error.path.clone(),
        line: Some(error.line),
        message: error.message.clone(),
        source_line: text.map(|text| text.chars().take(SOURCE_CHARS_MAX).collect()),
        traceback: String::new(),
        origin: None,
    }
}

/// The largest character boundary at or below `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    if text.len() <= at {
        return text.len();
    }
    (0..=at)
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}
