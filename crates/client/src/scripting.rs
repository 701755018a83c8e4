//! The messages of script distribution: what the host offers, fetches and requests,
//! and what the server announces and sends.

use frolic_protocol::packet::{self, CLIENT_MESSAGE_BYTES_MAX};
use frolic_protocol::script::{MANIFEST_PATH, RunContext, ScriptChunk, ScriptList, ScriptManifest};
use frolic_protocol::{ClientMessage, ServerMessage};

use crate::event::ClientEvent;
use crate::output::Output;
use crate::scripts::{ChunkOutcome, ScriptUnit, Scripts, Trust};

/// Paths in one request; a server refuses more.
const SCRIPT_PATHS_MAX: usize = 1024;
/// Bytes of them: well within one message.
const SCRIPT_PATHS_BYTES_MAX: usize = CLIENT_MESSAGE_BYTES_MAX / 2;

/// The scripts of a client's world.
pub struct ClientScripts<'a> {
    scripts: &'a mut Scripts,
    output: &'a mut Output,
}

impl<'a> ClientScripts<'a> {
    pub(crate) fn new(scripts: &'a mut Scripts, output: &'a mut Output) -> Self {
        Self { scripts, output }
    }

    /// Sets the key that must have signed the world's scripts: the platform's key,
    /// from its answer to the join, for that game. Without it any list is accepted,
    /// which is for servers without a platform only. Call it before the handshake.
    pub fn trust(&mut self, key: [u8; 32], game_id: String) {
        self.scripts.trust(Trust { key, game_id });
    }

    /// Accepts a script's bytecode from the host's cache or from its URL;
    /// `@manifest` is the list, `@bundle/…` a bundle. Returns whether it matches
    /// the manifest.
    pub fn offer(&mut self, path: &str, bytes: Vec<u8>) -> bool {
        match self.scripts.offer(path, bytes) {
            Ok(outcome) => {
                self.arrived(outcome, false);
                true
            }
            Err(_) => false,
        }
    }

    /// What is still to fetch, in the order of need, after the host has offered
    /// what it had.
    pub fn missing(&mut self) -> Vec<ScriptUnit> {
        let missing = self.scripts.missing();
        self.confirm();
        missing
    }

    /// Requests these units from the server, each from where it broke off.
    pub fn request(&mut self, paths: Vec<String>) {
        let resumed = |path: &String| self.scripts.resume_at(path) > 0;
        let (resumed, whole): (Vec<String>, Vec<String>) = paths.into_iter().partition(resumed);
        for paths in in_requests(whole) {
            self.send(&ClientMessage::ScriptRequest { paths, from: 0 });
        }
        for path in resumed {
            let from = self.scripts.resume_at(&path);
            self.send(&ClientMessage::ScriptRequest {
                paths: vec![path],
                from,
            });
        }
    }

    /// Requests everything from the server that was not offered and is needed at
    /// the start.
    pub fn request_missing(&mut self) {
        let missing = self.missing().into_iter();
        let needed = missing.filter(|unit| !unit.lazy).map(|unit| unit.path);
        let needed = needed.collect();
        self.request(needed);
    }

    /// Every script of the world, once the list has arrived.
    pub fn list(&self) -> Option<&ScriptList> {
        self.scripts.list()
    }

    /// The list as received, for a cache: its hash is the manifest's.
    pub fn list_bytes(&self) -> Option<&[u8]> {
        self.scripts.list_bytes()
    }

    /// The current script manifest.
    pub fn manifest(&self) -> Option<&ScriptManifest> {
        self.scripts.manifest()
    }

    /// Verified bytecode of a script.
    pub fn bytecode(&self, path: &str) -> Option<&[u8]> {
        self.scripts.bytecode(path)
    }

    pub(crate) fn announced(&mut self, manifest: ScriptManifest) {
        match self.scripts.announce(manifest.clone()) {
            Ok(()) => self.output.emit(ClientEvent::ScriptManifest(manifest)),
            Err(cause) => self.output.trouble("script_refused", cause),
        }
    }

    pub(crate) fn chunk(&mut self, chunk: ScriptChunk) {
        let path = chunk.path.clone();
        match self.scripts.chunk(chunk) {
            Ok(outcome) => self.arrived(outcome, true),
            Err(cause) => self.refused(path, cause),
        }
    }

    pub(crate) fn run(&mut self, path: String, run_context: RunContext) {
        if path == MANIFEST_PATH {
            return self.run_all();
        }
        match self.scripts.run(&path, run_context) {
            Ok(()) => self.output.emit(ClientEvent::ScriptRun { path }),
            Err(cause) => self.output.trouble("script_refused", cause),
        }
    }

    pub(crate) fn count(&mut self, message: &ServerMessage) {
        if is_about_scripts(message) {
            self.scripts.bytes += packet::single(message).len() as u64;
        }
    }

    /// Content arrived and matches the manifest.
    fn arrived(&mut self, outcome: ChunkOutcome, is_new: bool) {
        match outcome {
            ChunkOutcome::Waiting => return,
            ChunkOutcome::List => self.output.emit(ClientEvent::ScriptList),
            ChunkOutcome::Verified(scripts) => {
                for (path, hash) in scripts {
                    self.scripts.note_lazy(&path);
                    if is_new {
                        self.output.emit(ClientEvent::ScriptVerified { path, hash });
                    }
                }
            }
        }
        self.confirm();
    }

    /// Content arrived and does not match: reports it, and retries a few times.
    fn refused(&mut self, path: String, cause: String) {
        self.send(&ClientMessage::ScriptVerify {
            path: path.clone(),
            hash: String::new(),
            success: false,
        });
        self.output.trouble("script_refused", cause);
        if self.scripts.may_retry(&path) {
            self.request(vec![path]);
        }
    }

    fn confirm(&mut self) {
        for confirmation in self.scripts.confirmations() {
            self.send(&ClientMessage::ScriptVerify {
                path: confirmation.path,
                hash: confirmation.hash,
                success: true,
            });
        }
    }

    fn run_all(&mut self) {
        match self.scripts.run_all() {
            Ok(due) => {
                for path in due.start {
                    self.output.emit(ClientEvent::ScriptRun { path });
                }
                if !due.changed.is_empty() || !due.removed.is_empty() {
                    self.output.emit(ClientEvent::ScriptsReload {
                        changed: due.changed,
                        removed: due.removed,
                    });
                }
                self.output.emit(ClientEvent::ScriptsStarted);
            }
            Err(cause) => self.output.trouble("script_refused", cause),
        }
    }

    fn send(&mut self, message: &ClientMessage) {
        self.scripts.bytes += packet::single(message).len() as u64;
        self.output.send(message);
    }
}

/// Splits paths into requests of permitted size.
fn in_requests(paths: Vec<String>) -> Vec<Vec<String>> {
    let mut requests: Vec<Vec<String>> = Vec::new();
    let mut bytes = 0;
    for path in paths {
        bytes += path.len();
        match requests.last_mut() {
            Some(last) if last.len() < SCRIPT_PATHS_MAX && bytes <= SCRIPT_PATHS_BYTES_MAX => {
                last.push(path);
            }
            _ => {
                bytes = path.len();
                requests.push(vec![path]);
            }
        }
    }
    requests
}

fn is_about_scripts(message: &ServerMessage) -> bool {
    matches!(
        message,
        ServerMessage::ScriptManifest(_)
            | ServerMessage::ScriptChunk(_)
            | ServerMessage::ExecuteScript { .. }
    )
}
