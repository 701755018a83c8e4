//! Every JSON command, valid and invalid, in tables.

use crate::json::{encode_counted, encode_echoing, glance, parse};
use crate::message::{ClientMessage, ServerMessage};
use crate::terrain::{TerrainAction, TerrainOp, TerrainShape};
use crate::value::{Args, Value};
use serde_json::{Value as Json, json};

fn command(feature: &str, action: &str, payload: Json) -> String {
    json!({"v":2,"kind":"command","seq":9,"feature":feature,"action":action,"payload":payload})
        .to_string()
}

fn ball() -> Json {
    json!({"op":"subtract","center":[1,2,3],"radius":2.5,"material":"sand"})
}

#[test]
fn every_command_is_understood() {
    let text = || "x".to_owned();
    let table = [
        (
            "session",
            "handshake",
            json!({"ticket":"x","resumeToken":null,"received":4}),
            ClientMessage::Handshake {
                version: 2,
                ticket: Some(text()),
                resume_token: None,
                name: None,
                received: Some(4),
            },
        ),
        (
            "session",
            "ack",
            json!({"tick": 7}),
            ClientMessage::SnapshotAck { tick: 7 },
        ),
        (
            "session",
            "ping",
            json!({"t": 1.5}),
            ClientMessage::Ping {
                t: 1.5,
                received: 0,
            },
        ),
        ("session", "scene", json!({}), ClientMessage::AskScene),
        ("session", "reset", json!({}), ClientMessage::Reset),
        ("session", "leave", Json::Null, ClientMessage::Leave),
        (
            "network",
            "event",
            json!({"name":"x","args":[1, {"$v":[1,2,3]}, {"$e":4}]}),
            ClientMessage::Event {
                name: text(),
                args: Args(vec![
                    Value::Number(1.0),
                    Value::Vector([1.0, 2.0, 3.0]),
                    Value::Entity(4),
                ]),
            },
        ),
        (
            "network",
            "invoke",
            json!({"id":3,"name":"x"}),
            ClientMessage::Invoke {
                id: 3,
                name: text(),
                args: Args::default(),
            },
        ),
        (
            "chat",
            "say",
            json!({"text":"x"}),
            ClientMessage::Chat { text: text() },
        ),
        (
            "chat",
            "hide",
            json!({"playerId":"x","hidden":true}),
            ClientMessage::Hide {
                player_id: text(),
                hidden: true,
            },
        ),
        (
            "scripts",
            "request",
            json!({"paths":["x"]}),
            ClientMessage::ScriptRequest {
                paths: vec![text()],
                from: 0,
            },
        ),
        (
            "scripts",
            "request",
            json!({"paths":["x"],"from":3}),
            ClientMessage::ScriptRequest {
                paths: vec![text()],
                from: 3,
            },
        ),
        (
            "scripts",
            "verify",
            json!({"path":"x","hash":"x","success":true}),
            ClientMessage::ScriptVerify {
                path: text(),
                hash: text(),
                success: true,
            },
        ),
        (
            "terrain",
            "op",
            ball(),
            ClientMessage::Terraform(TerrainOp {
                action: TerrainAction::Subtract,
                center: [1.0, 2.0, 3.0],
                shape: TerrainShape::Sphere { radius: 2.5 },
                material: Some("sand".into()),
            }),
        ),
        (
            "terrain",
            "op",
            json!({"op":"add","center":[0,0,0],"size":[1,2,3]}),
            ClientMessage::Terraform(TerrainOp {
                action: TerrainAction::Add,
                center: [0.0; 3],
                shape: TerrainShape::Box {
                    size: [1.0, 2.0, 3.0],
                },
                material: None,
            }),
        ),
        (
            "terrain",
            "chunk",
            json!({"x":-1,"y":0,"z":2}),
            ClientMessage::ChunkRequest { chunk: [-1, 0, 2] },
        ),
        (
            "spell",
            "cast",
            json!({"spell_id":"x","params":{"power":2}}),
            ClientMessage::CastSpell {
                spell_id: text(),
                revision_id: None,
                params: Args(vec![Value::Map(
                    [("power".to_owned(), Value::Number(2.0))].into(),
                )]),
            },
        ),
    ];
    for (feature, action, payload, expected) in table {
        let text = command(feature, action, payload);
        let command = parse(&text).unwrap();
        let glance = glance(&text);
        let counts = command.message.is_counted();
        assert_eq!((glance.seq, glance.counts), (Some(9), counts), "{text}");
        assert_eq!((command.seq, command.message), (Some(9), expected));
    }
}

