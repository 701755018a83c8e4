//! Blobs as files in a folder.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tokio::fs;
use tokio::io::AsyncWriteExt;

use crate::core::ids;

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

    /// Writes and removes a file, to find out whether the disk has space. All steps are one
    /// blocking task, so that the file is removed even if the caller is cancelled.
    pub async fn try_write(&self) -> io::Result<()> {
        let temporary = self.folder.join(format!("{}.part", ids::new_id("probe")));
        let task = tokio::task::spawn_blocking(move || {
            let written = write_probe(&temporary);
            let removed = std::fs::remove_file(&temporary);
            written.and(removed)
        });
        task.await.map_err(io::Error::other)?
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

fn write_probe(path: &Path) -> io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    file.write_all(&[0x5a; PROBE_BYTES])?;
    file.sync_all()
}

async fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create(path).await?;
    file.write_all(bytes).await?;
    file.sync_all().await
}
