//! The documented JSON messages, letter by letter: a client that was written from
//! the documentation alone must work.

use serde_json::{Value as Json, json};

use crate::entity::{EntityKind, EntityState};
use crate::json::{JsonHeader, SnapshotView, ack, encode, error, parse, snapshot};
use crate::message::{ClientMessage, PlayerInfo, Resumption, ServerMessage, Welcome};
use crate::terrain::{
    ChunkData, ChunkVersion, TerraformApplied, TerrainAction, TerrainOp, TerrainShape,
};
use crate::value::{Args, Value};

fn text_of(message: &ServerMessage) -> Json {
    serde_json::from_str(&encode(message).expect("encoded in JSON")).expect("JSON")
}

fn keys(object: &Json) -> Vec<&str> {
    let object = object.as_object().expect("an object");
    object.keys().map(String::as_str).collect()
}

#[test]
fn the_handshake() {
    let command = parse(
        r#"{"v":2,"kind":"command","seq":1,"feature":"session","action":"handshake","payload":{"ticket":"…","resumeToken":null}}"#,
    )
    .expect("understood");
    assert_eq!(command.seq, Some(1));
    let ClientMessage::Handshake {
        ticket,
        resume_token,
        ..
    } = command.message
    else {
        panic!("{command:?}");
    };
    assert_eq!((ticket.as_deref(), resume_token), (Some("…"), None));
}

#[test]
fn the_welcome() {
    let welcome = text_of(&ServerMessage::Welcome(Box::new(Welcome {
        tick: 812,
        entity_id: 7,
        player_id: "user_1".into(),
        player_number: 3,
        world_id: "world_1".into(),
        room_code: "7KQ2MX".into(),
        tick_hz: 60,
        snapshot_hz: 20,
        resume_token: "token".into(),
        server_time: 13533.5,
        revision: String::new(),
        character: Default::default(),
        resumption: Resumption::New,
        received: 0,
        sent: 0,
    })));
    for (field, value) in [
        ("v", json!(2)),
        ("kind", json!("welcome")),
        ("tick", json!(812)),
        ("entityId", json!(7)),
        ("playerId", json!("user_1")),
        ("worldId", json!("world_1")),
        ("roomCode", json!("7KQ2MX")),
        ("tickHz", json!(60)),
        ("snapshotHz", json!(20)),
        ("resumeToken", json!("token")),
        ("serverTime", json!(13533.5)),
    ] {
        assert_eq!(welcome[field], value, "{field}");
    }
}

#[test]
fn the_snapshot() {
    let thing = EntityState::new(5, EntityKind::Thing);
    let ada = PlayerInfo {
        id: "user_1".into(),
        number: 1,
        entity_id: 5,
        name: "Ada".into(),
        online: true,
        left: false,
        team: None,
        stats: Vec::new(),
        looks: Default::default(),
    };
    let gone = EntityState::new(6, EntityKind::Thing);
    let view = |baseline: Option<u32>, before: &[EntityState]| -> Json {
        let text = snapshot(&SnapshotView {
            header: JsonHeader {
                scripts: 1,
                tick: 60,
                baseline,
                ack_seq: 5,
            },
            baseline: before,
            current: &[thing],
            left_out: &[],
            players: std::slice::from_ref(&ada),
            structure_of: &|_| None,
            projectiles: &[],
            details_of: &|_| None,
            prefab_of: &|_| None,
            tick_hz: 60,
            voxel: &[],
        });
        serde_json::from_str(&text).expect("JSON")
    };
    let full = view(None, &[]);
    assert_eq!(
        (&full["v"], &full["kind"], &full["mode"]),
        (&json!(2), &json!("snapshot"), &json!("full"))
    );
    assert_eq!(
        (&full["tick"], &full["baseline"], &full["ackSeq"]),
        (&json!(60), &Json::Null, &json!(5))
    );
    let features = &full["features"];
    for feature in [
        "presence",
        "movement",
        "build",
        "projectile",
        "npc",
        "voxel",
    ] {
        assert!(features[feature].is_object(), "{feature}");
    }
    assert!(features["voxel"]["versions"].is_array());
    let player = &features["presence"]["players"][0];
    for field in ["id", "number", "entityId", "name", "online"] {
        assert!(keys(player).contains(&field), "{field}");
    }
    let entity = &features["movement"]["entities"][0];
    for field in ["id", "kind", "prefab", "p", "q", "v"] {
        assert!(keys(entity).contains(&field), "{field}");
    }
    for (field, length) in [("p", 3), ("q", 4), ("v", 3)] {
        assert_eq!(entity[field].as_array().map(Vec::len), Some(length));
    }
    assert_eq!(features["movement"]["removed"], json!([]));
    let delta = view(Some(57), &[thing, gone]);
    assert_eq!(
        (&delta["mode"], &delta["baseline"]),
        (&json!("delta"), &json!(57))
    );
    assert_eq!(delta["features"]["movement"]["removed"], json!([6]));
}

