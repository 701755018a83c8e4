//! Content-addressed files: a blob's name is its SHA-256, so writing is
//! idempotent and a name can never be a path.

use std::io;
use std::path::PathBuf;

use bytes::Bytes;
use tokio::fs;
use tokio::io::AsyncWriteExt;

use crate::ids;

/// Blobs on disk. The two methods are all that the platform needs, so that an
/// object store can take their place.
#[derive(Clone, Debug)]
pub struct BlobStore {
    folder: PathBuf,
}

impl BlobStore {
    /// Uses `folder`, making it when it is not there.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub async fn open(folder: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&folder).await?;
        Ok(Self { folder })
    }

    /// Keeps `bytes` and returns their SHA-256. They are on disk, whole, when
    /// this returns.
    ///
    /// # Errors
    /// When the disk refuses.
    pub async fn put(&self, bytes: &[u8]) -> io::Result<String> {
        let sha256 = ids::sha256_hex(bytes);
        let target = self.folder.join(&sha256);
        if fs::try_exists(&target).await? {
            return Ok(sha256);
        }
        // A crash in the middle leaves only a stray temporary file: the name
        // appears when all bytes are there.
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
        Ok(sha256)
    }

    /// Whether there are bytes with this hash.
    ///
    /// # Errors
    /// When the disk refuses.
    pub async fn has(&self, sha256: &str) -> io::Result<bool> {
        Ok(ids::is_sha256_hex(sha256) && fs::try_exists(self.folder.join(sha256)).await?)
    }

    /// The bytes with this hash, or `None` when there are none or `sha256` is
    /// not a hash at all.
    ///
    /// # Errors
    /// When the disk refuses, or the file is not what its name says.
    pub async fn get(&self, sha256: &str) -> io::Result<Option<Bytes>> {
        if !ids::is_sha256_hex(sha256) {
            return Ok(None);
        }
        match fs::read(self.folder.join(sha256)).await {
            Ok(bytes) if ids::sha256_hex(&bytes) == sha256 => Ok(Some(Bytes::from(bytes))),
            Ok(_) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("blob {sha256} is damaged on disk"),
            )),
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
