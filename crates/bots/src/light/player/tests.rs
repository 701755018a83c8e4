//! A light player against a server that is written out by hand.

use frolic_protocol::Welcome;
use frolic_protocol::message::Resumption;
use frolic_protocol::packet::CLIENT_MESSAGE_BYTES_MAX;
use frolic_protocol::snapshot::{OwnState, SnapshotHeader};
use frolic_sim::CharacterState;

use super::*;

/// A player behind the upgrade, and the eye it looks with.
struct Table {
    player: Player,
    eye: Eye,
}

impl Table {
    fn new() -> Self {
        let entry = Entry {
            address: "ws://127.0.0.1:1/ws".into(),
            ticket: Some("paper".into()),
            trust: None,
            place: None,
        };
        let mut player = Player::new(4, entry, None, 0.0).unwrap();
        player.stage = Stage::Knocking;
        player.out.clear();
        let eye = Eye::new();
        Self { player, eye }
    }

    fn receive(&mut self, message: &ServerMessage, now_ms: f64) -> Result<()> {
        let packet = packet::single(message);
        let mut frame = vec![0x82, 126];
        frame.extend_from_slice(&(packet.len() as u16).to_be_bytes());
        frame.extend_from_slice(&packet);
        self.player.receive(&self.eye, &frame, now_ms)
    }

    fn welcome(&mut self) {
        let welcome = Welcome {
            tick: 1,
            entity_id: 2,
            player_id: "p".into(),
            player_number: 1,
            world_id: "w".into(),
            room_code: "R".into(),
            tick_hz: 60,
            snapshot_hz: 20,
            resume_token: "r".into(),
            server_time: 0.0,
            revision: "v".into(),
            character: Default::default(),
            resumption: Resumption::New,
            received: 0,
            sent: 0,
        };
        let welcome = ServerMessage::Welcome(Box::new(welcome));
        self.receive(&welcome, 10.0).unwrap();
    }

    fn snapshot(&mut self, tick: u32, ack_seq: u32, now_ms: f64) {
        let own = OwnState {
            ack_seq,
            late_ticks: 0,
            queued_inputs: 1,
            character: CharacterState::at(Vec3::new(1.0, 0.0, 2.0)),
        };
        let header = SnapshotHeader {
            scripts: 1,
            tick,
            number: None,
            own: Some(own),
        };
        let bytes = snapshot::write_header(Vec::new(), &header);
        self.receive(&ServerMessage::Snapshot(bytes), now_ms)
            .unwrap();
    }

    /// The messages it sent since the last call, unmasked.
    fn said(&mut self) -> Vec<ClientMessage> {
        let out = std::mem::take(&mut self.player.out);
        let mut rest = &out[..];
        let mut messages = Vec::new();
        while let [_, length, after @ ..] = rest {
            let (length, after) = match length & 0x7f {
                126 => (
                    usize::from(u16::from_be_bytes([after[0], after[1]])),
                    &after[2..],
                ),
                short => (usize::from(short), after),
            };
            let (mask, after) = after.split_at(4);
            let (payload, after) = after.split_at(length);
            let keys = mask.iter().cycle();
            let packet: Vec<u8> = payload.iter().zip(keys).map(|(b, k)| b ^ k).collect();
            messages.extend(packet::read(&packet, CLIENT_MESSAGE_BYTES_MAX).unwrap());
            rest = after;
        }
        messages
    }
}

fn inputs(messages: &[ClientMessage]) -> Vec<u32> {
    let mut seqs = Vec::new();
    for message in messages {
        if let ClientMessage::Inputs { inputs, .. } = message {
            seqs.extend(inputs.iter().map(|input| input.seq));
        }
    }
    seqs
}

