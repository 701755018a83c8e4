//! Compiled scripts on disk, for inspection.
//!
//! `<folder>/games/<game>` has the scripts of each game, and `<folder>` itself
//! those of the world that was started or changed last; both in the form
//! `<Service>/<name>.luauc` with a `manifest.json`, which lists the files that are
//! current: a world's process may write there, but neither read nor delete.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use frolic_protocol::script::RunContext;
use frolic_script::Service;
use frolic_world::World;

/// Files to write. They are made in the world's thread and written by another,
/// since the world's thread does no disk I/O.
pub struct CompiledScriptDump {
    game_id: String,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl CompiledScriptDump {
    /// Every compiled script of a world and its manifest.
    pub fn of(game_id: &str, world: &World) -> Self {
        let mut files = Vec::new();
        let mut entries = Vec::new();
        let mut taken = BTreeSet::new();
        for script in world.scripts() {
            let file = file_of(&script.path, &mut taken);
            files.push((file.clone().into(), script.bytecode().to_vec()));
            entries.push(serde_json::json!({
                "path": script.path,
                "file": file,
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
        // Last: it never names a file that does not exist yet.
        files.push(("manifest.json".into(), text));
        Self {
            game_id: game_id.to_owned(),
            files,
        }
    }

    /// Writes them below `folder`.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        // Worlds are processes: two that start at once must alternate.
        let lock = File::create(folder.join(".lock"))?;
        lock.lock()?;
        // Ids of games are plain names: their packages were validated.
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

/// The name of a script's file: `.luauc` instead of its extension, or behind it
/// where another file has that name already, as with `A.lua` and `A.luau`.
fn file_of(path: &str, taken: &mut BTreeSet<String>) -> String {
    let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
    let mut file = format!("{stem}.luauc");
    if taken.contains(&file) {
        file = path.to_owned();
        while taken.contains(&file) || file == path {
            file.push_str(".luauc");
        }
    }
    taken.insert(file.clone());
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use frolic_package::{Limits, Package};
    use frolic_world::WorldOptions;
    use serde_json::Value;
    use sha2::{Digest, Sha256};

    const SCENE: &str = r#"{"format":1,"prefabs":{},"entities":[
        {"id":1,"name":"Spawn","components":{"Transform":{"position":[0,1,0]},"SpawnPoint":{}}}]}"#;

    fn world(scripts: &[(&str, &str)]) -> World {
        let manifest = "[game]\nid = \"kept\"\nname = \"Kept\"\nversion = \"1.0.0\"\n";
        let mut files = vec![
            ("game.toml".to_owned(), manifest.into()),
            ("scene.json".to_owned(), SCENE.into()),
        ];
        let scripts = scripts.iter();
        files.extend(scripts.map(|(path, text)| (format!("scripts/{path}"), (*text).into())));
        let files = files.into_iter().collect();
        let package = Package::from_files(files, &Limits::default());
        let package = package.unwrap_or_else(|report| panic!("{report}"));
        World::load(&package, WorldOptions::default()).unwrap()
    }

    /// A folder that is removed when the test ends.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("frolic-script_dump-{}-{name}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }

        /// The entries in the manifest of `inside`, all of them checked against the
        /// files.
        fn scripts(&self, inside: &str) -> Vec<Value> {
            let folder = self.0.join(inside);
            let text = fs::read(folder.join("manifest.json")).unwrap();
            let manifest: Value = serde_json::from_slice(&text).unwrap();
            for name in ["version", "server_tick"] {
                assert!(manifest[name].is_u64(), "{name}: {manifest}");
            }
            let scripts = manifest["scripts"].as_array().unwrap().clone();
            for script in &scripts {
                let file = script["file"].as_str().unwrap();
                let bytes = fs::read(folder.join(file)).unwrap();
                let hash = format!("sha256:{}", hex::encode(Sha256::digest(&bytes)));
                assert_eq!(script["hash"], hash, "{script}");
                assert_eq!(script["size_bytes"], bytes.len(), "{script}");
            }
            scripts
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn entry<'s>(scripts: &'s [Value], path: &str) -> &'s Value {
        let mut scripts = scripts.iter();
        scripts.find(|script| script["path"] == path).unwrap()
    }

    #[test]
    fn every_script_is_on_disk_as_its_manifest_says() {
        let folder = Folder::new("all");
        let world = world(&[
            ("ServerScriptService/Main.luau", "print(1)"),
            ("StarterGui/Hud.luau", "print(2)"),
            ("ReplicatedStorage/Deep/Sums.luau", "return {}"),
        ]);
        CompiledScriptDump::of("kept", &world)
            .write(&folder.0)
            .unwrap();
        let scripts = folder.scripts("");
        assert_eq!(folder.scripts("games/kept"), scripts);
        let main = entry(&scripts, "ServerScriptService/Main.luau");
        assert_eq!(main["file"], "ServerScriptService/Main.luauc");
        assert_eq!(main["service"], "ServerScriptService");
        assert_eq!(main["run_context"], "server");
        assert_eq!(main["replicate"], false);
        let hud = entry(&scripts, "StarterGui/Hud.luau");
        assert_eq!(hud["file"], "StarterGui/Hud.luauc");
        assert_eq!(hud["run_context"], "client");
        assert_eq!(hud["replicate"], true);
        let deep = entry(&scripts, "ReplicatedStorage/Deep/Sums.luau");
        assert_eq!(deep["file"], "ReplicatedStorage/Deep/Sums.luauc");
    }

    #[test]
    fn scripts_that_differ_in_their_ending_only_have_a_file_each() {
        let folder = Folder::new("endings");
        let world = world(&[
            ("ServerScriptService/A.lua", "print('lua')"),
            ("ServerScriptService/A.luau", "print('luau')"),
        ]);
        CompiledScriptDump::of("kept", &world)
            .write(&folder.0)
            .unwrap();
        let scripts = folder.scripts("");
        let file = |path: &str| entry(&scripts, path)["file"].clone();
        assert_ne!(
            file("ServerScriptService/A.lua"),
            file("ServerScriptService/A.luau")
        );
    }

    #[test]
    fn the_newest_game_is_what_the_manifest_says() {
        let folder = Folder::new("newest");
        let old = world(&[("ServerScriptService/Main.luau", "print('old')")]);
        CompiledScriptDump::of("old", &old)
            .write(&folder.0)
            .unwrap();
        let new = world(&[("ServerScriptService/Main.luau", "print('new')")]);
        CompiledScriptDump::of("kept", &new)
            .write(&folder.0)
            .unwrap();
        assert_eq!(folder.scripts(""), folder.scripts("games/kept"));
        assert_ne!(folder.scripts(""), folder.scripts("games/old"));
    }
}
