//! WebTransport: inputs and snapshots as datagrams, the rest on one stream.
//!
//! The client opens one bidirectional stream; both sides write framed
//! messages to it without end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use frolic_protocol::ServerMessage;
use frolic_protocol::fleet::WebTransportEndpoint;
use frolic_protocol::fragment::{self, PART_DATAGRAM_BYTES};
use frolic_protocol::packet::{self, DATAGRAM_BYTES_MAX};
use tokio::sync::{mpsc, oneshot};
use wtransport::endpoint::IncomingSession;
use wtransport::{Connection, Endpoint, Identity, SendStream, ServerConfig, VarInt};

use super::Transports;
use crate::line::{OUTBOX_PACKETS, Outbound};
use crate::link::{Carriage, Encoding, Inbound, LinkReader};

const KEEP_ALIVE: Duration = Duration::from_secs(3);
const IDLE_MAX: Duration = Duration::from_secs(10);
/// How long a client has to take its last message in.
const FAREWELL: Duration = Duration::from_secs(2);
/// The stream is written in pieces of this size, each of which shows that
/// the client reads.
const PIECE_BYTES: usize = 16 * 1024;
/// A session that opens no stream by then was never serious.
const STREAM_WITHIN: Duration = Duration::from_secs(5);

/// A server that listens, and how browsers find it.
pub struct Listening {
    /// For the control plane to hand out.
    pub endpoint: WebTransportEndpoint,
    server: Endpoint<wtransport::endpoint::endpoint_side::Server>,
}

/// Opens a UDP port with a certificate of its own. Browsers take a pinned
/// certificate for 14 days; a world that runs longer is reached by WebSocket.
///
/// # Errors
/// When the port cannot be bound.
pub fn listen(address: SocketAddr) -> std::io::Result<Listening> {
    let names = ["localhost", "127.0.0.1", "::1"];
    let identity = Identity::self_signed(names).map_err(std::io::Error::other)?;
    let certificate = identity.certificate_chain().as_slice().first();
    let hash = certificate.map(|certificate| certificate.hash());
    let hash = hash.ok_or_else(|| std::io::Error::other("the certificate chain is empty"))?;
    let config = ServerConfig::builder()
        .with_bind_address(address)
        .with_identity(identity)
        .keep_alive_interval(Some(KEEP_ALIVE))
        .max_idle_timeout(Some(IDLE_MAX))
        .map_err(std::io::Error::other)?
        .build();
    let server = Endpoint::server(config)?;
    Ok(Listening {
        endpoint: WebTransportEndpoint {
            port: server.local_addr()?.port(),
            cert_sha256: hex::encode(hash.as_ref()),
        },
        server,
    })
}

/// Takes sessions until the process ends.
pub async fn serve(listening: Listening, transports: Transports) {
    loop {
        let incoming = listening.server.accept().await;
        let transports = transports.clone();
        tokio::spawn(async move {
            if let Err(cause) = session(incoming, transports).await {
                tracing::debug!(%cause, "webtransport session ended");
            }
        });
    }
}

