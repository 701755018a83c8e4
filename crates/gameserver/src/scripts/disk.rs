//! Compiled scripts on disk (DIST-1), for whoever wants to see what runs.
//!
//! `<folder>/games/<game>` has the scripts of each game, and `<folder>` itself
//! those of the world that was started or changed last; both in the form
//! `<Service>/<name>.luauc` with a `manifest.json`, which says what of it
//! counts: a world's process may write there, and neither read nor remove.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use frolic_protocol::script::RunContext;
use frolic_script::Service;
use frolic_world::World;

/// Files that are to be kept. They are made in the world's thread and written
/// by another, since that one has no business with disks.
pub struct Keepsake {
    game_id: String,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Keepsake {
    /// Every compiled script of a world and its manifest.
    pub fn of(game_id: &str, world: &World) -> Self {
        let mut files = Vec::new();
        let mut entries = Vec::new();
        for script in world.scripts() {
            let path = Path::new(&script.path).with_extension("luauc");
            files.push((path, script.bytecode().to_vec()));
            entries.push(serde_json::json!({
                "path": script.path,
                "hash": format!("sha256:{}", script.sha256_hex),
                "size_bytes": script.bytecode().len(),
                "run_context": script.context,
                "service": script.service.map_or("", Service::name),
                "replicate": script.context != RunContext::Server,
            }));
        }
        let manifest = serde_json::json!({
            "version": world.script_version(),
            "server_tick": world.tick(),
            "revision": world.revision(),
            "scripts": entries,
        });
        let text = serde_json::to_vec_pretty(&manifest).unwrap_or_default();
        // Last: it never names a file that is not there.
        files.push(("manifest.json".into(), text));
        Self {
            game_id: game_id.to_owned(),
            files,
        }
    }

    /// Writes them below `folder`.
    ///
    /// # Errors
    /// When the disk does not take them.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        // Worlds are processes: two that start at once take turns.
        let lock = File::create(folder.join(".lock"))?;
        lock.lock()?;
        // Ids of games are plain names: their packages were checked.
        for folder in [folder.join("games").join(&self.game_id), folder.to_owned()] {
            for (path, bytes) in &self.files {
                let path = folder.join(path);
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent)?;
                }
                fs::write(&path, bytes)?;
            }
        }
        Ok(())
    }
}
