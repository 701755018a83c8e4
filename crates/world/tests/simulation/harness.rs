//! A server and its clients in one thread, moved by hand.

mod connections;
mod inputs;
pub mod packages;

use std::collections::BTreeMap;

use frolic_client::{Client, ClientEvent, Drawn};
use frolic_package::Package;
use frolic_protocol::fragment;
use frolic_protocol::message::Resumption;
use frolic_protocol::packet::{self, CLIENT_MESSAGE_BYTES_MAX, DATAGRAM_BYTES_MAX};
use frolic_protocol::{ClientMessage, EntityState, ServerMessage};
use frolic_sim::random::Random;
use frolic_sim::{Buttons, CharacterInput, CharacterState, Vec3};
use frolic_world::{
    ClientView, Delivery, InterestPolicy, PlayerNumber, TerrainView, World, WorldOptions, input,
};

use connections::Session;
pub use inputs::{cast, reload};
pub use packages::{game, obby, package};

use crate::network::{Lane, Quality};

const TICK_MS: f64 = 1000.0 / 60.0;
/// Longer messages use the stream, as in the game server.
const PARTS_BYTES_MAX: usize = 8 * 1024;
/// Clients draw at about 60 frames a second, not in step with the server.
const FRAME_MS: f64 = 16.0;

pub struct Run {
    world: World,
    peers: Vec<Peer>,
    /// How far players see, if not everything.
    radius: Option<f32>,
    scene: Vec<u8>,
    meshes: Vec<ServerMessage>,
    now_ms: f64,
    next_tick_ms: f64,
    next_frame_ms: f64,
    quality: Quality,
    /// How snapshots travel to those who join from now on.
    pub delivery: Delivery,
    /// How much later than the welcome the scene comes to those who join from
    /// now on, and all that the stream carries behind it.
    pub scene_late_ms: f64,
    /// The server is late now and then: each update has a pressure of its own.
    pub strained: bool,
    pressures: Random,
    seed: u64,
    measuring: bool,
}

struct Peer {
    number: PlayerNumber,
    client: Client,
    view: ClientView,
    terrain: TerrainView,
    /// Codes of terrain requests that the world refused.
    refused: Vec<&'static str>,
    chunk_bytes: usize,
    delivery: Delivery,
    up: Lane,
    down: Lane,
    /// Whether the client is connected and is in the world.
    online: bool,
    /// Whether the server has answered on that connection.
    greeted: bool,
    session: Session,
    events: Vec<ClientEvent>,
    /// Positions the client predicted, by input, until the server confirms them.
    predicted: BTreeMap<u32, Vec3>,
    errors: Vec<f32>,
    drawn: BTreeMap<u32, Vec3>,
    steps: BTreeMap<u32, Vec<Vec3>>,
    snapshots: u32,
    /// Snapshots that had to travel in parts.
    cut_snapshots: u32,
    /// Other messages that it received about entities it sees.
    looks: Vec<ServerMessage>,
}

/// Walking forward at this yaw.
pub fn walk(yaw: f32) -> CharacterInput {
    CharacterInput::new(0.0, 1.0, yaw, 0.0, Buttons::default())
}

impl Run {
    pub fn new(package: &Package, seed: u64, quality: Quality) -> Self {
        Self::with_interest(package, seed, quality, None)
    }

    pub fn with_interest(
        package: &Package,
        seed: u64,
        quality: Quality,
        interest: Option<InterestPolicy>,
    ) -> Self {
        let options = WorldOptions {
            interest,
            ..WorldOptions::default()
        };
        Self::with(package, options, seed, quality)
    }

    pub fn with(package: &Package, options: WorldOptions, seed: u64, quality: Quality) -> Self {
        let radius = options.interest.and_then(|policy| policy.radius);
        let world = World::load(package, options).expect("the world loads");
        assert!(
            world.compile_errors().is_empty(),
            "{:?}",
            world.compile_errors()
        );
        Self {
            world,
            peers: Vec::new(),
            radius,
            scene: package.scene_json().to_vec(),
            meshes: package.meshes.iter().map(mesh_message).collect(),
            now_ms: 0.0,
            next_tick_ms: TICK_MS,
            next_frame_ms: 5.0,
            quality,
            delivery: Delivery::Lossy,
            scene_late_ms: 0.0,
            strained: false,
            pressures: Random::new(seed),
            seed,
            measuring: false,
        }
    }

