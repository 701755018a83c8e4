//! Messages from servers to clients, and recordings.

use std::cell::OnceCell;

use frolic_client::Client;
use frolic_package::Package;
use frolic_protocol::packet;
use frolic_world::replay::{Record, RecordReader, RecordingHeader, Replay};

use crate::seeds::{self, CLIENT_PIECE_BYTES};

/// Steps of a replayed world: enough for what a short input can cause.
const STEPS_MAX: u32 = 300;

/// A client that is in a world, and then gets anything at all.
pub fn client(bytes: &[u8]) {
    let mut client = Client::new();
    for packet in seeds::welcome_packets() {
        client.receive(&packet, 0.0).expect("a real welcome");
    }
    let mut now_ms = 0.0;
    for piece in bytes.chunks(CLIENT_PIECE_BYTES) {
        now_ms += 20.0;
        let _ = client.receive(piece, now_ms);
        let _ = client.receive_stream(piece, now_ms);
        // A snapshot by itself, or the fuzzer would spend itself on frames.
        let snapshot = frolic_protocol::ServerMessage::Snapshot(piece.to_vec());
        let _ = client.receive(&packet::single(&snapshot), now_ms);
        client.advance(now_ms);
        for drawn in client.frame(now_ms) {
            assert!(drawn.position.is_finite(), "{drawn:?}");
        }
        while client.take_event().is_some() {}
        while client.take_datagram().is_some() {}
        client.scripts().request_missing();
        while client.take_reliable().is_some() {}
        let _ = client.take_removed();
    }
}

/// Whatever can be read of a file is the same when it is written again.
pub fn recording(bytes: &[u8]) {
    let mut reader = RecordReader::default();
    for piece in bytes.chunks(100) {
        reader.push(piece);
        if reader.bytes_read() == 0 && !matches!(reader.header(), Ok(Some(_))) {
            continue;
        }
        loop {
            match reader.record() {
                Ok(Some(record)) => same_again(&record),
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

fn same_again(record: &Record) {
    let header = seeds::recording_start();
    let written = record.to_bytes();
    let mut reader = RecordReader::default();
    reader.push(header);
    reader.header().expect("a real header");
    reader.push(&written);
    let again = reader.record().expect("what we write we read");
    assert_eq!(again.expect("all of it").to_bytes(), written);
}

thread_local! {
    static SESSION: OnceCell<(Package, RecordingHeader)> = const { OnceCell::new() };
}

/// The bytes are records behind the header of a real recording.
pub fn replay(bytes: &[u8]) {
    SESSION.with(|session| {
        let (package, header) = session.get_or_init(|| {
            let mut reader = RecordReader::default();
            reader.push(seeds::recording_start());
            let header = reader.header().expect("a real header");
            (seeds::game(), header.expect("all of it"))
        });
        let mut replay = Replay::new(package, header).expect("the game loads");
        let mut reader = RecordReader::default();
        reader.push(seeds::recording_start());
        reader.header().expect("a real header");
        reader.push(bytes);
        while replay.report().ticks < STEPS_MAX && !replay.is_over() {
            let Ok(Some(record)) = reader.record() else {
                return;
            };
            if replay.apply(record).is_err() {
                return;
            }
        }
    });
}
