//! Scripts for clients: which they may have, and the chunks they are sent in.

mod disk;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use frolic_protocol::ServerMessage;
use frolic_protocol::packet;
use frolic_protocol::script::{
    BUNDLE_PREFIX, MANIFEST_PATH, RunContext, SCRIPT_CHUNK_BYTES_MAX, ScriptBundle, ScriptChunk,
    ScriptEntry, ScriptList, ScriptManifest, content_url,
};
use frolic_script::{CompiledScript, ModuleTree, Service, client_builtin};
use frolic_world::World;
use sha2::{Digest, Sha256};

pub use disk::CompiledScriptDump;

/// The engine's own scripts are sent together.
const BUILTIN_BUNDLE: &str = "@builtin";

/// Everything that clients of a world may download. Server scripts are not in here
/// at all, so no mistake can send them.
pub struct ClientScripts {
    list: ScriptList,
    manifest: ScriptManifest,
    /// Content by request path.
    units: BTreeMap<String, Arc<Unit>>,
}

/// Content that is sent as one zstd frame.
pub struct Unit {
    /// `sha256:` and the hash of the content.
    pub hash: String,
    /// The frame.
    pub compressed: Vec<u8>,
    /// The frame in chunks, as packets; encoded once for all clients.
    packets: Vec<Bytes>,
    path: String,
}

/// What the control plane needs to sign a manifest and to serve its content.
pub struct ScriptRelease {
    /// The manifest's JSON text.
    pub list: String,
    /// Hash of the manifest.
    pub hash: String,
    /// Frames by the hash of their content.
    pub contents: BTreeMap<String, Arc<Unit>>,
    /// The compiled scripts to write to disk.
    pub script_dump: CompiledScriptDump,
}

impl ClientScripts {
    /// Compresses the replicated scripts; unchanged ones are taken from `old`.
    pub fn new(
        world: &World,
        game_id: &str,
        bundles: &BTreeMap<String, Vec<String>>,
        old: Option<&ClientScripts>,
    ) -> Self {
        let builtin = client_builtin();
        let mut scripts: Vec<&CompiledScript> = world
            .scripts()
            .filter(|script| script.context != RunContext::Server)
            .collect();
        scripts.sort_by_key(|script| (rank(script), script.path.clone()));
        let needed = needed_at_once(&scripts);
        let mut making = Making {
            old,
            ..Making::default()
        };
        for script in builtin.iter().chain(scripts.iter().copied()) {
            let lazy = script.is_module && !needed.contains(&script.path);
            making.script(script, lazy, world.entities_with_script(&script.path));
        }
        let own = builtin.iter().map(|script| script.path.clone()).collect();
        making.bundle(BUILTIN_BUNDLE, own);
        for (name, members) in bundles {
            making.bundle(name, members.clone());
        }
        making.finish(world, game_id)
    }

    /// The manifest message. JSON clients get the list with it.
    pub fn manifest(&self, with_list: bool) -> ScriptManifest {
        let mut manifest = self.manifest.clone();
        manifest.list = with_list.then(|| self.list.clone());
        manifest
    }

    /// The scripts, in the order they run.
    pub fn entries(&self) -> &[ScriptEntry] {
        &self.list.scripts
    }

    /// Hash of the manifest.
    pub fn hash(&self) -> &str {
        &self.manifest.hash
    }

    /// Sets the platform's signature of this manifest.
    pub fn set_signature(&mut self, signature: String) {
        self.manifest.signature = signature;
    }

    /// The content at a request path.
    pub fn unit(&self, path: &str) -> Option<&Unit> {
        self.units.get(path).map(Arc::as_ref)
    }

    /// For the control plane.
    pub fn release(&self, world: &World) -> ScriptRelease {
        let contents = self.units.values();
        ScriptRelease {
            list: serde_json::to_string(&self.list).unwrap_or_default(),
            hash: self.manifest.hash.clone(),
            contents: contents
                .filter(|unit| unit.path != MANIFEST_PATH)
                .map(|unit| (unit.hash.clone(), unit.clone()))
                .collect(),
            script_dump: CompiledScriptDump::of(&self.list.game_id, world),
        }
    }
}

impl Unit {
    fn new(path: &str, hash: String, compressed: Vec<u8>) -> Self {
        let mut unit = Self {
            hash,
            compressed,
            packets: Vec::new(),
            path: path.to_owned(),
        };
        unit.packets = (0..unit.count())
            .filter_map(|index| unit.message(index))
            .map(|chunk| packet::single(&chunk).into())
            .collect();
        unit
    }

    fn count(&self) -> u32 {
        self.compressed.len().div_ceil(SCRIPT_CHUNK_BYTES_MAX) as u32
    }

    /// The chunks from `from` on, as packets.
    pub fn packets(&self, from: u32) -> &[Bytes] {
        self.packets.get(from as usize..).unwrap_or_default()
    }

    /// The chunks from `from` on, as messages.
    pub fn messages(&self, from: u32) -> impl Iterator<Item = ServerMessage> {
        (from..self.count()).filter_map(|index| self.message(index))
    }