async fn session(incoming: IncomingSession, transports: Transports) -> Result<(), String> {
    let client = incoming.remote_address().ip();
    let request = incoming.await.map_err(|cause| cause.to_string())?;
    let (path, query) = request
        .path()
        .split_once('?')
        .unwrap_or((request.path(), ""));
    if path != "/game" {
        request.not_found().await;
        return Err("unknown path".into());
    }
    let slot = match transports.slots.take(client) {
        Ok(slot) => slot,
        Err(full) => {
            request.too_many_requests().await;
            return Err(full.to_string());
        }
    };
    let ticket = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("ticket="))
        .map(str::to_owned);
    let connection = request.accept().await.map_err(|cause| cause.to_string())?;
    let stream = tokio::time::timeout(STREAM_WITHIN, connection.accept_bi()).await;
    let (mut send, mut receive) = stream
        .map_err(|_| "no stream was opened".to_owned())?
        .map_err(|cause| cause.to_string())?;

    let (outbox, mut outgoing) = mpsc::channel(OUTBOX_PACKETS);
    let (end, ended) = oneshot::channel();
    let written = Arc::new(AtomicU64::new(0));
    let metrics = transports.metrics.clone();
    let link = transports.link();
    let open = Inbound::Open {
        link,
        encoding: Encoding::Binary,
        ticket,
        carriage: Carriage::Channel {
            outbox,
            end,
            written: written.clone(),
        },
        slot,
    };
    let opened = transports.inbox.send(open).await;
    opened.map_err(|_| "the world has stopped".to_owned())?;
    let mut reader = LinkReader::new(link, transports.inbox.clone(), metrics.clone());

    // Writing has a task of its own: a client that does not read its stream
    // must not keep us from reading its inputs.
    let writer_connection = connection.clone();
    let writer = tokio::spawn(async move {
        let mut packets = 0u32;
        while let Some(outbound) = outgoing.recv().await {
            let sent = match outbound {
                Outbound::Unreliable(bytes) if fits(&writer_connection, bytes.len()) => {
                    metrics.bytes_out.fetch_add(bytes.len() as u64, Relaxed);
                    written.fetch_add(bytes.len() as u64, Relaxed);
                    // A datagram that cannot be sent now is a lost one.
                    let _ = writer_connection.send_datagram(bytes);
                    Ok(())
                }
                Outbound::Unreliable(bytes) if fits(&writer_connection, PART_DATAGRAM_BYTES) => {
                    metrics.bytes_out.fetch_add(bytes.len() as u64, Relaxed);
                    written.fetch_add(bytes.len() as u64, Relaxed);
                    packets = packets.wrapping_add(1);
                    for part in fragment::cut(packets, &bytes).into_iter().flatten() {
                        let part = packet::single(&ServerMessage::Fragment(part));
                        let _ = writer_connection.send_datagram(part);
                    }
                    Ok(())
                }
                // A path too narrow for datagrams: late is better than never.
                Outbound::Reliable(bytes) | Outbound::Unreliable(bytes) => {
                    metrics.bytes_out.fetch_add(bytes.len() as u64, Relaxed);
                    write(&mut send, &bytes, &written).await
                }
                Outbound::Close(reason) => {
                    let _ = tokio::time::timeout(FAREWELL, send.finish()).await;
                    writer_connection.close(VarInt::from_u32(0), reason.as_bytes());
                    return;
                }
            };
            if sent.is_err() {
                break;
            }
        }
        // The world let go of it, or it does not read.
        writer_connection.close(VarInt::from_u32(0), b"");
    });

    // Dropped without a word: the end comes through the queue instead.
    let thrown_out = async {
        match ended.await {
            Ok(reason) => reason,
            Err(_) => std::future::pending().await,
        }
    };
    let mut thrown_out = std::pin::pin!(thrown_out);
    let mut buffer = vec![0; 16 * 1024];
    let ended = loop {
        let outcome = tokio::select! {
            datagram = connection.receive_datagram() => match datagram {
                Ok(datagram) => reader.packet(&datagram.payload()).await,
                Err(_) => break None,
            },
            read = receive.read(&mut buffer) => match read {
                Ok(Some(count)) => reader.stream(&buffer[..count]).await,
                _ => break None,
            },
            reason = &mut thrown_out => break Some(reason),
        };
        if let Err(reason) = outcome {
            break Some(reason);
        }
    };
    if let Some(reason) = ended {
        connection.close(VarInt::from_u32(1), reason.as_bytes());
    }
    writer.abort();
    reader.close().await;
    Ok(())
}

/// Writes to the stream as fast as the client reads it; the world's thread
/// lets go of one that does not, long before the time here is over.
async fn write(send: &mut SendStream, bytes: &[u8], written: &AtomicU64) -> Result<(), ()> {
    for piece in bytes.chunks(PIECE_BYTES) {
        let writing = tokio::time::timeout(IDLE_MAX, send.write_all(piece));
        writing.await.map_err(|_| ())?.map_err(|_| ())?;
        written.fetch_add(piece.len() as u64, Relaxed);
    }
    Ok(())
}

fn fits(connection: &Connection, bytes: usize) -> bool {
    let max = connection.max_datagram_size().unwrap_or(0);
    bytes <= max.min(DATAGRAM_BYTES_MAX)
}
