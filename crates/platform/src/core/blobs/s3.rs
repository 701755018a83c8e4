//! Blobs as objects in a bucket of an S3 server (Amazon's, MinIO, Ceph, R2, …).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientOptions, Error, ObjectStoreExt as _, PutPayload, RetryConfig,
};

use super::S3Location;

/// Time after which a server that accepts no connection counts as unavailable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum duration of one request: a large package over a slow network.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Few, because the client's request waits meanwhile and can be retried.
const RETRIES: usize = 2;
const RETRY_TIMEOUT: Duration = Duration::from_secs(8);

/// A bucket of blobs.
#[derive(Clone, Debug)]
pub struct Bucket {
    store: Arc<AmazonS3>,
    prefix: String,
}

impl Bucket {
    pub async fn open(place: &S3Location) -> io::Result<Self> {
        crate::core::tls::use_ring();
        let mut client = ClientOptions::new()
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_timeout(REQUEST_TIMEOUT);
        let mut builder = AmazonS3Builder::new().with_retry(RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: RETRIES,
            retry_timeout: RETRY_TIMEOUT,
        });
        for (name, value) in &place.settings {
            let name = name.to_ascii_lowercase();
            // This variable is a client option, not an S3 option.
            if name == "aws_allow_http" {
                client = client.with_allow_http(value == "true" || value == "1");
            } else if let Ok(key) = name.parse() {
                builder = builder.with_config(key, value);
            }
        }
        let store = builder
            .with_client_options(client)
            .with_bucket_name(&place.bucket)
            .build()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let bucket = Self {
            store: Arc::new(store),
            prefix: place.prefix.clone(),
        };
        // Fail at startup on a wrong key or bucket, not when a game is published.
        bucket.has(&"0".repeat(64)).await?;
        Ok(bucket)
    }

    pub async fn put(&self, sha256: &str, bytes: &[u8]) -> io::Result<()> {
        if self.has(sha256).await? {
            return Ok(());
        }
        // A put is atomic: an object never has partial content.
        let payload = PutPayload::from(bytes.to_vec());
        let put = self.store.put(&self.path(sha256), payload).await;
        put.map(drop).map_err(|error| translate(error).1)
    }

    pub async fn has(&self, sha256: &str) -> io::Result<bool> {
        found(self.store.head(&self.path(sha256)).await).map(|head| head.is_some())
    }

    pub async fn get(&self, sha256: &str) -> io::Result<Option<Bytes>> {
        match found(self.store.get(&self.path(sha256)).await)? {
            Some(object) => found(object.bytes().await),
            None => Ok(None),
        }
    }

    /// Two levels of folders, because some servers store objects as files in one
    /// directory.
    fn path(&self, sha256: &str) -> Path {
        let (folder, _) = sha256.split_at(2);
        Path::from(format!("{}/{folder}/{sha256}", self.prefix))
    }
}

fn found<T>(result: object_store::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => match translate(error) {
            (true, _) => Ok(None),
            (false, error) => Err(error),
        },
    }
}

/// Whether the error only says that the object does not exist, and the error as
/// `io::Error`.
fn translate(error: Error) -> (bool, io::Error) {
    let kind = match &error {
        Error::NotFound { .. } => return (true, io::Error::new(io::ErrorKind::NotFound, error)),
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            io::ErrorKind::PermissionDenied
        }
        Error::Generic { .. } => io::ErrorKind::NotConnected,
        _ => io::ErrorKind::Other,
    };
    (false, io::Error::new(kind, error))
}
