//! A world that ends: scripts save what they have to.

use frolic_fleet_api::store::StoreAnswer;
use frolic_package::Package;
use frolic_script::{LogLevel, MemoryStore};
use frolic_world::replay::{Ending, RecordOptions, replay};
use frolic_world::{World, WorldOptions, input};

use crate::harness::package;

const SCENE: &str = r#"{"format": 1, "entities": [
    {"id": 1, "name": "Ground", "components": {"Shape": {"type": "box", "size": [100, 1, 100]}}},
    {"id": 2, "name": "Spawn", "components": {"Transform": {"position": [0, 2, 0]}, "SpawnPoint": {}}}]}"#;

/// As docs/create/store.md has it.
const SAVING: &str = r#"
Players.PlayerAdded:Connect(function(player)
    player.leaderstats.Coins = Store.ForPlayer(player).Get("coins") or 0
    print("loaded", player.Name, player.leaderstats.Coins)
    player.leaderstats.Coins += 7
end)
Players.PlayerRemoving:Connect(function(player)
    local store = Store.ForPlayer(player)
    store.Set("coins", player.leaderstats.Coins)
    print("saved", player.Name, player.leaderstats.Coins)
end)
World.OnClose(function()
    task.wait(0.5)
    print("closed", #Players.All())
end)
"#;

fn game() -> Package {
    let manifest = "[game]\nid = \"test\"\nname = \"Test\"\n\n[capabilities]\nstore = true\n";
    let files = package(SCENE, &[("scripts/ServerScriptService/Save.luau", SAVING)]).files;
    let mut files = files;
    files.insert("game.toml".into(), manifest.as_bytes().to_vec());
    Package::from_files(files, &frolic_scene::Limits::default())
        .unwrap_or_else(|report| panic!("{report}"))
}

fn step(world: &mut World, store: &mut MemoryStore) {
    world.apply(input::Step);
    for request in world.take_store_requests() {
        let result = store.apply(&request.action);
        let id = request.id;
        world.apply(input::StoreAnswered(StoreAnswer { id, result }));
    }
}

fn prints(world: &mut World) -> Vec<String> {
    let logs = world.take_logs();
    let errors: Vec<_> = logs.iter().filter(|l| l.level == LogLevel::Error).collect();
    assert!(errors.is_empty(), "{errors:?}");
    logs.into_iter().map(|line| line.message).collect()
}

fn close(world: &mut World, store: &mut MemoryStore) {
    world.apply(input::Close);
    let mut steps = 0;
    while !world.has_closed() {
        step(world, store);
        steps += 1;
        assert!(steps < 600, "it never closes: {:?}", world.take_logs());
    }
}

#[test]
fn each_player_is_saved_once_when_a_world_ends() {
    let game = game();
    let options = WorldOptions {
        record: Some(RecordOptions::default()),
        ..WorldOptions::default()
    };
    let mut store = MemoryStore::default();
    let mut world = World::load(&game, options).expect("it loads");
    for name in ["Ada", "Ben", "Cay"] {
        world.apply(input::Join::new(format!("client_{name}"), name));
    }
    (0..10).for_each(|_| step(&mut world, &mut store));
    // Ben goes, and his handler waits for the store when the end comes. Dan
    // comes in the very last moment.
    world.apply(input::Leave { player: 2 });
    world.apply(input::Join::new("client_Dan", "Dan"));
    world.apply(input::Join::new("client_Eve", "Eve"));
    close(&mut world, &mut store);
    let said = prints(&mut world);
    for name in ["Ada", "Ben", "Cay", "Dan", "Eve"] {
        let saved = said
            .iter()
            .filter(|line| line.starts_with(&format!("saved {name}")));
        assert_eq!(saved.count(), 1, "{name}: {said:?}");
    }
    assert!(said.iter().any(|line| line == "saved Ada 7"), "{said:?}");
    assert!(said.iter().any(|line| line == "saved Ben 7"), "{said:?}");
    assert!(said.iter().any(|line| line == "closed 4"), "{said:?}");

    // It is part of the recording.
    world.end_recording(Ending::Complete);
    let recording = world.take_recording();
    let report = replay(&game, &recording).expect("it replays");
    assert_eq!((report.difference, report.cut_at), (None, None));

    // A player who continues in the next process has joined it.
    let mut next = World::load(&game, WorldOptions::default()).expect("it loads");
    let saved = world.player_state(1).expect("Ada is there to the end");
    next.apply(input::Join {
        saved: Some(Box::new(saved.clone())),
        ..input::Join::new("client_Ada", "Ada")
    });
    (0..10).for_each(|_| step(&mut next, &mut store));
    assert_eq!(prints(&mut next), ["loaded Ada 7"]);
}
