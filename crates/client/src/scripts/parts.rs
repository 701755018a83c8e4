//! Incomplete downloads, by their expected hash: what arrived before a connection
//! broke is not downloaded again.

use std::collections::HashMap;
use std::io::Read;

use frolic_protocol::script::{SCRIPT_CHUNK_BYTES_MAX, ScriptChunk};
use sha2::{Digest, Sha256};

/// Chunks of one download.
const CHUNKS_MAX: u32 = 512;
/// Concurrent downloads; a valid server never begins more.
const DOWNLOADS_MAX: usize = 4096;

#[derive(Default)]
pub(crate) struct Parts {
    by_hash: HashMap<String, Vec<Option<Vec<u8>>>>,
}

impl Parts {
    /// Adds a chunk of the content with this hash; returns the content once all
    /// chunks are there.
    pub fn add(&mut self, hash: &str, chunk: ScriptChunk) -> Result<Option<Vec<u8>>, String> {
        let path = &chunk.path;
        if chunk.total == 0 || chunk.total > CHUNKS_MAX {
            return Err(format!("{path} is larger than a script may be"));
        }
        if chunk.data.len() > SCRIPT_CHUNK_BYTES_MAX {
            return Err(format!("a piece of {path} is larger than one may be"));
        }
        if !self.by_hash.contains_key(hash) && self.by_hash.len() >= DOWNLOADS_MAX {
            return Err("too many scripts are on their way".to_owned());
        }
        let total = chunk.total as usize;
        let pieces = self.by_hash.entry(hash.to_owned()).or_default();
        if pieces.len() != total {
            // Compressed again, for example by a restarted server.
            *pieces = vec![None; total];
        }
        let piece = pieces
            .get_mut(chunk.index as usize)
            .ok_or_else(|| format!("{path} has a piece out of range"))?;
        *piece = Some(chunk.data);
        if pieces.iter().any(Option::is_none) {
            return Ok(None);
        }
        let whole = self.by_hash.remove(hash);
        Ok(whole.map(|pieces| pieces.into_iter().flatten().flatten().collect()))
    }

    /// Where a download of this hash continues.
    pub fn first_missing(&self, hash: &str) -> u32 {
        let pieces = self.by_hash.get(hash);
        let first = pieces.and_then(|pieces| pieces.iter().position(Option::is_none));
        first.map_or(0, |index| index as u32)
    }
}

pub(crate) fn hash_of(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// Decompresses one zstd frame of at most `max` bytes.
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
