//! Attributes and looks that scripts set reach clients that are not ours: in a
//! full snapshot, in a delta, and when they are gone again.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::server::TestServer;
use crate::stranger::Stranger;

const SCENE: (&str, &str) = (
    "scene.json",
    r#"{"format":1,"entities":[
        {"id":1,"name":"Spawn","components":{"Transform":{"position":[0,1,0]},"SpawnPoint":{}}},
        {"id":2,"name":"Door","components":{"Transform":{"position":[3,1,0]},"Shape":{"type":"box","size":[1,2,1]}}}]}"#,
);
const DOOR: (&str, &str) = (
    "scripts/ServerScriptService/Door.luau",
    r##"local door = World.Find("Door")
door:SetAttribute("Open", false)
Network.OnClientEvent("Open", function(player)
    door:SetAttribute("Open", true)
    door:SetAttribute("By", player.Name)
    door.Color = "#ff5d5d"
    door.Opacity = 0.5
    door.Scale = Vector3.new(1, 2, 1)
end)
Network.OnClientEvent("Forget", function(player)
    door:SetAttribute("Open", nil)
    door:SetAttribute("By", nil)
end)
"##,
);

/// The next replicated details of the door; the client acknowledges.
async fn details_of_door(stranger: &mut Stranger) -> (Json, Json) {
    for _ in 0..400 {
        let snapshot = stranger.next_of("snapshot").await;
        let tick = snapshot["tick"].clone();
        stranger
            .command("session", "ack", json!({ "tick": tick }))
            .await;
        let entities = snapshot["features"]["movement"]["entities"].as_array();
        let mut entities = entities.into_iter().flatten();
        if let Some(door) = entities.find(|entity| entity["id"] == 2) {
            return (snapshot["mode"].clone(), door.clone());
        }
    }
    panic!("no details of the door arrived");
}

/// The same in a delta, when its attributes are as wanted.
async fn until(stranger: &mut Stranger, attributes: Json) -> Json {
    let search = async {
        loop {
            let (mode, door) = details_of_door(stranger).await;
            if mode == "delta" && door.get("attributes") == Some(&attributes) {
                return door;
            }
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(20), search).await;
    found.unwrap_or_else(|_| panic!("{attributes} never came"))
}

#[tokio::test]
async fn attributes_and_looks_reach_a_stranger_whole_changed_and_gone() {
    let server = TestServer::start_with(&[SCENE, DOOR]).await;
    let mut ada = Stranger::join(&server, "Ada").await;
    let (mode, door) = details_of_door(&mut ada).await;
    assert_eq!(
        (mode, &door["attributes"]),
        (json!("full"), &json!({ "Open": false }))
    );
    assert_eq!((door.get("color"), door.get("scale")), (None, None));

    let fire = |name: &str| json!({ "name": name, "args": [] });
    ada.command("network", "event", fire("Open")).await;
    let open = until(&mut ada, json!({ "Open": true, "By": "Ada" })).await;
    assert_eq!(
        (&open["color"], &open["opacity"]),
        (&json!("#ff5d5d"), &json!(0.5))
    );
    assert_eq!(open["scale"], json!([1.0, 2.0, 1.0]));
    assert_eq!(open["kind"], "entity");

    ada.command("network", "event", fire("Forget")).await;
    let bare = until(&mut ada, json!({})).await;
    assert_eq!(bare["color"], "#ff5d5d", "the rest comes along");
    // A client that joins now receives the same.
    let mut ben = Stranger::join(&server, "Ben").await;
    let (_, door) = details_of_door(&mut ben).await;
    for field in ["attributes", "color", "opacity", "scale"] {
        assert_eq!(door[field], bare[field], "{field}");
    }
    server.stop().await;
}
