//! Script distribution on the client: scripts are announced, checked against the
//! platform's signature, requested, assembled, verified, run.

mod parts;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use frolic_protocol::script::{
    BUNDLE_PREFIX, MANIFEST_PATH, RunContext, ScriptBundle, ScriptChunk, ScriptEntry, ScriptList,
    ScriptManifest,
};
use frolic_protocol::signature;

use parts::Parts;
pub(crate) use parts::{decompress, hash_of};

/// Limit of a compiled script.
const SCRIPT_BYTES_MAX: u32 = 4 * 1024 * 1024;
/// Limit of a bundle or a list.
const UNIT_BYTES_MAX: u32 = 32 * 1024 * 1024;
/// Scripts in one list.
const SCRIPTS_MAX: usize = 16 * 1024;
/// How often content that does not match is requested again.
const RETRIES_MAX: u32 = 2;

/// The key and game that a manifest's signature must match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trust {
    pub key: [u8; 32],
    pub game_id: String,
}

#[derive(Default)]
pub(crate) struct Scripts {
    trust: Option<Trust>,
    manifest: Option<ScriptManifest>,
    list: Option<ScriptList>,
    /// The text that is hashed and signed.
    list_bytes: Vec<u8>,
    parts: Parts,
    /// Bytecode by hash.
    verified: HashMap<String, Vec<u8>>,
    /// Running scripts: hash by path.
    running: BTreeMap<String, String>,
    /// Everything that runs at the start was started once.
    started: bool,
    /// The host has offered what it had.
    settled: bool,
    /// The first scripts were confirmed before the rest arrived.
    first_reported: bool,
    /// The server was notified that everything arrived.
    all_reported: bool,
    retries: HashMap<String, u32>,
    /// Bytes of all messages about scripts, both ways.
    pub bytes: u64,
    /// The server had too much to send, and skipped some scripts.
    pub stalled: bool,
}

/// Something that can be fetched: a script, a bundle, or the list.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct ScriptUnit {
    /// Its name in `offer_script` and `request_scripts`.
    pub path: String,
    /// Its URL, relative to the platform.
    pub url: String,
    /// Its size.
    pub size_bytes: u32,
    /// Not needed at the start.
    pub lazy: bool,
}

/// The result of adding a chunk.
pub(crate) enum ChunkOutcome {
    /// More chunks are missing.
    Waiting,
    /// Complete and matching the manifest: paths and hashes.
    Verified(Vec<(String, String)>),
    /// The list of scripts has arrived.
    List,
}

/// A confirmation to send to the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Confirmation {
    pub path: String,
    pub hash: String,
}

/// What the host must do when the server says that all may run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// Scripts to start, in order.
    pub start: Vec<String>,
    /// Scripts to replace while the rest continues.
    pub changed: Vec<String>,
    /// Scripts to stop.
    pub removed: Vec<String>,
}

impl Scripts {
    /// Only manifests that this key has signed for this game are accepted.
    pub fn trust(&mut self, trust: Trust) {
        self.trust = Some(trust);
    }

    /// Takes over what another connection has downloaded.
    pub fn take_over(&mut self, old: &mut Scripts) {
        self.verified = std::mem::take(&mut old.verified);
        self.parts = std::mem::take(&mut old.parts);
        if self.trust.is_none() {
            self.trust = old.trust.take();
        }
    }

    /// Sets the current manifest.
    pub fn announce(&mut self, manifest: ScriptManifest) -> Result<(), String> {
        if let Some(trust) = &self.trust {
            let (game, hash) = (&trust.game_id, &manifest.hash);
            if !signature::verify(&trust.key, game, hash, &manifest.signature) {
                return Err("the platform did not sign this list of scripts".to_owned());
            }
        }
        if manifest.size_bytes > UNIT_BYTES_MAX {
            return Err("the list of scripts is larger than one may be".to_owned());
        }
        self.manifest = Some(manifest);
        self.list = None;
        self.settled = false;
        self.first_reported = false;
        self.all_reported = false;
        self.retries.clear();
        Ok(())
    }

