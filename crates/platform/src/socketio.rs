//! Socket.IO: worlds, spells, builds and casts for any Socket.IO v4 client, on the
//! platform's own port.
//!
//! The rest of the platform sends events through [`Notifier`](crate::core::notifier::Notifier).
//! [`connection`] admits clients and passes their messages to the handlers, one message
//! per client at a time.

mod casts;
mod connection;
mod spells;
mod visitor;
mod worlds;

use std::time::Duration;

use socketioxide::SocketIo;
use socketioxide::layer::SocketIoLayer;

use crate::Platform;

/// Maximum size of a message.
const MESSAGE_BYTES_MAX: usize = 128 * 1024;
/// Time after which a connection that joined no namespace is closed.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Ping interval; bounds the time until a dead connection is noticed.
const PING_INTERVAL: Duration = Duration::from_secs(25);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum number of queued messages per client; further ones are dropped.
const QUEUE_MAX: usize = 256;

/// The layer that serves `/socket.io`.
pub fn layer(platform: &Platform) -> SocketIoLayer {
    let (layer, io) = SocketIo::builder()
        .max_payload(MESSAGE_BYTES_MAX as u64)
        .ws_max_message_size(MESSAGE_BYTES_MAX)
        .ws_max_frame_size(MESSAGE_BYTES_MAX)
        .max_buffer_size(QUEUE_MAX)
        .ws_read_buffer_size(2048)
        .connect_timeout(CONNECT_TIMEOUT)
        .ping_interval(PING_INTERVAL)
        .ping_timeout(PING_TIMEOUT)
        .build_layer();
    connection::open(&io, platform);
    platform.sockets.open(io);
    layer
}
