//! Persistence: operations are replicated once they are persisted, and rebuilt
//! from checkpoint and operations with the same result wherever the history was
//! compacted.

use std::collections::BTreeMap;

use frolic_fleet_api::ops::{LoggedOp, Structure, WorldOp};
use frolic_fleet_api::persist::{
    Checkpoint, PlayerState, STRUCTURES, STRUCTURES_VERSION, SavedWorld, Section, Stat, Structures,
};
use frolic_package::Package;
use frolic_protocol::{Args, NumberedInput, ServerMessage, Value};
use frolic_sim::random::Random;
use frolic_world::replay::{RecordOptions, replay};
use frolic_world::{JsonView, PlayerNumber, World, WorldOptions, input};

use crate::harness::{package, walk};

const SCENE: &str = r#"{"format":1,
  "prefabs":{
    "Wall":{"components":{"Transform":{"scale":[2,1,1]},"Shape":{"type":"box","size":[4,3,1]}}},
    "Tower":{"components":{"Shape":{"type":"box","size":[2,9,2]}}}},
  "entities":[
    {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[400,1,400]}}},
    {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"#;

const BUILDER: (&str, &str) = (
    "scripts/ServerScriptService/Builder.luau",
    r#"
    Network.OnClientEvent("Build", function(player, prefab, x, z)
        World.Build(prefab, Vector3.new(x, 1.5, z), Vector3.new(0, 45, 0), player)
        Network.FireClient(player, "Built", x)
    end)
    Network.OnClientEvent("Raze", function(player, index)
        local all = World.Structures(player)
        if #all > 0 then
            all[index % #all + 1].Destroy()
            World.Saved()
            Network.FireClient(player, "Razed", #all - 1)
        end
    end)
    Network.OnClientEvent("Shift", function(player)
        for _, structure in World.Structures(player) do
            structure.Position += Vector3.new(0, 1, 0)
        end
    end)
    Network.OnClientEvent("Topple", function(player)
        for _, structure in World.Structures(player) do
            structure.Position += Vector3.new(0, 1, 0)
            structure.Destroy()
        end
    end)
    Network.OnClientEvent("Flood", function(player)
        local built = 0
        for _ = 1, 300 do
            task.spawn(function()
                if pcall(World.Build, "Wall", Vector3.new(90, 1, 90)) then built += 1 end
            end)
        end
        task.wait(0.1)
        Network.FireClient(player, "Flooded", built)
    end)
    "#,
);

fn game() -> Package {
    package(SCENE, &[BUILDER])
}

fn world(saved: Option<SavedWorld>) -> World {
    let options = WorldOptions {
        saved,
        ..WorldOptions::default()
    };
    World::load(&game(), options).expect("the world loads")
}

fn fire(world: &mut World, player: PlayerNumber, name: &str, args: Vec<Value>) {
    assert!(world.apply(input::Event::new(player, name, Args(args))));
}

fn build(world: &mut World, player: PlayerNumber, prefab: &str, x: f64, z: f64) {
    let prefab = Value::String(prefab.to_owned());
    let args = vec![prefab, Value::Number(x), Value::Number(z)];
    fire(world, player, "Build", args);
}

/// Names of the events that players receive.
fn sent(world: &mut World) -> Vec<String> {
    let outbox = world.take_outbox().into_iter();
    outbox
        .filter_map(|outgoing| match outgoing.message {
            ServerMessage::Event { name, .. } => Some(name),
            _ => None,
        })
        .collect()
}

/// The entities besides characters in a client's view.
fn shown(world: &mut World) -> usize {
    world.collect_changes();
    let states = world.replicated();
    let things = states.iter().filter(|state| state.definition != 0);
    things.count()
}

#[test]
fn operations_are_not_replicated_before_they_are_persisted() {
    let mut world = world(None);
    let ada = world.apply(input::Join::new("ada", "Ada"));
    world.apply(input::Step);
    build(&mut world, ada, "Wall", 8.0, 0.0);
    for _ in 0..120 {
        world.apply(input::Step);
        assert!(sent(&mut world).is_empty(), "it is not persisted yet");
        assert_eq!(shown(&mut world), 0);
    }
    let ops = world.take_ops();
    assert_eq!(ops.iter().map(|op| op.seq).collect::<Vec<_>>(), [1]);
    assert_eq!(ops[0].by.as_deref(), Some("ada"));
    world.apply(input::OpsPersisted { up_to: 1 });
    world.apply(input::Step);
    assert_eq!(sent(&mut world), ["Built"]);
    assert_eq!(shown(&mut world), 1);
    let mut view = JsonView::new(ada);
    let text = world.json_snapshot(&mut view).expect("a snapshot");
    let snapshot: serde_json::Value = serde_json::from_str(&text).unwrap();
    let structure = &snapshot["features"]["build"]["structures"][0];
    assert_eq!(structure["prefab"], "Wall");
    assert_eq!(structure["owner"], "ada");
    assert_eq!(structure["number"], 1);

    // It goes the same way as it came.
    fire(&mut world, ada, "Raze", vec![Value::Number(0.0)]);
    for _ in 0..30 {
        world.apply(input::Step);
        assert!(sent(&mut world).is_empty());
        assert_eq!(shown(&mut world), 1, "still there for clients");
    }
    assert!(world.structures().is_empty(), "gone for scripts");
    world.apply(input::OpsPersisted { up_to: 2 });
    world.apply(input::Step);
    assert_eq!(sent(&mut world), ["Razed"]);
    assert_eq!(shown(&mut world), 0);
}

/// Any change of it before then is discarded when the removal is persisted.
#[test]
fn an_entity_that_moves_and_is_removed_is_shown_until_the_removal_is_persisted() {
    for cleared in [false, true] {
        let mut world = world(None);
        let ada = world.apply(input::Join::new("ada", "Ada"));
        world.apply(input::Step);
        build(&mut world, ada, "Wall", 8.0, 0.0);
        world.apply(input::Step);
        world.apply(input::OpsPersisted { up_to: 1 });
        world.apply(input::Step);
        assert_eq!(shown(&mut world), 1);
        if cleared {
            fire(&mut world, ada, "Shift", vec![]);
            world.apply(input::Step);
            world
                .apply(input::Clear { by: "ada".into() })
                .expect("there is room");
        } else {
            fire(&mut world, ada, "Topple", vec![]);
        }
        for _ in 0..30 {
            world.apply(input::Step);
            assert_eq!(shown(&mut world), 1, "still there for clients");
        }
        assert!(world.structures().is_empty(), "gone for scripts");
        world.apply(input::OpsPersisted { up_to: 2 });
        world.apply(input::Step);
        assert_eq!(shown(&mut world), 0);
    }
}

#[test]
fn a_world_is_the_same_however_its_history_was_cut_short() {
    for seed in 1..=6 {
        let mut random = Random::new(seed);
        let mut world = world(None);
        let players = [
            world.apply(input::Join::new("ada", "Ada")),
            world.apply(input::Join::new("ben", "Ben")),
        ];
        let mut log: Vec<LoggedOp> = Vec::new();
        let mut checkpoints = vec![Default::default()];
        for turn in 0..120 {
            let player = players[random.below(2) as usize];
            if random.below(3) == 0 {
                let index = Value::Number(f64::from(random.below(50)));
                fire(&mut world, player, "Raze", vec![index]);
            } else {
                let prefab = ["Wall", "Tower"][random.below(2) as usize];
                let place = |random: &mut Random| f64::from(random.range(-90.0, 90.0));
                let (x, z) = (place(&mut random), place(&mut random));
                build(&mut world, player, prefab, x, z);
            }
            (0..5).for_each(|_| {
                world.apply(input::Step);
            });
            log.extend(world.take_ops());
            world.apply(input::OpsPersisted {
                up_to: log.last().map_or(0, |op| op.seq),
            });
            if turn % 30 == 17 {
                checkpoints.push(world.checkpoint());
            }
        }
        checkpoints.push(world.checkpoint());
        assert!(log.len() > 80, "{}", log.len());
        let mut hashes = Vec::new();
        for checkpoint in checkpoints {
            // With all operations, as if the old ones had not been deleted yet.
            let newer = log.iter().filter(|op| op.seq > checkpoint.seq).cloned();
            for ops in [newer.collect(), log.clone()] {
                let checkpoint = checkpoint.clone();
                let again = self::world(Some(SavedWorld { checkpoint, ops }));
                assert_eq!(again.structures(), world.structures(), "seed {seed}");
                assert_eq!(again.newest_op(), world.newest_op());
                assert_eq!(
                    again.checkpoint(),
                    world.checkpoint(),
                    "and goes on the same"
                );
                hashes.push(again.state_hash());
            }
        }
        hashes.dedup();
        assert_eq!(hashes.len(), 1, "seed {seed}: {hashes:?}");
    }
}

#[test]
fn numbers_are_never_reused_and_unknown_prefabs_are_persisted() {
    let mut world = world(None);
    let ada = world.apply(input::Join::new("ada", "Ada"));
    build(&mut world, ada, "Tower", 8.0, 0.0);
    build(&mut world, ada, "Wall", 12.0, 0.0);
    world.apply(input::Step);
    world.apply(input::OpsPersisted { up_to: 2 });
    fire(&mut world, ada, "Raze", vec![Value::Number(1.0)]);
    world.apply(input::Step);
    world.apply(input::OpsPersisted { up_to: 3 });
    let saved = SavedWorld {
        checkpoint: world.checkpoint(),
        ops: Vec::new(),
    };
    assert_eq!(world.structures().len(), 1);

    // A version of the game without towers, and then one with them again.
    let without = package(&SCENE.replace("Tower", "Spire"), &[BUILDER]);
    let options = WorldOptions {
        saved: Some(saved),
        ..WorldOptions::default()
    };
    let mut world = World::load(&without, options).unwrap();
    assert!(
        world
            .take_logs()
            .iter()
            .any(|line| line.message.contains("\"Tower\""))
    );
    world.apply(input::Step);
    assert_eq!(shown(&mut world), 0);
    let ada = world.apply(input::Join::new("ada", "Ada"));
    build(&mut world, ada, "Wall", 4.0, 0.0);
    world.apply(input::Step);
    let ops = world.take_ops();
    assert_eq!(ops[0].seq, 4, "the history goes on");
    let saved = SavedWorld {
        checkpoint: world.checkpoint(),
        ops,
    };
    let mut world = self::world(Some(saved));
    let names: BTreeMap<_, _> = world.structures().into_iter().collect();
    assert_eq!(names[&1], "Tower");
    assert_eq!(names[&3], "Wall", "2 was given to what is gone");
    world.apply(input::Step);
    assert_eq!(shown(&mut world), 2);
}

/// Numbers that were never assigned come from a damaged checkpoint: accepting
/// them could leave no number to continue with.
#[test]
fn a_structure_with_an_impossible_number_is_left_out() {
    let structure = |number: u64| Structure {
        number,
        prefab: "Wall".into(),
        position: [number as f32, 1.5, 0.0],
        rotation: [0.0, 0.0, 0.0, 1.0],
        owner: None,
    };
    let all = vec![structure(3), structure(u64::MAX)];
    let next = u64::MAX;
    let section = Section {
        version: STRUCTURES_VERSION,
        bytes: postcard::to_allocvec(&Structures { next, all }).unwrap(),
    };
    let built = LoggedOp {
        seq: 1,
        by: None,
        op: WorldOp::Build(structure(u64::MAX - 1)),
    };
    let mut world = world(Some(SavedWorld {
        checkpoint: Checkpoint {
            seq: 0,
            sections: BTreeMap::from([(STRUCTURES.to_owned(), section)]),
        },
        ops: vec![built],
    }));
    let logs = world.take_logs();
    let sent = logs.iter().filter(|line| line.message.contains("damaged"));
    assert_eq!(sent.count(), 2, "{logs:?}");
    let ada = world.apply(input::Join::new("ada", "Ada"));
    for x in [4.0, 8.0] {
        build(&mut world, ada, "Wall", x, 0.0);
        world.apply(input::Step);
    }
    let numbers: Vec<u64> = world.structures().into_iter().map(|(n, _)| n).collect();
    assert_eq!(numbers, [3, 4, 5]);
}

#[test]
fn a_flood_of_structures_is_refused() {
    let mut world = world(None);
    let ada = world.apply(input::Join::new("ada", "Ada"));
    fire(&mut world, ada, "Flood", vec![]);
    world.apply(input::Step);
    world.apply(input::OpsPersisted {
        up_to: world.newest_op(),
    });
    let mut built = None;
    for _ in 0..30 {
        world.apply(input::Step);
        for outgoing in world.take_outbox() {
            if let ServerMessage::Event { args, .. } = outgoing.message {
                built = args.0.first().cloned();
            }
        }
    }
    assert_eq!(built, Some(Value::Number(200.0)));
}

fn walked(world: &mut World, player: PlayerNumber, ticks: u32) {
    for seq in 1..=ticks {
        let input = walk(0.4);
        world.apply(input::Controls::new(player, [NumberedInput { seq, input }]));
        world.apply(input::Step);
    }
}

#[test]
fn a_player_goes_on_where_they_were() {
    let mut world = world(None);
    let ada = world.apply(input::Join::new("ada", "Ada"));
    walked(&mut world, ada, 90);
    let mut state = world.player_state(ada).unwrap();
    let feet = world.character(ada).unwrap().feet;
    assert!(feet.length() > 3.0);
    state.health = [40.0, 150.0];
    state.team = Some("red".into());
    state.stats = BTreeMap::from([("Coins".into(), Stat::Number(7.0))]);
    state.velocity = [0.0; 3];

    let mut world = self::world(None);
    let ada = world.apply(input::Join {
        saved: Some(Box::new(state.clone())),
        ..input::Join::new("ada", "Ada")
    });
    assert_eq!(world.character(ada).unwrap().feet, feet);
    world.apply(input::Step);
    let after = world.player_state(ada).unwrap();
    let moved = (world.character(ada).unwrap().feet - feet).length();
    assert!(moved < 0.05, "{moved}");
    assert_eq!(
        (after.health, after.team, after.stats, after.look),
        (
            state.health,
            state.team.clone(),
            state.stats.clone(),
            state.look
        )
    );

    // Invalid positions are replaced by a spawn point.
    let bad = |change: &dyn Fn(&mut PlayerState)| {
        let mut bad = state.clone();
        change(&mut bad);
        bad
    };
    for bad in [
        bad(&|state| state.feet[1] = f32::NAN),
        bad(&|state| state.feet[0] = 1e9),
        bad(&|state| state.feet[1] = -1e4),
        bad(&|state| state.velocity[2] = f32::INFINITY),
        bad(&|state| state.health[1] = f64::NAN),
    ] {
        let mut world = self::world(None);
        let fresh = world.apply(input::Join::new("ada", "Ada"));
        let fresh = world.character(fresh).unwrap().feet;
        let mut world = self::world(None);
        let ada = world.apply(input::Join {
            saved: Some(Box::new(bad.clone())),
            ..input::Join::new("ada", "Ada")
        });
        assert_eq!(world.character(ada).unwrap().feet, fresh);
    }
}

#[test]
fn a_recording_of_a_world_that_was_made_again_replays() {
    let mut first = world(None);
    let ada = first.apply(input::Join::new("ada", "Ada"));
    build(&mut first, ada, "Wall", 8.0, 3.0);
    walked(&mut first, ada, 40);
    first.apply(input::OpsPersisted { up_to: 1 });
    let saved = SavedWorld {
        checkpoint: Default::default(),
        ops: first.take_ops(),
    };
    assert!(saved.ops.is_empty(), "they are persisted");
    let saved = SavedWorld {
        checkpoint: first.checkpoint(),
        ..saved
    };
    let state = first.player_state(ada).unwrap();

    let package = game();
    let options = WorldOptions {
        saved: Some(saved),
        record: Some(RecordOptions {
            hash_every_ticks: Some(10),
            ..RecordOptions::default()
        }),
        ..WorldOptions::default()
    };
    let mut world = World::load(&package, options).unwrap();
    let ada = world.apply(input::Join {
        saved: Some(Box::new(state.clone())),
        ..input::Join::new("ada", "Ada")
    });
    build(&mut world, ada, "Tower", -8.0, 3.0);
    walked(&mut world, ada, 60);
    world.take_ops();
    world.apply(input::OpsPersisted { up_to: 2 });
    walked(&mut world, ada, 60);
    world.end_recording(frolic_world::replay::Ending::Complete);
    let recording = world.take_recording();
    let report = replay(&package, &recording).unwrap();
    assert_eq!((report.ticks, report.difference), (120, None));
    assert!(report.same_hashes > 10, "{report:?}");
}
