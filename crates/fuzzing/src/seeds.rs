//! Inputs to start from, made by the real encoders.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use frolic_fleet_api::ticket::{self, TicketClaims};
use frolic_package::{Limits, Package, pack};
use frolic_protocol::message::Resumption;
use frolic_protocol::packet::SERVER_MESSAGE_BYTES_MAX;
use frolic_protocol::resume::{PersistedLog, PersistedPacket, SentLog};
use frolic_protocol::script::{
    MANIFEST_PATH, RunContext, ScriptChunk, ScriptEntry, ScriptList, ScriptManifest,
};
use frolic_protocol::terrain::{ChunkData, ChunkVersion};
use frolic_protocol::{
    Args, NumberedInput, ServerMessage, Value, Welcome, fragment, packet, samples,
};
use frolic_sim::{Buttons, CharacterInput};
use frolic_terrain::{Chunk, Material, codec};
use frolic_world::replay::{Ending, RecordOptions, RecordReader};
use frolic_world::{ClientView, Delivery, World, WorldOptions, input};
use sha2::{Digest, Sha256};

use crate::store;

/// Bytes that the target `client` gives its client at a time; each packet of its seeds fills them.
pub(crate) const CLIENT_PIECE_BYTES: usize = 600;

const MANIFEST: &str = "[game]\nid = \"fuzz\"\nname = \"Fuzz\"\nversion = \"1.0.0\"\nmax_players = 8\n\
    [world]\nidle_stop_s = 30\n[simulation]\ntick_hz = 60\nsnapshot_hz = 20\ngravity = 20.0\n";
const SCENE: &str = r##"{"format":1,"prefabs":{"Ball":{"components":{"Shape":{"type":"sphere","radius":0.5},
    "Material":{"color":"#ff0000"},"Script":{"path":"Workspace/Ball.luau"}}}},"entities":[
    {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[80,1,80]}}},
    {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0],"rotation":[0,0,0,1]},"SpawnPoint":{}}},
    {"id":3,"name":"Lift","parent":1,"prefab":"Ball","components":{"Transform":{"position":[3,1,0],"scale":[2,1,2]},
     "Body":{"type":"kinematic"},"Tag":["lift","AlwaysRelevant"],"Attributes":{"speed":2.5,"on":true,"name":"a"}}},
    {"id":4,"name":"Zone","components":{"Transform":{"position":[0,1,-4]},"Shape":{"type":"wedge","size":[2,2,2]},"Trigger":{}}},
    {"id":5,"name":"Guard","components":{"Transform":{"position":[4,0,4]},"Npc":{"patrol":["Zone",[4,0,4]],"vision_cone":true}}}]}"##;
const SCRIPT: &str = r#"
local lift = World.Find("Lift")
Network.OnClientEvent("Go", function(player, where)
    if typeof(where) == "Vector3" then
        World.Spawn("Ball", where).SetVelocity(Vector3.new(1, 2, 0))
        lift.MoveTo(where, 1)
        lift.SetAttribute("by", player.Name)
    end
    Network.Broadcast("Went", where)
end)
Network.OnClientInvoke("Echo", function(player, ...) return ... end)
"#;

fn files() -> BTreeMap<String, Vec<u8>> {
    [
        ("game.toml", MANIFEST),
        ("scene.json", SCENE),
        ("scripts/ServerScriptService/Main.luau", SCRIPT),
        ("scripts/Workspace/Ball.luau", "function OnStart() end"),
        ("scripts/StarterGui/Hud.luau", "print(1)"),
    ]
    .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
    .into()
}

/// A game with some of everything.
pub fn game() -> Package {
    let package = Package::from_files(files(), &Limits::default());
    package.unwrap_or_else(|report| panic!("{report}"))
}

/// The state that a short session persists.
struct Session {
    welcome: Vec<Vec<u8>>,
    snapshots: Vec<Vec<u8>>,
    outbox: Vec<ServerMessage>,
    recording: Vec<u8>,
}

fn session() -> &'static Session {
    static SESSION: OnceLock<Session> = OnceLock::new();
    SESSION.get_or_init(play)
}