    pub fn join(&mut self, name: &str) -> usize {
        let number = self
            .world
            .apply(input::Join::new(format!("client_{name}"), name));
        let seed = connections::seed_of(self.seed, number, 0);
        let peer = Peer {
            number,
            client: Client::new(),
            view: ClientView::new(number, self.delivery),
            terrain: TerrainView::new(number),
            refused: Vec::new(),
            chunk_bytes: 0,
            delivery: self.delivery,
            up: Lane::new(self.quality, seed),
            down: Lane::new(self.quality, seed + 1),
            online: true,
            greeted: false,
            session: Session::default(),
            events: Vec::new(),
            predicted: BTreeMap::new(),
            errors: Vec::new(),
            drawn: BTreeMap::new(),
            steps: BTreeMap::new(),
            snapshots: 0,
            cut_snapshots: 0,
            looks: Vec::new(),
        };
        self.peers.push(peer);
        let peer = self.peers.len() - 1;
        self.greet(peer, Resumption::New, 0);
        peer
    }

    pub fn leave(&mut self, peer: usize) {
        self.peers[peer].online = false;
        self.peers[peer].greeted = false;
        self.world.apply(input::Leave {
            player: self.peers[peer].number,
        });
    }

    pub fn steer(&mut self, peer: usize, input: CharacterInput) {
        self.peers[peer].client.set_input(input);
    }

    /// From now on nothing is lost or late.
    pub fn heal(&mut self) {
        self.change_quality(Quality::GOOD);
    }

    /// Applies a quality to all connections from now on.
    pub fn change_quality(&mut self, quality: Quality) {
        for peer in &mut self.peers {
            peer.up.quality = quality;
            peer.down.quality = quality;
        }
    }

    /// The world's time as a client knows it, and as the server counts it.
    pub fn world_time_s(&mut self, peer: usize) -> f64 {
        self.peers[peer].client.world_time_s(self.now_ms)
    }

    pub fn server_time_s(&self) -> f64 {
        f64::from(self.world.tick()) / 60.0
    }

    pub fn measure(&mut self, on: bool) {
        self.measuring = on;
    }

    pub fn for_ms(&mut self, ms: u32) {
        let end = self.now_ms + f64::from(ms);
        while self.now_ms < end {
            self.now_ms += 1.0;
            if self.now_ms >= self.next_frame_ms {
                self.next_frame_ms += FRAME_MS;
                self.frame();
            }
            if self.now_ms >= self.next_tick_ms {
                self.next_tick_ms += TICK_MS;
                self.tick();
            }
        }
    }

    fn frame(&mut self) {
        let now = self.now_ms;
        for peer in self.peers.iter_mut().filter(|peer| peer.online) {
            for packet in peer.down.arrived(now) {
                // Noise is refused as a whole; a real host would reconnect.
                let _ = peer.client.receive(&packet, now);
            }
            while let Some(event) = peer.client.take_event() {
                peer.events.push(event);
            }
            peer.client.advance(now);
            if let Some(state) = peer.client.own_state() {
                let seq = peer.client.stats(now).input_seq;
                peer.predicted.insert(seq, state.feet);
            }
            while let Some(bytes) = peer.client.take_reliable() {
                peer.up.reliable(now, bytes);
            }
            while let Some(bytes) = peer.client.take_datagram() {
                peer.up.datagram(now, bytes);
            }
            for drawn in peer.client.frame(now).to_vec() {
                let last = peer.drawn.insert(drawn.id, drawn.position);
                if self.measuring
                    && let Some(last) = last
                {
                    let step = drawn.position - last;
                    peer.steps.entry(drawn.id).or_default().push(step);
                }
            }
        }
    }

