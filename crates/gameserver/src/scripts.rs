//! Scripts for clients: what they may have, and the pieces it is sent in (DIST-1, DIST-2).

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use frolic_protocol::ServerMessage;
use frolic_protocol::json;
use frolic_protocol::packet;
use frolic_protocol::script::{
    RunContext, SCRIPT_CHUNK_BYTES_MAX, ScriptChunk, ScriptEntry, ScriptManifest,
};
use frolic_script::{CompiledScript, Service, client_builtin};
use frolic_world::World;

/// Everything that clients of a world may download. Scripts of the server
/// are not in here at all, so no mistake can send them (SCR-2).
pub struct ScriptShelf {
    manifest: ScriptManifest,
    /// Ready pieces by path.
    pieces: BTreeMap<String, Vec<Piece>>,
}

/// A piece of a script in both encodings, made once for all clients.
pub struct Piece {
    /// A packet.
    pub packet: Bytes,
    /// A JSON message.
    pub text: String,
}

impl ScriptShelf {
    /// Compresses what replicates.
    pub fn new(world: &World, revision: &str) -> Self {
        let builtin = client_builtin();
        let mut scripts: Vec<&CompiledScript> = world
            .scripts()
            .iter()
            .filter(|script| script.context != RunContext::Server)
            .collect();
        scripts.sort_by_key(|script| (rank(script), script.path.clone()));
        let mut shelf = Self {
            manifest: ScriptManifest {
                version: 1,
                server_tick: world.tick(),
                revision: revision.to_owned(),
                scripts: Vec::new(),
            },
            pieces: BTreeMap::new(),
        };
        for script in builtin.iter().chain(scripts) {
            shelf.add(script, world.entities_with_script(&script.path));
        }
        shelf
    }

    fn add(&mut self, script: &CompiledScript, entities: Vec<u32>) {
        let bytecode = script.bytecode();
        self.manifest.scripts.push(ScriptEntry {
            path: script.path.clone(),
            hash: format!("sha256:{}", script.sha256_hex),
            size_bytes: bytecode.len() as u32,
            run_context: script.context,
            service: script.service.map_or("Builtin", Service::name).to_owned(),
            entities,
        });
        // Level 9 is what a start can afford; scripts compress once per start.
        let compressed = zstd::bulk::compress(bytecode, 9).unwrap_or_default();
        let total = compressed.len().div_ceil(SCRIPT_CHUNK_BYTES_MAX) as u32;
        let pieces = compressed
            .chunks(SCRIPT_CHUNK_BYTES_MAX)
            .enumerate()
            .map(|(index, data)| {
                let chunk = ServerMessage::ScriptChunk(ScriptChunk {
                    path: script.path.clone(),
                    index: index as u32,
                    total,
                    data: data.to_vec(),
                });
                Piece {
                    packet: packet::single(&chunk).into(),
                    text: json::encode(&chunk).unwrap_or_default(),
                }
            })
            .collect();
        self.pieces.insert(script.path.clone(), pieces);
    }

    /// What clients are told first.
    pub fn manifest(&self) -> &ScriptManifest {
        &self.manifest
    }

    /// The pieces of a script.
    pub fn pieces(&self, path: &str) -> Option<&[Piece]> {
        self.pieces.get(path).map(Vec::as_slice)
    }
}

/// ReplicatedFirst runs before everything else of the game (DIST-4); modules
/// come before whoever requires them.
fn rank(script: &CompiledScript) -> u8 {
    match script.service {
        Some(Service::ReplicatedFirst) => 0,
        Some(Service::ReplicatedStorage) => 1,
        _ => 2,
    }
}

/// Writes every compiled script and its manifest below `folder` (DIST-1).
///
/// # Errors
/// When the disk does not take them.
pub fn keep(folder: &Path, world: &World) -> std::io::Result<()> {
    let mut entries = Vec::new();
    for script in world.scripts() {
        let relative = Path::new(&script.path).with_extension("luauc");
        let path = folder.join(relative);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&path, script.bytecode())?;
        entries.push(serde_json::json!({
            "path": script.path,
            "hash": format!("sha256:{}", script.sha256_hex),
            "size_bytes": script.bytecode().len(),
            "run_context": script.context,
            "service": script.service.map_or("", Service::name),
            "replicate": script.context != RunContext::Server,
        }));
    }
    std::fs::create_dir_all(folder)?;
    let manifest = serde_json::json!({
        "version": 1, "server_tick": world.tick(), "scripts": entries,
    });
    let text = serde_json::to_vec_pretty(&manifest).map_err(std::io::Error::other)?;
    std::fs::write(folder.join("manifest.json"), text)
}
