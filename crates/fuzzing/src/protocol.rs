//! Decoders of network input.

use std::collections::HashMap;
use std::sync::OnceLock;

use frolic_fleet_api::ticket::{self, TicketClaims};
use frolic_protocol::bits::{BitReader, BitWriter};
use frolic_protocol::packet::{
    self, CLIENT_MESSAGE_BYTES_MAX, SERVER_MESSAGE_BYTES_MAX, StreamReader,
};
use frolic_protocol::resume::{PersistedLog, PersistedPacket};
use frolic_protocol::snapshot::{self, CellKey, KnownCells, SnapshotError};
use frolic_protocol::websocket::{FrameError, FrameReader};
use frolic_protocol::{Args, ClientMessage, EntityState, ServerMessage, ValueLimits, json};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::seeds;

pub fn client_packet(bytes: &[u8]) {
    packet_again::<ClientMessage>(bytes, CLIENT_MESSAGE_BYTES_MAX);
}

pub fn server_packet(bytes: &[u8]) {
    packet_again::<ServerMessage>(bytes, SERVER_MESSAGE_BYTES_MAX);
}

/// Decoded values are encoded and decoded again; bytes are compared, because
/// NaN is not equal to itself.
fn packet_again<M: Serialize + DeserializeOwned>(bytes: &[u8], max: usize) {
    let Ok(messages) = packet::read::<M>(bytes, max) else {
        return;
    };
    let write = |messages: &[M]| {
        let mut bytes = Vec::new();
        messages
            .iter()
            .for_each(|message| packet::write(&mut bytes, message));
        bytes
    };
    let written = write(&messages);
    let again: Vec<M> = packet::read(&written, max).expect("what we write we read");
    assert_eq!(written, write(&again));
}

/// A stream in pieces gives what the whole packet gives. The first byte says
/// how long the pieces are.
pub fn stream(bytes: &[u8]) {
    let Some((size, bytes)) = bytes.split_first() else {
        return;
    };
    let mut reader = StreamReader::default();
    let mut read = Vec::new();
    for piece in bytes.chunks(usize::from(*size).max(1)) {
        match reader.push::<ClientMessage>(piece, CLIENT_MESSAGE_BYTES_MAX) {
            Ok(messages) => read.extend(messages),
            Err(_) => {
                let whole = packet::read::<ClientMessage>(bytes, CLIENT_MESSAGE_BYTES_MAX);
                assert!(whole.is_err(), "a stream refuses what a packet takes");
                return;
            }
        }
    }
    if let Ok(whole) = packet::read::<ClientMessage>(bytes, CLIENT_MESSAGE_BYTES_MAX) {
        assert_eq!(read.len(), whole.len());
    }
}

/// Frames in pieces give what they give at once. The first byte says how long
/// the pieces are.
pub fn websocket(bytes: &[u8]) {
    let Some((size, bytes)) = bytes.split_first() else {
        return;
    };
    let pieces = frames_in(bytes, usize::from(*size).max(1));
    assert_eq!(pieces, frames_in(bytes, bytes.len().max(1)));
}

/// The contents of frames, and the error that ended them.
fn frames_in(bytes: &[u8], piece_bytes: usize) -> (Vec<String>, Option<FrameError>) {
    let mut reader = FrameReader::new(CLIENT_MESSAGE_BYTES_MAX);
    let mut said = Vec::new();
    for piece in bytes.chunks(piece_bytes) {
        let read = reader.read::<FrameError>(&mut piece.to_vec(), &mut |incoming| {
            said.push(format!("{incoming:?}"));
            Ok(())
        });
        if let Err(error) = read {
            return (said, Some(error));
        }
    }
    (said, None)
}

pub fn json_command(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(command) = json::parse(text) {
        client_packet(&packet::single(&command.message));
    }
}

/// The first byte of each four says what to read next from the rest.
pub fn bits(bytes: &[u8]) {
    let (plan, bytes) = bytes.split_at(bytes.len() / 4);
    let mut reader = BitReader::new(bytes);
    let mut writer = BitWriter::new();
    let mut written = Vec::new();
    for step in plan {
        let low_bits = u32::from(step >> 3);
        let before = reader.remaining();
        match step & 7 {
            0 => drop(reader.flag()),
            1 => drop(reader.float()),
            2 => reader.align(),
            3 => drop(reader.bits(low_bits)),
            4 => drop(reader.bits(32)),
            5 => drop(reader.signed(low_bits)),
            _ => {
                if let Ok(number) = reader.number(low_bits) {
                    writer.number(number, low_bits);
                    written.push((number, low_bits));
                }
            }
        }
        assert!(reader.remaining() <= before);
    }
    let bytes = writer.finish();
    let mut reader = BitReader::new(&bytes);
    for (number, low_bits) in written {
        assert_eq!(reader.number(low_bits), Ok(number));
    }
}