    fn tick(&mut self) {
        let now = self.now_ms;
        let mut returned = Vec::new();
        let present = self.peers.iter_mut().enumerate();
        for (index, peer) in present.filter(|(_, peer)| peer.online) {
            for packet in peer.up.arrived(now) {
                let Ok(messages) = packet::read::<ClientMessage>(&packet, CLIENT_MESSAGE_BYTES_MAX)
                else {
                    continue;
                };
                for message in messages {
                    peer.session.receive_count += u32::from(message.is_counted());
                    match message {
                        ClientMessage::Handshake { received, .. } => {
                            returned.push((index, received));
                        }
                        ClientMessage::Inputs { ack, shown, inputs } => {
                            self.world
                                .apply(input::Controls::new(peer.number, inputs.iter().copied()));
                            if let Some(shown) = shown {
                                let number = peer.number;
                                self.world.apply(input::Shown {
                                    player: number,
                                    tick: shown.tick,
                                    fraction: shown.fraction,
                                });
                            }
                            if let Some(ack) = ack {
                                peer.view.acknowledge(ack);
                            }
                        }
                        ClientMessage::Event { name, args } => {
                            peer.session.held.push_back((name, args));
                        }
                        ClientMessage::UnreliableEvent { name, args } => {
                            self.world.apply(input::Event::new(peer.number, name, args));
                        }
                        ClientMessage::Terraform(op) => {
                            if let Err(error) = self.world.apply(input::Terraform {
                                by: peer.number.into(),
                                op: op.clone(),
                            }) {
                                peer.refused.push(error.code());
                            }
                        }
                        ClientMessage::ChunkRequest { chunk } => {
                            peer.terrain.wish(chunk);
                        }
                        _ => {}
                    }
                }
            }
        }
        for peer in &mut self.peers {
            for (name, args) in peer.session.next_held() {
                self.world.apply(input::Event::new(peer.number, name, args));
            }
        }
        for (peer, received) in returned {
            self.resume(peer, received);
        }
        self.world.apply(input::Step);
        // Storage that is as quick as it gets.
        if let Some(newest) = self.world.take_ops().last() {
            self.world.apply(input::OpsPersisted { up_to: newest.seq });
        }
        for outgoing in self.world.take_outbox() {
            for peer in &mut self.peers {
                if let ServerMessage::TerraformApplied(applied) = &outgoing.message
                    && !peer.terrain.receives(&self.world, &applied.chunks)
                {
                    continue;
                }
                if outgoing.to.is_none_or(|to| to == peer.number) {
                    peer.send(now, &outgoing.message);
                }
            }
        }
        for peer in self.peers.iter_mut().filter(|peer| peer.greeted) {
            let mut chunks = Vec::new();
            let world = &mut self.world;
            peer.terrain.next(world, &mut |chunk| chunks.push(chunk));
            for chunk in chunks {
                peer.chunk_bytes += chunk.zstd.len();
                let packet = packet::single(&ServerMessage::ChunkData(chunk));
                peer.down.reliable(now, packet);
            }
        }
        self.world.collect_changes();
        for peer in self.peers.iter_mut().filter(|peer| peer.greeted) {
            if !self.world.update_is_due(peer.number) {
                continue;
            }
            let pressure = if self.strained {
                self.pressures.below(4) as u8
            } else {
                0
            };
            let (view, down, looks) = (&mut peer.view, &mut peer.down, &mut peer.looks);
            view.introduce(&self.world, &mut |message| {
                looks.push(message.clone());
                down.reliable(now, packet::single(message));
            });
            let mut packets = Vec::new();
            self.world
                .snapshot(&mut peer.view, pressure, &mut |packet| {
                    packets.push(packet.to_vec())
                });
            for bytes in packets {
                if self.measuring {
                    note_error(peer, &self.world, &bytes);
                }
                peer.snapshots += 1;
                let packet = packet::single(&ServerMessage::Snapshot(bytes));
                peer.send_datagrams(now, packet);
            }
        }
    }

    pub fn world(&self) -> &World {
        &self.world
    }

    pub fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    /// How far players see; none when they see everything.
    pub fn radius(&self) -> Option<f32> {
        self.radius
    }

    pub fn number(&self, peer: usize) -> PlayerNumber {
        self.peers[peer].number
    }

    pub fn entity(&self, peer: usize) -> u32 {
        let entity = self.world.entity_of(self.peers[peer].number);
        entity.expect("a player has a character")
    }

    /// What a client has received about entities it sees, besides snapshots.
    pub fn looks(&self, peer: usize) -> &[ServerMessage] {
        &self.peers[peer].looks
    }

    /// What a client should know once it has received everything.
    pub fn visible_from(&self, peer: usize) -> Vec<EntityState> {
        self.world.visible_from(self.peers[peer].number)
    }

    /// The current state of everything that may be sent to clients.
    pub fn everything(&self) -> Vec<EntityState> {
        self.world.replicated()
    }

    pub fn server_character(&self, peer: usize) -> CharacterState {
        let character = self.world.character(self.peers[peer].number);
        character.expect("a player has a character")
    }

    pub fn client(&self, peer: usize) -> &Client {
        &self.peers[peer].client
    }

    pub fn client_mut(&mut self, peer: usize) -> &mut Client {
        &mut self.peers[peer].client
    }

    pub fn take_events(&mut self, peer: usize) -> Vec<ClientEvent> {
        std::mem::take(&mut self.peers[peer].events)
    }

    pub fn drawn(&mut self, peer: usize) -> Vec<Drawn> {
        let now = self.now_ms;
        self.peers[peer].client.frame(now).to_vec()
    }