fn play() -> Session {
    let package = game();
    let options = WorldOptions {
        record: Some(RecordOptions {
            hash_every_ticks: Some(10),
            ..RecordOptions::default()
        }),
        ..WorldOptions::default()
    };
    let mut world = World::load(&package, options).expect("the game loads");
    let players =
        ["Ada", "Ben"].map(|name| world.apply(input::Join::new(format!("id_{name}"), name)));
    let mut views = [Delivery::Ordered, Delivery::Lossy]
        .into_iter()
        .zip(players)
        .map(|(delivery, player)| ClientView::new(player, delivery))
        .collect::<Vec<_>>();
    let welcome = welcome(&world, &package, players[0]);
    let (mut snapshots, mut outbox) = (Vec::new(), Vec::new());
    for tick in 0..60u32 {
        let walk = CharacterInput::new(0.5, 1.0, tick as f32 * 0.1, 0.0, Buttons(tick as u8 & 3));
        let input = NumberedInput {
            seq: tick + 1,
            input: walk,
        };
        world.apply(input::Controls::new(players[0], [input]));
        world.apply(input::Shown {
            player: players[0],
            tick: tick.saturating_sub(8),
            fraction: 3,
        });
        match tick {
            20 => {
                let args = Args(vec![Value::Vector([2.0, 1.0, 3.0])]);
                world.apply(input::Event::new(players[1], "Go", args));
            }
            30 => drop(world.apply(input::Invoke {
                player: players[0],
                id: 7,
                name: "Echo".into(),
                args: all_values(),
            })),
            40 => world.apply(input::Reconnect { player: players[0] }),
            50 => world.apply(input::Leave { player: players[1] }),
            _ => {}
        }
        world.apply(input::Step);
        outbox.extend(world.take_outbox().into_iter().map(|out| out.message));
        world.collect_changes();
        if tick.is_multiple_of(6) {
            for view in &mut views {
                world.snapshot(view, 0, &mut |bytes| snapshots.push(bytes.to_vec()));
            }
        }
    }
    world.end_recording(Ending::Complete);
    Session {
        welcome,
        snapshots,
        outbox,
        recording: world.take_recording(),
    }
}

fn welcome(world: &World, package: &Package, player: u32) -> Vec<Vec<u8>> {
    let scene = package.scene_json();
    let welcome = Welcome {
        tick: world.tick(),
        entity_id: world.entity_of(player).expect("joined"),
        player_id: "id_Ada".into(),
        player_number: player,
        world_id: "world_1".into(),
        room_code: "ABCD".into(),
        tick_hz: 60,
        snapshot_hz: 20,
        resume_token: "00".into(),
        server_time: 1.0,
        revision: package.revision.clone(),
        character: world.character_params(),
        resumption: Resumption::New,
        received: 0,
        sent: 0,
    };
    let scene = ServerMessage::Scene {
        hash: hex::encode(Sha256::digest(scene)),
        zstd: zstd::bulk::compress(scene, 1).expect("memory is enough"),
    };
    let welcome = ServerMessage::Welcome(Box::new(welcome));
    [welcome, scene].iter().map(packet::single).collect()
}

pub fn welcome_packets() -> Vec<Vec<u8>> {
    session().welcome.clone()
}

pub fn snapshots() -> Vec<Vec<u8>> {
    session().snapshots.clone()
}

pub fn recordings() -> Vec<Vec<u8>> {
    vec![session().recording.clone()]
}

/// The mark and the header of a recording.
pub fn recording_start() -> &'static [u8] {
    let bytes = &session().recording;
    let mut reader = RecordReader::default();
    reader.push(bytes);
    reader.header().expect("a real header");
    &bytes[..reader.bytes_read() as usize]
}

pub fn records() -> Vec<Vec<u8>> {
    vec![session().recording[recording_start().len()..].to_vec()]
}

fn all_values() -> Args {
    let map = BTreeMap::from([
        ("a".to_owned(), Value::Entity(3)),
        ("b".to_owned(), Value::Nil),
    ]);
    Args(vec![
        Value::Bool(true),
        Value::Number(-1.5),
        Value::String("grüße".into()),
        Value::Vector([1.0, -2.0, 0.5]),
        Value::List(vec![Value::Number(f64::NAN), Value::Map(map)]),
    ])
}