    pub fn manifest(&self) -> Option<&ScriptManifest> {
        self.manifest.as_ref()
    }

    /// The list as received, for a cache.
    pub fn list_bytes(&self) -> Option<&[u8]> {
        self.list.as_ref().map(|_| self.list_bytes.as_slice())
    }

    pub fn list(&self) -> Option<&ScriptList> {
        self.list.as_ref()
    }

    fn entry(&self, path: &str) -> Result<&ScriptEntry, String> {
        let scripts = self.list.iter().flat_map(|list| &list.scripts);
        scripts
            .into_iter()
            .find(|entry| entry.path == path)
            .ok_or_else(|| format!("{path} is not in the manifest"))
    }

    fn bundle(&self, path: &str) -> Option<&ScriptBundle> {
        let name = path.strip_prefix(BUNDLE_PREFIX)?;
        let bundles = self.list.iter().flat_map(|list| &list.bundles);
        bundles.into_iter().find(|bundle| bundle.name == name)
    }

    /// Hash and size of anything that can be fetched now.
    fn expected(&self, path: &str) -> Result<(String, u32), String> {
        if path == MANIFEST_PATH {
            let manifest = self.manifest.as_ref();
            let manifest = manifest.ok_or("no list of scripts was announced")?;
            return Ok((manifest.hash.clone(), manifest.size_bytes));
        }
        if let Some(bundle) = self.bundle(path) {
            return Ok((bundle.hash.clone(), bundle.size_bytes));
        }
        let entry = self.entry(path)?;
        Ok((entry.hash.clone(), entry.size_bytes))
    }

    /// Accepts whole content, from a cache or its URL. Refused unless it matches
    /// the manifest. Returns what is verified now.
    pub fn offer(&mut self, path: &str, bytes: Vec<u8>) -> Result<ChunkOutcome, String> {
        let (expected, _) = self.expected(path)?;
        let hash = hash_of(&bytes);
        if expected != hash {
            return Err(format!(
                "{path} does not match its hash: expected {expected}, got {hash}"
            ));
        }
        if path == MANIFEST_PATH {
            self.list = Some(self.read_list(&bytes)?);
            self.list_bytes = bytes;
            return Ok(ChunkOutcome::List);
        }
        if let Some(bundle) = self.bundle(path) {
            let members = bundle.scripts.clone();
            return self.unpack(path, &members, &bytes);
        }
        self.verified.insert(hash.clone(), bytes);
        Ok(ChunkOutcome::Verified(vec![(path.to_owned(), hash)]))
    }

    fn read_list(&self, bytes: &[u8]) -> Result<ScriptList, String> {
        let mut list: ScriptList = serde_json::from_slice(bytes)
            .map_err(|cause| format!("the list of scripts cannot be read: {cause}"))?;
        if list.scripts.len() > SCRIPTS_MAX || list.bundles.len() > SCRIPTS_MAX {
            return Err("the list of scripts is longer than one may be".to_owned());
        }
        if let Some(trust) = &self.trust
            && list.game_id != trust.game_id
        {
            return Err(format!("the scripts are of another game: {}", list.game_id));
        }
        // Server-only scripts must not be here.
        let ours = |entry: &ScriptEntry| {
            entry.run_context != RunContext::Server && entry.size_bytes <= SCRIPT_BYTES_MAX
        };
        list.scripts.retain(ours);
        let small = |bundle: &ScriptBundle| bundle.size_bytes <= UNIT_BYTES_MAX;
        list.bundles.retain(small);
        let known: BTreeSet<&str> = list.scripts.iter().map(|e| e.path.as_str()).collect();
        let complete =
            |bundle: &ScriptBundle| bundle.scripts.iter().all(|p| known.contains(p.as_str()));
        list.bundles.retain(complete);
        Ok(list)
    }

