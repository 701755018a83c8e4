//! The JSON form of the same messages, for clients in any language.

mod command;
mod event;
mod payload;
mod projectile;
mod scene;
mod snapshot;

pub use command::{Command, CommandError, Glance, glance, parse};
pub use event::{ack, encode, encode_counted, encode_echoing, error};
pub use payload::{
    AckPayload, ChatPayload, EventPayload, HandshakePayload, InputBatch, InvokePayload, JsonInput,
    PingPayload, ReportPayload, ScriptsPayload, SpellCastPayload, TerrainChunkPayload,
    TerrainOpPayload,
};
pub use projectile::JsonProjectile;
pub use scene::scene;
pub use snapshot::{JsonEntity, JsonHeader, JsonStructure, SnapshotView, sends_details, snapshot};

/// The WebSocket subprotocol of this form.
pub const SUBPROTOCOL: &str = "frolic.v2.json";
/// The WebSocket subprotocol of the binary form.
pub const BINARY_SUBPROTOCOL: &str = "frolic.v2.bin";

#[cfg(test)]
mod tests;
