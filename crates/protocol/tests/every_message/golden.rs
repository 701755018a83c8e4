//! The bytes of the binary form, pinned: a change of them changes its
//! version, so that a page and a server of different versions find out at the
//! handshake instead of misreading each other.

use frolic_motion::{CharacterState, Motion, Rotation, Vec3};
use frolic_protocol::message::BINARY_VERSION;
use frolic_protocol::snapshot::{self, CellKey, CellSource, CellVersion, OwnState, SnapshotHeader};
use frolic_protocol::{ClientMessage, EntityKind, EntityState, ServerMessage, quantize};
use frolic_protocol::{packet, samples};
use sha2::{Digest, Sha256};

/// Which version has which bytes. This line is all that is to be changed.
const PINNED: (u16, &str) = (4, "d2dc208606192353");

#[test]
fn other_bytes_are_another_version() {
    let digest = Sha256::digest(every_byte());
    let found: String = digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(
        (BINARY_VERSION, found.as_str()),
        PINNED,
        "the bytes on the wire (or the samples) have changed: raise BINARY_VERSION in \
         crates/protocol/src/message.rs, which may stay only as long as no release has it, and \
         put the left side into PINNED",
    );
}

/// Messages that sides of any two versions can read.
#[test]
fn the_refusal_of_a_version_can_be_read_by_all() {
    let handshake = packet::single(&ClientMessage::Handshake {
        version: 300,
        ticket: Some("t".into()),
        resume_token: None,
        name: None,
        received: Some(7),
    });
    assert_eq!(handshake, [10, 0, 0xac, 2, 1, 1, b't', 0, 0, 1, 7][..]);
    let error = packet::single(&ServerMessage::Error {
        code: "c".into(),
        message: "m".into(),
    });
    assert_eq!(error, [5, 7, 1, b'c', 1, b'm']);
    let kick = packet::single(&ServerMessage::Kick { reason: "r".into() });
    assert_eq!(kick, [3, 8, 1, b'r']);
}

fn every_byte() -> Vec<u8> {
    let mut bytes = snapshot_sample();
    for message in samples::client() {
        packet::write(&mut bytes, &message);
    }
    for message in samples::server() {
        packet::write(&mut bytes, &message);
    }
    bytes
}

struct Source;

impl CellSource for Source {
    fn details(&self, id: u32) -> Vec<u8> {
        id.to_le_bytes().to_vec()
    }
    fn cell_of(&self, _: u32) -> Option<(i16, i16)> {
        Some((4, 5))
    }
}

fn turned(x: f32, y: f32) -> Rotation {
    Rotation::from_xyzw(x, y, 0.0, 1.0).normalize()
}

/// A header and records of all kinds: of a character that is new, who walks on and
/// turns, who is thrown about, who is gone, and of a cell that is dropped.
fn snapshot_sample() -> Vec<u8> {
    let header = SnapshotHeader {
        tick: 100_000,
        scripts: 3,
        number: Some(77),
        own: Some(OwnState {
            ack_seq: 1234,
            late_ticks: 2,
            queued_inputs: 1,
            character: CharacterState::at(Vec3::new(1.0, 2.0, 3.0)),
        }),
    };
    let walker = EntityState {
        owner: 3,
        position: quantize::position(Vec3::new(5.5, 0.25, -7.0)),
        velocity: quantize::velocity(Vec3::new(0.0, 0.0, -6.0)),
        look: quantize::look(9000, 300),
        ..EntityState::new(1_000_001, EntityKind::Character)
    };
    let tumbler = EntityState {
        definition: 4,
        position: quantize::position(Vec3::new(-3.0, 9.0, 4.0)),
        rotation: quantize::rotation(turned(0.0, 0.6)),
        velocity: quantize::velocity(Vec3::new(1.0, -4.0, 0.5)),
        ..EntityState::new(20, EntityKind::Thing)
    };
    let lift = EntityState {
        details: 2,
        motion: Some(Motion {
            from: Vec3::new(0.0, 0.0, 0.0),
            to: Vec3::new(0.0, 8.0, 0.0),
            start_tick: 99_000,
            end_tick: 101_000,
        }),
        ..EntityState::new(30, EntityKind::Thing)
    };
    let before = [tumbler, lift, walker];
    let after = [
        EntityState {
            rotation: quantize::rotation(turned(0.3, 0.5)),
            position: quantize::position(Vec3::new(-2.9, 8.7, 4.1)),
            ..tumbler
        },
        EntityState {
            look: quantize::look(9400, 280),
            position: quantize::position(Vec3::new(5.5, 0.25, -7.3)),
            ..walker
        },
    ];
    let version = |tick, entities| CellVersion { tick, entities };
    let cell = CellKey::Grid { x: -1, z: 2 };
    let (old, new) = (version(99_997, &before[..]), version(100_000, &after[..]));
    let mut bytes = snapshot::write_header(Vec::new(), &header);
    bytes = snapshot::write_cell(bytes, 100_000, 60, CellKey::Everywhere, None, old, &Source);
    bytes = snapshot::write_cell(bytes, 100_000, 60, cell, Some(old), new, &Source);
    snapshot::write_dropped_cell(bytes, CellKey::Owned(9))
}
