//! One of each message, for tests and as seeds of fuzzers.

use std::collections::BTreeMap;

use frolic_motion::{Angle, Buttons, CharacterInput, CharacterParams, FlightParams};

use crate::avatar::AvatarLooks;
use crate::client_log::{ClientLog, ClientLogLine, ConsoleLevel};
use crate::fragment::Fragment;
use crate::inputs::NumberedInput;
use crate::message::{
    ClientMessage, ConnectionReport, PacketAck, PlayerInfo, PlayerStat, Resumption, ServerMessage,
    Shown, StageFigure, TickFigures, Welcome,
};
use crate::npc::{NpcEvent, NpcState};
use crate::projectile::{Launch, ProjectileHit, ShotLook, Vitals, Weapon};
use crate::script::{
    RunContext, ScriptBundle, ScriptChunk, ScriptEntry, ScriptList, ScriptManifest,
};
use crate::spell::CastEvent;
use crate::terrain::{
    ChunkData, ChunkVersion, TerraformApplied, TerrainAction, TerrainOp, TerrainShape,
};
use crate::value::{Args, Value};

/// One of each message of clients.
pub fn client() -> Vec<ClientMessage> {
    let input = NumberedInput {
        seq: 300,
        input: CharacterInput::new(1.0, -1.0, 2.0, 0.5, Buttons::JUMP),
    };
    vec![
        ClientMessage::Handshake {
            version: 2,
            ticket: Some("a.b".into()),
            resume_token: Some("c.d".into()),
            name: None,
            received: Some(u32::MAX),
        },
        ClientMessage::Inputs {
            ack: Some(PacketAck {
                newest: 7,
                earlier: 0x8000_0001,
            }),
            shown: Some(Shown {
                tick: 5,
                fraction: 200,
            }),
            inputs: [input; 12].into_iter().collect(),
        },
        ClientMessage::SnapshotAck { tick: 77 },
        ClientMessage::Ping {
            t: 12.5,
            received: 3,
        },
        ClientMessage::Leave,
        ClientMessage::Event {
            name: "Go".into(),
            args: args(),
        },
        ClientMessage::Invoke {
            id: 9,
            name: "Buy".into(),
            args: args(),
        },
        ClientMessage::ScriptRequest {
            paths: vec!["StarterGui/Hud.luau".into(), "@manifest".into()],
            from: 4,
        },
        ClientMessage::ScriptVerify {
            path: "@manifest".into(),
            hash: "sha256:ab".into(),
            success: true,
        },
        ClientMessage::Chat {
            text: "hi 👋".into(),
        },
        ClientMessage::Terraform(terrain_op()),
        ClientMessage::ChunkRequest {
            chunk: [-1, 0, i32::MAX],
        },
        ClientMessage::CastSpell {
            spell_id: "fireball".into(),
            revision_id: Some("ab".into()),
            params: args(),
        },
        ClientMessage::UnreliableEvent {
            name: "Look".into(),
            args: args(),
        },
        ClientMessage::AskFigures,
        ClientMessage::Hide {
            player_id: "client_2".into(),
            hidden: true,
        },
        ClientMessage::Report(ConnectionReport {
            input_seq: 900,
            pending_inputs: 7,
            corrections: 2,
            snapshot_age_ms: 31.5,
            jitter_ms: 4.25,
        }),
        ClientMessage::AskScene,
        ClientMessage::Reset,
        ClientMessage::Log(ClientLog {
            revision: "ab".repeat(32),
            browser: "Firefox on Linux".into(),
            lines: vec![ClientLogLine {
                level: ConsoleLevel::Error,
                script: "StarterGui/Hud.luau".into(),
                line: 3,
                message: "attempt to index nil".into(),
                stack: "StarterGui/Hud.luau:3".into(),
                count: 7,
            }],
        }),
    ]
}

