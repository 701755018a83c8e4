//! The [`Notifier`] of one instance: sends events to its own Socket.IO clients.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use serde_json::Value;
use socketioxide::SocketIo;

use crate::core::notifier::{Notifier, Recipients};

/// Time for the connections to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The Socket.IO clients of this instance.
#[derive(Default)]
pub struct Sockets {
    io: OnceLock<SocketIo>,
    clients: AtomicUsize,
}

impl Sockets {
    /// Sends events through `io` from now on.
    pub fn open(&self, io: SocketIo) {
        // Fails only for a second router of the same platform, which does not exist.
        let _ = self.io.set(io);
    }

    /// Counts a client that was admitted.
    pub fn add_client(&self) {
        self.clients.fetch_add(1, Relaxed);
    }

    /// Counts a client that disconnected.
    pub fn remove_client(&self) {
        self.clients.fetch_sub(1, Relaxed);
    }

    /// Closes all connections.
    pub async fn close(&self) {
        if let Some(io) = self.io.get() {
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, io.close()).await;
        }
    }
}

impl Notifier for Sockets {
    fn clients(&self) -> usize {
        self.clients.load(Relaxed)
    }

    fn clients_in_room(&self, room: String) -> usize {
        let io = self.io.get();
        io.map_or(0, |io| io.within(room).sockets().len())
    }

    fn deliver(&self, to: Recipients, event: &'static str, data: Value) {
        let (Some(io), Ok(runtime)) = (self.io.get(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let io = io.clone();
        let sending = async move {
            let sent = match to {
                Recipients::Rooms(rooms) => io.to(rooms).emit(event, &data).await,
                Recipients::All => io.emit(event, &data).await,
            };
            if let Err(error) = sent {
                tracing::debug!(%error, event, "some clients did not receive an event");
            }
        };
        // Emitting to rooms of this process never waits, so one poll completes it, in
        // order. Only a remote adapter could be pending.
        let mut sending = Box::pin(sending);
        let waker = std::task::Waker::noop();
        let mut context = std::task::Context::from_waker(waker);
        if sending.as_mut().poll(&mut context).is_pending() {
            runtime.spawn(sending);
        }
    }
}
