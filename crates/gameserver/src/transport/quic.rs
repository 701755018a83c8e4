//! Accepts QUIC connections for WebTransport, before they are authenticated. The
//! cost of each is small, and their number is bounded.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use frolic_fleet_api::process::WebTransportEndpoint;
use wtransport::config::{QuicServerConfig, QuicTransportConfig};
use wtransport::quinn::{
    Connecting, Endpoint, EndpointConfig, IdleTimeout, Incoming, TokioRuntime, VarInt,
};
use wtransport::{Identity, ServerConfig};

use super::congestion::LossyCubicConfig;
use crate::connection::{ConnectionPermit, ConnectionPermits, neighbourhood};

const KEEP_ALIVE: Duration = Duration::from_secs(3);
/// A connection that is silent for this long is closed.
pub const IDLE_MAX: Duration = Duration::from_secs(10);

/// Streams that a client may have open: the request and the one that carries
/// messages. Some more, because their numbers are returned late.
const BIDIRECTIONAL_MAX: u32 = 4;
/// HTTP/3 uses three; browsers may add reserved ones.
const UNIDIRECTIONAL_MAX: u32 = 8;
/// What a client may send on a stream, and on all, before it is read. A client
/// message is 64 KiB at most.
const STREAM_WINDOW_BYTES: u32 = 128 * 1024;
const WINDOW_BYTES: u32 = 384 * 1024;
/// Datagrams that wait to be read: some hundred batches of inputs.
const DATAGRAMS_IN_BYTES: usize = 64 * 1024;
/// Datagrams that wait to be sent: two of them, so that none is missing while the
/// next is fetched; `writer.rs` waits for capacity. More would only be older when
/// they arrive: with 8 KiB, a second on a connection of 8 KB/s.
const DATAGRAMS_OUT_BYTES: usize = 2560;
/// Unacknowledged bytes; enough for 5 MB/s at 200 ms.
const UNACKNOWLEDGED_BYTES: u64 = 1024 * 1024;
/// Limits for connections that were not accepted yet.
const UNSEEN_MAX: usize = 256;
const UNSEEN_BYTES: u64 = 16 * 1024;
const UNSEEN_TOTAL_BYTES: u64 = 2 * 1024 * 1024;

/// With this many pending connections a client must prove its address before it
/// takes a permit: a spoofed address costs its sender nothing.
const UNPROVEN_MAX: u32 = 16;
/// Abandoned connections of one address that are still open.
const LINGERING_MAX: usize = 4;

/// A listening server, and how browsers find it.
pub struct Listening {
    /// For the control plane to hand out.
    pub endpoint: WebTransportEndpoint,
    server: Endpoint,
    config: QuicServerConfig,
}

/// A connection that has a permit and has sent nothing.
pub struct Newcomer {
    /// The handshake in progress.
    pub connecting: Connecting,
    /// Its permit.
    pub permit: ConnectionPermit,
    /// To be notified when it is abandoned.
    pub lingering: Lingering,
}

/// Connections that were abandoned before their session began. One that holds a
/// stream half open stays, because `wtransport` waits for the rest of it and does
/// not permit closing it; so they are counted until they are closed.
#[derive(Clone, Default)]
pub struct LingeringList(Arc<Mutex<Vec<GivenUp>>>);

/// The address of the connection, and something that lives as long as it does.
type GivenUp = (IpAddr, Weak<QuicTransportConfig>);

/// One connection that may have to be recorded there.
pub struct Lingering {
    list: LingeringList,
    address: IpAddr,
    /// Lives as long as the connection.
    config: Weak<QuicTransportConfig>,
}

impl Lingering {
    /// Records that it was abandoned.
    pub fn note(self) {
        self.list.with(|known| {
            known.push((self.address, self.config));
        });
    }
}

