//! TLS: the crypto provider, and the certificate with which the platform serves `https` and `wss`
//! if the operator configures one.
//!
//! The private key stays in this process. Game servers run untrusted code, so they are reached
//! through `/api/rooms`, or directly with certificates that they create for themselves.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::time::{MissedTickBehavior, interval};
use tokio_rustls::TlsAcceptor;

/// Installs ring as the crypto provider of the process, because QUIC depends on it anyway. Call it
/// before the first HTTP client is created; further calls do nothing.
pub fn use_ring() {
    // Fails only when a provider is already installed.
    let _ = ring::default_provider().install_default();
}

/// Files of the operator's certificate and key.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    /// PEM file with the certificate, followed by the intermediate certificates.
    pub cert: PathBuf,
    /// PEM file with its private key.
    pub key: PathBuf,
    /// Interval at which the files are checked for changes, because certificates are renewed while
    /// the platform runs.
    pub check_interval: Duration,
}

impl TlsSettings {
    /// Checks the files once a minute.
    pub fn new(cert: PathBuf, key: PathBuf) -> Self {
        Self {
            cert,
            key,
            check_interval: Duration::from_secs(60),
        }
    }
}

/// Reason why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("could not read {} (setting {setting}): {source}", file.display())]
    Unreadable {
        /// `TLS_CERT` or `TLS_KEY`.
        setting: &'static str,
        /// The file.
        file: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A file does not contain the expected PEM block.
    #[error("{} contains no {wanted} in PEM form; set {setting} to the file with '{begin}'", file.display())]
    Missing {
        /// `TLS_CERT` or `TLS_KEY`.
        setting: &'static str,
        /// Expected content.
        wanted: &'static str,
        /// First line of the expected content.
        begin: &'static str,
        /// The file.
        file: PathBuf,
    },
    /// The key does not belong to the certificate.
    #[error("the key in {} does not belong to the certificate in {}; use the key for which the certificate was issued", key.display(), cert.display())]
    Mismatch {
        /// File of the certificate.
        cert: PathBuf,
        /// File of the key.
        key: PathBuf,
    },
    /// The TLS library rejects the certificate or the key.
    #[error("the certificate in {} and the key in {} cannot be used: {source}", cert.display(), key.display())]
    Unusable {
        /// File of the certificate.
        cert: PathBuf,
        /// File of the key.
        key: PathBuf,
        /// Error of the library.
        source: rustls::Error,
    },
}

/// The certificate in use. It is replaced when its files change.
pub struct Certificate {
    settings: TlsSettings,
    current: Mutex<Current>,
}

struct Current {
    config: Arc<ServerConfig>,
    /// Modification times and sizes of the files it was read from.
    stamps: Option<Stamps>,
}

type Stamps = [(SystemTime, u64); 2];

impl Certificate {
    /// Reads the certificate and the key.
    ///
    /// # Errors
    /// [`TlsError`] when they cannot be used.
    pub fn open(settings: TlsSettings) -> Result<Self, TlsError> {
        // Taken before reading, so that a change in the meantime is detected later.
        let stamps = stamps(&settings);
        let config = read(&settings)?;
        Ok(Self {
            settings,
            current: Mutex::new(Current { config, stamps }),
        })
    }

    /// Acceptor for the next connection, with the current certificate.
    pub fn acceptor(&self) -> TlsAcceptor {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(current.config.clone())
    }

    /// Reloads changed files until dropped. Open connections keep their certificate.
    pub async fn follow(&self) {
        let mut checks = interval(self.settings.check_interval);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            checks.tick().await;
            match self.reload() {
                Ok(false) => {}
                Ok(true) => tracing::info!("the renewed TLS certificate is in use"),
                // The second file may not have been written yet. If the error persists, it is
                // logged at every check.
                Err(error) => {
                    tracing::warn!(%error, "could not load the renewed TLS certificate; the previous one stays in use");
                }
            }
        }
    }

    /// Reloads the files if they changed. Returns whether they did.
    fn reload(&self) -> Result<bool, TlsError> {
        let stamps = stamps(&self.settings);
        let lock = || self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if lock().stamps == stamps {
            return Ok(false);
        }
        let config = read(&self.settings)?;
        *lock() = Current { config, stamps };
        Ok(true)
    }
}

fn stamps(settings: &TlsSettings) -> Option<Stamps> {
    // Follows links, because renewed certificates are usually linked.
    let stamp = |file: &Path| {
        let data = fs::metadata(file).ok()?;
        Some((data.modified().ok()?, data.len()))
    };
    Some([stamp(&settings.cert)?, stamp(&settings.key)?])
}

fn read(settings: &TlsSettings) -> Result<Arc<ServerConfig>, TlsError> {
    let (cert, key) = (&settings.cert, &settings.key);
    let pem = read_file("TLS_CERT", cert)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or_else(|| TlsError::Missing {
        setting: "TLS_CERT",
        wanted: "certificate",
        begin: "-----BEGIN CERTIFICATE-----",
        file: cert.clone(),
    })?;
    let pem = read_file("TLS_KEY", key)?;
    let secret = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| TlsError::Missing {
        setting: "TLS_KEY",
        wanted: "private key",
        begin: "-----BEGIN PRIVATE KEY-----",
        file: key.clone(),
    })?;
    let unusable = |source| match source {
        rustls::Error::InconsistentKeys(_) => TlsError::Mismatch {
            cert: cert.clone(),
            key: key.clone(),
        },
        source => TlsError::Unusable {
            cert: cert.clone(),
            key: key.clone(),
            source,
        },
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn read_file(setting: &'static str, file: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(file).map_err(|source| TlsError::Unreadable {
        setting,
        file: file.to_owned(),
        source,
    })
}