    /// Splits a bundle into its scripts.
    fn unpack(
        &mut self,
        path: &str,
        members: &[String],
        bytes: &[u8],
    ) -> Result<ChunkOutcome, String> {
        let mut rest = bytes;
        let mut found = Vec::new();
        for member in members {
            let entry = self.entry(member)?;
            let Some((own, after)) = rest.split_at_checked(entry.size_bytes as usize) else {
                return Err(format!("{path} is shorter than its scripts"));
            };
            if hash_of(own) != entry.hash {
                return Err(format!("{member} in {path} does not match its hash"));
            }
            found.push((member.clone(), entry.hash.clone(), own.to_vec()));
            rest = after;
        }
        let mut verified = Vec::new();
        for (path, hash, own) in found {
            self.verified.insert(hash.clone(), own);
            verified.push((path, hash));
        }
        Ok(ChunkOutcome::Verified(verified))
    }

    /// Adds a chunk.
    pub fn chunk(&mut self, chunk: ScriptChunk) -> Result<ChunkOutcome, String> {
        let path = chunk.path.clone();
        let (hash, size) = self.expected(&path)?;
        let Some(compressed) = self.parts.add(&hash, chunk)? else {
            return Ok(ChunkOutcome::Waiting);
        };
        let bytes =
            decompress(&compressed, size as usize).map_err(|cause| format!("{path}: {cause}"))?;
        self.offer(&path, bytes)
    }

    /// Whether content that did not match may be requested again.
    pub fn may_retry(&mut self, path: &str) -> bool {
        let Ok((hash, _)) = self.expected(path) else {
            return false;
        };
        let tries = self.retries.entry(hash).or_insert(0);
        *tries += 1;
        *tries <= RETRIES_MAX
    }

    /// The first missing chunk.
    pub fn resume_at(&self, path: &str) -> u32 {
        self.expected(path)
            .map_or(0, |(hash, _)| self.parts.first_missing(&hash))
    }

    fn has(&self, entry: &ScriptEntry) -> bool {
        self.verified.contains_key(&entry.hash)
    }

    /// Whether the manifest cannot be used without it: it runs at the start, or an
    /// older version of it runs now.
    fn is_needed(&self, entry: &ScriptEntry) -> bool {
        !entry.lazy || self.running.contains_key(&entry.path)
    }

    /// The host has offered what it had. Returns what is still to fetch, in the
    /// order of need; scripts of a bundle as one.
    pub fn missing(&mut self) -> Vec<ScriptUnit> {
        let Some(list) = &self.list else {
            let manifest = self.manifest.iter();
            return manifest
                .map(|manifest| ScriptUnit {
                    path: MANIFEST_PATH.to_owned(),
                    url: manifest.url.clone(),
                    size_bytes: manifest.size_bytes,
                    lazy: false,
                })
                .collect();
        };
        self.settled = true;
        let mut bundle_of = HashMap::new();
        for bundle in &list.bundles {
            for path in &bundle.scripts {
                bundle_of.entry(path.as_str()).or_insert(bundle);
            }
        }
        let mut asked: HashMap<&str, usize> = HashMap::new();
        let mut units: Vec<ScriptUnit> = Vec::new();
        for entry in list.scripts.iter().filter(|entry| !self.has(entry)) {
            let lazy = !self.is_needed(entry);
            let Some(bundle) = bundle_of.get(entry.path.as_str()) else {
                units.push(ScriptUnit {
                    path: entry.path.clone(),
                    url: entry.url.clone(),
                    size_bytes: entry.size_bytes,
                    lazy,
                });
                continue;
            };
            // One needed script makes its bundle needed.
            if let Some(unit) = asked.get(bundle.name.as_str()) {
                units[*unit].lazy &= lazy;
                continue;
            }
            asked.insert(&bundle.name, units.len());
            units.push(ScriptUnit {
                path: format!("{BUNDLE_PREFIX}{}", bundle.name),
                url: bundle.url.clone(),
                size_bytes: bundle.size_bytes,
                lazy,
            });
        }
        // The order of the list within each: what runs first comes first.
        units.sort_by_key(|unit| unit.lazy);
        units
    }

