//! Lists of scripts and chunks of them, as a client reads them. Whatever a
//! server sends, a script that the client would run matches the list.

use frolic_client::Client;
use frolic_protocol::packet::SERVER_MESSAGE_BYTES_MAX;
use frolic_protocol::script::{
    BUNDLE_PREFIX, MANIFEST_PATH, RunContext, ScriptBundle, ScriptChunk, ScriptEntry, ScriptList,
    ScriptManifest, content_url,
};
use frolic_protocol::{ServerMessage, packet};
use sha2::{Digest, Sha256};

use crate::seeds;

const HUD: &[u8] = b"bytecode of the hud";
const MODULE: &[u8] = b"bytecode of a module";

/// The bytes are the text of a list, which comes whole and as it was announced.
pub fn list(bytes: &[u8]) {
    let mut client = client_that_awaits(bytes);
    let parsed = serde_json::from_slice::<ScriptList>(bytes);
    if let Ok(list) = &parsed {
        let text = serde_json::to_vec(list).expect("plain values");
        let again: ScriptList = serde_json::from_slice(&text).expect("what we write we read");
        assert_eq!(again, *list);
    }
    let taken = client.scripts().offer(MANIFEST_PATH, bytes.to_vec());
    assert!(!taken || parsed.is_ok(), "a list that cannot be read");
    let units = client.scripts().missing();
    for unit in &units {
        client.scripts().offer(&unit.path, HUD.to_vec());
        client.scripts().offer(&unit.path, [HUD, MODULE].concat());
    }
    client.scripts().request_missing();
    run_all(&mut client);
    let list = client.scripts().list().cloned().unwrap_or_default();
    for entry in &list.scripts {
        assert_ne!(entry.run_context, RunContext::Server, "{}", entry.path);
    }
    nothing_else_runs(&mut client);
}

/// The bytes are pieces of the scripts of a real list, or claim to be.
pub fn chunks(bytes: &[u8]) {
    let Ok(chunks) = packet::read::<ScriptChunk>(bytes, SERVER_MESSAGE_BYTES_MAX) else {
        return;
    };
    let text = list_text();
    let mut client = client_that_awaits(&text);
    assert!(client.scripts().offer(MANIFEST_PATH, text));
    for chunk in chunks {
        let _ = client.receive(&packet::single(&ServerMessage::ScriptChunk(chunk)), 2.0);
        nothing_else_runs(&mut client);
    }
    client.scripts().request_missing();
    run_all(&mut client);
    nothing_else_runs(&mut client);
}

/// A client in a world that announced a list with this text.
fn client_that_awaits(list: &[u8]) -> Client {
    let mut client = Client::new();
    for packet in seeds::welcome_packets() {
        client.receive(&packet, 0.0).expect("a real welcome");
    }
    let hash = hash_of(list);
    let manifest = ScriptManifest {
        version: 1,
        server_tick: 2,
        url: content_url(&hash),
        hash,
        size_bytes: list.len() as u32,
        ..ScriptManifest::default()
    };
    let announced = packet::single(&ServerMessage::ScriptManifest(manifest));
    client.receive(&announced, 1.0).expect("a sane manifest");
    client
}

fn run_all(client: &mut Client) {
    let run = ServerMessage::ExecuteScript {
        path: MANIFEST_PATH.into(),
        run_context: RunContext::Client,
    };
    let _ = client.receive(&packet::single(&run), 3.0);
    client.advance(20.0);
    while client.take_event().is_some() {}
    while client.take_reliable().is_some() {}
}

fn nothing_else_runs(client: &mut Client) {
    let scripts = client.scripts();
    let list = scripts.list().map(|list| list.scripts.as_slice());
    for entry in list.unwrap_or_default() {
        // The first of a name is the one that counts.
        if let Some(bytecode) = scripts.bytecode(&entry.path) {
            let hash = hash_of(bytecode);
            let mut same = list.unwrap_or_default().iter();
            let first = same.find(|other| other.path == entry.path);
            assert_eq!(first.map(|first| &first.hash), Some(&hash));
        }
    }
}

fn hash_of(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

fn entry(path: &str, service: &str, bytecode: &[u8]) -> ScriptEntry {
    let hash = hash_of(bytecode);
    ScriptEntry {
        path: path.into(),
        size_bytes: bytecode.len() as u32,
        run_context: RunContext::Client,
        service: service.into(),
        lazy: false,
        module: false,
        url: content_url(&hash),
        entities: vec![3],
        hash,
    }
}

fn real_list() -> ScriptList {
    let both = [HUD, MODULE].concat();
    let bundle = ScriptBundle {
        name: "hud".into(),
        hash: hash_of(&both),
        size_bytes: both.len() as u32,
        url: content_url(&hash_of(&both)),
        scripts: vec![
            "StarterGui/Hud.luau".into(),
            "ReplicatedStorage/M.luau".into(),
        ],
    };
    ScriptList {
        game_id: "obby".into(),
        revision: "ab".into(),
        scripts: vec![
            entry("ReplicatedFirst/Loading.luau", "ReplicatedFirst", HUD),
            entry("StarterGui/Hud.luau", "StarterGui", HUD),
            entry("ReplicatedStorage/M.luau", "ReplicatedStorage", MODULE),
        ],
        bundles: vec![bundle],
    }
}

fn list_text() -> Vec<u8> {
    serde_json::to_vec(&real_list()).expect("plain values")
}

pub fn list_seeds() -> Vec<Vec<u8>> {
    let mut foreign = real_list();
    foreign.scripts[0].run_context = RunContext::Server;
    foreign.scripts[1].size_bytes = u32::MAX;
    foreign.bundles[0].scripts.push("nowhere".into());
    let foreign = serde_json::to_vec(&foreign).expect("plain values");
    let empty = serde_json::to_vec(&ScriptList::default()).expect("plain values");
    vec![list_text(), foreign, empty]
}

pub fn chunk_seeds() -> Vec<Vec<u8>> {
    let pieces = |path: &str, bytes: &[u8], size: usize| {
        let packed = zstd::bulk::compress(bytes, 1).expect("memory is enough");
        let total = packed.len().div_ceil(size) as u32;
        let mut written = Vec::new();
        for (index, data) in packed.chunks(size).enumerate() {
            let chunk = ScriptChunk {
                path: path.into(),
                index: index as u32,
                total,
                data: data.to_vec(),
            };
            packet::write(&mut written, &chunk);
        }
        written
    };
    let bundle = format!("{BUNDLE_PREFIX}hud");
    vec![
        pieces("StarterGui/Hud.luau", HUD, 9),
        pieces(&bundle, &[HUD, MODULE].concat(), 20),
        pieces("StarterGui/Hud.luau", MODULE, 64),
        pieces(MANIFEST_PATH, &list_text(), 100),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A seed that is refused at once leads a fuzzer nowhere.
    #[test]
    fn seeds_are_taken() {
        let text = list_text();
        let mut client = client_that_awaits(&text);
        assert!(client.scripts().offer(MANIFEST_PATH, text));
        for seed in &chunk_seeds()[..2] {
            for chunk in packet::read::<ScriptChunk>(seed, SERVER_MESSAGE_BYTES_MAX).unwrap() {
                let message = ServerMessage::ScriptChunk(chunk);
                client.receive(&packet::single(&message), 2.0).unwrap();
            }
        }
        assert_eq!(client.scripts().bytecode("StarterGui/Hud.luau"), Some(HUD));
        assert_eq!(
            client.scripts().bytecode("ReplicatedStorage/M.luau"),
            Some(MODULE)
        );
    }
}