#[test]
fn clients_whose_numbers_are_doubles_are_understood() {
    let check = |feature: &str, action: &str, payload: &str, expected: ClientMessage| {
        let text = format!(
            r#"{{"v":2.0,"kind":"command","seq":42.0,"feature":"{feature}","action":"{action}","payload":{payload}}}"#
        );
        let command = parse(&text).unwrap();
        assert_eq!((command.seq, &command.message), (Some(42), &expected));
        let glance = glance(&text);
        let counts = expected.is_counted();
        assert_eq!((glance.seq, glance.counts), (Some(42), counts), "{text}");
    };
    let tick = ClientMessage::SnapshotAck { tick: 870 };
    check("session", "ack", r#"{"tick":870.0}"#, tick);
    let ping = ClientMessage::Ping {
        t: 3.0,
        received: 17,
    };
    check("session", "ping", r#"{"t":3.0,"received":17.0}"#, ping);
    let handshake = ClientMessage::Handshake {
        version: 2,
        ticket: None,
        resume_token: None,
        name: None,
        received: Some(17),
    };
    check("session", "handshake", r#"{"received":17.0}"#, handshake);
    let scripts = ClientMessage::ScriptRequest {
        paths: vec!["x".to_owned()],
        from: 3,
    };
    check(
        "scripts",
        "request",
        r#"{"paths":["x"],"from":3.0}"#,
        scripts,
    );
    let chunk = ClientMessage::ChunkRequest { chunk: [-1, 0, 2] };
    check("terrain", "chunk", r#"{"x":-1.0,"y":0.0,"z":2.0}"#, chunk);
    let event = ClientMessage::Event {
        name: "Buy".to_owned(),
        args: Args(vec![Value::Number(2.0), Value::Entity(4)]),
    };
    let args = r#"{"name":"Buy","args":[2.0,{"$e":4.0}]}"#;
    check("network", "event", args, event);
    let inputs = r#"{"inputs":[{"seq":101.0,"up":true}]}"#;
    let text = format!(
        r#"{{"kind":"command","seq":1,"feature":"movement","action":"input_batch","payload":{inputs}}}"#
    );
    let ClientMessage::Inputs { inputs, .. } = parse(&text).unwrap().message else {
        panic!("{text}");
    };
    assert_eq!(inputs[0].seq, 101);
}

#[test]
fn a_command_without_any_field_set_may_leave_its_payload_out() {
    for action in ["handshake", "ping", "leave"] {
        assert!(parse(&command("session", action, Json::Null)).is_ok());
        let short = format!(
            r#"{{"v":2,"kind":"command","seq":9,"feature":"session","action":"{action}"}}"#
        );
        assert!(parse(&short).is_ok(), "{action}");
    }
}

#[test]
fn every_wrong_envelope_has_its_own_code_and_keeps_the_seq() {
    let deep = format!(
        r#"{{"v":2,"kind":"command","seq":3,"payload":{}{}}}"#,
        "[".repeat(500),
        "]".repeat(500)
    );
    let table = [
        ("{", "bad_json", None),
        ("[]", "bad_json", None),
        ("\"command\"", "bad_json", None),
        ("null", "bad_json", None),
        (
            r#"{"seq":3,"v":2,"kind":"command","payload":{"t":1e999}}"#,
            "bad_json",
            Some(3),
        ),
        (r#"{"v":2,"payload":{"t":NaN},"seq":3}"#, "bad_json", None),
        (&deep, "bad_json", Some(3)),
        (r#"{"v":1,"seq":3}"#, "unsupported_version", Some(3)),
        (r#"{"v":"2","seq":3}"#, "unsupported_version", Some(3)),
        (r#"{"v":null,"seq":3}"#, "unsupported_version", Some(3)),
        (r#"{"seq":3}"#, "bad_kind", Some(3)),
        (r#"{"v":2,"seq":3}"#, "bad_kind", Some(3)),
        (r#"{"v":2,"kind":"x","seq":3}"#, "bad_kind", Some(3)),
        (
            r#"{"v":2,"kind":"command","seq":3}"#,
            "bad_command",
            Some(3),
        ),
        (
            r#"{"v":2,"kind":"command","seq":3,"feature":7,"action":"say"}"#,
            "bad_command",
            Some(3),
        ),
        (r#"{"kind":"command","action":"say"}"#, "bad_command", None),
        (
            r#"{"kind":"command","feature":"chat","action":"say"}"#,
            "bad_payload",
            None,
        ),
        (
            r#"{"v":2,"kind":"command","seq":"4","feature":"chat","action":"say"}"#,
            "bad_command",
            None,
        ),
        (
            r#"{"v":2,"kind":"command","seq":-1,"feature":"chat","action":"say"}"#,
            "bad_command",
            None,
        ),
        (
            r#"{"v":2,"kind":"command","seq":1.5,"feature":"chat","action":"say"}"#,
            "bad_command",
            None,
        ),
        (r#"{"v":2.5,"seq":3}"#, "unsupported_version", Some(3)),
        (
            r#"{"v":2,"kind":"command","seq":4294967296,"feature":"chat","action":"say"}"#,
            "bad_command",
            None,
        ),
    ];
    for (text, code, seq) in table {
        let error = parse(text).unwrap_err();
        assert_eq!((error.code, error.seq), (code, seq), "{text}");
        assert!(!error.message.is_empty());
    }
}

#[test]
fn what_was_sent_to_count_counts_however_wrong_its_payload_is() {
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    let say =
        |rest: &str| format!(r#"{{"kind":"command","feature":"chat","action":"say",{rest}}}"#);
    for (text, counts) in [
        (say(r#""payload":{"text":5}"#), true),
        (say(r#""payload":{"text":1e999}"#), true),
        (say(&format!(r#""payload":{deep}"#)), true),
        (say(r#""v":1"#), false),
        (say(r#""seq":-1"#), false),
        (command("session", "ack", json!({})), false),
        (command("chat", "shout", json!({})), false),
        (r#"{"feature":"chat","action":"say"}"#.to_owned(), false),
        ("{ chat say".to_owned(), false),
    ] {
        let error = parse(&text).unwrap_err();
        assert_eq!(error.counts, counts, "{text}");
        assert_eq!(glance(&text).counts, counts, "{text}");
    }
}

#[test]
fn unknown_features_and_actions_are_named() {
    for (feature, action) in [
        ("fly", "away"),
        ("session", "fly"),
        ("terrain", "melt"),
        ("spell", "undo"),
        ("", ""),
    ] {
        let error = parse(&command(feature, action, json!({}))).unwrap_err();
        assert_eq!((error.code, error.seq), ("unknown_command", Some(9)));
        assert!(error.message.contains(&format!("{feature}.{action}")));
    }
    let long = parse(&command(&"x".repeat(50_000), "y", json!({}))).unwrap_err();
    assert!(long.message.len() < 200, "an answer echoes no flood");
}

#[test]
fn every_wrong_payload_is_an_error_with_its_seq() {
    let inputs = |input: Json| json!({ "inputs": [input] });
    let mut nested = json!(1);
    for _ in 0..60 {
        nested = json!([nested]);
    }
    let with = |key: &str, value: Json| {
        let mut op = ball();
        op[key] = value;
        op
    };
    let table = [
        // Missing fields.
        ("movement", "input_batch", json!({})),
        ("movement", "input_batch", inputs(json!({"up": true}))),
        ("session", "ack", Json::Null),
        ("network", "event", json!({"args": []})),
        ("network", "invoke", json!({"name": "x"})),
        ("chat", "say", json!({})),
        ("scripts", "request", json!({})),
        ("scripts", "verify", json!({"path": "x", "hash": "y"})),
        ("terrain", "op", json!({})),
        ("terrain", "op", json!({"op":"add","center":[0,0,0]})),
        ("terrain", "chunk", json!({"x":1,"y":2})),
        ("spell", "cast", json!({"params": {}})),
        // Wrong types.
        ("movement", "input_batch", json!({"inputs": "all"})),
        ("movement", "input_batch", json!({"inputs": {"0": {}}})),
        ("movement", "input_batch", json!([[{"seq": 1}]])),
        ("movement", "input_batch", inputs(json!({"seq":1,"up":1}))),
        ("movement", "input_batch", inputs(json!({"seq":"1"}))),
        ("movement", "input_batch", inputs(json!({"seq":1.5}))),
        ("session", "handshake", json!({"ticket": 5})),
        ("session", "ack", json!({"tick": "yesterday"})),
        ("session", "ack", json!([7])),
        ("session", "ack", json!(7)),
        ("session", "ping", json!({"t": ["now"]})),
        ("session", "ping", json!({"t": true})),
        ("network", "invoke", json!({"id":{},"name":"x"})),
        ("network", "event", json!({"name": 1, "args": []})),
        ("network", "event", json!({"name": "x", "args": {"a": 1}})),
        ("chat", "say", json!({"text": 5})),
        ("chat", "say", json!("hello")),
        ("scripts", "request", json!({"paths": [1]})),
        ("scripts", "request", json!({"paths": [], "from": -1})),
        ("terrain", "op", with("op", json!("explode"))),
        ("terrain", "op", with("center", json!([1, 2]))),
        ("terrain", "op", with("material", json!(3))),
        ("terrain", "chunk", json!({"x":0.5,"y":0,"z":0})),
        ("spell", "cast", json!({"spell_id": 7})),
        // Numbers that are none, or too large.
        (
            "movement",
            "input_batch",
            inputs(json!({"seq":1,"yaw":"NaN"})),
        ),
        (
            "movement",
            "input_batch",
            inputs(json!({"seq":1,"yaw":1e300})),
        ),
        (
            "movement",
            "input_batch",
            inputs(json!({"seq":1,"pitch":-1e300})),
        ),
        (
            "movement",
            "input_batch",
            inputs(json!({"seq":4294967296u64})),
        ),
        ("movement", "input_batch", inputs(json!({"seq":-1}))),
        ("session", "ack", json!({"tick": 1e20})),
        ("session", "ack", json!({"tick": 7.5})),
        ("session", "ping", json!({"received": -1.0})),
        ("session", "handshake", json!({"received": 4294967296.0})),
        ("session", "ack", json!({"tick": -1})),
        (
            "network",
            "event",
            json!({"name":"x","args":[{"$v":[1e300,0,0]}]}),
        ),
        ("network", "event", json!({"name":"x","args":[{"$e":-4}]})),
        ("terrain", "op", with("radius", json!(1e300))),
        ("terrain", "op", with("radius", json!(0))),
        ("terrain", "op", with("radius", json!("NaN"))),
        ("terrain", "op", with("center", json!([1e300, 0, 0]))),
        ("terrain", "op", with("size", json!([1, 1, 1]))),
        ("terrain", "chunk", json!({"x":3000000000u32,"y":0,"z":0})),
        // Too much.
        ("session", "ping", json!({"t": "x".repeat(65)})),
        ("network", "invoke", json!({"id":"x".repeat(65),"name":"x"})),
        (
            "movement",
            "input_batch",
            json!({"inputs": vec![json!({"seq": 1}); 129]}),
        ),
        (
            "network",
            "event",
            json!({"name":"x","args":[nested.clone()]}),
        ),
        (
            "network",
            "event",
            json!({"name":"x","args": vec![0; 5000]}),
        ),
        (
            "network",
            "event",
            json!({"name":"x","args": ["x".repeat(20_000)]}),
        ),
        ("spell", "cast", json!({"spell_id":"x","params": nested})),
    ];
    for (feature, action, payload) in table {
        let text = command(feature, action, payload);
        let error = parse(&text).unwrap_err();
        let short: String = text.chars().take(200).collect();
        assert_eq!((error.code, error.seq), ("bad_payload", Some(9)), "{short}");
        assert!(error.message.contains(&format!("{feature}.{action}")));
        assert!(error.message.len() < 400, "{}", error.message);
    }
}

#[test]
fn what_a_client_wants_back_comes_back_as_it_was() {
    let pong = ServerMessage::Pong {
        t: 0.0,
        server_time: 0.0,
        tick: 0,
        received: 0,
    };
    let result = ServerMessage::InvokeResult {
        id: 0,
        result: Ok(Args::default()),
    };
    for value in ["12", "12.5", "-3", "9007199254740993", "1e10", "\"now\""] {
        let value: Json = serde_json::from_str(value).unwrap();
        let ping = parse(&command("session", "ping", json!({ "t": value }))).unwrap();
        let text = encode_echoing(&pong, &ping.echo.unwrap()).unwrap();
        let back: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(back["t"], value);

        let call = json!({ "id": value, "name": "x" });
        let call = parse(&command("network", "invoke", call)).unwrap();
        let ClientMessage::Invoke { id, .. } = call.message else {
            panic!("{:?}", call.message);
        };
        let Some(echo) = call.echo else {
            assert_eq!(json!(id), value, "a number of ours");
            continue;
        };
        let text = encode_counted(&result, 1, Some(&*echo)).unwrap();
        let back: Json = serde_json::from_str(&text).unwrap();
        assert_eq!((&back["id"], &back["n"]), (&value, &json!(1)));
    }
}
