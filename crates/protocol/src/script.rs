//! Messages that carry compiled scripts to clients.
//!
//! A server announces its scripts with a [`ScriptManifest`]: the hash of the list,
//! signed by the platform. A client that has that [`ScriptList`] from an earlier
//! visit, and every script in it, need not request anything. What is missing is
//! fetched from its URL below `/cdn`, or in [`ScriptChunk`]s.

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

/// The path of the list itself, and of every script that runs at the start, where
/// messages name a script's path.
pub const MANIFEST_PATH: &str = "@manifest";
/// A bundle's path in requests and chunks is this and its name.
pub const BUNDLE_PREFIX: &str = "@bundle/";

/// A script in the list: the facts that a client has before it requests the script.
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
    /// The service folder it is in.
    pub service: String,
    /// A module that nothing requires at the start: it may be loaded later.
    pub lazy: bool,
    /// Runs when a script requires it, not at the start.
    pub module: bool,
    /// URL of the bytecode, relative to the platform.
    pub url: String,
    /// Entities the script is attached to, by network id.
    pub entities: Vec<u32>,
}

/// Scripts that are sent as one: their bytecode, concatenated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct ScriptBundle {
    /// Its name in `[bundles]`; `@builtin` is the engine's own.
    pub name: String,
    /// `sha256:` and the hash of the whole in hex.
    pub hash: String,
    /// Size of the whole.
    pub size_bytes: u32,
    /// Where the whole can be fetched.
    pub url: String,
    /// Paths of its scripts, in order.
    pub scripts: Vec<String>,
}

/// Every script that clients may run, in the order they should run them. Its
/// JSON text is what is hashed and signed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct ScriptList {
    /// The game they are of.
    pub game_id: String,
    /// SHA-256 of the package the scripts come from.
    pub revision: String,
    /// The scripts.
    pub scripts: Vec<ScriptEntry>,
    /// Which of them are sent together.
    pub bundles: Vec<ScriptBundle>,
}

/// The current script manifest. Sent after the welcome, and again whenever scripts
/// have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct ScriptManifest {
    /// Rises with every change of any script.
    pub version: u32,
    /// The server's tick when it was made.
    pub server_tick: u32,
    /// SHA-256 of the package the scripts come from.
    pub revision: String,
    /// `sha256:` and the hash of the list's JSON text in hex.
    pub hash: String,
    /// Size of that text.
    pub size_bytes: u32,
    /// Where that text can be fetched; relative to the platform.
    pub url: String,
    /// The platform's signature of the hash, in hex; empty from a server that
    /// has no platform. See [`crate::signature`].
    pub signature: String,
    /// The list itself, for JSON clients; our own client requests it only when it
    /// does not have it.
    pub list: Option<ScriptList>,
}

/// Largest chunk of compressed bytecode in one message.
pub const SCRIPT_CHUNK_BYTES_MAX: usize = 64 * 1024;

/// One chunk of a script's bytecode; the chunks together are one zstd frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptChunk {
    /// The script, [`MANIFEST_PATH`] or a bundle.
    pub path: String,
    /// Index of this chunk, from 0.
    pub index: u32,
    /// Number of chunks.
    pub total: u32,
    /// The bytes, at most [`SCRIPT_CHUNK_BYTES_MAX`].
    pub data: Vec<u8>,
}

/// The URL of the content with that hash (`sha256:…`).
pub fn content_url(hash: &str) -> String {
    format!("/cdn/{}", hash.strip_prefix("sha256:").unwrap_or(hash))
}