#[test]
fn the_acknowledgement_names_neither_version_nor_number() {
    let command =
        parse(r#"{"kind":"command","feature":"session","action":"ack","payload":{"tick":870}}"#)
            .expect("understood");
    assert_eq!(command.seq, None);
    assert_eq!(command.message, ClientMessage::SnapshotAck { tick: 870 });
}

#[test]
fn every_command_by_its_name_with_version_and_number_or_without() {
    let table = [
        (
            "movement.input_batch",
            r#"{"inputs":[{"seq":1,"up":true,"down":false,"left":false,"right":true,"jump":true,"run":false,"yaw":0.5,"pitch":-0.25,"fire":false,"interact":true}]}"#,
        ),
        ("session.ping", r#"{"t":1234.5}"#),
        ("session.ping", r#"{"t":1234}"#),
        ("session.leave", r#"{}"#),
        ("network.event", r#"{"name":"Buy","args":["hat",2]}"#),
        (
            "network.invoke",
            r#"{"id":7,"name":"Price","args":["hat"]}"#,
        ),
        (
            "terrain.op",
            r#"{"op":"add","center":[0,2,0],"radius":3,"material":"sand"}"#,
        ),
        (
            "terrain.op",
            r#"{"op":"add","center":[0,2,0],"size":[1,2,3],"material":"sand"}"#,
        ),
        ("terrain.chunk", r#"{"x":0,"y":0,"z":-1}"#),
        ("chat.say", r#"{"text":"hello"}"#),
        (
            "spell.cast",
            r#"{"spell_id":"fireball","revision_id":"r","params":{}}"#,
        ),
        ("spell.cast", r#"{"spell_id":"fireball","params":{}}"#),
        ("scripts.request", r#"{"paths":["StarterGui/Hud.luau"]}"#),
    ];
    for (name, payload) in table {
        let (feature, action) = name.split_once('.').expect("two words");
        let short = format!(
            r#"{{"kind":"command","feature":"{feature}","action":"{action}","payload":{payload}}}"#
        );
        let long = format!(r#"{{"v":2,"seq":42,"clientTime":1234.5,{}"#, &short[1..]);
        let (short, long) = (parse(&short), parse(&long));
        let (short, long) = (short.expect(name), long.expect(name));
        assert_eq!((short.seq, long.seq), (None, Some(42)), "{name}");
        assert_eq!(short.message, long.message, "{name}");
    }
}

#[test]
fn every_answer() {
    let parsed = |text: String| serde_json::from_str::<Json>(&text).expect("JSON");
    let confirmed = parsed(ack(42));
    assert_eq!(confirmed, json!({"v":2,"kind":"ack","seq":42}));
    let refused = parsed(error(Some(42), "bad_payload", "why"));
    assert_eq!(
        refused,
        json!({"v":2,"kind":"error","seq":42,"code":"bad_payload","message":"why"})
    );
    let pong = text_of(&ServerMessage::Pong {
        t: 1234.5,
        server_time: 2.5,
        tick: 9,
        received: 0,
    });
    for (field, value) in [
        ("kind", json!("pong")),
        ("t", json!(1234.5)),
        ("serverTime", json!(2.5)),
        ("tick", json!(9)),
    ] {
        assert_eq!(pong[field], value, "{field}");
    }
    let event = text_of(&ServerMessage::Event {
        name: "Falls".into(),
        args: Args(vec![Value::Number(3.0)]),
    });
    assert_eq!(
        event,
        json!({"v":2,"kind":"event","feature":"network","name":"Falls","args":[3]})
    );
    let result = |result| text_of(&ServerMessage::InvokeResult { id: 7, result });
    assert_eq!(
        result(Ok(Args(vec![Value::Number(25.0)]))),
        json!({"v":2,"kind":"event","feature":"network.result","id":7,"ok":true,"value":25})
    );
    assert_eq!(
        result(Err("no".into())),
        json!({"v":2,"kind":"event","feature":"network.result","id":7,"ok":false,"error":"no"})
    );
    let at = ChunkVersion {
        chunk: [0, 0, -1],
        version: 4,
    };
    let applied = text_of(&ServerMessage::TerraformApplied(TerraformApplied {
        seq: 12,
        op: TerrainOp {
            action: TerrainAction::Add,
            center: [0.0, 2.0, 0.0],
            shape: TerrainShape::Sphere { radius: 3.0 },
            material: None,
        },
        chunks: vec![at],
    }));
    for (field, value) in [
        ("kind", json!("event")),
        ("feature", json!("terrain")),
        ("action", json!("applied")),
        ("op", json!("add")),
        ("seq", json!(12)),
        ("chunks", json!([{"x":0,"y":0,"z":-1,"version":4}])),
    ] {
        assert_eq!(applied[field], value, "{field}");
    }
    let chunk = text_of(&ServerMessage::ChunkData(ChunkData {
        at,
        zstd: b"blocks".to_vec(),
    }));
    assert_eq!(
        chunk,
        json!({"v":2,"kind":"event","feature":"terrain","action":"chunk","x":0,"y":0,"z":-1,"version":4,"data":"YmxvY2tz"})
    );
}
