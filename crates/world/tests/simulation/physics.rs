//! Rigid bodies in whole worlds: they fall, stack, sleep, are pushed
//! and stood on, and cost nothing once they lie still.

use std::fmt::Write as _;

use frolic_package::Package;
use frolic_sim::{CharacterInput, Vec3};
use frolic_world::{ClientView, Delivery, World, WorldOptions, input};

use crate::harness::{Run, package, walk};
use crate::network::Quality;

const GROUND: &str = r#"{"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[200,1,200]}}},
    {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,6]},"SpawnPoint":{}}}"#;

/// Level ground of blocks at y = 10.
const TERRAIN: &str =
    r#"{"size":[128,64,128],"generator":{"type":"flat","height":10},"materials":["stone"]}"#;

/// A scene of ground, a spawn point at z = 6, and these entities.
fn scene(entities: &str, scripts: &[(&str, &str)]) -> Package {
    let comma = if entities.is_empty() { "" } else { "," };
    let text = format!(
        r#"{{"format":1,"prefabs":{{"Ball":{{"components":{{"Shape":{{"type":"sphere","radius":0.3}},"Body":{{"type":"dynamic"}}}}}}}},"entities":[{GROUND}{comma}{entities}]}}"#
    );
    package(&text, scripts)
}

fn boxes(places: impl Iterator<Item = [f32; 3]>, more: &str) -> String {
    let mut text = String::new();
    for (index, [x, y, z]) in places.enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let id = 100 + index;
        write!(text, r#"{comma}{{"id":{id},"name":"Crate","components":{{"Transform":{{"position":[{x},{y},{z}]}},"Shape":{{"type":"box","size":[1,1,1]}},"Body":{{"type":"dynamic"{more}}}}}}}"#).expect("a text takes everything");
    }
    text
}

/// Twenty stacks of ten boxes.
fn stacks() -> String {
    let places = (0..200).map(|i| {
        let (stack, height) = (i / 10, i % 10);
        [
            (stack % 5) as f32 * 1.5 - 3.0,
            height as f32 + 0.5,
            (stack / 5) as f32 * -1.5 - 4.0,
        ]
    });
    boxes(places, "")
}

fn world(package: &Package) -> World {
    World::load(package, WorldOptions::default()).expect("loads")
}

fn steps(world: &mut World, count: u32) {
    for _ in 0..count {
        world.apply(input::Step);
    }
}

fn put(run: &mut Run, player: usize, feet: Vec3) {
    let number = run.number(player);
    run.world_mut().apply(input::Teleport::new(number, feet));
}

/// The prints of scripts, which must contain no errors.
fn printed(world: &mut World) -> Vec<String> {
    let logs = world.take_logs();
    logs.into_iter().map(|line| line.message).collect()
}

fn server(text: &str) -> [(&str, &str); 1] {
    [("scripts/ServerScriptService/Test.luau", text)]
}

#[test]
fn two_hundred_stacked_boxes_settle_sleep_and_then_cost_nothing() {
    let mut full = world(&scene(&stacks(), &[]));
    assert_eq!(full.awake_bodies(), 0, "before the first step");
    steps(&mut full, 1);
    assert_eq!(full.awake_bodies(), 200);
    let mut ticks = 1;
    while full.awake_bodies() > 0 && ticks < 1200 {
        steps(&mut full, 1);
        ticks += 1;
    }
    println!("200 boxes sleep after {ticks} ticks");
    assert!(ticks < 600, "asleep after {ticks} ticks");
    // Every box still lies where it was stacked.
    full.collect_changes();
    for state in full.replicated() {
        let index = state.id - 100;
        let expected = (index % 10) as f32 + 0.5;
        let height = state.place().y;
        assert!((height - expected).abs() < 0.1, "{}: {height}", state.id);
    }
    // Nothing of them is sent to a client that knows them.
    let mut empty = world(&scene("", &[]));
    steps(&mut empty, ticks);
    let sizes = [&mut full, &mut empty].map(|world| {
        let player = world.apply(input::Join::new("client_a", "Ada"));
        let mut view = ClientView::new(player, Delivery::Ordered);
        let mut sizes = Vec::new();
        for tick in 0..240 {
            world.apply(input::Step);
            world.collect_changes();
            if world.update_is_due(player) {
                let mut bytes = 0;
                world.snapshot(&mut view, 0, &mut |packet| bytes += packet.len());
                if tick >= 120 {
                    sizes.push(bytes);
                }
            }
        }
        assert_eq!(world.awake_bodies(), 0);
        sizes
    });
    assert!(sizes[0].len() > 30);
    assert_eq!(sizes[0], sizes[1], "sleeping bodies cost no byte");
}

