//! Lines for the creator's console (SCR-18).

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
    /// The text, cut to a readable length.
    pub message: String,
    /// The source text of that line, when known.
    pub source_line: Option<String>,
    /// The stack at the error, one `path:line function` per line; empty for
    /// `print` and `warn`.
    pub traceback: String,
}
