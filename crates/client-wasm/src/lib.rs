//! The client core's JavaScript interface.
//!
//! A thin wrapper without logic: it converts JavaScript's types to the core's and
//! back. Numbers cross as flat arrays, everything rare as JSON.
#![forbid(unsafe_code)]

mod event;
mod layout;
mod part;
mod reconnect;
mod replica;
mod terrain;

use frolic_client::{Client, ClientError, ClientEvent, Drawn, DrawnKind, Liveness, RayQuery};
use frolic_protocol::{Args, ClientMessage, signature};
use frolic_sim::{Buttons, CharacterInput, Vec3};
use wasm_bindgen::prelude::*;

use event::CoreEvent;
use layout::{flag, kind};

/// A client of one world, for a browser page.
#[wasm_bindgen]
#[derive(Default)]
pub struct ClientCore {
    client: Client,
    frame: Vec<f32>,
    /// The packet of the last event, if it was a `terrain` event.
    terrain_packet: Option<Vec<u8>>,
}

#[wasm_bindgen]
impl ClientCore {
    /// A client that has not sent anything yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Queues the handshake.
    pub fn handshake(&mut self, ticket: Option<String>, resume_token: Option<String>) {
        self.client.handshake(ticket, resume_token, None);
    }

    /// The newest token that resumes this session.
    pub fn resume_token(&self) -> Option<String> {
        self.client.resume_token().map(str::to_owned)
    }

    /// Resumes the session of a core whose connection is lost; call it before the
    /// handshake.
    pub fn take_over(&mut self, old: &mut ClientCore) {
        self.client.take_over(&mut old.client);
    }

    /// Receives one WebSocket message or one datagram. False when the event queue
    /// is full: then it was not applied.
    pub fn receive(&mut self, packet: &[u8], now_ms: f64) -> Result<bool, JsError> {
        had_room(self.client.receive(packet, now_ms))
    }

    /// Receives the next bytes of the reliable stream, in any split. False as in
    /// `receive`.
    pub fn receive_stream(&mut self, bytes: &[u8], now_ms: f64) -> Result<bool, JsError> {
        had_room(self.client.receive_stream(bytes, now_ms))
    }

    /// Sets the held input from now on. Axes −1…1 (x right, y forward), angles in
    /// radians, buttons: 1 jump, 2 run, 4 fire, 8 interact.
    pub fn set_input(&mut self, move_x: f32, move_y: f32, yaw: f32, pitch: f32, buttons: u8) {
        self.client.set_input(CharacterInput::new(
            move_x,
            move_y,
            yaw,
            pitch,
            Buttons(buttons & 0x0f),
        ));
    }

    /// Runs the steps that are due and queues inputs and pings.
    pub fn advance(&mut self, now_ms: f64) {
        self.client.advance(now_ms);
    }

    /// Bytes for the reliable stream, or one WebSocket message. There may be more:
    /// call it until it returns none.
    pub fn take_reliable(&mut self) -> Option<Vec<u8>> {
        self.client.take_reliable()
    }

    /// One datagram, or one WebSocket message.
    pub fn take_datagram(&mut self) -> Option<Vec<u8>> {
        self.client.take_datagram()
    }

    /// The next event as JSON: `{"type": …}`; see `event.rs` for the kinds.
    pub fn take_event(&mut self) -> Option<String> {
        loop {
            let mut event = self.client.take_event()?;
            self.terrain_packet = match &mut event {
                ClientEvent::Terrain { packet, .. } => Some(std::mem::take(packet)),
                _ => None,
            };
            if let Some(event) = CoreEvent::new(event) {
                return Some(to_json(&event));
            }
        }
    }

    /// The corners of a mesh shape's triangles, three numbers each, in their
    /// order: three corners are a triangle. None when there is no such mesh.
    pub fn mesh(&self, asset: &str) -> Option<Vec<f32>> {
        let mesh = self.client.replica().mesh(asset)?;
        let corner = |index: u32| mesh.corners()[index as usize].to_array();
        let corners = mesh.triangles().flatten().flat_map(corner);
        Some(corners.collect())
    }

    /// Everything that moves, as records of the layout `FRAME`.
    pub fn frame(&mut self, now_ms: f64) -> Vec<f32> {
        self.frame.clear();
        for drawn in self.client.frame(now_ms) {
            push_drawn(&mut self.frame, drawn);
        }
        self.frame.clone()
    }

    /// Shots in flight as of the last frame, as records of the layout `SHOT`.
    pub fn shots(&mut self) -> Vec<f32> {
        self.frame.clear();
        for shot in self.client.shots() {
            layout::Shot {
                key: [(shot.key & 0xff_ffff) as f32],
                weapon: [f32::from(shot.weapon)],
                position: shot.position.to_array(),
                velocity: shot.velocity.to_array(),
                own: [f32::from(u8::from(shot.own))],
            }
            .write(&mut self.frame);
        }
        self.frame.clone()
    }