pub fn values() -> Vec<Vec<u8>> {
    let json = serde_json::to_vec(&all_values()).expect("plain values");
    vec![
        all_values().to_bytes(),
        json,
        b"[1,{\"x\":[null]}]".to_vec(),
    ]
}

pub fn client_packets() -> Vec<Vec<u8>> {
    let messages = samples::client();
    let mut together = vec![5];
    messages
        .iter()
        .for_each(|message| packet::write(&mut together, message));
    let mut seeds: Vec<Vec<u8>> = messages.iter().map(packet::single).collect();
    seeds.push(together);
    seeds
}

pub fn server_packets() -> Vec<Vec<u8>> {
    let script = zstd::bulk::compress(b"bytecode", 1).expect("memory is enough");
    let list = ScriptList {
        game_id: "obby".into(),
        revision: "ab".into(),
        scripts: vec![ScriptEntry {
            path: "StarterGui/Hud.luau".into(),
            hash: format!("sha256:{}", hex::encode(Sha256::digest(b"bytecode"))),
            size_bytes: 8,
            run_context: RunContext::Client,
            service: "StarterGui".into(),
            lazy: false,
            module: false,
            url: "/cdn/cd".into(),
            entities: vec![3],
        }],
        bundles: Vec::new(),
    };
    let list_text = serde_json::to_vec(&list).expect("plain values");
    let manifest = ScriptManifest {
        version: 1,
        server_tick: 2,
        revision: "ab".into(),
        hash: format!("sha256:{}", hex::encode(Sha256::digest(&list_text))),
        size_bytes: list_text.len() as u32,
        url: "/cdn/ab".into(),
        signature: String::new(),
        list: None,
    };
    let list_chunk = ScriptChunk {
        path: MANIFEST_PATH.into(),
        index: 0,
        total: 1,
        data: zstd::bulk::compress(&list_text, 1).expect("memory is enough"),
    };
    let chunk = ScriptChunk {
        path: "StarterGui/Hud.luau".into(),
        index: 0,
        total: 1,
        data: script,
    };
    let long = packet::single(&ServerMessage::Kick {
        reason: "x".repeat(3_000),
    });
    let stone = ChunkData {
        at: ChunkVersion {
            chunk: [0, 0, 0],
            version: 1,
        },
        zstd: codec::pack(&Chunk::uniform(Material::STONE)),
    };
    // Those of the samples do not decompress.
    let mut messages = vec![
        ServerMessage::ScriptManifest(manifest),
        ServerMessage::ScriptChunk(list_chunk),
        ServerMessage::ScriptChunk(chunk),
        ServerMessage::ChunkData(stone),
    ];
    messages.extend(samples::server());
    let parts = fragment::cut(4, &long).expect("it is not that long");
    messages.extend(parts.map(ServerMessage::Fragment));
    messages.extend(session().outbox.iter().cloned());
    messages.extend(snapshots().into_iter().map(ServerMessage::Snapshot));
    let mut seeds: Vec<Vec<u8>> = messages.iter().map(packet::single).collect();
    seeds.extend(welcome_packets());
    seeds.push(seeds[..2].concat());
    seeds
}

/// Messages of servers, and those after a welcome with an impossible clock.
pub fn client_inputs() -> Vec<Vec<u8>> {
    let mut seeds = server_packets();
    for clock in [(u32::MAX, 1), (u32::MAX, u32::MAX), (0, 0)] {
        for snapshot in session().snapshots.iter().step_by(5) {
            let mut seed = odd_welcome(clock);
            seed.extend_from_slice(snapshot);
            seeds.push(seed);
        }
    }
    seeds
}

/// A welcome with such ticks and snapshots per second, as long as one piece.
fn odd_welcome((tick_hz, snapshot_hz): (u32, u32)) -> Vec<u8> {
    let packet = &session().welcome[0];
    let messages = packet::read(packet, SERVER_MESSAGE_BYTES_MAX).expect("what we wrote");
    let Some(ServerMessage::Welcome(mut welcome)) = messages.into_iter().next() else {
        panic!("the first packet is the welcome");
    };
    (welcome.tick_hz, welcome.snapshot_hz) = (tick_hz, snapshot_hz);
    loop {
        let packet = packet::single(&ServerMessage::Welcome(welcome.clone()));
        if packet.len() == CLIENT_PIECE_BYTES {
            return packet;
        }
        assert!(packet.len() < CLIENT_PIECE_BYTES, "it was short");
        welcome.world_id.push('x');
    }
}

