//! A client that is not ours asks for the scene, and has the ground to stand on.

use serde_json::{Value as Json, json};

use crate::server::TestServer;
use crate::stranger::Stranger;

/// The events that a client receives until its command is answered, and the
/// answer.
async fn answer(stranger: &mut Stranger) -> Json {
    let seq = stranger.seq();
    loop {
        let message = stranger.next().await.expect("the connection is open");
        let answers = message["kind"] == "ack" || message["kind"] == "error";
        if answers && message["seq"] == seq {
            return message;
        }
    }
}

#[tokio::test]
async fn a_stranger_asks_for_the_scene_and_sees_the_ground() {
    let server = TestServer::start().await;
    let mut ada = Stranger::join(&server, "Ada").await;
    ada.command("session", "scene", json!({})).await;
    assert_eq!(answer(&mut ada).await["kind"], "ack");
    let event = ada.next_of_feature("scene").await;
    assert_eq!((&event["part"], &event["parts"]), (&json!(1), &json!(1)));
    let hash = event["hash"].as_str().expect("a hash");
    assert_eq!(hash.len(), 64, "{hash}");
    let file = &crate::server::sample_files()["scene.json"];
    let file: Json = serde_json::from_slice(file).expect("JSON");
    assert_eq!(event["scene"], file, "the whole scene is sent to players");
    let entities = event["scene"]["entities"].as_array().expect("entities");
    let ground = entities
        .iter()
        .find(|entity| entity["name"] == "StartIsland");
    let shape = &ground.expect("somewhere to stand")["components"]["Shape"];
    assert_eq!(shape["type"], "cylinder");

    // Again is too soon, and costs the connection nothing.
    ada.command("session", "scene", json!({})).await;
    let refused = answer(&mut ada).await;
    assert_eq!(refused["code"], "too_fast", "{refused}");
    ada.next_of("snapshot").await;
    server.stop().await;
}

/// More than one piece, with an NPC whose patrol is not sent to clients.
fn crowded() -> String {
    let mut entities = vec![
        json!({"id": 1, "name": "Spawn", "components": {"Transform": {"position": [0, 1, 0]}, "SpawnPoint": {}}}),
        json!({"id": 2, "name": "Guard", "components": {
            "Transform": {"position": [4, 0, 4]},
            "Npc": {"patrol": [[4, 0, 4], [8, 0, 4]]}}}),
    ];
    entities.extend((3..4000).map(|id| {
        let place = json!({"position": [id % 60, 0, id / 60]});
        json!({"id": id, "name": "Stone of a long wall", "components": {"Transform": place}})
    }));
    json!({"format": 1, "entities": entities}).to_string()
}

#[tokio::test]
async fn a_large_scene_comes_in_pieces_between_snapshots_without_what_clients_do_not_get() {
    let scene = crowded();
    let server = TestServer::start_with(&[("scene.json", &scene)]).await;
    let mut ada = Stranger::join(&server, "Ada").await;
    // Right behind the handshake: the snapshot comes first all the same.
    ada.command("session", "scene", json!({})).await;
    let (mut entities, mut snapshots, mut part) = (Vec::new(), 0, 0);
    loop {
        let message = ada.next().await.expect("the connection is open");
        snapshots += u32::from(message["kind"] == "snapshot");
        if message["feature"] != "scene" {
            continue;
        }
        assert!(snapshots > 0, "the snapshot is first");
        part += 1;
        assert_eq!(message["part"], part);
        let more = message["scene"]["entities"].as_array().expect("entities");
        entities.extend(more.iter().cloned());
        if message["parts"] == part {
            break;
        }
    }
    assert!(part > 1, "{part} pieces");
    assert_eq!(entities.len(), 3999);
    let guard = entities.iter().find(|entity| entity["name"] == "Guard");
    let npc = &guard.expect("a guard")["components"]["Npc"];
    assert!(
        npc.is_object() && npc["patrol"].as_array().is_none_or(Vec::is_empty),
        "{npc}"
    );
    server.stop().await;
}
