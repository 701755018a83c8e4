//! TLS: which crypto library it uses, and the certificate that the platform
//! serves `https` and `wss` with when an operator gives it one.
//!
//! The key stays in this process: game servers run code of strangers, so they
//! are reached through `/api/rooms`, and directly only with certificates that
//! they make for themselves.

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

/// Makes ring the process's choice, which QUIC brings anyway. Call it before
/// the first HTTP client is made; calling it again does nothing.
pub fn use_ring() {
    // Fails only when a provider is installed already, which is what we want.
    let _ = ring::default_provider().install_default();
}

/// Where an operator keeps certificate and key.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    /// PEM: the certificate, then those between it and its root.
    pub cert: PathBuf,
    /// PEM: its private key.
    pub key: PathBuf,
    /// How often the files are looked at: certificates are renewed while the
    /// platform runs.
    pub look_every: Duration,
}

impl TlsSettings {
    /// Files that are looked at once a minute.
    pub fn new(cert: PathBuf, key: PathBuf) -> Self {
        Self {
            cert,
            key,
            look_every: Duration::from_secs(60),
        }
    }
}

/// What is wrong with which file.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// It cannot be read.
    #[error("could not read {}, which {setting} names: {source}", file.display())]
    Unreadable {
        /// `TLS_CERT` or `TLS_KEY`.
        setting: &'static str,
        /// The file.
        file: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It holds something else.
    #[error("{} has no {wanted} in PEM form; {setting} names the file with '{begin}'", file.display())]
    Missing {
        /// `TLS_CERT` or `TLS_KEY`.
        setting: &'static str,
        /// What should be in it.
        wanted: &'static str,
        /// How that begins.
        begin: &'static str,
        /// The file.
        file: PathBuf,
    },
    /// The two do not belong together.
    #[error("the key in {} is not the one of the certificate in {}; give the key that the certificate was made for", key.display(), cert.display())]
    Mismatch {
        /// File of the certificate.
        cert: PathBuf,
        /// File of the key.
        key: PathBuf,
    },
    /// The library does not take them.
    #[error("the certificate in {} and the key in {} cannot be used: {source}", cert.display(), key.display())]
    Unusable {
        /// File of the certificate.
        cert: PathBuf,
        /// File of the key.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

/// The certificate in use. It is exchanged when its files change.
pub struct Certificate {
    settings: TlsSettings,
    current: Mutex<Current>,
}

struct Current {
    config: Arc<ServerConfig>,
    /// The files it was read from, as far as the system tells them apart.
    stamps: Option<Stamps>,
}

type Stamps = [(SystemTime, u64); 2];

impl Certificate {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn open(settings: TlsSettings) -> Result<Self, TlsError> {
        // Before reading: what is written meanwhile counts as new.
        let stamps = stamps(&settings);
        let config = read(&settings)?;
        Ok(Self {
            settings,
            current: Mutex::new(Current { config, stamps }),
        })
    }

    /// What takes the next connection.
    pub fn acceptor(&self) -> TlsAcceptor {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(current.config.clone())
    }

    /// Takes renewed files in, for ever. Open connections keep what they have.
    pub async fn follow(&self) {
        let mut looks = interval(self.settings.look_every);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            match self.look() {
                Ok(false) => {}
                Ok(true) => tracing::info!("the renewed TLS certificate is in use"),
                // The second file may not have been written yet; if it stays
                // wrong, the log says so at every look.
                Err(error) => {
                    tracing::warn!(%error, "the TLS certificate stays the one from before");
                }
            }
        }
    }

    /// Whether there was something new.
    fn look(&self) -> Result<bool, TlsError> {
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
    // Follows links: those are how certificates are renewed most often.
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
