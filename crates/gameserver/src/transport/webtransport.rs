//! WebTransport: inputs and snapshots as datagrams, the rest on one stream.
//!
//! The client opens one bidirectional stream; both sides write framed messages to
//! it for the lifetime of the session.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use wtransport::endpoint::IncomingSessionFuture;
use wtransport::quinn::Connecting;
use wtransport::{Connection, RecvStream, SendStream, VarInt};

use super::Transports;
use super::quic::{LingeringList, Newcomer};
use super::reader::{ConnectionReader, ReadEnd};
use super::writer::Writer;
use crate::connection::{Carried, ConnectionPermit, OUTBOX_PACKETS};
use crate::decoder::Encoding;
use crate::inbox::{Carrier, Inbound};
use crate::metrics::{Jitter, Metrics};

pub use super::quic::{Listening, listen};

/// How long the world's thread and the writer together have to disconnect a client,
/// before it is closed without a reason.
const THROWN_OUT_WITHIN: Duration = Duration::from_secs(4);
/// How often the round trip is recorded.
const MEASURE_EVERY: Duration = Duration::from_secs(5);
/// A connection that has not requested its session and opened its stream by then is
/// closed.
const OPEN_WITHIN: Duration = Duration::from_secs(5);

/// Accepts sessions until the process ends.
pub async fn serve(listening: Listening, transports: Transports) {
    let lingering = LingeringList::default();
    while let Some(newcomer) = listening.next(&transports.permits, &lingering).await {
        let transports = transports.clone();
        tokio::spawn(async move {
            if let Err(cause) = session(newcomer, transports).await {
                tracing::debug!(%cause, "webtransport session ended");
            }
        });
    }
}

/// A session with its stream.
struct Opened {
    connection: Connection,
    stream: (SendStream, RecvStream),
    ticket: Option<String>,
}

async fn open(connecting: Connecting) -> Result<Opened, String> {
    let late = |_| "no session was opened in time".to_owned();
    let deadline = Instant::now() + OPEN_WITHIN;
    let request = IncomingSessionFuture::with_quic_connecting(connecting);
    let request = timeout_at(deadline, request).await.map_err(late)?;
    let request = request.map_err(|cause| cause.to_string())?;
    let (path, query) = request
        .path()
        .split_once('?')
        .unwrap_or((request.path(), ""));
    if path != "/game" {
        let _ = timeout_at(deadline, request.not_found()).await;
        return Err("unknown path".into());
    }
    let ticket = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("ticket="))
        .map(str::to_owned);
    let connection = timeout_at(deadline, request.accept()).await.map_err(late)?;
    let connection = connection.map_err(|cause| cause.to_string())?;
    match timeout_at(deadline, connection.accept_bi()).await {
        Ok(Ok(stream)) => Ok(Opened {
            connection,
            stream,
            ticket,
        }),
        Ok(Err(cause)) => Err(cause.to_string()),
        Err(_) => {
            let reason = "no stream was opened";
            connection.close(VarInt::from_u32(1), reason.as_bytes());
            Err(reason.to_owned())
        }
    }
}

async fn session(newcomer: Newcomer, transports: Transports) -> Result<(), String> {
    let Newcomer {
        connecting,
        permit,
        lingering,
    } = newcomer;
    match open(connecting).await {
        Ok(opened) => play(opened, permit, transports).await,
        Err(cause) => {
            lingering.note();
            Err(cause)
        }
    }
}

async fn play(
    opened: Opened,
    permit: ConnectionPermit,
    transports: Transports,
) -> Result<(), String> {
    let Opened {
        connection,
        stream: (send, mut receive),
        ticket,
    } = opened;
    let (outbox, outgoing) = mpsc::channel(OUTBOX_PACKETS);
    let (end, ended) = oneshot::channel();
    let carried = Arc::new(Carried::default());
    let metrics = transports.metrics.clone();
    let present = Present::new(metrics.clone());
    let connection_id = permit.connection_id();
    let open = Inbound::Open {
        encoding: Encoding::Binary,
        ticket,
        carrier: Carrier::Channel {
            outbox,
            end,
            carried: carried.clone(),
        },
        permit,
    };
    let opened = transports.inbox.send(open).await;
    opened.map_err(|_| "the world has stopped".to_owned())?;
    let mut reader =
        ConnectionReader::new(connection_id, transports.inbox.clone(), metrics.clone());

    // Writing has its own task: a client that does not read its stream must not
    // block reading its inputs.
    let writer = Writer::new(connection.clone(), send, carried, metrics);
    let mut writer = tokio::spawn(writer.run(outgoing));

    // Dropped without a reason: the end arrives through the queue instead.
    let thrown_out = async {
        match ended.await {
            Ok(reason) => reason,
            Err(_) => std::future::pending().await,
        }
    };
    let mut thrown_out = std::pin::pin!(thrown_out);
    let mut measure = tokio::time::interval(MEASURE_EVERY);
    let mut jitter = Jitter::default();
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
            _ = measure.tick() => {
                let round_trip = connection.rtt();
                present.0.round_trip_took(round_trip);
                if let Some(difference) = jitter.after(round_trip) {
                    present.0.jitter_was(difference);
                }
                Ok(())
            }
        };
        match outcome {
            Ok(()) => {}
            Err(gone @ ReadEnd::WorldGone) => break Some(gone.to_string()),
            // The world's thread sends the reason and counts it, as it does for a
            // WebSocket. Nothing is read meanwhile.
            Err(ReadEnd::Broken(reason)) => {
                let closing = async {
                    tokio::select! {
                        _ = &mut writer => {}
                        _ = &mut thrown_out => {}
                    }
                };
                let _ = tokio::time::timeout(THROWN_OUT_WITHIN, closing).await;
                break Some(reason);
            }
        }
    };
    // Without an explicit close it would stay open as long as the client likes.
    let (code, reason) = ended.map_or((0, String::new()), |reason| (1, reason));
    connection.close(VarInt::from_u32(code), reason.as_bytes());
    writer.abort();
    reader.close().await;
    Ok(())
}

/// Counts a session while it exists.
struct Present(Arc<Metrics>);

impl Present {
    fn new(metrics: Arc<Metrics>) -> Self {
        metrics.webtransport.increment();
        Self(metrics)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.webtransport.decrement();
    }
}
