//! The JSON form of the same messages, for clients in any language (NET-12…15).

mod command;
mod event;
mod snapshot;

pub use command::{
    AckPayload, ChatPayload, Command, CommandError, EventPayload, HandshakePayload, InputBatch,
    InvokePayload, JsonInput, PingPayload, ScriptsPayload, parse,
};
pub use event::{ack, encode, encode_counted, error};
pub use snapshot::{JsonEntity, SnapshotView, snapshot};

/// The WebSocket subprotocol of this form.
pub const SUBPROTOCOL: &str = "frolic.v2.json";
/// The WebSocket subprotocol of the binary form.
pub const BINARY_SUBPROTOCOL: &str = "frolic.v2.bin";

#[cfg(test)]
mod tests;