    /// The first entity that stops a ray (origin and direction, six floats), with a
    /// tag unless `tag` is empty: the entity (the bits of the float are the number),
    /// the distance and the normal, five floats; empty when nothing stops it. Terrain
    /// is entity 0.
    pub fn raycast(
        &self,
        ray: &[f32],
        distance_max: f32,
        tag: &str,
        ignore: &[u32],
        characters: bool,
    ) -> Vec<f32> {
        let &[x, y, z, dx, dy, dz] = ray else {
            return Vec::new();
        };
        let Some(hit) = self.client.queries().raycast(&RayQuery {
            origin: Vec3::new(x, y, z),
            direction: Vec3::new(dx, dy, dz),
            distance_max,
            tag: Some(tag).filter(|tag| !tag.is_empty()),
            ignore,
            characters,
        }) else {
            return Vec::new();
        };
        let [nx, ny, nz] = hit.normal.to_array();
        vec![f32::from_bits(hit.entity), hit.distance, nx, ny, nz]
    }

    /// Entities removed since the last call.
    pub fn removed(&mut self) -> Vec<u32> {
        self.client.take_removed()
    }

    /// Sets the key that must have signed the world's scripts: the platform's key
    /// in hex, from its answer to the join. False when it is not a key: then no
    /// scripts can be trusted.
    pub fn trust(&mut self, public_key: &str, game_id: String) -> bool {
        let key = signature::from_hex(public_key);
        self.client
            .scripts()
            .trust(key.unwrap_or_default(), game_id);
        key.is_some()
    }

    /// Accepts a script, a bundle or the list (`@manifest`) from the page's cache
    /// or its URL; true when it matches.
    pub fn offer_script(&mut self, path: &str, bytes: Vec<u8>) -> bool {
        self.client.scripts().offer(path, bytes)
    }

    /// What is to be fetched, in the order of need, as JSON; after everything that
    /// is cached was offered.
    pub fn missing_scripts(&mut self) -> String {
        to_json(&self.client.scripts().missing())
    }

    /// Requests these units from the server.
    pub fn request_scripts(&mut self, paths: Vec<String>) {
        self.client.scripts().request(paths);
    }

    /// The list as received, for the page's cache.
    pub fn script_list_bytes(&mut self) -> Option<Vec<u8>> {
        self.client.scripts().list_bytes().map(<[u8]>::to_vec)
    }

    /// Every script of the world as JSON, after the `scriptList` event.
    pub fn script_list(&mut self) -> Option<String> {
        Some(to_json(self.client.scripts().list()?))
    }

    /// Verified bytecode of a script.
    pub fn script(&mut self, path: &str) -> Option<Vec<u8>> {
        self.client.scripts().bytecode(path).map(<[u8]>::to_vec)
    }

    /// `Network.FireServer`; the arguments as a JSON list. Not `reliable`: it may
    /// be lost.
    pub fn fire_server(
        &mut self,
        name: String,
        args_json: &str,
        reliable: bool,
    ) -> Result<(), JsError> {
        let args: Args = serde_json::from_str(args_json)?;
        if reliable {
            self.client.fire_server(name, args);
        } else {
            self.client.fire_server_unreliable(name, args);
        }
        Ok(())
    }

    /// Sends output and errors of scripts to the game's creator, as the JSON of a
    /// `ClientLog`.
    pub fn send_log(&mut self, log_json: &str) -> Result<(), JsError> {
        let log = serde_json::from_str(log_json)?;
        self.client.send(&ClientMessage::Log(log));
        Ok(())
    }

    /// Requests the server's tick timings; the answer is a `figures` event.
    pub fn ask_figures(&mut self) {
        self.client.send(&ClientMessage::AskFigures);
    }

    /// Casts a spell; the parameters as a JSON list of one value.
    pub fn cast_spell(&mut self, spell_id: String, params_json: &str) -> Result<(), JsError> {
        let params: Args = serde_json::from_str(params_json)?;
        self.client.cast_spell(spell_id, params);
        Ok(())
    }

    /// `Network.InvokeServer`; the answer arrives as an `invokeResult` event.
    pub fn invoke_server(&mut self, id: u32, name: String, args_json: &str) -> Result<(), JsError> {
        let args: Args = serde_json::from_str(args_json)?;
        self.client.send(&ClientMessage::Invoke { id, name, args });
        Ok(())
    }

    /// Sends a chat message to all players in the world.
    pub fn chat(&mut self, text: String) {
        self.client.send(&ClientMessage::Chat { text });
    }

    /// Hides the chat with another player of this world, or shows it again.
    pub fn hide(&mut self, player_id: String, hidden: bool) {
        self.client.send(&ClientMessage::Hide { player_id, hidden });
    }

