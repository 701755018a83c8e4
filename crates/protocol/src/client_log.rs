//! Output and errors of client scripts, for the game's creator. All of it is
//! untrusted: text to show, never to act on.

use serde::{Deserialize, Serialize};

/// Lines of one message.
pub const CLIENT_LOG_LINES_MAX: usize = 16;
/// Longest text of a line; longer ones are cut.
pub const CLIENT_LOG_MESSAGE_CHARS_MAX: usize = 500;
/// Longest stack of a line; longer ones are cut.
pub const CLIENT_LOG_STACK_CHARS_MAX: usize = 1000;

/// How serious a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConsoleLevel {
    /// `print`.
    Info,
    /// `warn`.
    Warn,
    /// A script raised an error, did not compile or was stopped.
    Error,
}

/// A line of a client script, and how often it was logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "camelCase")]
pub struct ClientLogLine {
    /// How serious it is.
    #[cfg_attr(test, ts(type = "'info' | 'warn' | 'error'"))]
    pub level: ConsoleLevel,
    /// Path of the script, as in the manifest; empty when it is not known.
    #[serde(default)]
    pub script: String,
    /// Line in it; 0 when it is not known.
    #[serde(default)]
    pub line: u32,
    /// The text.
    pub message: String,
    /// The stack of an error, one frame per line; else empty.
    #[serde(default)]
    pub stack: String,
    /// How often it was logged since the last message.
    #[serde(default = "once")]
    pub count: u32,
}

fn once() -> u32 {
    1
}

/// Lines of client scripts, and where they ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "camelCase")]
pub struct ClientLog {
    /// SHA-256 of the package whose scripts ran, in hex.
    #[serde(default)]
    pub revision: String,
    /// The browser, for display: "Firefox on Linux".
    #[serde(default)]
    pub browser: String,
    /// At most [`CLIENT_LOG_LINES_MAX`]; more are not read.
    pub lines: Vec<ClientLogLine>,
}
