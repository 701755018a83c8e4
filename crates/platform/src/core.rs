//! The lowest layer: database, blobs, clock, errors, and the parts that all HTTP handlers
//! share. Knows no games, worlds or spells.

pub mod blobs;
pub mod clock;
pub mod db;
pub mod encoding;
pub mod error;
pub mod extract;
pub mod ids;
pub mod limits;
pub mod locks;
pub mod metrics;
pub mod names;
pub mod notifier;
pub mod paging;
pub mod settings;
pub mod signing;
pub mod sockets;
pub mod texts;
pub mod tls;
pub mod trace;
pub mod write_health;

use std::sync::Arc;

use sqlx::AnyPool;

use self::blobs::BlobStore;
use self::clock::Clock;
use self::limits::RateLimiter;
use self::locks::Locks;
use self::metrics::Metrics;
use self::settings::Settings;
use self::write_health::WriteHealth;

/// The services that every layer uses.
pub struct Core {
    pub settings: Settings,
    pub clock: Clock,
    pub db: AnyPool,
    pub blobs: BlobStore,
    /// Locks that instances would share.
    pub locks: Box<dyn Locks>,
    pub metrics: Metrics,
    /// Whether the database stores writes.
    pub write_health: Arc<WriteHealth>,
    /// Limits logins and joins per client address.
    pub rates: RateLimiter,
}

/// State of a router that contains the services of a lower layer. Extractors require it, so that
/// each works in the routers of all layers above its own.
pub trait Provides<Services>: Send + Sync {
    /// The services.
    fn provide(&self) -> &Services;
}

impl<Services: Send + Sync> Provides<Services> for Arc<Services> {
    fn provide(&self) -> &Services {
        self
    }
}
