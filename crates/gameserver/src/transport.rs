//! Accepts connections of both transports, which carry the same packets.

mod congestion;
mod quic;
mod reader;
pub mod websocket;
pub mod webtransport;
mod writer;

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::connection::ConnectionPermits;
use crate::inbox::Inbound;
use crate::metrics::Metrics;

/// What transports share.
#[derive(Clone)]
pub struct Transports {
    /// To the world's thread.
    pub inbox: mpsc::Sender<Inbound>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Permits for connections.
    pub permits: ConnectionPermits,
}

impl Transports {
    /// Transports that feed `inbox`, for at most `connections_max` connections,
    /// those without a player included.
    pub fn new(inbox: mpsc::Sender<Inbound>, metrics: Arc<Metrics>, connections_max: u32) -> Self {
        Self {
            inbox,
            permits: ConnectionPermits::new(connections_max, metrics.clone()),
            metrics,
        }
    }
}
