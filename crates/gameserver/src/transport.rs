//! The two ways in. Both carry the same packets (NET-1).

pub mod websocket;
pub mod webtransport;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::sync::mpsc;

use crate::link::{Inbound, LinkId};
use crate::metrics::Metrics;

/// What transports share.
#[derive(Clone)]
pub struct Transports {
    /// To the world's thread.
    pub inbox: mpsc::Sender<Inbound>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Most connections at a time, those without a player included.
    pub connections_max: u32,
    next_link: Arc<AtomicU64>,
}

impl Transports {
    /// Ways into the world behind `inbox`.
    pub fn new(inbox: mpsc::Sender<Inbound>, metrics: Arc<Metrics>, connections_max: u32) -> Self {
        Self {
            inbox,
            metrics,
            connections_max,
            next_link: Arc::new(AtomicU64::new(1)),
        }
    }

    fn link(&self) -> LinkId {
        self.next_link.fetch_add(1, Relaxed)
    }

    fn is_full(&self) -> bool {
        self.metrics.connections.load(Relaxed) >= self.connections_max
    }
}