    /// Why the world refused what this client asked of the ground.
    pub fn take_refusals(&mut self, peer: usize) -> Vec<&'static str> {
        std::mem::take(&mut self.peers[peer].refused)
    }

    /// Bytes of chunks that were sent to a client.
    pub fn chunk_bytes(&self, peer: usize) -> usize {
        self.peers[peer].chunk_bytes
    }

    /// How far the server's verdict was from what the client had predicted
    /// for the same input.
    pub fn prediction_errors(&self, peer: usize) -> &[f32] {
        &self.peers[peer].errors
    }

    /// From each frame to the next, how far an entity was drawn to have gone.
    pub fn drawn_steps(&self, peer: usize, entity: u32) -> &[Vec3] {
        self.peers[peer]
            .steps
            .get(&entity)
            .map_or(&[], Vec::as_slice)
    }

    /// The largest difference of a drawn step from an even pace of `speed` m/s
    /// along the way as a whole: a step back or aside counts as one too far.
    pub fn unevenness(&self, peer: usize, entity: u32, speed: f32) -> f32 {
        let steps = self.drawn_steps(peer, entity);
        assert!(steps.len() > 150, "{} frames", steps.len());
        let way: Vec3 = steps.iter().sum();
        let even = way.normalize() * speed * FRAME_MS as f32 / 1000.0;
        let off = steps.iter().map(|step| (*step - even).length());
        off.fold(0.0, f32::max)
    }

    /// The largest change, from one frame to the next, of where an entity was
    /// drawn as seen from another one.
    pub fn wobble(&self, peer: usize, entity: u32, on: u32) -> f32 {
        let (steps, ground) = (self.drawn_steps(peer, entity), self.drawn_steps(peer, on));
        assert!(steps.len() > 150, "{} frames", steps.len());
        assert_eq!(steps.len(), ground.len(), "both in every frame");
        let apart = steps.iter().zip(ground);
        let apart = apart.map(|(step, ground)| (*step - *ground).length());
        apart.fold(0.0, f32::max)
    }

    /// The longest way that an entity was drawn to go in one frame.
    pub fn longest_step(&self, peer: usize, entity: u32) -> f32 {
        let steps = self.drawn_steps(peer, entity).iter();
        steps.map(|step| step.length()).fold(0.0, f32::max)
    }

    /// Snapshots that a client was sent in parts.
    pub fn cut_snapshots(&self, peer: usize) -> u32 {
        self.peers[peer].cut_snapshots
    }

    /// Sends garbage over the connection.
    pub fn inject_noise(&mut self, peer: usize, packets: u32) {
        let now = self.now_ms;
        for _ in 0..packets {
            let lane = &mut self.peers[peer].down;
            let noise = lane.random_bytes();
            lane.reliable(now, noise.clone());
            lane.reliable(now, packet::single(&ServerMessage::Snapshot(noise)));
        }
    }
}

impl Peer {
    /// As a transport would: what does not fit a datagram goes in parts.
    fn send_datagrams(&mut self, now: f64, packet: Vec<u8>) {
        if self.delivery == Delivery::Ordered || packet.len() > PARTS_BYTES_MAX {
            self.down.reliable(now, packet);
            return;
        }
        if packet.len() <= DATAGRAM_BYTES_MAX {
            self.down.datagram(now, packet);
            return;
        }
        self.cut_snapshots += 1;
        let parts = fragment::cut(self.snapshots, &packet).expect("not too long");
        for part in parts {
            let part = packet::single(&ServerMessage::Fragment(part));
            self.down.datagram(now, part);
        }
    }
}

fn note_error(peer: &mut Peer, world: &World, snapshot: &[u8]) {
    // The header stands before the entities and needs no baseline.
    let Ok(header) = frolic_protocol::snapshot::header(snapshot) else {
        return;
    };
    let Some(own) = header.own else {
        return;
    };
    let used = own.ack_seq + u32::from(own.late_ticks);
    if let Some(predicted) = peer.predicted.get(&used)
        && let Some(truth) = world.character(peer.number)
    {
        peer.errors.push((*predicted - truth.feet).length());
    }
    peer.predicted.retain(|seq, _| *seq >= used);
}

fn mesh_message(
    (asset, mesh): (&String, &std::sync::Arc<frolic_scene::Triangles>),
) -> ServerMessage {
    ServerMessage::Mesh {
        asset: asset.clone(),
        zstd: zstd::bulk::compress(&mesh.encode(), 1).expect("compresses"),
    }
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    hex::encode(Sha256::digest(bytes))
}
