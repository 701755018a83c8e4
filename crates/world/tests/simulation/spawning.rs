//! Scripts that make more than a world holds: they are stopped, and the world
//! goes on.

use frolic_package::Package;
use frolic_script::LogLevel;
use frolic_world::replay::{Ending, RecordOptions, replay};
use frolic_world::{World, WorldOptions, input};

use crate::harness::package;

/// A prefab that falls, and one with a script of its own.
const SCENE: &str = r#"{"format": 1, "prefabs": {
    "Seed": {"components": {"Shape": {"type": "box", "size": [1, 1, 1]},
        "Script": {"path": "Workspace/Seed.luau"}}},
    "Ball": {"components": {"Shape": {"type": "sphere", "radius": 0.5}, "Body": {"type": "dynamic"}}},
    "Box": {"components": {"Shape": {"type": "box", "size": [1, 1, 1]}}}}, "entities": [
    {"id": 1, "name": "Ground", "components": {"Shape": {"type": "box", "size": [100, 1, 100]}}},
    {"id": 2, "name": "Spawn", "components": {"Transform": {"position": [0, 2, 0]}, "SpawnPoint": {}}}]}"#;

const HONEST: &str =
    "local n = 0\nfunction OnTick() n += 1 if n == 100 then print('honest', n) end end";

fn game(seed: &str, flood: &str) -> Package {
    package(
        SCENE,
        &[
            ("scripts/Workspace/Seed.luau", seed),
            ("scripts/ServerScriptService/Flood.luau", flood),
            ("scripts/ServerScriptService/Honest.luau", HONEST),
        ],
    )
}

struct Outcome {
    entities: usize,
    /// Place and text of every error.
    errors: Vec<(String, Option<u32>, String)>,
}

impl Outcome {
    /// The error with which a script was disabled.
    fn disabled(&self, script: &str) -> &(String, Option<u32>, String) {
        let mut errors = self.errors.iter();
        let found = errors.find(|(path, _, text)| path == script && text.contains("disabled"));
        found.unwrap_or_else(|| panic!("{script} is not disabled: {:?}", self.errors.first()))
    }
}

/// A hundred ticks, which must not depend on a clock, and the same again.
fn run(game: &Package) -> Outcome {
    let options = WorldOptions {
        record: Some(RecordOptions::default()),
        ..WorldOptions::default()
    };
    let mut world = World::load(game, options).expect("it loads");
    world.apply(input::Join::new("client_Ada", "Ada"));
    let mut logs = Vec::new();
    for _ in 0..100 {
        world.apply(input::Step);
        logs.extend(world.take_logs());
    }
    assert!(
        logs.iter().any(|line| line.message == "honest 100"),
        "the honest script missed ticks: {:?}",
        logs.iter().take(5).collect::<Vec<_>>()
    );
    let entities = world.figures().entities;
    world.end_recording(Ending::Complete);
    let report = replay(game, &world.take_recording()).expect("it replays");
    assert_eq!((report.difference, report.cut_at), (None, None));
    let errors = logs.into_iter().filter(|l| l.level == LogLevel::Error);
    Outcome {
        entities,
        errors: errors.map(|l| (l.script, l.line, l.message)).collect(),
    }
}

#[test]
fn spawned_scripts_that_spawn_more_share_one_limit_per_tick() {
    let seed = "function OnStart()\n    while true do\n        World.Spawn('Seed', Vector3.new(0, 5, 0))\n    end\nend";
    let outcome = run(&game(seed, "World.Spawn('Seed', Vector3.new(0, 5, 0))"));
    let (script, line, text) = outcome.errors.first().expect("a refusal");
    assert_eq!((script.as_str(), *line), ("Workspace/Seed.luau", Some(3)));
    assert!(text.contains("256 entities per tick"), "{text}");
    assert!(outcome.entities < 256 + 20, "{}", outcome.entities);
}

#[test]
fn spawned_scripts_that_spawn_more_in_every_tick_are_disabled() {
    let seed = "function OnStart()\n    task.wait()\n    while true do World.Spawn('Seed', Vector3.new(0, 5, 0)) end\nend";
    let outcome = run(&game(seed, "World.Spawn('Seed', Vector3.new(0, 5, 0))"));
    let (_, line, text) = outcome.disabled("Workspace/Seed.luau");
    assert_eq!(*line, Some(3), "{text}");
    assert!(text.contains("256 entities per tick"), "{text}");
    assert!(outcome.entities < 256 * 5 + 20, "{}", outcome.entities);
}