impl LingeringList {
    fn with<T>(&self, act: impl FnOnce(&mut Vec<GivenUp>) -> T) -> T {
        let known = self.0.lock();
        act(&mut known.unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// How many there are of an address.
    fn count(&self, address: IpAddr) -> usize {
        self.with(|known| {
            known.retain(|(_, config)| config.strong_count() > 0);
            known.iter().filter(|(of, _)| *of == address).count()
        })
    }
}

/// Opens a UDP port with its own certificate. Browsers accept a pinned certificate
/// for 14 days; a world that runs longer is reached by WebSocket.
///
/// # Errors
/// When the port cannot be bound.
pub fn listen(address: SocketAddr) -> std::io::Result<Listening> {
    let names = ["localhost", "127.0.0.1", "::1"];
    let identity = Identity::self_signed(names).map_err(std::io::Error::other)?;
    let certificate = identity.certificate_chain().as_slice().first();
    let hash = certificate.map(|certificate| certificate.hash());
    let hash = hash.ok_or_else(|| std::io::Error::other("the certificate chain is empty"))?;
    let mut config = ServerConfig::builder()
        .with_bind_address(address)
        .with_custom_transport(identity, limits())
        .build()
        .quic_config()
        .clone();
    config
        .max_incoming(UNSEEN_MAX)
        .incoming_buffer_size(UNSEEN_BYTES)
        .incoming_buffer_size_total(UNSEEN_TOTAL_BYTES);
    let socket = std::net::UdpSocket::bind(address)?;
    let server = Endpoint::new(
        EndpointConfig::default(),
        Some(config.clone()),
        socket,
        Arc::new(TokioRuntime),
    )?;
    Ok(Listening {
        endpoint: WebTransportEndpoint {
            port: server.local_addr()?.port(),
            cert_sha256: hex::encode(hash.as_ref()),
        },
        server,
        config,
    })
}

/// Resource limits of one connection.
fn limits() -> QuicTransportConfig {
    let mut limits = QuicTransportConfig::default();
    limits
        .keep_alive_interval(Some(KEEP_ALIVE))
        .max_idle_timeout(IdleTimeout::try_from(IDLE_MAX).ok())
        .max_concurrent_bidi_streams(VarInt::from_u32(BIDIRECTIONAL_MAX))
        .max_concurrent_uni_streams(VarInt::from_u32(UNIDIRECTIONAL_MAX))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW_BYTES))
        .receive_window(VarInt::from_u32(WINDOW_BYTES))
        .send_window(UNACKNOWLEDGED_BYTES)
        .datagram_receive_buffer_size(Some(DATAGRAMS_IN_BYTES))
        .datagram_send_buffer_size(DATAGRAMS_OUT_BYTES)
        .congestion_controller_factory(Arc::new(LossyCubicConfig::default()));
    limits
}

impl Listening {
    /// The next connection that gets a permit; none when the port is closed.
    pub async fn next(
        &self,
        permits: &ConnectionPermits,
        lingering: &LingeringList,
    ) -> Option<Newcomer> {
        loop {
            let incoming = self.server.accept().await?;
            if let Some(newcomer) = self.admit(incoming, permits, lingering) {
                return Some(newcomer);
            }
        }
    }

    fn admit(
        &self,
        incoming: Incoming,
        permits: &ConnectionPermits,
        lingering: &LingeringList,
    ) -> Option<Newcomer> {
        let address = incoming.remote_address().ip();
        if permits.newcomers() >= UNPROVEN_MAX && incoming.may_retry() {
            // The client comes again with the proof.
            let _ = incoming.retry();
            return None;
        }
        let home = neighbourhood(address);
        let open = u32::try_from(self.server.open_connections()).unwrap_or(u32::MAX);
        let permit = match permits.take(address) {
            Ok(permit)
                if open < permits.connections_max() && lingering.count(home) < LINGERING_MAX =>
            {
                permit
            }
            _ => {
                tracing::debug!(%address, "no permit for a connection");
                incoming.refuse();
                return None;
            }
        };
        let limits = Arc::new(limits());
        let lingering = Lingering {
            list: lingering.clone(),
            address: home,
            config: Arc::downgrade(&limits),
        };
        let mut config = self.config.clone();
        config.transport_config(limits);
        let connecting = incoming.accept_with(Arc::new(config));
        let connecting = connecting
            .inspect_err(|cause| tracing::debug!(%address, %cause, "not a connection"))
            .ok()?;
        Some(Newcomer {
            connecting,
            permit,
            lingering,
        })
    }
}
