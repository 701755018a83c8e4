//! The JSON form as third-party clients rely on it.

mod commands;
mod literal;

use super::*;
use crate::entity::{EntityKind, EntityState};
use crate::message::{ClientMessage, PlayerInfo, ServerMessage};
use crate::npc::{Mood, NpcEvent, NpcState};
use crate::value::{Args, Value};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

#[test]
fn the_example_of_the_specification_is_understood() {
    let command = parse(
        r#"{"v":2,"kind":"command","seq":42,"feature":"movement","action":"input_batch",
            "clientTime":1234.5,"payload":{"inputs":[{"seq":101,"up":true,"right":true,"jump":true}]}}"#,
    )
    .unwrap();
    assert_eq!(command.seq, Some(42));
    let ClientMessage::Inputs { inputs, .. } = command.message else {
        panic!("{command:?}");
    };
    assert_eq!(inputs[0].seq, 101);
    assert_eq!((inputs[0].input.forward, inputs[0].input.right), (127, 127));
}

proptest! {
    #[test]
    fn random_text_never_panics(text in ".{0,200}") {
        let _ = parse(&text);
    }
}

#[test]
fn events_and_results_have_their_documented_form() {
    let text = |message: &ServerMessage| -> Json {
        serde_json::from_str(&encode(message).unwrap()).unwrap()
    };
    let (name, args) = (
        "Falls".to_owned(),
        Args(vec![Value::Number(3.0), Value::Vector([1.0, 2.0, 3.0])]),
    );
    let event = text(&ServerMessage::Event {
        name: name.clone(),
        args: args.clone(),
    });
    assert_eq!(
        event,
        json!({"v":2,"kind":"event","feature":"network","name":"Falls","args":[3,{"$v":[1.0,2.0,3.0]}]})
    );
    let unreliable = text(&ServerMessage::UnreliableEvent { name, args });
    assert_eq!(unreliable, event, "the delivery does not show");
    let result = text(&ServerMessage::InvokeResult {
        id: 4,
        result: Err("no".into()),
    });
    assert_eq!(
        result,
        json!({"v":2,"kind":"event","feature":"network.result","id":4,"ok":false,"error":"no"})
    );
}

#[test]
fn a_delta_has_only_what_changed() {
    let mut old: Vec<_> = (1..4)
        .map(|id| EntityState::new(id, EntityKind::Thing))
        .collect();
    let motion = frolic_motion::Motion {
        from: frolic_motion::Vec3::ZERO,
        to: frolic_motion::Vec3::X * 12.0,
        start_tick: 0,
        end_tick: 120,
    };
    old[0].motion = Some(motion);
    let mut new = old.clone();
    new[1].position = [256, 0, 0];
    new.remove(2);
    let view = |baseline: Option<u32>| {
        let text = snapshot(&SnapshotView {
            header: JsonHeader {
                scripts: 1,
                tick: 60,
                baseline,
                ack_seq: 5,
            },
            baseline: if baseline.is_some() { &old } else { &[] },
            current: &new,
            left_out: &[],
            players: &[PlayerInfo {
                id: "client_1".into(),
                number: 1,
                entity_id: 2,
                name: "Ada".into(),
                online: true,
                left: false,
                team: None,
                stats: Vec::new(),
                looks: Default::default(),
            }],
            structure_of: &|_| None,
            projectiles: &[],
            details_of: &|_| None,
            prefab_of: &|_| None,
            tick_hz: 60,
            voxel: &[],
        });
        serde_json::from_str::<Json>(&text).unwrap()
    };
    let delta = view(Some(57));
    assert_eq!(delta["mode"], "delta");
    assert_eq!(
        delta["features"]["movement"]["entities"][0]["p"],
        json!([1.0, 0.0, 0.0])
    );
    let entities = delta["features"]["movement"]["entities"]
        .as_array()
        .unwrap();
    assert_eq!(entities.len(), 2, "what changed, and what is on its way");
    assert_eq!(entities[1]["p"], json!([6.0, 0.0, 0.0]));
    assert_eq!(entities[1]["v"], json!([6.0, 0.0, 0.0]));
    assert_eq!(delta["features"]["movement"]["removed"], json!([3]));
    let full = view(None);
    assert_eq!(
        (&full["mode"], &full["baseline"]),
        (&json!("full"), &Json::Null)
    );
    assert_eq!(
        full["features"]["movement"]["entities"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(full["features"]["presence"]["players"][0]["name"], "Ada");
    for (feature, empty) in [
        ("build", json!({})),
        ("projectile", json!({})),
        ("npc", json!({ "npcs": [] })),
        ("voxel", json!({"versions": []})),
    ] {
        assert_eq!(full["features"][feature], empty, "{feature}");
        assert_eq!(delta["features"].get(feature), None, "nothing changed");
    }
}

#[test]
fn npc_moods_are_sent_when_they_change() {
    let mut old: Vec<EntityState> = (1..=3)
        .map(|id| EntityState::new(id, EntityKind::Character))
        .collect();
    old[0].mood = Mood::new(NpcState::Idle, 0.0);
    old[1].mood = Mood::new(NpcState::Idle, 0.0);
    let mut new = old.clone();
    new[0].mood = Mood::new(NpcState::Chase, 1.0);
    new[1].position = [256, 0, 0];
    new[2].position = [256, 0, 0];
    let view = |baseline: Option<u32>| {
        let text = snapshot(&SnapshotView {
            header: JsonHeader {
                scripts: 1,
                tick: 60,
                baseline,
                ack_seq: 5,
            },
            baseline: if baseline.is_some() { &old } else { &[] },
            current: &new,
            left_out: &[],
            players: &[],
            structure_of: &|_| None,
            projectiles: &[],
            voxel: &[],
            details_of: &|_| None,
            prefab_of: &|_| None,
            tick_hz: 60,
        });
        serde_json::from_str::<Json>(&text).unwrap()["features"].clone()
    };
    let delta = view(Some(57));
    let chase = json!({"id": 1, "state": "chase", "suspicion": 1.0});
    assert_eq!(delta["npc"], json!({ "npcs": [chase] }));
    let entities = delta["movement"]["entities"].as_array().unwrap();
    let kinds: Vec<&Json> = entities.iter().map(|entity| &entity["kind"]).collect();
    assert_eq!(kinds, ["npc", "npc", "character"]);
    let idle = json!({"id": 2, "state": "idle", "suspicion": 0.0});
    assert_eq!(view(None)["npc"], json!({ "npcs": [chase, idle] }));
    let event = NpcEvent {
        entity: 1,
        before: NpcState::Alert,
        state: NpcState::Chase,
        target: Some(3),
        suspicion: 1.0,
        position: [1.0, 0.0, 2.5],
    };
    let text = encode(&ServerMessage::Npc(event)).unwrap();
    assert_eq!(
        serde_json::from_str::<Json>(&text).unwrap(),
        json!({
            "v": 2, "kind": "event", "feature": "npc", "action": "state", "id": 1,
            "before": "alert", "state": "chase", "target": 3, "suspicion": 1.0,
            "p": [1.0, 0.0, 2.5],
        })
    );
}