#[test]
fn a_player_pushes_what_is_light_and_not_what_is_heavy() {
    for (mass, moves) in [(1.0, true), (20.0, true), (2000.0, false)] {
        let more = format!(r#","mass":{mass}"#);
        let crates = boxes([[0.0, 0.5, 2.0]].into_iter(), &more);
        let mut run = Run::new(&scene(&crates, &[]), 3, Quality::GOOD);
        let player = run.join("Ada");
        put(&mut run, player, Vec3::new(0.0, 0.1, 6.0));
        run.for_ms(1_500);
        run.steer(player, walk(0.0));
        run.for_ms(2_500);
        let place = run.world().position_of("Crate").unwrap();
        let feet = run.server_character(player).feet;
        println!("{mass} kg: pushed to {place}, the player is at {feet}");
        assert_eq!(place.z < -2.0, moves, "{mass} kg: {place}");
        assert!(moves || place.z > 1.6, "{mass} kg: {place}");
        assert!(
            feet.z - place.z > 0.85,
            "characters cannot walk into it: {feet} {place}"
        );
        run.steer(player, CharacterInput::default());
        run.for_ms(3_000);
        assert_eq!(run.world().awake_bodies(), 0, "{mass} kg: it sleeps again");
    }
}

#[test]
fn a_player_stands_on_a_stack_and_it_still_sleeps() {
    let tower = boxes((0..3).map(|i| [0.0, i as f32 + 0.5, 0.0]), r#","mass":20"#);
    let mut run = Run::new(&scene(&tower, &[]), 4, Quality::GOOD);
    let player = run.join("Ada");
    run.for_ms(500);
    let number = run.number(player);
    run.world_mut()
        .apply(input::Teleport::new(number, Vec3::new(0.1, 3.6, 0.1)));
    run.for_ms(4_000);
    let state = run.server_character(player);
    assert_eq!(state.ground, Some(102), "{state:?}");
    assert!((state.feet.y - 3.0).abs() < 0.05, "{}", state.feet);
    assert_eq!(
        run.world().awake_bodies(),
        0,
        "it lies still under its rider"
    );
    assert_eq!(run.client(player).own_state(), Some(&state), "as predicted");
    let corrections = run.client(player).stats(0.0).corrections;
    run.for_ms(2_000);
    assert_eq!(run.client(player).stats(0.0).corrections, corrections);
}

#[test]
fn a_character_on_a_moving_body_is_carried() {
    let raft = r#"{"id":50,"name":"Raft","components":{"Transform":{"position":[0,0.25,0]},"Shape":{"type":"box","size":[4,0.5,4]},"Body":{"type":"dynamic","friction":0,"mass":500}}}"#;
    let script = server(r#"task.wait(3) World.Find("Raft").SetVelocity(Vector3.new(3, 0, 0))"#);
    let mut run = Run::new(&scene(raft, &script), 4, Quality::GOOD);
    let player = run.join("Ada");
    run.for_ms(200);
    let number = run.number(player);
    run.world_mut()
        .apply(input::Teleport::new(number, Vec3::new(0.0, 0.6, 0.0)));
    run.for_ms(5_000);
    let (feet, raft) = (
        run.server_character(player).feet,
        run.world().position_of("Raft").unwrap(),
    );
    assert!(raft.x > 2.0, "it slides: {raft}");
    assert!((feet.x - raft.x).abs() < 0.5, "{feet} is on {raft}");
    assert_eq!(run.server_character(player).ground, Some(50));
}

#[test]
fn a_rolling_ball_is_drawn_evenly_on_a_bad_connection() {
    let ball = r#"{"id":60,"name":"Ball","components":{"Transform":{"position":[-40,0.5,0]},"Shape":{"type":"sphere","radius":0.5},"Body":{"type":"dynamic","friction":0,"mass":5}}}"#;
    let script = server(r#"task.wait(2) World.Find("Ball").SetVelocity(Vector3.new(6, 0, 0))"#);
    for seed in [7, 8] {
        let mut run = Run::new(&scene(ball, &script), seed, Quality::BAD);
        let watcher = run.join("Ben");
        run.for_ms(4_000);
        run.measure(true);
        run.for_ms(6_000);
        let off = run.unevenness(watcher, 60, 6.0);
        println!(
            "seed {seed}: furthest from an even pace {:.2} cm",
            off * 100.0
        );
        assert!(off < 0.05, "a drawn step is off by {off} m");
    }
}

#[test]
fn a_pushed_box_is_drawn_in_front_of_who_pushes_it() {
    let crates = boxes([[0.0, 0.5, 2.0]].into_iter(), r#","mass":5"#);
    let mut run = Run::new(&scene(&crates, &[]), 5, Quality::BAD);
    let player = run.join("Ada");
    put(&mut run, player, Vec3::new(0.0, 0.1, 6.0));
    run.for_ms(2_500);
    run.steer(player, walk(0.0));
    run.for_ms(1_500);
    let entity = run.entity(player);
    let mut nearest = f32::MAX;
    run.measure(true);
    for _ in 0..40 {
        run.for_ms(50);
        let drawn = run.drawn(player);
        let at = |id: u32| drawn.iter().find(|d| d.id == id).expect("drawn").position.z;
        nearest = nearest.min(at(entity) - at(100));
    }
    let longest = run.longest_step(player, 100);
    println!("own character to box: {nearest:.2} m; longest drawn step of the box {longest:.2} m");
    // Half a metre of box and 0.4 m of character.
    assert!(
        nearest > 0.6,
        "the box is drawn {nearest} m from who pushes it"
    );
    assert!(longest < 0.3, "the box jumps by {longest} m");
}

#[test]
fn nothing_goes_through_a_thin_wall() {
    let wall = r#"{"id":70,"name":"Wall","components":{"Transform":{"position":[0,5,-20]},"Shape":{"type":"box","size":[60,10,0.02]}}},
        {"id":71,"name":"Door","components":{"Transform":{"position":[0,15,-20]},"Shape":{"type":"box","size":[60,10,0.02]},"Body":{"type":"kinematic"}}}"#;
    let script = server(
        r#"for i = 1, 24 do
               local ball = World.Spawn("Ball", Vector3.new(i * 2 - 25, if i % 2 == 0 then 2 else 14, 0))
               ball.SetVelocity(Vector3.new(0, 0, -20 * i))
           end
           task.wait(0.05)
           World.Spawn({ Shape = { type = "box", size = { 0.2, 0.2, 0.2 } }, Body = { type = "dynamic" } }, Vector3.new(0, 3, 0)).ApplyImpulse(Vector3.new(0, 0, -390))"#,
    );
    let mut world = world(&scene(wall, &script));
    for tick in 0..240 {
        world.apply(input::Step);
        world.collect_changes();
        for state in world.replicated() {
            let place = state.place();
            let gone = place.z < -20.0 && place.y > 0.0 && place.y < 19.5 && place.x.abs() < 29.0;
            assert!(
                !gone,
                "tick {tick}: {} is behind the wall at {place}",
                state.id
            );
        }
    }
    assert_eq!(world.script_errors(), 0);
}

#[test]
fn scripts_push_and_measure_bodies_and_receive_their_events() {
    let things = r#"{"id":80,"name":"Crate","components":{"Transform":{"position":[0,3,0]},"Shape":{"type":"box","size":[1,1,1]},"Body":{"type":"dynamic","mass":4}}},
        {"id":81,"name":"Zone","components":{"Transform":{"position":[20,1,0]},"Shape":{"type":"box","size":[0.05,2,6]},"Trigger":{}}},
        {"id":82,"name":"Post","components":{"Transform":{"position":[0,1,-6]},"Shape":{"type":"box","size":[1,2,1]},"Script":{"path":"Workspace/Post.luau"}}}"#;
    let test = r#"
        local crate = World.Find("Crate")
        crate.Touched:Connect(function(other) print("touched", other.Name) end)
        World.Find("Zone").TriggerEntered:Connect(function(other) print("entered", other.Name) end)
        World.Find("Zone").TriggerExited:Connect(function(other) print("left", other.Name) end)
        task.wait(2)
        print("rests", crate.Velocity.Magnitude < 0.01, math.abs(crate.Position.Y - 0.5) < 0.05)
        local hit = World.Raycast(Vector3.new(0, 10, 0), Vector3.new(0, -20, 0))
        print("ray", hit.Entity.Name, math.abs(hit.Position.Y - 1) < 0.05)
        print("near", #World.InRadius(crate.Position, 0.1) == 1)
        crate.ApplyImpulse(Vector3.new(0, 40, 0))
        print("impulse", crate.Velocity.Y)
        task.wait(2)
        crate.SetVelocity(Vector3.new(60, 3, 0))
        print("set", crate.Velocity.X)
        task.wait(2)
        print("far", crate.Position.X > 20)
        print("refused", not pcall(function() crate.MoveTo(Vector3.zero, 1) end))
        crate.Position = Vector3.new(0, 1, 5)
        task.wait(1)
        print("put", math.abs(crate.Position.Z - 5) < 0.2)
    "#;
    let post = r#"function OnTouched(other) print("post", other.Name) end"#;
    let package = scene(
        things,
        &[
            ("scripts/ServerScriptService/Test.luau", test),
            ("scripts/Workspace/Post.luau", post),
        ],
    );
    let mut world = world(&package);
    let player = world.apply(input::Join::new("client_a", "Ada"));
    world.apply(input::Teleport::new(player, Vec3::new(0.0, 0.1, -4.6)));
    for seq in 1..=600 {
        let input = frolic_protocol::NumberedInput {
            seq,
            input: walk(0.0),
        };
        world.apply(input::Controls::new(player, [input]));
        world.apply(input::Step);
    }
    let lines = printed(&mut world);
    for expected in [
        "touched Ground",
        "post Ada",
        "rests true true",
        "ray Crate true",
        "near true",
        "impulse 10",
        "set 60",
        "entered Crate",
        "left Crate",
        "far true",
        "refused true",
        "put true",
    ] {
        assert!(
            lines.iter().any(|line| line == expected),
            "{expected}: {lines:#?}"
        );
    }
    let entered = lines.iter().filter(|line| *line == "entered Crate").count();
    assert_eq!(entered, 1, "once per crossing");
}

#[test]
fn gravity_can_be_changed_and_clients_fall_with_it() {
    let crates = boxes([[3.0, 20.0, 0.0]].into_iter(), "");
    let script = server(r#"task.wait(1) World.Gravity = 2 print(World.Gravity)"#);
    let mut run = Run::new(&scene(&crates, &script), 6, Quality::GOOD);
    let player = run.join("Ada");
    run.for_ms(1_500);
    let number = run.number(player);
    run.world_mut()
        .apply(input::Teleport::new(number, Vec3::new(-5.0, 6.0, 0.0)));
    run.for_ms(500);
    run.measure(true);
    run.for_ms(1_500);
    let state = run.server_character(player);
    assert!(
        state.feet.y > 1.0 && state.velocity.y > -4.5,
        "a slow fall: {state:?}"
    );
    assert_eq!(
        run.client(player).own_state().map(|own| own.ground),
        Some(state.ground)
    );
    let worst = run
        .prediction_errors(player)
        .iter()
        .copied()
        .fold(0.0, f32::max);
    assert!(worst < 1e-4, "the fall was predicted, off by {worst}");
    let late = run.join("Ben");
    run.for_ms(500);
    let gravity = run
        .client(late)
        .welcomed()
        .map(|welcome| welcome.character.gravity);
    assert_eq!(
        gravity,
        Some(2.0),
        "a player who joins later receives it as well"
    );
}

#[test]
fn what_falls_out_of_the_world_comes_back_or_is_gone() {
    let edge = boxes([[150.0, 5.0, 0.0]].into_iter(), "");
    let script = server(
        r#"World.Spawn("Ball", Vector3.new(150, 5, 3)) task.wait(1) print(#World.FindAll("Ball")) task.wait(9) print(#World.FindAll("Ball"))"#,
    );
    let mut world = world(&scene(&edge, &script));
    let mut back = 0;
    let mut last = 5.0;
    for _ in 0..660 {
        world.apply(input::Step);
        let height = world.position_of("Crate").unwrap().y;
        back += u32::from(height > last + 10.0);
        last = height;
    }
    assert!(back >= 2, "came back {back} times");
    assert_eq!(printed(&mut world), ["1", "0"]);
}

#[test]
fn joints_and_groups_hold() {
    let things = r#"
        {"id":90,"name":"Bob","components":{"Transform":{"position":[2,6,-8]},"Shape":{"type":"sphere","radius":0.3},"Body":{"type":"dynamic"},"Joint":{"type":"ball","anchor":[-2,0,0]}}},
        {"id":91,"name":"Gate","components":{"Transform":{"position":[10,1,0]},"Shape":{"type":"box","size":[2,2,0.1]},"Body":{"type":"dynamic"},"Joint":{"type":"hinge","anchor":[-1,0,0],"limits":[-30,30]}}},
        {"id":92,"name":"Pole","components":{"Transform":{"position":[20,8,0]},"Shape":{"type":"box","size":[1,1,1]}}},
        {"id":93,"name":"Load","components":{"Transform":{"position":[20,4,0]},"Shape":{"type":"box","size":[1,1,1]},"Body":{"type":"dynamic"},"Joint":{"type":"rope","with":92,"length":5}}},
        {"id":94,"name":"Ghost","components":{"Transform":{"position":[30,5,0]},"Shape":{"type":"box","size":[1,1,1]},"Body":{"type":"dynamic","group":3,"ignores":[4]}}},
        {"id":95,"name":"Shelf","components":{"Transform":{"position":[30,2,0]},"Shape":{"type":"box","size":[4,0.2,4]},"Body":{"type":"static","group":4}}},
        {"id":96,"name":"Solid","components":{"Transform":{"position":[31.5,5,0]},"Shape":{"type":"box","size":[0.5,0.5,0.5]},"Body":{"type":"dynamic","group":3}}},
        {"id":97,"name":"Table","components":{"Transform":{"position":[40,3,0]},"Shape":{"type":"box","size":[2,0.2,2]},"Body":{"type":"dynamic","mass":10}}},
        {"id":98,"name":"Leg","parent":97,"components":{"Transform":{"position":[0,-0.6,0]},"Shape":{"type":"cylinder","radius":0.6,"height":1}}}"#;
    let script = server(r#"World.Find("Gate").ApplyImpulse(Vector3.new(0, 0, 20))"#);
    let mut world = world(&scene(things, &script));
    let mut furthest = 0.0f32;
    for _ in 0..400 {
        world.apply(input::Step);
        let at = |name: &str| world.position_of(name).unwrap();
        let rope = (at("Bob") - Vec3::new(0.0, 6.0, -8.0)).length();
        assert!((rope - 2.0).abs() < 0.05, "{rope}");
        let gate = at("Gate") - Vec3::new(9.0, 1.0, 0.0);
        assert!(
            (gate.length() - 1.0).abs() < 0.05 && gate.y.abs() < 0.05,
            "{gate}"
        );
        furthest = furthest.max(gate.z.abs());
    }
    let at = |name: &str| world.position_of(name).unwrap();
    assert!(
        (0.4..0.6).contains(&furthest),
        "open to thirty degrees: {furthest}"
    );
    assert!((at("Load").y - 3.0).abs() < 0.1, "hangs: {}", at("Load"));
    assert!(
        (at("Ghost").y - 0.5).abs() < 0.1,
        "fell through: {}",
        at("Ghost")
    );
    assert!(at("Solid").y > 2.0, "lies on the shelf: {}", at("Solid"));
    // The leg is a part of the table, so the top stays up.
    assert!((at("Table").y - 1.1).abs() < 0.1, "{}", at("Table"));
    assert!((at("Leg").y - 0.5).abs() < 0.1, "{}", at("Leg"));
}

#[test]
fn the_same_heap_falls_the_same_way_every_time() {
    let places = (0..60).map(|i| {
        [
            (i % 4) as f32 * 0.7,
            (i / 4) as f32 * 1.1 + 1.0,
            (i % 3) as f32 * 0.6,
        ]
    });
    let heap = scene(&boxes(places, r#","restitution":0.3"#), &[]);
    let play = |extra: bool| {
        let mut world = world(&heap);
        let player = world.apply(input::Join::new("client_a", "Ada"));
        (0..300)
            .map(|tick| {
                let seq = tick + 1;
                let yaw = if extra && tick > 200 { 1.0 } else { 0.0 };
                let input = frolic_protocol::NumberedInput {
                    seq,
                    input: walk(yaw),
                };
                world.apply(input::Controls::new(player, [input]));
                world.apply(input::Step);
                world.state_hash()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(play(false), play(false));
    assert_ne!(play(false), play(true), "pushes are part of it");
}

#[test]
fn bodies_lie_on_blocks_and_fall_when_those_are_dug_away() {
    let text = format!(
        r#"{{"format":1,"prefabs":{{"Ball":{{"components":{{"Shape":{{"type":"sphere","radius":0.3}},"Body":{{"type":"dynamic"}}}}}}}},"entities":[{{"id":2,"name":"Spawn","components":{{"Transform":{{"position":[0,12,0]}},"SpawnPoint":{{}}}}}},{}],"terrain":{}}}"#,
        boxes((0..6).map(|i| [i as f32 * 3.0 - 8.0, 14.0, 0.5]), ""),
        TERRAIN
    );
    let script = server(
        r#"task.wait(3)
           for _, crate in World.FindAll("Crate") do print(string.format("%.1f", crate.Position.Y)) end
           Terrain.Sphere(World.Find("Crate").Position, 4, nil)
           local fast = World.Spawn("Ball", Vector3.new(4, 12, 9))
           fast.SetVelocity(Vector3.new(0, -350, 0))
           task.wait(2)
           print("dug", World.Find("Crate").Position.Y)
           print("fast", fast.Position.Y)"#,
    );
    let package = package(&text, &script);
    let mut world = world(&package);
    steps(&mut world, 170);
    assert_eq!(world.awake_bodies(), 0, "they sleep on blocks");
    steps(&mut world, 160);
    let lines = printed(&mut world);
    assert_eq!(lines[..6], ["10.5"; 6], "{lines:?}");
    let height = |line: &str| line.split(' ').nth(1).and_then(|n| n.parse::<f32>().ok());
    assert!(height(&lines[6]).is_some_and(|y| y < 8.5), "{lines:?}");
    assert!(height(&lines[7]).is_some_and(|y| y > 9.9), "{lines:?}");
}
