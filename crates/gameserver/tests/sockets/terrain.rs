//! The ground over a real socket: who gets which chunks.

use serde_json::{Value as Json, json};

use crate::server::TestServer;
use crate::stranger::Stranger;

/// Level ground, 128 m to each side of the spawn point.
const SCENE: (&str, &str) = (
    "scene.json",
    r#"{"format": 1,
  "entities": [{"id": 1, "name": "Spawn", "components": {"Transform": {"position": [0.5, 8, 0.5]}, "SpawnPoint": {}}}],
  "terrain": {"size": [256, 32, 256], "generator": {"type": "flat", "height": 8}, "materials": ["stone"]}}"#,
);

/// The answer to a request for the chunk at this x.
async fn ask(stranger: &mut Stranger, x: i32) -> Json {
    let chunk = json!({ "x": x, "y": 0, "z": 0 });
    stranger.command("terrain", "chunk", chunk).await;
    let seq = stranger.seq();
    loop {
        let message = stranger.next().await.expect("the connection is open");
        if message["kind"] == "error" && message["seq"] == seq {
            return message["code"].clone();
        }
        if message["feature"] == "terrain" && message["action"] == "chunk" {
            return message["x"].clone();
        }
    }
}

#[tokio::test]
async fn a_chunk_outside_the_radius_of_a_game_is_refused() {
    let head = "[game]\nid = \"obby\"\nname = \"Ground\"\nversion = \"1.0.0\"\n";
    let limited = format!("{head}[simulation]\ninterest_radius = 30\n");
    let cases = [(limited.as_str(), json!("too_far")), (head, json!(3))];
    for (manifest, far) in cases {
        let server = TestServer::start_with(&[SCENE, ("game.toml", manifest)]).await;
        let mut ada = Stranger::join(&server, "Ada").await;
        assert_eq!(ask(&mut ada, 0).await, json!(0));
        assert_eq!(ask(&mut ada, 3).await, far);
        assert_eq!(ask(&mut ada, 4).await, json!("no_such_chunk"));
        assert_eq!(ask(&mut ada, -1).await, json!(-1));
        server.stop().await;
    }
}