    /// Confirmations to send now. One message when nothing that runs at the start
    /// is missing; before that only for scripts that run before everything else, so
    /// that those need not wait.
    pub fn confirmations(&mut self) -> Vec<Confirmation> {
        let (Some(manifest), Some(list)) = (&self.manifest, &self.list) else {
            return Vec::new();
        };
        if self.all_reported || !self.settled {
            return Vec::new();
        }
        let mut eager = list.scripts.iter().filter(|entry| self.is_needed(entry));
        if eager.clone().all(|entry| self.has(entry)) {
            self.all_reported = true;
            return vec![Confirmation {
                path: MANIFEST_PATH.to_owned(),
                hash: manifest.hash.clone(),
            }];
        }
        let first = |entry: &&ScriptEntry| is_first(&entry.service);
        let comes_first: Vec<&ScriptEntry> = eager.by_ref().take_while(first).collect();
        let any_of_the_game = comes_first.iter().any(|e| e.service == FIRST_SERVICE);
        if self.started || self.first_reported || !any_of_the_game {
            return Vec::new();
        }
        if !comes_first.iter().all(|entry| self.has(entry)) {
            return Vec::new();
        }
        self.first_reported = true;
        comes_first
            .into_iter()
            .map(|entry| Confirmation {
                path: entry.path.clone(),
                hash: entry.hash.clone(),
            })
            .collect()
    }

    /// Verified bytecode, if this client may run it.
    pub fn bytecode(&self, path: &str) -> Option<&[u8]> {
        let entry = self.entry(path).ok()?;
        self.verified.get(&entry.hash).map(Vec::as_slice)
    }

    /// The server requests to run this script.
    pub fn run(&mut self, path: &str, context: RunContext) -> Result<(), String> {
        let entry = self.entry(path)?;
        if context == RunContext::Server || entry.run_context == RunContext::Server {
            return Err(format!("{path} is for the server only and was refused"));
        }
        if !self.has(entry) {
            return Err(format!("{path} should run but has not arrived"));
        }
        let hash = entry.hash.clone();
        self.running.insert(path.to_owned(), hash);
        Ok(())
    }

    /// A lazily loaded module was given to the VM.
    pub fn note_lazy(&mut self, path: &str) {
        let lazy = self.entry(path).ok().filter(|entry| entry.lazy);
        if let Some(hash) = lazy.map(|entry| entry.hash.clone()) {
            self.running.insert(path.to_owned(), hash);
        }
    }

    /// The server requests to run everything of the manifest. Running scripts that
    /// have changed must be replaced.
    pub fn run_all(&mut self) -> Result<Due, String> {
        let list = self.list.as_ref().ok_or("no list of scripts is here")?;
        let mut due = Due::default();
        let mut now = BTreeMap::new();
        for entry in &list.scripts {
            let before = self.running.get(&entry.path);
            if entry.lazy && before.is_none() {
                continue;
            }
            if !self.verified.contains_key(&entry.hash) {
                return Err(format!("{} should run but has not arrived", entry.path));
            }
            now.insert(entry.path.clone(), entry.hash.clone());
            match before {
                Some(hash) if *hash == entry.hash => {}
                None if !self.started => due.start.push(entry.path.clone()),
                _ => due.changed.push(entry.path.clone()),
            }
        }
        let gone = self.running.keys().filter(|path| {
            let known = list.scripts.iter().any(|entry| entry.path == **path);
            !known && !path.starts_with('@')
        });
        due.removed.extend(gone.cloned());
        self.running = now;
        self.started = true;
        // Drops bytecode that no list names any more.
        let named: BTreeSet<&str> = list.scripts.iter().map(|e| e.hash.as_str()).collect();
        self.verified
            .retain(|hash, _| named.contains(hash.as_str()));
        Ok(due)
    }
}

const FIRST_SERVICE: &str = "ReplicatedFirst";

/// The engine's own scripts and those that run before everything else of the game.
fn is_first(service: &str) -> bool {
    service == FIRST_SERVICE || service == "Builtin"
}

#[cfg(test)]
mod tests;
