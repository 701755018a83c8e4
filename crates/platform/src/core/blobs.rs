//! Content-addressed storage: a blob's name is its SHA-256, so writes are idempotent
//! and a name can never be a path. The backend is a folder or an S3 bucket.

mod disk;
mod s3;

use std::fmt;
use std::io;
use std::path::PathBuf;

use bytes::Bytes;

use crate::core::ids;

use disk::Disk;
use s3::Bucket;

/// Location of the blob storage.
#[derive(Clone, Debug)]
pub enum BlobLocation {
    /// Files in a folder.
    Folder(PathBuf),
    /// Objects in a bucket.
    S3(S3Location),
}

/// A bucket of an S3 server.
#[derive(Clone)]
pub struct S3Location {
    /// Name of the bucket.
    pub bucket: String,
    /// Prefix of all object names; may be empty.
    pub prefix: String,
    /// Settings with the names that the AWS tools use: `AWS_ENDPOINT`, `AWS_REGION`,
    /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_ALLOW_HTTP`, …
    pub settings: Vec<(String, String)>,
}

/// Omits the secret keys, to keep them out of logs.
impl fmt::Debug for S3Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{}", self.bucket, self.prefix)
    }
}

impl fmt::Display for BlobLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlobLocation::Folder(folder) => write!(f, "{}", folder.display()),
            BlobLocation::S3(place) => write!(f, "{place:?}"),
        }
    }
}

/// An invalid BLOB_URL.
#[derive(Debug, thiserror::Error)]
#[error(
    "BLOB_URL cannot be '{0}': give a folder, file:///a/folder, or s3://bucket/prefix with \
        AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_ENDPOINT for a server other than \
        Amazon's) in the environment"
)]
pub struct BlobUrlError(String);

impl BlobLocation {
    /// Parses a BLOB_URL; `settings` are the AWS variables of the environment.
    ///
    /// # Errors
    /// When the URL is invalid; the message says which forms are accepted.
    pub fn parse(
        url: &str,
        settings: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, BlobUrlError> {
        match url.split_once("://") {
            None => Ok(BlobLocation::Folder(PathBuf::from(url))),
            Some(("file", path)) => Ok(BlobLocation::Folder(PathBuf::from(path))),
            Some(("s3", rest)) => {
                let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
                if bucket.is_empty() || prefix.split('/').any(|part| part == "..") {
                    return Err(BlobUrlError(url.to_owned()));
                }
                Ok(BlobLocation::S3(S3Location {
                    bucket: bucket.to_owned(),
                    prefix: prefix.trim_matches('/').to_owned(),
                    settings: settings.into_iter().collect(),
                }))
            }
            Some(_) => Err(BlobUrlError(url.to_owned())),
        }
    }

    /// A location inside this one.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        match self {
            BlobLocation::Folder(folder) => BlobLocation::Folder(folder.join(name)),
            BlobLocation::S3(place) => BlobLocation::S3(S3Location {
                prefix: format!("{}/{name}", place.prefix)
                    .trim_matches('/')
                    .to_owned(),
                ..place.clone()
            }),
        }
    }
}

/// A blob storage.
#[derive(Clone, Debug)]
pub struct BlobStore(Backend);

#[derive(Clone, Debug)]
enum Backend {
    Disk(Disk),
    Bucket(Bucket),
}

impl BlobStore {
    /// Opens the storage. A missing folder is created; a bucket must exist.
    ///
    /// # Errors
    /// When the folder cannot be created, or the bucket's settings are invalid.
    pub async fn open(place: BlobLocation) -> io::Result<Self> {
        Ok(Self(match place {
            BlobLocation::Folder(folder) => Backend::Disk(Disk::open(folder).await?),
            BlobLocation::S3(place) => Backend::Bucket(Bucket::open(&place).await?),
        }))
    }

    /// Stores `bytes` durably and returns their SHA-256.
    ///
    /// # Errors
    /// When the disk or the server fails.
    pub async fn put(&self, bytes: &[u8]) -> io::Result<String> {
        let sha256 = ids::sha256_hex(bytes);
        match &self.0 {
            Backend::Disk(disk) => disk.put(&sha256, bytes).await?,
            Backend::Bucket(bucket) => bucket.put(&sha256, bytes).await?,
        }
        Ok(sha256)
    }

    /// Whether the folder takes files now. A bucket belongs to another machine,
    /// whose faults do not concern the database; it is not tried.
    ///
    /// # Errors
    /// When the disk fails.
    pub async fn try_write(&self) -> io::Result<()> {
        match &self.0 {
            Backend::Disk(disk) => disk.try_write().await,
            Backend::Bucket(_) => Ok(()),
        }
    }

    /// Whether a blob with this hash exists.
    ///
    /// # Errors
    /// When the disk or the server fails.
    pub async fn has(&self, sha256: &str) -> io::Result<bool> {
        if !ids::is_sha256_hex(sha256) {
            return Ok(false);
        }
        match &self.0 {
            Backend::Disk(disk) => disk.has(sha256).await,
            Backend::Bucket(bucket) => bucket.has(sha256).await,
        }
    }

    /// The blob with this hash; `None` when it does not exist or `sha256` is not a
    /// hash.
    ///
    /// # Errors
    /// When the disk or the server fails, or the content does not match its hash.
    pub async fn get(&self, sha256: &str) -> io::Result<Option<Bytes>> {
        if !ids::is_sha256_hex(sha256) {
            return Ok(None);
        }
        let found = match &self.0 {
            Backend::Disk(disk) => disk.get(sha256).await?,
            Backend::Bucket(bucket) => bucket.get(sha256).await?,
        };
        match found {
            Some(bytes) if ids::sha256_hex(&bytes) != sha256 => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("blob {sha256} is damaged"),
            )),
            found => Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        let place = |url: &str| BlobLocation::parse(url, []).map(|place| place.to_string());
        for (url, read) in [
            ("data/blobs", "data/blobs"),
            ("file:///srv/blobs", "/srv/blobs"),
            ("s3://games", "s3://games/"),
            ("s3://games/eu/one/", "s3://games/eu/one"),
        ] {
            assert_eq!(place(url).unwrap(), read);
        }
        for wrong in ["ftp://x/y", "s3://", "s3:///prefix", "s3://games/../other"] {
            assert!(place(wrong).is_err(), "{wrong}");
        }
        let inside = BlobLocation::parse("s3://games", [])
            .unwrap()
            .join("scripts");
        assert_eq!(inside.to_string(), "s3://games/scripts");
    }

    #[test]
    fn keys_stay_out_of_logs() {
        let key = ("AWS_SECRET_ACCESS_KEY".to_owned(), "hunter2".to_owned());
        let place = BlobLocation::parse("s3://games/x", [key]).unwrap();
        assert!(!format!("{place:?} {place}").contains("hunter2"));
    }
}
