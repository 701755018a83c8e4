//! Script output and costs that a game server reports (`POST
//! /internal/worlds/{id}/console`, once a second when there is something), for the
//! creator.

use frolic_protocol::client_log::ConsoleLevel;
use serde::{Deserialize, Serialize};

/// Lines of one report.
pub const REPORT_LINES_MAX: usize = 100;
/// Scripts of one report.
pub const REPORT_SCRIPTS_MAX: usize = 512;

/// One line of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleLine {
    /// How serious it is.
    pub level: ConsoleLevel,
    /// The tick it was logged in.
    pub tick: u32,
    /// Path of the script.
    pub script: String,
    /// Line in it, when known.
    pub line: Option<u32>,
    /// The text.
    pub message: String,
    /// The source text of that line, when known.
    pub source_line: Option<String>,
    /// The stack of an error, one frame per line; else empty.
    pub stack: String,
    /// SHA-256 of the package that ran, in hex.
    pub revision: String,
    /// SHA-256 of the script's bytecode, in hex; empty when it has none.
    pub hash: String,
    /// Set for lines from client scripts: they are untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<FromClients>,
}

/// Which clients a line comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FromClients {
    /// The client's browser, for display; of the last one that sent the line.
    pub browser: String,
    /// How often it was sent, by all of them.
    pub count: u32,
    /// How many players sent it.
    pub players: u32,
}

/// Costs of one script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScriptFigures {
    /// Path of the script; `@builtin` is the engine's own part.
    pub path: String,
    /// SHA-256 of its bytecode, in hex.
    pub hash: String,
    /// Recent milliseconds of CPU per second.
    pub cpu_ms_per_s: f32,
    /// Microseconds of CPU since the world started.
    pub cpu_us: u64,
    /// Bytes it holds.
    pub memory_bytes: u64,
    /// How often it runs: once, or once per entity.
    pub instances: u32,
    /// Errors so far.
    pub errors: u32,
    /// How often it was stopped for time or memory.
    pub stops: u32,
    /// Instances that were disabled.
    pub disabled: u32,
}

/// `POST …/console`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConsoleReport {
    /// In the order in which they were logged.
    pub lines: Vec<ConsoleLine>,
    /// Lines before these that were dropped: there were too many.
    pub dropped: u32,
    /// All scripts; empty when nothing changed.
    pub scripts: Vec<ScriptFigures>,
}

/// The players whose `print` and `warn` output a world requests. Errors are always reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientPrints {
    /// All players': the creator has the console open, or plays a game in
    /// development.
    pub everybody: bool,
    /// Persistent id of the game's creator, whose own output is always requested.
    pub creator_id: String,
}

impl ClientPrints {
    /// Whether the output of this player's scripts is requested.
    pub fn wants(&self, player_id: &str) -> bool {
        self.everybody || (!player_id.is_empty() && self.creator_id == player_id)
    }
}