pub fn json_commands() -> Vec<Vec<u8>> {
    [
        ("session", "handshake", r#"{"ticket":"a.b","name":"Ada"}"#),
        ("session", "ack", r#"{"tick":77}"#),
        ("session", "ping", r#"{"t":12.5}"#),
        ("session", "scene", "{}"),
        ("session", "leave", "null"),
        (
            "movement",
            "input_batch",
            r#"{"inputs":[{"seq":101,"up":true,"right":true,"jump":true},{"seq":102}]}"#,
        ),
        (
            "network",
            "event",
            r#"{"name":"Go","args":[1,"a",{"$v":[1,2,3]},[null],{"k":true}]}"#,
        ),
        ("network", "invoke", r#"{"id":3,"name":"Echo","args":[]}"#),
        ("chat", "say", r#"{"text":"hi"}"#),
        ("scripts", "request", r#"{"paths":["StarterGui/Hud.luau"]}"#),
        (
            "scripts",
            "verify",
            r#"{"path":"@manifest","hash":"sha256:ab","success":true}"#,
        ),
        ("terrain", "chunk", r#"{"x":1,"y":-2,"z":3}"#),
    ]
    .map(|(feature, action, payload)| {
        let head = r#"{"v":2,"kind":"command","seq":4,"clientTime":1.5"#;
        format!(r#"{head},"feature":"{feature}","action":"{action}","payload":{payload}}}"#)
            .into_bytes()
    })
    .into()
}

pub fn persisted_logs() -> Vec<Vec<u8>> {
    let mut log = SentLog::restored(7);
    for message in [
        ServerMessage::Event {
            name: "Falls".into(),
            args: Args(vec![Value::Entity(3), Value::Number(2.5)]),
        },
        ServerMessage::InvokeResult {
            id: 9,
            result: Err("nothing answers".into()),
        },
    ] {
        let packet = packet::single(&message);
        let bytes = packet.len();
        log.push(packet, bytes);
    }
    let persisted = PersistedLog::of(&log, (0, u32::MAX), 4096, |packet| PersistedPacket {
        packet,
        echo: Some("\"a\"".into()),
    });
    vec![persisted.to_bytes()]
}

pub fn tickets() -> Vec<Vec<u8>> {
    let claims = TicketClaims {
        world_id: "world_1".into(),
        player_id: "client_1".into(),
        name: "Ada".into(),
        nonce: "abc".into(),
        session: "def".into(),
        expires_at: 1_060,
        epoch: 1,
        character: None,
        left: Some(Default::default()),
        beside: Some("client_2".into()),
    };
    vec![
        ticket::sign(&[7; 32], &claims).into_bytes(),
        b"a.b".to_vec(),
    ]
}

pub fn manifests() -> Vec<Vec<u8>> {
    vec![MANIFEST.as_bytes().to_vec()]
}

pub fn scenes() -> Vec<Vec<u8>> {
    vec![
        SCENE.as_bytes().to_vec(),
        game().scene.to_canonical_json().into_bytes(),
    ]
}

/// A square as glTF with its buffer inside, and as clients get it.
pub fn meshes() -> Vec<Vec<u8>> {
    let corners = [
        [0.0f32, 0.0, 0.0],
        [1.0, 0.0, 0.0],
        [1.0, 0.0, -1.0],
        [0.0, 0.0, -1.0],
    ];
    let mut buffer: Vec<u8> = corners
        .iter()
        .flatten()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    buffer.extend([0u8, 1, 2, 0, 2, 3]);
    let json = r#"{"asset":{"version":"2.0"},"scene":0,"scenes":[{"nodes":[0]}],"nodes":[{"mesh":0,"scale":[1,2,1]}],"meshes":[{"primitives":[{"attributes":{"POSITION":0},"indices":1}]}],"accessors":[{"bufferView":0,"componentType":5126,"count":4,"type":"VEC3"},{"bufferView":1,"componentType":5121,"count":6,"type":"SCALAR"}],"bufferViews":[{"buffer":0,"byteLength":48},{"buffer":0,"byteOffset":48,"byteLength":6}],"buffers":[{"byteLength":54}]}"#;
    let length = |bytes: usize| (bytes as u32).to_le_bytes();
    let glb = [
        &b"glTF\x02\0\0\0"[..],
        &length(28 + json.len() + buffer.len()),
        &length(json.len()),
        b"JSON",
        json.as_bytes(),
        &length(buffer.len()),
        b"BIN\0",
        &buffer,
    ]
    .concat();
    let mesh = frolic_package::gltf::read(&glb).expect("a square");
    vec![glb, mesh.encode()]
}

pub fn packages() -> Vec<Vec<u8>> {
    let files = files();
    let zip = pack(&files).expect("a game that packs");
    let tar = tar(&files);
    let form = |form: u8, bytes: &[u8]| [&[form], bytes].concat();
    vec![
        form(0, &zip),
        form(0, &store::gzip(&tar)),
        form(1, &tar),
        form(2, &tar),
    ]
}

/// Bytes that mean nothing.
/// Frames of a client, behind a byte that says in which pieces they come.
pub fn frames() -> Vec<Vec<u8>> {
    let frame = |first: u8, payload: &[u8]| {
        let mask = [0x37, 0xfa, 0x21, 0x3d];
        let mut bytes = vec![first, 0x80 | 126];
        bytes.extend_from_slice(&(payload.len() as u16).to_be_bytes());
        if payload.len() < 126 {
            bytes.truncate(1);
            bytes.push(0x80 | payload.len() as u8);
        }
        bytes.extend_from_slice(&mask);
        bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(a, b)| a ^ b));
        bytes
    };
    let all = [
        frame(0x82, &[7; 300]),
        frame(0x81, b"{}"),
        frame(0x01, b"in "),
        frame(0x89, b"there?"),
        frame(0x80, b"pieces"),
        frame(0x8a, b""),
        frame(0x88, &[3, 232]),
    ];
    let mut seeds = vec![[vec![5], all.concat()].concat()];
    seeds.extend(all.map(|one| [vec![3], one].concat()));
    seeds
}

pub fn noise() -> Vec<Vec<u8>> {
    vec![(0..200u8).map(|byte| byte.wrapping_mul(37)).collect()]
}

fn tar(files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut tar = Vec::new();
    for (path, bytes) in files {
        let mut head = [0u8; 512];
        head[..path.len()].copy_from_slice(path.as_bytes());
        head[100..108].copy_from_slice(b"0000644\0");
        let size = format!("{:011o}\0", bytes.len());
        head[124..136].copy_from_slice(size.as_bytes());
        head[136..148].copy_from_slice(b"00000000000\0");
        head[156] = b'0';
        head[257..265].copy_from_slice(b"ustar\x0000");
        head[148..156].fill(b' ');
        let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
        head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        tar.extend_from_slice(&head);
        tar.extend_from_slice(bytes);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    tar
}

/// A weapon, who holds it, a shot and its hit.
#[cfg(test)]
mod tests {
    use super::*;
    use frolic_package::Manifest;
    use frolic_protocol::{json, snapshot};

    /// A seed that is refused at once leads a fuzzer nowhere.
    #[test]
    fn seeds_are_taken() {
        let limits = Limits::default();
        for seed in manifests() {
            Manifest::parse(&seed, &limits).unwrap_or_else(|report| panic!("{report}"));
        }
        for seed in packages() {
            let archive = match seed[0] {
                0 => seed[1..].to_vec(),
                1 => store::gzip(&seed[1..]),
                _ => zstd::bulk::compress(&seed[1..], 1).unwrap(),
            };
            Package::read(&archive, &limits).unwrap_or_else(|report| panic!("{report}"));
        }
        for seed in json_commands() {
            let text = String::from_utf8(seed).unwrap();
            json::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
        for seed in snapshots() {
            snapshot::header(&seed).unwrap();
        }
        assert!(session().outbox.len() >= 4, "{:?}", session().outbox);
        let report = frolic_world::replay::replay(&game(), &session().recording).unwrap();
        assert_eq!((report.ticks, report.difference), (60, None));
    }
}
