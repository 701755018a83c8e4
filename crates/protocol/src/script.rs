//! Messages that carry compiled scripts to clients (DIST-1…3).

use serde::{Deserialize, Serialize};

/// Where a script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "lowercase")]
pub enum RunContext {
    /// On the game server only; never sent.
    Server,
    /// In clients only.
    Client,
    /// On both sides, each with its own state.
    Both,
}

/// What a client learns about one script before asking for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct ScriptEntry {
    /// Path below `scripts/`, for example `StarterGui/Hud.luau`.
    pub path: String,
    /// `sha256:` and the hash of the bytecode in hex.
    pub hash: String,
    /// Size of the bytecode.
    pub size_bytes: u32,
    /// Where it runs.
    pub run_context: RunContext,
    /// The service folder it lives in.
    pub service: String,
    /// Entities the script is attached to, by network id.
    pub entities: Vec<u32>,
}

/// Every script this client may run, in the order it should run them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct ScriptManifest {
    /// Rises with every change of any script.
    pub version: u32,
    /// The server's tick when it was made.
    pub server_tick: u32,
    /// SHA-256 of the package the scripts come from.
    pub revision: String,
    /// The scripts.
    pub scripts: Vec<ScriptEntry>,
}

/// Largest piece of compressed bytecode in one message.
pub const SCRIPT_CHUNK_BYTES_MAX: usize = 64 * 1024;

/// One piece of a script's bytecode; the pieces together are one zstd frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptChunk {
    /// Which script.
    pub path: String,
    /// Position of this piece, from 0.
    pub index: u32,
    /// Number of pieces.
    pub total: u32,
    /// The bytes, at most [`SCRIPT_CHUNK_BYTES_MAX`].
    pub data: Vec<u8>,
}
