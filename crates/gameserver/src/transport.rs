//! The two transports. Both carry the same packets.

mod congestion;
mod outbuffer;
mod permits;
mod quic;
mod raw;
pub mod socket;
pub mod sockets;
pub mod websocket;
pub mod webtransport;
mod writer;

use std::sync::Arc;

use tokio::sync::mpsc;

pub use self::permits::{ConnectionPermit, ConnectionPermits};
use crate::incoming::Inbound;
use crate::metrics::Metrics;

/// What transports share.
#[derive(Clone)]
pub struct Transports {
    /// To the world's thread.
    pub inbox: mpsc::Sender<Inbound>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// ConnectionPermits for connections.
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
