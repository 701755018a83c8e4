//! Which crypto library TLS uses: ring, which QUIC brings anyway.

/// Makes ring the process's choice. Call it before the first HTTP client is
/// made; calling it again does nothing.
pub fn use_ring() {
    // Fails only when a provider is installed already, which is what we want.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
