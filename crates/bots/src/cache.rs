//! The script cache of bots, by hash: a folder in place of the browser's
//! IndexedDB.

use std::path::PathBuf;

use frolic_client::{Client, ClientEvent};
use frolic_protocol::script::MANIFEST_PATH;

/// A folder of content by hash. The client checks every hash, so a damaged
/// or forged file costs a download and nothing else.
#[derive(Clone, Debug)]
pub struct ScriptCache {
    folder: PathBuf,
}

impl ScriptCache {
    /// Uses `folder`, making it when it is not there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(folder: PathBuf) -> std::io::Result<Self> {
        std::fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    /// The file of a hash; none for what is not one, lest it be a path.
    fn file(&self, hash: &str) -> Option<PathBuf> {
        let hex = hash.strip_prefix("sha256:")?;
        let is_hash = hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit());
        is_hash.then(|| self.folder.join(hex))
    }

    fn get(&self, hash: &str) -> Option<Vec<u8>> {
        std::fs::read(self.file(hash)?).ok()
    }

    fn put(&self, hash: &str, bytes: &[u8]) {
        let Some(file) = self.file(hash).filter(|file| !file.exists()) else {
            return;
        };
        // Bots share the folder: a name appears when all bytes are there.
        let part = file.with_extension(format!("{:x}.part", std::process::id()));
        let stored = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, &file));
        if let Err(error) = stored {
            tracing::debug!(%error, "a script could not be cached");
        }
    }

    /// Offers cached scripts, requests the rest, and caches what arrives.
    pub fn follow(&self, client: &mut Client, event: &ClientEvent) {
        match event {
            ClientEvent::ScriptManifest(manifest) => {
                let cached = self.get(&manifest.hash);
                if !cached.is_some_and(|list| client.scripts().offer(MANIFEST_PATH, list)) {
                    client.scripts().request(vec![MANIFEST_PATH.to_owned()]);
                }
            }
            ClientEvent::ScriptList => self.offer(client),
            ClientEvent::ScriptVerified { path, hash } => {
                if let Some(bytes) = client.scripts().bytecode(path) {
                    self.put(hash, bytes);
                }
            }
            _ => {}
        }
    }

    fn offer(&self, client: &mut Client) {
        let mut scripts = client.scripts();
        let Some(list) = scripts.list().cloned() else {
            return;
        };
        if let (Some(manifest), Some(text)) = (scripts.manifest(), scripts.list_bytes()) {
            self.put(&manifest.hash, text);
        }
        for entry in list.scripts {
            if let Some(bytes) = self.get(&entry.hash) {
                scripts.offer(&entry.path, bytes);
            }
        }
        let missing = scripts.missing().into_iter();
        scripts.request(missing.map(|unit| unit.path).collect());
    }
}
