//! Lines for the creator's console.

use std::fmt;

use serde::Serialize;

/// How serious a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// `print`.
    Info,
    /// `warn`.
    Warn,
    /// A script raised an error or was stopped.
    Error,
}

/// One line, with where it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScriptLog {
    /// How serious it is.
    pub level: LogLevel,
    /// Path of the script, for example `Workspace/KillBrick.luau`.
    pub script: String,
    /// Line in that script, when known.
    pub line: Option<u32>,
    /// The text, truncated to a readable length.
    pub message: String,
    /// The source text of that line, when known.
    pub source_line: Option<String>,
    /// The stack at the error, one `path:line function` per line; empty for
    /// `print` and `warn`.
    pub traceback: String,
    /// The code that logged it. Filled in by the world; none for lines of the
    /// engine.
    pub origin: Option<Origin>,
}

/// The exact code that a line came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// SHA-256 of the package, in hex.
    pub revision: String,
    /// SHA-256 of the script's bytecode, in hex; none for a script that does
    /// not exist.
    pub hash: Option<String>,
}

impl fmt::Display for Origin {
    /// Short, for people to compare: `revision 1a2b3c4d, script 5e6f7a8b`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "revision {}", short(&self.revision))?;
        match &self.hash {
            Some(hash) => write!(f, ", script {}", short(hash)),
            None => Ok(()),
        }
    }
}

/// The first digits of a hash: enough to distinguish versions of one game.
pub fn short(hash: &str) -> &str {
    hash.get(..8).unwrap_or(hash)
}
