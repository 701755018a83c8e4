//! The two ways in. Both carry the same packets (NET-1).

mod outbuffer;
mod quic;
mod slots;
pub mod socket;
pub mod sockets;
pub mod websocket;
pub mod webtransport;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::sync::mpsc;

pub use self::slots::{Slot, Slots};
use crate::link::{Inbound, LinkId};
use crate::metrics::Metrics;

/// What transports share.
#[derive(Clone)]
pub struct Transports {
    /// To the world's thread.
    pub inbox: mpsc::Sender<Inbound>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Room for connections.
    pub slots: Slots,
    next_link: Arc<AtomicU64>,
}

impl Transports {
    /// Ways into the world behind `inbox`, for so many connections at a
    /// time, those without a player included.
    pub fn new(inbox: mpsc::Sender<Inbound>, metrics: Arc<Metrics>, connections_max: u32) -> Self {
        Self {
            inbox,
            slots: Slots::new(connections_max, metrics.clone()),
            metrics,
            next_link: Arc::new(AtomicU64::new(1)),
        }
    }

    fn link(&self) -> LinkId {
        self.next_link.fetch_add(1, Relaxed)
    }
}
