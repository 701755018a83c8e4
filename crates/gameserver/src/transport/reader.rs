//! Reads a connection with its own task: decodes what arrives and forwards it to
//! the world's thread.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;

use crate::connection::ConnectionId;
use crate::decoder::{ClientInput, Encoding, MessageDecoder, ReceiveError};
use crate::inbox::Inbound;
use crate::metrics::Metrics;

/// Reads a connection with its own task: forwards what its decoder yields.
pub struct ConnectionReader {
    connection_id: ConnectionId,
    inbox: mpsc::Sender<Inbound>,
    intake: MessageDecoder,
    started: Instant,
    inputs: Vec<ClientInput>,
    metrics: Arc<Metrics>,
}

/// Why a connection task stops reading.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadEnd {
    /// The world's thread has stopped.
    #[error("the world has stopped")]
    WorldGone,
    /// The world's thread was asked to disconnect the client, for this reason.
    #[error("{0}")]
    Broken(String),
}

impl ConnectionReader {
    /// The reader of a connection that was announced with [`Inbound::Open`].
    pub fn new(
        connection_id: ConnectionId,
        inbox: mpsc::Sender<Inbound>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            connection_id,
            inbox,
            intake: MessageDecoder::new(Encoding::Binary),
            started: Instant::now(),
            inputs: Vec::new(),
            metrics,
        }
    }

    /// Decodes a datagram.
    ///
    /// # Errors
    /// When reading must stop.
    pub async fn packet(&mut self, bytes: &[u8]) -> Result<(), ReadEnd> {
        self.metrics.bytes_in.add(bytes.len() as u64);
        let now_s = self.started.elapsed().as_secs_f64();
        let taken = self.intake.packet(bytes, now_s, &mut self.inputs);
        self.pass_on(taken).await
    }

    /// Decodes the next bytes of the stream.
    ///
    /// # Errors
    /// When reading must stop.
    pub async fn stream(&mut self, bytes: &[u8]) -> Result<(), ReadEnd> {
        self.metrics.bytes_in.add(bytes.len() as u64);
        let now_s = self.started.elapsed().as_secs_f64();
        let taken = self.intake.stream(bytes, now_s, &mut self.inputs);
        self.pass_on(taken).await
    }

    async fn pass_on(&mut self, taken: Result<(), ReceiveError>) -> Result<(), ReadEnd> {
        let reason = taken.as_ref().err().map(ToString::to_string);
        self.inputs.extend(taken.err().map(ClientInput::Broken));
        for input in self.inputs.drain(..) {
            let connection_id = self.connection_id;
            let sent = self
                .inbox
                .send(Inbound::ClientInput {
                    connection_id,
                    input,
                })
                .await;
            sent.map_err(|_| ReadEnd::WorldGone)?;
        }
        reason.map_or(Ok(()), |reason| Err(ReadEnd::Broken(reason)))
    }

    /// Notifies the world's thread that the connection has ended.
    pub async fn close(self) {
        let _ = self
            .inbox
            .send(Inbound::Closed {
                connection_id: self.connection_id,
            })
            .await;
    }
}

#[cfg(test)]
mod tests {
    use frolic_protocol::{ClientMessage, packet};

    use super::*;
    use crate::metrics::KickCause;

    /// What the world's thread receives from a connection task that reads these
    /// datagrams, and how its reading ends.
    async fn read(
        datagrams: impl IntoIterator<Item = Vec<u8>>,
    ) -> (Vec<ClientInput>, Option<ReadEnd>) {
        let (inbox, mut world) = mpsc::channel(4096);
        let metrics = Arc::new(Metrics::default());
        let mut reader = ConnectionReader::new(ConnectionId::new(0, 0), inbox, metrics);
        let mut end = None;
        for datagram in datagrams {
            end = reader.packet(&datagram).await.err();
            if end.is_some() {
                break;
            }
        }
        let mut inputs = Vec::new();
        while let Ok(inbound) = world.try_recv() {
            if let Inbound::ClientInput { input: next, .. } = inbound {
                inputs.push(next);
            }
        }
        (inputs, end)
    }

    fn ping() -> Vec<u8> {
        packet::single(&ClientMessage::Ping {
            t: 1.0,
            received: 0,
        })
    }

    #[tokio::test]
    async fn a_client_that_sends_an_invalid_packet_is_disconnected() {
        let (inputs, end) = read([ping(), vec![0xff; 64], ping()]).await;
        let [ClientInput::Message { .. }, ClientInput::Broken(error)] = inputs.as_slice() else {
            panic!("{inputs:?}");
        };
        assert_eq!(error.cause(), KickCause::Unreadable);
        assert_eq!(end, Some(ReadEnd::Broken(error.to_string())));
    }

    #[tokio::test]
    async fn a_client_that_floods_is_disconnected() {
        let (inputs, end) = read(std::iter::repeat_with(ping).take(4000)).await;
        let Some(ClientInput::Broken(error)) = inputs.last() else {
            panic!("{:?}", inputs.last());
        };
        assert_eq!(error.cause(), KickCause::Flood);
        assert_eq!(end, Some(ReadEnd::Broken(error.to_string())));
        let is_warning = |input: &&ClientInput| matches!(input, ClientInput::Flooding { .. });
        let warnings = inputs.iter().filter(is_warning).count();
        assert_eq!(warnings, 1, "one warning came first");
    }
}