#[test]
fn it_waits_for_the_world_then_sends_rising_inputs_with_repeats() {
    let mut table = Table::new();
    table.player.turn(0.0).unwrap();
    assert!(table.said().is_empty(), "nothing before the welcome");
    table.welcome();
    table.player.turn(20.0).unwrap();
    assert!(inputs(&table.said()).is_empty(), "nothing before it stands");
    table.snapshot(3, 0, 30.0);
    assert!(table.player.is_in());
    assert_eq!(table.player.outcome.join_ms, 30.0);
    let mut newest = 0;
    for turn in 1..30 {
        table
            .player
            .turn(20.0 + f64::from(turn) * 1000.0 / 30.0)
            .unwrap();
        let seqs = inputs(&table.said());
        assert!(seqs.len() <= REPEATED_INPUTS);
        assert!(seqs.is_sorted_by(|a, b| a + 1 == *b), "{seqs:?}");
        newest = *seqs.last().unwrap();
    }
    // The clock runs a little fast while fewer inputs wait than it wants.
    assert!((56..=64).contains(&newest), "{newest}: one per tick");
    table.snapshot(6, 100, 1100.0);
    table.player.turn(1100.0).unwrap();
    let seqs = inputs(&table.said());
    assert!(seqs.last() > Some(&100), "goes on from what was used");
}

/// Two ticks have one turn at the keys: a player who turned in every second of
/// them only would move as no real one does.
#[test]
fn it_turns_in_every_tick() {
    let mut table = Table::new();
    table.welcome();
    table.snapshot(3, 0, 30.0);
    let mut yaws = std::collections::BTreeMap::new();
    for turn in 0..30 * 300 {
        table.player.turn(f64::from(turn) * 1000.0 / 30.0).unwrap();
        for message in table.said() {
            if let ClientMessage::Inputs { inputs, .. } = message {
                yaws.extend(inputs.iter().map(|input| (input.seq, input.input.yaw)));
            }
        }
    }
    let yaws: Vec<_> = yaws.into_values().collect();
    let turned = yaws.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let share = turned as f64 / yaws.len() as f64;
    assert!((0.4..0.6).contains(&share), "{share} of {}", yaws.len());
}

#[test]
fn it_speaks_at_every_turn_even_if_turns_outrun_ticks() {
    let mut table = Table::new();
    table.welcome();
    table.snapshot(3, 0, 30.0);
    table.player.turn(20.0).unwrap();
    table.player.turn(60.0).unwrap();
    let first = inputs(&table.said());
    table.player.turn(61.0).unwrap();
    assert_eq!(inputs(&table.said()), first, "no tick is due: repeats");
}

#[test]
fn gaps_and_bytes_count_once_it_measures_and_pieces_are_one_update() {
    let mut table = Table::new();
    table.welcome();
    table.snapshot(3, 0, 30.0);
    table.snapshot(6, 0, 80.0);
    table.player.measure(90.0);
    table.snapshot(9, 0, 130.0);
    table.snapshot(9, 0, 131.0);
    table.snapshot(12, 0, 190.0);
    let bytes = table.player.outcome.bytes_in;
    assert!(bytes > 90, "{bytes}");
    let (out, outcome) = table.player.leave(220.0).unwrap();
    assert_eq!(outcome.gaps_ms, [50.0, 60.0]);
    assert_eq!(outcome.bytes_in, bytes);
    assert!((outcome.seconds - 0.13).abs() < 1e-9);
    assert!(!out.is_empty(), "a goodbye");
}

#[test]
fn being_left_without_updates_is_a_gap() {
    let mut table = Table::new();
    table.welcome();
    table.snapshot(3, 0, 30.0);
    table.player.measure(40.0);
    let (_, outcome) = table.player.leave(1040.0).unwrap();
    assert_eq!(outcome.gaps_ms, [1000.0]);
}

#[test]
fn a_kick_a_close_and_a_closed_door_end_it() {
    let mut table = Table::new();
    let reason = "full".to_owned();
    let error = table.receive(&ServerMessage::Kick { reason }, 1.0);
    assert!(error.unwrap_err().to_string().contains("full"));
    let mut table = Table::new();
    let close = [0x88, 5, 3, 232, b'b', b'y', b'e'];
    let error = table.player.receive(&table.eye, &close, 1.0);
    assert!(error.unwrap_err().to_string().contains("bye"));
    let mut table = Table::new();
    assert!(table.player.turn(JOIN_PATIENCE_MS).is_ok());
    assert!(table.player.turn(JOIN_PATIENCE_MS + 1.0).is_err());
}