    /// Asks for a new life of the own character.
    pub fn reset_character(&mut self) {
        self.client.send(&ClientMessage::Reset);
    }

    /// Leaves the world; send what `take_reliable` then returns.
    pub fn leave(&mut self) {
        self.client.send(&ClientMessage::Leave);
    }

    /// The state of the connection: one of the constants `LIVENESS`.
    pub fn liveness(&self) -> u8 {
        number_of(self.client.liveness())
    }

    /// Seconds since the world started, by the server's clock.
    pub fn world_time(&mut self, now_ms: f64) -> f64 {
        self.client.world_time_s(now_ms)
    }

    /// Statistics for the overlay, as JSON.
    pub fn stats(&self, now_ms: f64) -> String {
        to_json(&self.client.stats(now_ms))
    }
}

/// The JSON of a value of this crate.
fn to_json(value: &(impl serde::Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("plain fields and maps with names as keys are JSON")
}

/// Whether a packet was applied; invalid packets raise an exception.
fn had_room(received: Result<(), ClientError>) -> Result<bool, JsError> {
    match received {
        Ok(()) => Ok(true),
        Err(ClientError::Backlog) => Ok(false),
        Err(unreadable) => Err(unreadable.into()),
    }
}

/// The number of a state of the connection.
fn number_of(liveness: Liveness) -> u8 {
    match liveness {
        Liveness::Alive => 0,
        Liveness::Stalled => 1,
        Liveness::Lost => 2,
    }
}

fn push_drawn(out: &mut Vec<f32>, drawn: &Drawn) {
    let kind = match drawn.kind {
        DrawnKind::Character => kind::CHARACTER,
        DrawnKind::Thing => kind::THING,
    };
    let flag = |bit: u16, set: bool| if set { bit } else { 0 };
    let flags = flag(flag::GROUNDED, drawn.grounded)
        | flag(flag::OWN, drawn.own)
        | flag(flag::DEAD, drawn.dead)
        | u16::from(drawn.mood.0) << flag::MOOD_SHIFT;
    layout::Frame {
        // As a number it would be rounded from 2^24 on, and two entities would
        // become one: ids are never used twice, so a long-lived world gets there.
        id: [f32::from_bits(drawn.id)],
        kind: [f32::from(kind)],
        definition: [f32::from(drawn.definition)],
        flags: [f32::from(flags)],
        position: drawn.position.to_array(),
        rotation: drawn.rotation.to_array(),
        velocity: drawn.velocity.to_array(),
        yaw: [drawn.yaw],
        pitch: [drawn.pitch],
    }
    .write(out);
}

/// The same on block terrain that changes.
#[wasm_bindgen]
pub fn determinism_digest_on_blocks(seed: u32, steps: u32) -> String {
    format!(
        "{:016x}",
        frolic_sim::digest::random_walk_on_blocks(u64::from(seed), steps)
    )
}

/// The same in deep water.
#[wasm_bindgen]
pub fn determinism_digest_in_water(seed: u32, steps: u32) -> String {
    format!(
        "{:016x}",
        frolic_sim::digest::random_swim(u64::from(seed), steps)
    )
}

/// Like [`determinism_digest`], over hills of triangles.
#[wasm_bindgen]
pub fn mesh_digest(seed: u32, steps: u32) -> String {
    format!(
        "{:016x}",
        frolic_sim::digest::mesh_walk(u64::from(seed), steps)
    )
}

/// Digest of a long random walk, in hex: equal on every machine, or
/// prediction is broken. The tests compare it with the native one.
#[wasm_bindgen]
pub fn determinism_digest(seed: u32, steps: u32) -> String {
    format!(
        "{:016x}",
        frolic_sim::digest::random_walk(u64::from(seed), steps)
    )
}

#[cfg(test)]
mod tests {
    use frolic_protocol::npc::Mood;
    use frolic_sim::Rotation;

    use super::*;

    #[test]
    fn ids_of_a_long_lived_world_stay_apart_in_a_frame() {
        // The last is a NaN as a float: its bits must survive as well.
        let ids = [1, 20_000_000, 20_000_001, u32::MAX - 1];
        let mut frame = Vec::new();
        for id in ids {
            push_drawn(&mut frame, &thing(id));
        }
        let records = frame.chunks(frame.len() / ids.len());
        let read = records.map(|record| record[0].to_bits());
        assert_eq!(read.collect::<Vec<_>>(), ids);
    }

    fn thing(id: u32) -> Drawn {
        Drawn {
            id,
            kind: DrawnKind::Thing,
            definition: 0,
            grounded: false,
            dead: false,
            own: false,
            position: Vec3::ZERO,
            rotation: Rotation::IDENTITY,
            velocity: Vec3::ZERO,
            yaw: 0.0,
            pitch: 0.0,
            mood: Mood::default(),
        }
    }
}
