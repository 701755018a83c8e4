//! Scripts on their way to this client: asked for, put together, verified (DIST-3).

use std::collections::HashMap;
use std::io::Read;

use frolic_protocol::script::{RunContext, ScriptChunk, ScriptEntry, ScriptManifest};
use sha2::{Digest, Sha256};

/// No script is larger than this, compiled.
const SCRIPT_BYTES_MAX: u32 = 4 * 1024 * 1024;
const CHUNKS_MAX: u32 = 64;

#[derive(Default)]
pub(crate) struct Scripts {
    manifest: ScriptManifest,
    partial: HashMap<String, Vec<Option<Vec<u8>>>>,
    verified: HashMap<String, Vec<u8>>,
}

/// What came of a chunk.
pub(crate) enum ChunkOutcome {
    /// More to come.
    Waiting,
    /// All there and as the manifest says; the hash is given.
    Verified(String),
}

impl Scripts {
    /// Starts over with a new manifest; what is verified and unchanged stays.
    /// Scripts for the server only have no business here and are dropped.
    pub fn set_manifest(&mut self, mut manifest: ScriptManifest) {
        manifest
            .scripts
            .retain(|entry| entry.run_context != RunContext::Server);
        self.partial.clear();
        self.verified.retain(|path, bytes| {
            let entry = manifest.scripts.iter().find(|entry| &entry.path == path);
            entry.is_some_and(|entry| entry.hash == hash_of(bytes))
        });
        self.manifest = manifest;
    }

    fn entry(&self, path: &str) -> Result<&ScriptEntry, String> {
        self.manifest
            .scripts
            .iter()
            .find(|entry| entry.path == path)
            .ok_or_else(|| format!("{path} is not in the manifest"))
    }

    /// Takes bytecode from a cache; refused unless it is what the manifest says.
    pub fn offer(&mut self, path: &str, bytes: Vec<u8>) -> Result<String, String> {
        let hash = hash_of(&bytes);
        let entry = self.entry(path)?;
        if entry.hash != hash {
            return Err(format!(
                "{path} does not match its hash: expected {}, got {hash}",
                entry.hash
            ));
        }
        self.verified.insert(path.to_owned(), bytes);
        Ok(hash)
    }

    /// What is still to be downloaded.
    pub fn missing(&self) -> Vec<String> {
        self.manifest
            .scripts
            .iter()
            .filter(|entry| !self.verified.contains_key(&entry.path))
            .map(|entry| entry.path.clone())
            .collect()
    }

    /// Takes a piece in.
    pub fn chunk(&mut self, chunk: ScriptChunk) -> Result<ChunkOutcome, String> {
        let size = self.entry(&chunk.path)?.size_bytes;
        if size > SCRIPT_BYTES_MAX || chunk.total == 0 || chunk.total > CHUNKS_MAX {
            return Err(format!("{} is larger than a script may be", chunk.path));
        }
        let pieces = self
            .partial
            .entry(chunk.path.clone())
            .or_insert_with(|| vec![None; chunk.total as usize]);
        let piece = pieces
            .get_mut(chunk.index as usize)
            .ok_or_else(|| format!("{} has a piece out of range", chunk.path))?;
        *piece = Some(chunk.data);
        if pieces.iter().any(Option::is_none) {
            return Ok(ChunkOutcome::Waiting);
        }
        let compressed: Vec<u8> = pieces.drain(..).flatten().flatten().collect();
        self.partial.remove(&chunk.path);
        let bytes = decompress(&compressed, size as usize)
            .map_err(|cause| format!("{}: {cause}", chunk.path))?;
        self.offer(&chunk.path, bytes).map(ChunkOutcome::Verified)
    }

    /// Verified bytecode, if this client may run it.
    pub fn bytecode(&self, path: &str) -> Option<&[u8]> {
        self.verified.get(path).map(Vec::as_slice)
    }

    /// Attached entities and the rest of what the manifest says of a script.
    pub fn runnable(&self, path: &str, context: RunContext) -> Result<(), String> {
        let entry = self.entry(path)?;
        if context == RunContext::Server || entry.run_context == RunContext::Server {
            return Err(format!("{path} is for the server only and was refused"));
        }
        if self.bytecode(path).is_none() {
            return Err(format!("{path} should run but has not arrived"));
        }
        Ok(())
    }
}

pub(crate) fn hash_of(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// One zstd frame, at most `max` bytes when unpacked.
pub(crate) fn decompress(compressed: &[u8], max: usize) -> Result<Vec<u8>, String> {
    let mut source = compressed;
    let decoder = ruzstd::decoding::StreamingDecoder::new(&mut source)
        .map_err(|cause| format!("not zstd: {cause}"))?;
    let mut bytes = Vec::new();
    decoder
        .take(max as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|cause| format!("broken zstd: {cause}"))?;
    if bytes.len() > max {
        return Err(format!("unpacks to more than {max} bytes"));
    }
    Ok(bytes)
}
