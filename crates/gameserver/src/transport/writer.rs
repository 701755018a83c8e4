//! Sends datagrams and one stream on a WebTransport session, from the queue that
//! the world's thread fills.
//!
//! A packet is handed to QUIC when QUIC has capacity for it, and not before. The
//! rest stays in our queue, where congestion is visible; in QUIC's it would only
//! get old. QUIC sends datagrams before the stream, which still progresses: between
//! two of them, and in the rest of a packet. On a connection of 8 KB/s that updates
//! alone would fill, the stream got at least a fifth.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use frolic_protocol::ServerMessage;
use frolic_protocol::fragment::{self, PART_DATAGRAM_BYTES};
use frolic_protocol::packet::{self, DATAGRAM_BYTES_MAX};
use tokio::sync::mpsc;
use wtransport::proto::datagram::Datagram;
use wtransport::proto::ids::QStreamId;
use wtransport::quinn::SendDatagramError;
use wtransport::{Connection, SendStream, VarInt};

use super::quic::IDLE_MAX;
use crate::connection::{Carried, Outbound};
use crate::metrics::Metrics;

/// How long a client has to read its last message.
const FAREWELL: Duration = Duration::from_secs(4);
/// The stream is written in pieces of this size; each piece written shows that the
/// client reads.
const PIECE_BYTES: usize = 16 * 1024;
/// A packet in more than about eight fragments loses one of them too often: with
/// one datagram in twenty lost, eight arrive two times in three.
const PARTS_BYTES_MAX: usize = 8 * 1024;

/// Why nothing more can be sent.
struct Gone;

/// Sends packets to one client.
pub struct Writer {
    connection: Connection,
    stream: SendStream,
    carried: Arc<Carried>,
    metrics: Arc<Metrics>,
    /// Packets that were sent in fragments.
    packets: u32,
}

impl Writer {
    /// A writer that counts in `carried` what it has sent.
    pub fn new(
        connection: Connection,
        stream: SendStream,
        carried: Arc<Carried>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            connection,
            stream,
            carried,
            metrics,
            packets: 0,
        }
    }

    /// Sends what is queued, and closes the connection at the end.
    pub async fn run(mut self, mut outgoing: mpsc::Receiver<Outbound>) {
        while let Some(outbound) = outgoing.recv().await {
            let sent = match outbound {
                Outbound::Snapshot(bytes) => {
                    self.metrics.packets.add(1);
                    self.losable(&bytes).await
                }
                Outbound::Loose(bytes) => self.losable(&bytes).await,
                Outbound::Reliable(bytes) => self.reliable(&bytes).await,
                Outbound::Close(reason) => {
                    // A browser drops what its page has not read when the
                    // connection closes, so the client closes first: at the end of
                    // the stream.
                    let farewell = async {
                        let _ = self.stream.finish().await;
                        self.connection.closed().await;
                    };
                    let _ = tokio::time::timeout(FAREWELL, farewell).await;
                    self.connection
                        .close(VarInt::from_u32(0), reason.as_bytes());
                    return;
                }
            };
            if sent.is_err() {
                break;
            }
        }
        // The world dropped the connection, or the client does not read.
        self.connection.close(VarInt::from_u32(0), b"");
    }

    /// Sends a losable packet.
    async fn losable(&mut self, bytes: &Bytes) -> Result<(), Gone> {
        let way = Way::of(bytes.len(), self.connection.max_datagram_size());
        let sent = match way {
            Way::Datagram => self.datagrams([bytes]).await,
            Way::Parts => {
                self.packets = self.packets.wrapping_add(1);
                let parts = fragment::cut(self.packets, bytes).into_iter().flatten();
                let parts = parts.map(|part| packet::single(&ServerMessage::Fragment(part)));
                self.datagrams(parts).await
            }
            // Late is better than never. A snapshot carries its own packet number,
            // so it may arrive after later ones.
            Way::Stream => self.reliable(bytes).await,
        };
        if way != Way::Stream {
            self.count(bytes.len());
        }
        self.carried.losable.fetch_add(1, Relaxed);
        sent
    }

    async fn datagrams(
        &mut self,
        datagrams: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<(), Gone> {
        let quic = self.connection.quic_connection();
        let session = QStreamId::from_session_id(self.connection.session_id());
        for payload in datagrams {
            let datagram = framed(session, payload.as_ref());
            // One that cannot be sent at all counts as lost.
            if let Err(SendDatagramError::ConnectionLost(_)) =
                quic.send_datagram_wait(datagram).await
            {
                return Err(Gone);
            }
        }
        Ok(())
    }

    /// Writes to the stream as fast as the client reads it; the world's thread
    /// disconnects a client that does not read long before the timeout here.
    async fn reliable(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        for piece in bytes.chunks(PIECE_BYTES) {
            let writing = tokio::time::timeout(IDLE_MAX, self.stream.write_all(piece));
            writing.await.map_err(|_| Gone)?.map_err(|_| Gone)?;
            self.count(piece.len());
        }
        Ok(())
    }

    fn count(&self, bytes: usize) {
        self.metrics.bytes_out.add(bytes as u64);
        self.carried.bytes.fetch_add(bytes as u64, Relaxed);
    }
}

/// A datagram of a session, in HTTP/3 framing.
fn framed(session: QStreamId, payload: &[u8]) -> Bytes {
    let datagram = Datagram::new(session, payload);
    let mut bytes = vec![0; datagram.write_size()];
    datagram
        .write(&mut bytes)
        .expect("it is as long as it says");
    bytes.into()
}

/// How a losable packet is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Datagram,
    /// In several datagrams.
    Parts,
    /// On the stream, where nothing is lost.
    Stream,
}

impl Way {
    /// How to send a packet, given the capacity of a datagram.
    fn of(bytes: usize, room: Option<usize>) -> Self {
        let room = room.unwrap_or(0).min(DATAGRAM_BYTES_MAX);
        if bytes <= room {
            Way::Datagram
        } else if bytes <= PARTS_BYTES_MAX && PART_DATAGRAM_BYTES <= room {
            Way::Parts
        } else {
            Way::Stream
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_for_datagrams_goes_on_the_stream() {
        let wide = Some(1400);
        assert_eq!(Way::of(1200, wide), Way::Datagram);
        assert_eq!(Way::of(1201, wide), Way::Parts);
        assert_eq!(Way::of(PARTS_BYTES_MAX, wide), Way::Parts);
        assert_eq!(Way::of(PARTS_BYTES_MAX + 1, wide), Way::Stream);
        // Too small for a fragment, or no datagrams at all.
        assert_eq!(Way::of(1000, Some(1100)), Way::Datagram);
        assert_eq!(Way::of(1200, Some(1100)), Way::Stream);
        assert_eq!(Way::of(1, None), Way::Stream);
        let parts = fragment::cut(1, &vec![0; PARTS_BYTES_MAX]).map(Iterator::count);
        assert_eq!(parts, Some(8));
    }
}
