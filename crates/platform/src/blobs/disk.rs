//! Blobs as files in a folder.

use std::io;
use std::path::PathBuf;

use bytes::Bytes;
use tokio::fs;
use tokio::io::AsyncWriteExt;

use crate::ids;

/// More than the blocks that file systems reserve for a file.
const PROBE_BYTES: usize = 64 * 1024;

#[derive(Clone, Debug)]
pub struct Disk {
    folder: PathBuf,
}

impl Disk {
    pub async fn open(folder: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&folder).await?;
        Ok(Self { folder })
    }

    pub async fn put(&self, sha256: &str, bytes: &[u8]) -> io::Result<()> {
        let target = self.folder.join(sha256);
        if fs::try_exists(&target).await? {
            return Ok(());
        }
        // Write, sync, then rename: after a crash only a temporary file may remain,
        // and the final name never has partial content.
        let temporary = self.folder.join(format!("{}.part", ids::new_id("put")));
        let written = write_synced(&temporary, bytes).await;
        let moved = match written {
            Ok(()) => fs::rename(&temporary, &target).await,
            Err(error) => Err(error),
        };
        if let Err(error) = moved {
            let _ = fs::remove_file(&temporary).await;
            return Err(error);
        }
        Ok(())
    }

    /// Writes what is taken away at once, to find out whether there is room.
    pub async fn try_write(&self) -> io::Result<()> {
        let temporary = self.folder.join(format!("{}.part", ids::new_id("probe")));
        let written = write_synced(&temporary, &[0x5a; PROBE_BYTES]).await;
        let removed = fs::remove_file(&temporary).await;
        written.and(removed)
    }

    pub async fn has(&self, sha256: &str) -> io::Result<bool> {
        fs::try_exists(self.folder.join(sha256)).await
    }

    pub async fn get(&self, sha256: &str) -> io::Result<Option<Bytes>> {
        match fs::read(self.folder.join(sha256)).await {
            Ok(bytes) => Ok(Some(Bytes::from(bytes))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

async fn write_synced(path: &std::path::Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create(path).await?;
    file.write_all(bytes).await?;
    file.sync_all().await
}