    fn message(&self, index: u32) -> Option<ServerMessage> {
        let mut pieces = self.compressed.chunks(SCRIPT_CHUNK_BYTES_MAX);
        Some(ServerMessage::ScriptChunk(ScriptChunk {
            path: self.path.clone(),
            index,
            total: self.count(),
            data: pieces.nth(index as usize)?.to_vec(),
        }))
    }
}

/// Client scripts that are being collected.
#[derive(Default)]
struct Making<'a> {
    old: Option<&'a ClientScripts>,
    list: ScriptList,
    units: BTreeMap<String, Arc<Unit>>,
    /// Bytecode by path, for bundles.
    bytecode: BTreeMap<String, Vec<u8>>,
}

impl Making<'_> {
    fn script(&mut self, script: &CompiledScript, lazy: bool, entities: Vec<u32>) {
        let bytecode = script.bytecode();
        let hash = format!("sha256:{}", script.sha256_hex);
        self.list.scripts.push(ScriptEntry {
            path: script.path.clone(),
            hash: hash.clone(),
            size_bytes: bytecode.len() as u32,
            run_context: script.context,
            service: script.service.map_or("Builtin", Service::name).to_owned(),
            lazy,
            module: script.is_module,
            url: content_url(&hash),
            entities,
        });
        self.unit(&script.path, hash, bytecode);
        self.bytecode.insert(script.path.clone(), bytecode.to_vec());
    }

    /// Scripts that clients do not get are silently left out; names in `[bundles]`
    /// are relative to the package's root.
    fn bundle(&mut self, name: &str, members: Vec<String>) {
        let members: Vec<String> = members
            .iter()
            .map(|path| path.strip_prefix("scripts/").unwrap_or(path).to_owned())
            .filter(|path| self.bytecode.contains_key(path))
            .collect();
        if members.is_empty() {
            return;
        }
        let parts = members.iter().filter_map(|path| self.bytecode.get(path));
        let whole: Vec<u8> = parts.flatten().copied().collect();
        let hash = format!("sha256:{}", hex::encode(Sha256::digest(&whole)));
        self.list.bundles.push(ScriptBundle {
            name: name.to_owned(),
            hash: hash.clone(),
            size_bytes: whole.len() as u32,
            url: content_url(&hash),
            scripts: members,
        });
        self.unit(&format!("{BUNDLE_PREFIX}{name}"), hash, &whole);
    }

    fn unit(&mut self, path: &str, hash: String, content: &[u8]) {
        let known = self.old.and_then(|old| old.units.get(path));
        let unit = match known.filter(|unit| unit.hash == hash) {
            Some(unit) => unit.clone(),
            None => {
                // Level 9 is affordable at a start; each script is compressed once.
                let compressed = zstd::bulk::compress(content, 9).unwrap_or_default();
                Arc::new(Unit::new(path, hash, compressed))
            }
        };
        self.units.insert(path.to_owned(), unit);
    }

    fn finish(mut self, world: &World, game_id: &str) -> ClientScripts {
        self.list.game_id = game_id.to_owned();
        self.list.revision = world.revision().to_owned();
        let text = serde_json::to_string(&self.list).unwrap_or_default();
        let hash = format!("sha256:{}", hex::encode(Sha256::digest(&text)));
        self.unit(MANIFEST_PATH, hash.clone(), text.as_bytes());
        ClientScripts {
            manifest: ScriptManifest {
                version: world.script_version(),
                server_tick: world.tick(),
                revision: self.list.revision.clone(),
                size_bytes: text.len() as u32,
                url: content_url(&hash),
                hash,
                signature: String::new(),
                list: None,
            },
            list: self.list,
            units: self.units,
        }
    }
}

/// ReplicatedFirst runs before everything else of the game; modules come before the
/// scripts that require them.
fn rank(script: &CompiledScript) -> u8 {
    match script.service {
        Some(Service::ReplicatedFirst) => 0,
        Some(Service::ReplicatedStorage) => 1,
        _ => 2,
    }
}

/// Modules that startup scripts require, directly or through others. A script whose
/// dependencies cannot be determined from its text may require any.
fn needed_at_once(scripts: &[&CompiledScript]) -> BTreeSet<String> {
    let tree = ModuleTree::new(scripts.iter().map(|script| script.path.as_str()));
    let modules: BTreeMap<&str, &CompiledScript> = scripts
        .iter()
        .filter(|script| script.is_module)
        .map(|script| (script.path.as_str(), *script))
        .collect();
    let mut needed = BTreeSet::new();
    let mut open: Vec<&CompiledScript> = scripts
        .iter()
        .copied()
        .filter(|script| !script.is_module)
        .collect();
    while let Some(script) = open.pop() {
        let requires = tree.requires(&script.path, script.source());
        if requires.unknown {
            // Spells are not required, they are cast.
            let all = modules.values();
            let all = all.filter(|module| module.service != Some(Service::Spells));
            return all.map(|module| module.path.clone()).collect();
        }
        for path in requires.modules {
            if let Some(module) = modules.get(path.as_str())
                && needed.insert(path)
            {
                open.push(module);
            }
        }
    }
    needed
}
