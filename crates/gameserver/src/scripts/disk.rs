//! Compiled scripts on disk (DIST-1), for whoever wants to see what runs.
//!
//! `<folder>/games/<game>` has the scripts of each game, and `<folder>` itself
//! those of the world that was started or changed last; both in the form
//! `<Service>/<name>.luauc` with a `manifest.json`.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use frolic_protocol::script::RunContext;
use frolic_script::Service;
use frolic_world::World;

/// Writes every compiled script and its manifest below `folder`.
///
/// # Errors
/// When the disk does not take them.
pub fn keep(folder: &Path, game_id: &str, world: &World) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    // Worlds are processes: two that start at once take turns.
    let lock = File::create(folder.join(".lock"))?;
    lock.lock()?;
    // Ids of games are plain names; the check before this has seen to it.
    let own = folder.join("games").join(game_id);
    write(&own, world)?;
    write(folder, world)
}

fn write(folder: &Path, world: &World) -> io::Result<()> {
    for service in Service::ALL {
        match fs::remove_dir_all(folder.join(service.name())) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let mut entries = Vec::new();
    for script in world.scripts() {
        let path = folder.join(Path::new(&script.path).with_extension("luauc"));
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, script.bytecode())?;
        entries.push(serde_json::json!({
            "path": script.path,
            "hash": format!("sha256:{}", script.sha256_hex),
            "size_bytes": script.bytecode().len(),
            "run_context": script.context,
            "service": script.service.map_or("", Service::name),
            "replicate": script.context != RunContext::Server,
        }));
    }
    fs::create_dir_all(folder)?;
    let manifest = serde_json::json!({
        "version": world.script_version(),
        "server_tick": world.tick(),
        "revision": world.revision(),
        "scripts": entries,
    });
    let text = serde_json::to_vec_pretty(&manifest).map_err(io::Error::other)?;
    fs::write(folder.join("manifest.json"), text)
}
