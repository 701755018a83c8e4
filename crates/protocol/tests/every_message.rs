//! One sample of every message, in both directions: whatever is sent arrives
//! as it was, alone, among others, and on a stream that comes in pieces.

#[path = "every_message/golden.rs"]
mod golden;

use std::collections::BTreeSet;
use std::fmt::Debug;

use frolic_protocol::packet::{
    self, CLIENT_MESSAGE_BYTES_MAX, SERVER_MESSAGE_BYTES_MAX, StreamReader,
};
use frolic_protocol::samples;
use frolic_protocol::{ClientMessage, ServerMessage};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Names the variants of an enum. Without a wildcard: a new one does not
/// compile until it is listed, and is not found until it has a sample.
macro_rules! variants {
    ($names:ident, $name_of:ident, $enum:ident: $($variant:ident),* $(,)?) => {
        const $names: &[&str] = &[$(stringify!($variant)),*];

        fn $name_of(message: &$enum) -> &'static str {
            match message {
                $($enum::$variant { .. } => stringify!($variant)),*
            }
        }
    };
}

variants!(
    CLIENT_MESSAGES, client_name, ClientMessage:
    Handshake, Inputs, SnapshotAck, Ping, Leave, Event, Invoke, ScriptRequest, ScriptVerify, Chat,
    Terraform, ChunkRequest, CastSpell, UnreliableEvent, AskFigures, Hide,
    Report, AskScene, Log, Reset,
);

variants!(
    SERVER_MESSAGES, server_name, ServerMessage:
    Welcome, Scene, Definition, Snapshot, Fragment, Presence, Pong, Error, Kick, Event,
    InvokeResult, Chat, ScriptManifest, ScriptChunk, ExecuteScript, ResumeToken, Cast, Figures,
    Weapon, Armed, ProjectileLaunch, ProjectileHit, Vitals, Npc, TerraformApplied, ChunkData, Mesh,
    Character, UnreliableEvent, LogsWanted, Saving, Facing,
);

#[test]
fn every_message_has_a_sample() {
    let sampled: BTreeSet<_> = samples::client().iter().map(client_name).collect();
    assert_eq!(sampled, CLIENT_MESSAGES.iter().copied().collect());
    let sampled: BTreeSet<_> = samples::server().iter().map(server_name).collect();
    assert_eq!(sampled, SERVER_MESSAGES.iter().copied().collect());
}

#[test]
fn every_message_arrives_as_it_was() {
    arrive_alone(&samples::client(), CLIENT_MESSAGE_BYTES_MAX);
    arrive_alone(&samples::server(), SERVER_MESSAGE_BYTES_MAX);
}

fn arrive_alone<M: Serialize + DeserializeOwned + PartialEq + Debug>(samples: &[M], max: usize) {
    for sample in samples {
        let bytes = packet::single(sample);
        let read = packet::read::<M>(&bytes, max).expect("what we write we read");
        assert_eq!(read, std::slice::from_ref(sample));
        // Half of it is none.
        for end in 0..bytes.len() {
            let half = packet::read::<M>(&bytes[..end], max);
            assert!(
                !half.is_ok_and(|messages| !messages.is_empty()),
                "{sample:?} is whole after {end} of {} bytes",
                bytes.len()
            );
        }
    }
}

proptest! {
    #[test]
    fn any_row_of_messages_arrives_whole_and_in_pieces(
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        cut in 1usize..200,
    ) {
        arrive_together(&samples::client(), &order, cut, CLIENT_MESSAGE_BYTES_MAX)?;
        arrive_together(&samples::server(), &order, cut, SERVER_MESSAGE_BYTES_MAX)?;
    }
}

fn arrive_together<M: Serialize + DeserializeOwned + PartialEq + Debug + Clone>(
    samples: &[M],
    order: &[prop::sample::Index],
    cut: usize,
    max: usize,
) -> Result<(), TestCaseError> {
    let sent: Vec<M> = order.iter().map(|at| at.get(samples).clone()).collect();
    let mut bytes = Vec::new();
    sent.iter()
        .for_each(|message| packet::write(&mut bytes, message));
    let whole = packet::read::<M>(&bytes, max);
    prop_assert_eq!(whole.as_ref(), Ok(&sent));
    let mut reader = StreamReader::default();
    let mut received = Vec::new();
    for piece in bytes.chunks(cut) {
        let pushed = reader.push::<M>(piece, max);
        received.extend(pushed.expect("what we write we read"));
    }
    prop_assert_eq!(received, sent);
    Ok(())
}