#[test]
fn a_script_that_catches_the_error_is_disabled_as_well() {
    let flood = "function OnTick()\n    for i = 1, 2000 do pcall(World.Spawn, 'Box', Vector3.new(i % 40, 5, 0)) end\nend";
    let outcome = run(&game("", flood));
    let disabled = outcome.disabled("ServerScriptService/Flood.luau");
    assert_eq!(disabled.1, Some(2));
    assert!(outcome.entities < 256 * 5 + 20, "{}", outcome.entities);
}

#[test]
fn a_script_below_the_limit_per_tick_reaches_its_limit_of_entities() {
    let flood = "function OnTick()\n    for i = 1, 250 do World.Spawn('Box', Vector3.new(i, 50, World.Tick)) end\nend";
    let outcome = run(&game("", flood));
    let (_, line, text) = outcome.disabled("ServerScriptService/Flood.luau");
    assert_eq!(*line, Some(2));
    assert!(text.contains("10000 entities"), "{text}");
    assert!(outcome.entities < 10_020, "{}", outcome.entities);
}

/// The cost of things in one place grows quadratically.
#[test]
fn bodies_inside_each_other_are_refused_whether_spawned_or_moved_there() {
    let flood = "local place = Vector3.new(0, 5, 0)\n\
        local function count(make)\n    for i = 1, 50 do local ok, why = pcall(make, i) if not ok then return i - 1, why end end\nend\n\
        print('made', count(function() World.Spawn('Ball', place) end))\n\
        print('put', count(function(i) local ball = World.Spawn('Ball', Vector3.new(i * 2, 20, 0)) ball.Position = Vector3.new(0, 10, 0) end))";
    let game = game("", flood);
    let mut world = World::load(&game, WorldOptions::default()).expect("it loads");
    world.apply(input::Step);
    let said: Vec<String> = world.take_logs().into_iter().map(|l| l.message).collect();
    let [made, put] = said.as_slice() else {
        panic!("{said:?}");
    };
    assert!(
        made.starts_with("made 8 ") && made.contains("8 bodies in one place"),
        "{made}"
    );
    assert!(
        put.starts_with("put 8 ") && put.contains("8 bodies in one place"),
        "{put}"
    );
}

/// A cart: its wheel is placed by the cart, and its lamp by the wheel's prefab.
const CART: &str = r#"{"format": 2, "prefabs": {
    "Wheel": {"components": {"Shape": {"type": "sphere", "radius": 0.5}, "Tag": ["round"]},
        "children": [{"name": "Lamp", "components": {"Transform": {"position": [0, 1, 0]},
            "Light": {"type": "point"}, "Script": {"path": "Workspace/Lamp.luau"}}}]},
    "Cart": {"components": {"Transform": {"scale": [2, 2, 2]}, "Shape": {"type": "box", "size": [2, 1, 4]}},
        "children": [{"name": "Wheel", "prefab": "Wheel",
            "components": {"Transform": {"position": [1, 0, 0]}, "Shape": {"radius": 0.25}}}]}}, "entities": [
    {"id": 1, "name": "Ground", "components": {"Shape": {"type": "box", "size": [100, 1, 100]}, "SpawnPoint": {}}},
    {"id": 2, "name": "Parked", "prefab": "Cart", "components": {"Transform": {"position": [0, 0, 30]}},
        "children": {"Wheel": {"id": 3}, "Wheel/Lamp": {"id": 4}}}]}"#;

#[test]
fn a_prefab_with_children_is_spawned_as_a_whole() {
    let script = "local cart = World.Spawn('Cart', Vector3.new(10, 5, 0))\n\
        local wheel = cart.Children[1]\n\
        local lamp = wheel.Children[1]\n\
        print('spawned', wheel.Name, wheel.Position, lamp.Name, lamp.Position)\n\
        print('tagged', #World.FindAll('round'))";
    let lamp = "print('lamp', entity.Name)";
    let game = package(
        CART,
        &[
            ("scripts/Workspace/Lamp.luau", lamp),
            ("scripts/ServerScriptService/Main.luau", script),
        ],
    );
    let mut world = World::load(&game, WorldOptions::default()).expect("it loads");
    world.apply(input::Step);
    let logs: Vec<String> = world
        .take_logs()
        .into_iter()
        .map(|log| log.message)
        .collect();
    let count = |start: &str| logs.iter().filter(|log| log.starts_with(start)).count();
    assert_eq!(count("lamp"), 2, "one in the scene, one spawned: {logs:#?}");
    assert_eq!(count("tagged 2"), 1, "{logs:#?}");
    // The cart is twice as large, so the wheel is 2 m to the side and the lamp 2 m above it.
    let spawned = logs.iter().find(|log| log.starts_with("spawned Wheel"));
    let spawned = spawned.unwrap_or_else(|| panic!("{logs:#?}"));
    assert!(
        spawned.contains("12, 5, 0") && spawned.contains("12, 7, 0"),
        "{spawned}"
    );
}
