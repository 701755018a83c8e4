//! Connections: how a client is greeted, loses its connection, and resumes its
//! session on another one, as in the game server.

use std::collections::VecDeque;

use frolic_protocol::message::Resumption;
use frolic_protocol::resume::SentLog;
use frolic_protocol::{Args, ServerMessage, Welcome, packet};
use frolic_world::{ClientView, TerrainView, input};

use super::{Peer, Run, sha256};
use crate::network::Lane;

/// Events of one player that a world takes in a tick.
const EVENTS_PER_TICK: usize = 32;

/// Session state that outlives a connection.
#[derive(Default)]
pub(super) struct Session {
    /// Messages that count, to the client.
    log: SentLog<ServerMessage>,
    /// How many of those have come from it.
    pub receive_count: u32,
    /// Events among them for which there was no tick yet.
    pub held: VecDeque<(String, Args)>,
    /// Connections that it had before this one.
    earlier_lines: u64,
}

impl Session {
    /// As many of the held events as a world takes in one tick.
    pub fn next_held(&mut self) -> impl Iterator<Item = (String, Args)> {
        let count = self.held.len().min(EVENTS_PER_TICK);
        self.held.drain(..count)
    }
}

/// The random inputs of a player's connection.
pub(super) fn seed_of(run_seed: u64, number: u32, earlier_lines: u64) -> u64 {
    run_seed * 1000 + u64::from(number) * 2 + earlier_lines * 500_000
}

impl Run {
    /// A client's connection breaks: whatever is on its way is lost. Its
    /// character stays.
    pub fn disconnect(&mut self, peer: usize) {
        let number = self.peers[peer].number;
        self.world.apply(input::Connected {
            player: number,
            connected: false,
        });
        let peer = &mut self.peers[peer];
        peer.online = false;
        peer.greeted = false;
        peer.session.earlier_lines += 1;
        let seed = seed_of(self.seed, number, peer.session.earlier_lines);
        let quality = peer.up.quality;
        peer.up = Lane::new(quality, seed);
        peer.down = Lane::new(quality, seed + 1);
    }

    /// The client connects again and asks for its session; the server answers
    /// when that arrives.
    pub fn reconnect(&mut self, peer: usize) {
        let peer = &mut self.peers[peer];
        assert!(!peer.online, "its connection is lost");
        peer.client.reconnect();
        peer.client.handshake(None, None, None);
        peer.predicted.clear();
        peer.online = true;
    }

    /// Gives a player back to the client whose receive count is `received`.
    pub(super) fn resume(&mut self, peer: usize, received: Option<u32>) {
        let number = self.peers[peer].number;
        self.world.apply(input::Reconnect { player: number });
        self.world.apply(input::Connected {
            player: number,
            connected: true,
        });
        let peer_now = &mut self.peers[peer];
        peer_now.view = ClientView::new(number, peer_now.delivery);
        peer_now.terrain = TerrainView::new(number);
        let sent = peer_now.session.log.rewind(received.unwrap_or(0));
        self.greet(peer, Resumption::Resumed, sent);
    }

    /// Sends a client its initial state.
    pub(super) fn greet(&mut self, peer: usize, resumption: Resumption, sent: u32) {
        let number = self.peers[peer].number;
        let welcome = Welcome {
            tick: self.world.tick(),
            entity_id: self.world.entity_of(number).expect("joined"),
            player_id: String::new(),
            player_number: number,
            world_id: "world_test".into(),
            room_code: "TEST".into(),
            tick_hz: 60,
            snapshot_hz: 20,
            resume_token: String::new(),
            server_time: self.now_ms,
            revision: String::new(),
            character: self.world.character_params(),
            resumption,
            received: self.peers[peer].session.receive_count,
            sent,
        };
        let scene = ServerMessage::Scene {
            hash: sha256(&self.scene),
            zstd: zstd::bulk::compress(&self.scene, 1).expect("compresses"),
        };
        let welcome = ServerMessage::Welcome(Box::new(welcome));
        let peer = &mut self.peers[peer];
        peer.greeted = true;
        peer.down.reliable(self.now_ms, packet::single(&welcome));
        peer.down.hold_back(self.now_ms + self.scene_late_ms);
        for message in self.meshes.iter().chain([&scene]) {
            peer.down.reliable(self.now_ms, packet::single(message));
        }
        peer.send_unwritten(self.now_ms);
    }
}

impl Peer {
    /// Sends a message if there is a connection; a reliable one waits for the
    /// next connection.
    pub(super) fn send(&mut self, now_ms: f64, message: &ServerMessage) {
        let packet = packet::single(message);
        if message.is_counted() {
            self.session.log.push(message.clone(), packet.len());
            self.send_unwritten(now_ms);
        } else if self.greeted {
            self.down.reliable(now_ms, packet);
        }
    }

    fn send_unwritten(&mut self, now_ms: f64) {
        if !self.greeted {
            return;
        }
        while let Some((_, message)) = self.session.log.next_unwritten() {
            self.down.reliable(now_ms, packet::single(message));
        }
    }
}