/// One of each message of servers.
pub fn server() -> Vec<ServerMessage> {
    let mut samples = vec![
        ServerMessage::Welcome(Box::new(welcome())),
        ServerMessage::Scene {
            hash: "ab".into(),
            zstd: vec![0x28, 0xb5, 0x2f, 0xfd, 0],
        },
        ServerMessage::Definition {
            index: u16::MAX,
            components: r#"{"Shape":{"type":"sphere","radius":1}}"#.into(),
        },
        ServerMessage::Snapshot((0..=255).collect()),
        ServerMessage::Fragment(Fragment {
            packet: 4,
            index: 1,
            count: 3,
            bytes: vec![7; 1100],
        }),
        ServerMessage::Presence(vec![player(None), player(Some("Red"))]),
        ServerMessage::Pong {
            t: 12.5,
            server_time: 1e9,
            tick: 99,
            received: 2,
        },
        ServerMessage::Error {
            code: "too_fast".into(),
            message: "Slower, please.".into(),
        },
        ServerMessage::Kick {
            reason: "The world ends.".into(),
        },
        ServerMessage::Event {
            name: "Went".into(),
            args: args(),
        },
        ServerMessage::UnreliableEvent {
            name: "Flickers".into(),
            args: args(),
        },
        ServerMessage::LogsWanted { prints: true },
        ServerMessage::InvokeResult {
            id: 1,
            result: Ok(args()),
        },
        ServerMessage::InvokeResult {
            id: 2,
            result: Err("no such function".into()),
        },
        ServerMessage::Chat {
            from: "Ada".into(),
            text: "hi".into(),
            player_id: "id_Ada".into(),
        },
        ServerMessage::ResumeToken {
            token: "00ff".into(),
        },
        ServerMessage::Cast(Box::new(cast())),
        ServerMessage::Figures(TickFigures {
            tick_ms: 1.5,
            worst_ms: 9.25,
            stages: vec![StageFigure {
                name: "physics".into(),
                ms: 0.5,
            }],
        }),
        ServerMessage::Npc(NpcEvent {
            entity: 7,
            before: NpcState::Idle,
            state: NpcState::Suspicious,
            target: Some(9),
            suspicion: 0.5,
            position: [1.0, 0.0, 2.0],
        }),
        ServerMessage::Mesh {
            asset: "assets/tower.glb".into(),
            zstd: vec![1, 2, 3],
        },
        ServerMessage::Character(CharacterParams::default()),
        ServerMessage::Saving { delayed: true },
    ];
    samples.extend(of_scripts());
    samples.extend(of_shots());
    samples.extend(of_terrain());
    samples
}

fn welcome() -> Welcome {
    Welcome {
        tick: 1,
        entity_id: 1_000_001,
        player_id: "id_Ada".into(),
        player_number: 1,
        world_id: "world_1".into(),
        room_code: "ABCD".into(),
        tick_hz: 60,
        snapshot_hz: 20,
        resume_token: "00".into(),
        server_time: 1.0,
        revision: "ab".into(),
        character: CharacterParams::default(),
        resumption: Resumption::Restarted,
        received: 3,
        sent: 4,
    }
}

