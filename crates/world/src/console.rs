//! The log of a world's scripts for its creator. Each line is stamped with the
//! code that runs.

use std::collections::BTreeMap;

use frolic_script::{LogLevel, Origin, ScriptLog};

/// Log lines queued until the game server takes them.
const LINES_MAX: usize = 1024;

#[derive(Default)]
pub(crate) struct Console {
    lines: Vec<ScriptLog>,
    /// Errors that scripts raised since the start.
    errors: u64,
    /// Hash of the bytecode by path, and the package.
    hashes: BTreeMap<String, String>,
    revision: String,
}

impl Console {
    /// Sets the code that runs from now on.
    pub fn stamp(&mut self, hashes: BTreeMap<String, String>, revision: &str) {
        self.hashes = hashes;
        revision.clone_into(&mut self.revision);
    }

    /// The hash of a script's bytecode.
    pub fn hash_of(&self, path: &str) -> Option<&String> {
        self.hashes.get(path)
    }

    pub fn log(&mut self, mut line: ScriptLog) {
        self.errors += u64::from(line.level == LogLevel::Error);
        if self.lines.len() < LINES_MAX {
            line.origin = Some(Origin {
                revision: self.revision.clone(),
                hash: self.hash_of(&line.script).cloned(),
            });
            self.lines.push(line);
        }
    }

    /// Logs a warning of a part of the engine.
    pub fn warn(&mut self, part: &str, message: String) {
        self.log(ScriptLog {
            level: LogLevel::Warn,
            script: part.to_owned(),
            line: None,
            message,
            source_line: None,
            traceback: String::new(),
            origin: None,
        });
    }

    pub fn errors(&self) -> u64 {
        self.errors
    }

    pub fn lines(&self) -> &[ScriptLog] {
        &self.lines
    }

    /// The lines since the last call.
    pub fn take(&mut self) -> Vec<ScriptLog> {
        std::mem::take(&mut self.lines)
    }
}
