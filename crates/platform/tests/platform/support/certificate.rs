//! A certificate for this machine, as an operator would provide it: two PEM files. Also used by the
//! tests of the binary.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustls::pki_types::CertificateDer;

pub struct TestCertificate {
    pub cert: PathBuf,
    pub key: PathBuf,
    der: CertificateDer<'static>,
}

impl TestCertificate {
    /// Creates a certificate and writes it to `cert.pem` and `key.pem`.
    pub fn write_to(folder: &Path) -> Self {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let generated = rcgen::generate_simple_self_signed(names).unwrap();
        let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        std::fs::create_dir_all(folder).unwrap();
        let der = generated.cert.der().clone();
        std::fs::write(&cert, pem("CERTIFICATE", &der)).unwrap();
        let secret = generated.signing_key.serialize_der();
        std::fs::write(&key, pem("PRIVATE KEY", &secret)).unwrap();
        Self { cert, key, der }
    }

    /// Client configuration that trusts only this certificate.
    pub fn trust(&self) -> rustls::ClientConfig {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.der.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth()
    }

    /// An HTTP client that trusts only this certificate and follows no redirects.
    pub fn http(&self) -> reqwest::Client {
        reqwest::Client::builder()
            .tls_backend_preconfigured(self.trust())
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap()
    }

    /// Connects to a port of this machine if the server has this certificate.
    pub async fn connect(
        &self,
        port: u16,
    ) -> std::io::Result<tokio_rustls::client::TlsStream<tokio::net::TcpStream>> {
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
        let connector = tokio_rustls::TlsConnector::from(Arc::new(self.trust()));
        let name = "localhost".try_into().unwrap();
        connector.connect(name, stream).await
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let lines: Vec<_> = text
        .as_bytes()
        .chunks(64)
        .map(String::from_utf8_lossy)
        .collect();
    let lines = lines.join("\n");
    format!("-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n")
}
