//! DerivedBlobs copies of blobs, made on request and cached within a byte limit:
//! compressed scripts and scaled pictures.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::catalog::scaling;
use crate::core::blobs::BlobStore;
use crate::core::encoding::Encoding;

/// Maximum memory for cached copies.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// Estimated memory of a cache entry beside its content.
const ENTRY_BYTES: usize = 512;
/// Maximum number of concurrent conversions. Users choose the pictures, and scaling
/// one may take a hundred megabytes.
const CONVERSIONS_MAX: usize = 2;

/// How a copy is derived from its blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// The same content, compressed.
    Compressed(Encoding),
    /// A picture scaled to at most this width, as WebP.
    Picture(u32),
}

impl Form {
    fn make(self, bytes: &[u8]) -> Option<Bytes> {
        match self {
            Form::Compressed(encoding) => encoding.compress(bytes),
            Form::Picture(width) => scaling::to_width(bytes, width),
        }
    }
}

/// DerivedBlobs copies of blobs. Cheap to clone.
#[derive(Clone)]
pub struct DerivedBlobs {
    cache: Arc<Mutex<Cache>>,
    turns: Arc<Semaphore>,
}

impl Default for DerivedBlobs {
    fn default() -> Self {
        Self {
            cache: Arc::new(Mutex::new(Cache::new(BYTES_MAX))),
            turns: Arc::new(Semaphore::new(CONVERSIONS_MAX)),
        }
    }
}

impl DerivedBlobs {
    /// The copy of a blob in this form; `None` when the blob does not exist or the
    /// form would save nothing.
    ///
    /// # Errors
    /// When the blob cannot be read.
    pub async fn get(
        &self,
        blobs: &BlobStore,
        sha256: &str,
        form: Form,
    ) -> io::Result<Option<Bytes>> {
        if let Some(known) = self.cache().get(sha256, form) {
            return Ok(known);
        }
        let turns = self.turns.clone();
        let turn = turns.acquire_owned().await.map_err(io::Error::other)?;
        // Another request may have made it while this one waited.
        if let Some(known) = self.cache().get(sha256, form) {
            return Ok(known);
        }
        let Some(bytes) = blobs.get(sha256).await? else {
            return Ok(None);
        };
        let (derived, sha256) = (self.clone(), sha256.to_owned());
        // The blocking task owns the permit: a client that disconnects must not free
        // it while the work continues.
        let work = tokio::task::spawn_blocking(move || {
            let made = catch_unwind(AssertUnwindSafe(|| form.make(&bytes))).unwrap_or_else(|_| {
                tracing::error!(
                    sha256,
                    ?form,
                    "a decoder panicked; sending the original file"
                );
                None
            });
            derived.cache().put(&sha256, form, made.clone());
            drop(turn);
            made
        });
        work.await.map_err(io::Error::other)
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type CopyKey = (String, Form);

/// The most recently used copies.
struct Cache {
    bytes_max: usize,
    bytes: usize,
    clock: u64,
    entries: HashMap<CopyKey, CachedCopy>,
    /// Keys by last use.
    order: BTreeMap<u64, CopyKey>,
}

struct CachedCopy {
    content: Option<Bytes>,
    used: u64,
}

impl CachedCopy {
    fn bytes(content: &Option<Bytes>) -> usize {
        ENTRY_BYTES + content.as_ref().map_or(0, Bytes::len)
    }
}

impl Cache {
    fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            bytes: 0,
            clock: 0,
            entries: HashMap::new(),
            order: BTreeMap::new(),
        }
    }

    /// The cached result: `Some(None)` when it is known that no copy exists.
    fn get(&mut self, sha256: &str, form: Form) -> Option<Option<Bytes>> {
        let key = (sha256.to_owned(), form);
        let entry = self.entries.get_mut(&key)?;
        self.clock += 1;
        self.order.remove(&entry.used);
        entry.used = self.clock;
        self.order.insert(self.clock, key);
        Some(entry.content.clone())
    }

    fn put(&mut self, sha256: &str, form: Form, content: Option<Bytes>) {
        let key = (sha256.to_owned(), form);
        self.forget(&key);
        let bytes = CachedCopy::bytes(&content);
        if bytes > self.bytes_max {
            return;
        }
        while self.bytes + bytes > self.bytes_max {
            let Some((_, oldest)) = self.order.first_key_value() else {
                break;
            };
            let oldest = oldest.clone();
            self.forget(&oldest);
        }
        self.clock += 1;
        self.bytes += bytes;
        self.order.insert(self.clock, key.clone());
        let used = self.clock;
        self.entries.insert(key, CachedCopy { content, used });
    }

    fn forget(&mut self, key: &CopyKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.order.remove(&entry.used);
            self.bytes -= CachedCopy::bytes(&entry.content);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: Form = Form::Picture(320);

    #[test]
    fn the_cache_keeps_what_is_used_and_never_outgrows_its_bound() {
        let mut cache = Cache::new(10 * (ENTRY_BYTES + 100));
        let content = || Some(Bytes::from(vec![0; 100]));
        for number in 0..1_000 {
            cache.put(&number.to_string(), FORM, content());
            assert!(cache.get("0", FORM).is_some(), "asked for all the time");
            assert!(cache.bytes <= cache.bytes_max);
            assert_eq!(cache.entries.len(), cache.order.len());
        }
        assert_eq!(cache.entries.len(), 10);
        assert!(cache.get("1", FORM).is_none());
        assert_eq!(cache.get("999", FORM), Some(content()));
        // An entry that would fill the cache alone is not stored and evicts nothing.
        cache.put("large", FORM, Some(Bytes::from(vec![0; 100_000])));
        assert_eq!(cache.entries.len(), 10);
    }

    #[test]
    fn the_same_key_twice_counts_once() {
        let mut cache = Cache::new(10_000);
        cache.put("a", FORM, Some(Bytes::from_static(b"long content")));
        cache.put("a", FORM, None);
        assert_eq!(cache.get("a", FORM), Some(None));
        assert_eq!(cache.bytes, ENTRY_BYTES);
    }
}