pub fn ticket(bytes: &[u8]) {
    let key = [7; 32];
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let _ = ticket::verify(&key, text, "world_1", 1_000);
    let claims = TicketClaims {
        world_id: "world_1".into(),
        player_id: text.chars().take(40).collect(),
        name: text.chars().skip(40).take(40).collect(),
        nonce: "n".into(),
        session: "s".into(),
        expires_at: 2_000,
        epoch: 1,
        character: None,
        left: None,
        beside: None,
    };
    let signed = ticket::sign(&key, &claims);
    let read = ticket::verify(&key, &signed, "world_1", 1_000);
    assert_eq!(read.as_ref(), Ok(&claims), "{signed}");
    assert!(ticket::verify(&[8; 32], &signed, "world_1", 1_000).is_err());
}

/// State that one process of a server persists for the next.
pub fn persisted_log(bytes: &[u8]) {
    let lasts = |id: u32| id < 1_000_000;
    let Some(log) = PersistedLog::from_bytes(bytes, &lasts) else {
        return;
    };
    let packets: Vec<Vec<u8>> = log
        .messages
        .iter()
        .map(|entry| packet::single(&entry.message))
        .collect();
    let messages = packets.iter().zip(&log.messages);
    let written = PersistedLog {
        base: log.base,
        written: log.written,
        confirms: log.confirms,
        messages: messages
            .map(|(packet, entry)| PersistedPacket {
                packet,
                echo: entry.echo.clone(),
            })
            .collect(),
        calls: log.calls.clone(),
    }
    .to_bytes();
    // Nothing is written of a log that never had anything.
    match PersistedLog::from_bytes(&written, &lasts) {
        Some(again) => assert_eq!(format!("{again:?}"), format!("{log:?}")),
        None => assert!(written.is_empty()),
    }
}

pub fn value(bytes: &[u8]) {
    let limits = ValueLimits::default();
    if let Ok(args) = Args::from_bytes(bytes, &limits) {
        assert_eq!(args.check(&limits), Ok(()));
        let written = args.to_bytes();
        let again = Args::from_bytes(&written, &limits).expect("what we write we read");
        assert_eq!(written, again.to_bytes());
        let _ = serde_json::to_value(&args);
    }
    if let Ok(args) = serde_json::from_slice::<Args>(bytes) {
        let json = serde_json::to_vec(&args).expect("plain values");
        let again: Args = serde_json::from_slice(&json).expect("what we write we read");
        assert_eq!(again.to_bytes(), args.to_bytes());
    }
}

/// The state of a client after the first snapshot of a real session.
#[derive(Default)]
struct Known {
    cells: HashMap<CellKey, (u32, Vec<EntityState>)>,
}

impl KnownCells for Known {
    fn entities(&self, key: CellKey, version: u32) -> Option<&[EntityState]> {
        let (known, entities) = self.cells.get(&key)?;
        // Every other version is known, so that both ways are taken.
        (*known == version || version.is_multiple_of(2)).then_some(entities)
    }
}

const TICK_HZ: u32 = 60;

fn known() -> &'static Known {
    static KNOWN: OnceLock<Known> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let mut known = Known::default();
        for bytes in seeds::snapshots() {
            let Ok(snapshot) = snapshot::decode(&bytes, TICK_HZ, &known) else {
                continue;
            };
            for cell in snapshot.cells {
                if let Some(content) = cell.content {
                    let version = (content.version, content.entities);
                    known.cells.entry(cell.key).or_insert(version);
                }
            }
        }
        assert!(!known.cells.is_empty(), "the seeds hold cells");
        known
    })
}

pub fn snapshot(bytes: &[u8]) {
    let header = snapshot::header(bytes);
    match snapshot::decode(bytes, TICK_HZ, known()) {
        Ok(snapshot) => {
            assert_eq!(header.map(|header| header.tick), Ok(snapshot.header.tick));
            for content in snapshot
                .cells
                .iter()
                .filter_map(|cell| cell.content.as_ref())
            {
                let ids = content.entities.iter().map(|entity| entity.id);
                assert!(ids.is_sorted(), "entities stand in order");
            }
        }
        Err(SnapshotError::UnknownBaseline(_)) => assert!(header.is_ok()),
        Err(SnapshotError::Malformed) => {}
    }
}