fn player(team: Option<&str>) -> PlayerInfo {
    PlayerInfo {
        id: "id_Ada".into(),
        number: 1,
        entity_id: 1_000_001,
        name: "Ada".into(),
        online: true,
        left: false,
        team: team.map(str::to_owned),
        stats: vec![PlayerStat {
            name: "Coins".into(),
            text: "3".into(),
            number: Some(3.0),
        }],
        looks: AvatarLooks::from_json(r##"{"shirt":"#ff5d5d","hat":"crown","face":"wink"}"##),
    }
}

fn cast() -> CastEvent {
    CastEvent {
        spell_id: "fireball".into(),
        revision_id: "ab".into(),
        caster: 1_000_001,
        target: [1.0, 2.0, 3.0],
        params: args(),
        seed: (1 << 53) - 1,
        draws: 4,
        answers: args(),
        tick: 12,
    }
}

fn of_scripts() -> Vec<ServerMessage> {
    let path = || "StarterGui/Hud.luau".to_owned();
    let list = ScriptList {
        game_id: "obby".into(),
        revision: "ab".into(),
        scripts: vec![ScriptEntry {
            path: path(),
            hash: "sha256:cd".into(),
            size_bytes: 8,
            run_context: RunContext::Both,
            service: "StarterGui".into(),
            lazy: true,
            module: false,
            url: "/cdn/cd".into(),
            entities: vec![3],
        }],
        bundles: vec![ScriptBundle {
            name: "hud".into(),
            hash: "sha256:ef".into(),
            size_bytes: 8,
            url: "/cdn/ef".into(),
            scripts: vec![path()],
        }],
    };
    vec![
        ServerMessage::ScriptManifest(ScriptManifest {
            version: 1,
            server_tick: 2,
            revision: "ab".into(),
            hash: "sha256:01".into(),
            size_bytes: 100,
            url: "/cdn/01".into(),
            signature: "00".into(),
            list: Some(list),
        }),
        ServerMessage::ScriptChunk(ScriptChunk {
            path: path(),
            index: 1,
            total: 2,
            data: vec![5; 300],
        }),
        ServerMessage::ExecuteScript {
            path: path(),
            run_context: RunContext::Client,
        },
    ]
}

fn of_shots() -> Vec<ServerMessage> {
    let weapon = Weapon {
        index: 0,
        name: "Blaster".into(),
        speed: 75.0,
        flight: FlightParams {
            gravity: 9.8,
            radius: 0.1,
            bounce: 0.7,
        },
        ricochets: 2,
        life_ticks: 120,
        interval: 3072,
        color: [58, 166, 255],
        look: ShotLook::Ball,
        sound: "shot".into(),
    };
    let launch = Launch {
        id: 7,
        weapon: 0,
        shooter: 1_000_001,
        position: [0.0, 1.55, 0.0],
        velocity: [0.0, 0.0, -75.0],
        bounces: 2,
        tick: 3,
        last_tick: 123,
        input: 9,
    };
    let hit = ProjectileHit {
        id: 7,
        weapon: 0,
        shooter: 1_000_001,
        target: 1,
        met: true,
        point: [0.0, 0.0, -9.0],
        normal: [0.0, 1.0, 0.0],
        tick: 12,
    };
    vec![
        ServerMessage::Weapon(weapon),
        ServerMessage::Armed {
            player: 1,
            weapon: Some(0),
        },
        ServerMessage::ProjectileLaunch(vec![launch]),
        ServerMessage::ProjectileHit(vec![hit]),
        ServerMessage::Vitals(Vitals {
            health: 40.0,
            health_max: 100.0,
            alive: true,
        }),
        ServerMessage::Facing {
            yaw: Angle::from_radians(1.5),
        },
    ]
}

fn of_terrain() -> Vec<ServerMessage> {
    let at = ChunkVersion {
        chunk: [0, -1, 2],
        version: 1,
    };
    vec![
        ServerMessage::TerraformApplied(TerraformApplied {
            seq: 1,
            op: terrain_op(),
            chunks: vec![at],
        }),
        ServerMessage::ChunkData(ChunkData {
            at,
            zstd: vec![9; 40],
        }),
    ]
}

fn args() -> Args {
    let map = BTreeMap::from([
        ("entity".to_owned(), Value::Entity(3)),
        ("nothing".to_owned(), Value::Nil),
    ]);
    Args(vec![
        Value::Bool(true),
        Value::Number(-1.5),
        Value::String("grüße".into()),
        Value::Vector([1.0, -2.0, 0.5]),
        Value::List(vec![Value::Number(1e300), Value::Map(map)]),
    ])
}

fn terrain_op() -> TerrainOp {
    TerrainOp {
        action: TerrainAction::Paint,
        center: [1.5, 2.5, 3.5],
        shape: TerrainShape::Sphere { radius: 2.0 },
        material: Some("sand".into()),
    }
}
