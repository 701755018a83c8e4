//! Script functions that need a whole world and more than one library.

use frolic_client::ClientEvent;
use frolic_protocol::{Args, Value};
use frolic_script::LogLevel;
use frolic_world::replay::{Ending, RecordOptions, replay};
use frolic_world::{World, WorldOptions, input};

use crate::harness::{Run, package};
use crate::network::Quality;

const SCENE: &str = r#"{"format": 1, "prefabs": {"Box": {"components": {
    "Shape": {"type": "box", "size": [1, 1, 1]}}}}, "entities": [
    {"id": 1, "name": "Ground", "components": {"Shape": {"type": "box", "size": [100, 1, 100]}}},
    {"id": 2, "name": "Spawn", "components": {"Transform": {"position": [0, 2, 0]}, "SpawnPoint": {}}}]}"#;

/// Runs a server script and fails on its errors.
fn run_script(source: &str) -> World {
    let game = package(SCENE, &[("scripts/ServerScriptService/Test.luau", source)]);
    let mut world = World::load(&game, WorldOptions::default()).expect("it loads");
    for _ in 0..30 {
        world.apply(input::Step);
    }
    let logs = world.take_logs();
    let errors = logs.iter().filter(|line| line.level == LogLevel::Error);
    let errors: Vec<&String> = errors.map(|line| &line.message).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert!(logs.iter().any(|line| line.message == "done"), "{logs:?}");
    world
}

#[test]
fn a_parent_carries_its_children_and_takes_them_along() {
    run_script(
        r#"
        local base = World.Spawn("Box", Vector3.new(0, 5, 0))
        local lid = World.Spawn("Box", Vector3.new(0, 6, 0))
        lid.Parent = base
        assert(lid.Parent == base and base.Children[1] == lid and #base.Children == 1)
        lid.Parent = base
        assert(#base.Children == 1, "once is enough")
        base.Position = Vector3.new(3, 5, 0)
        assert(lid.Position == Vector3.new(3, 6, 0), "it moves along")
        base.Rotation = Vector3.new(0, 0, 90)
        assert((lid.Position - Vector3.new(2, 5, 0)).Magnitude < 0.001, "and turns along")
        lid.Parent = nil
        base.Position = Vector3.zero
        assert(lid.Parent == nil and #base.Children == 0 and lid.Position.X > 1.9, "it stays")
        lid.Parent = base
        base:Destroy()
        assert(not lid.Exists, "it goes with its parent")
        print("done")
        "#,
    );
}

/// Clients must see the true state: values that no client could decode are
/// refused at the call, and looks are accepted whatever room attributes take.
#[test]
fn attributes_leave_room_for_looks_and_what_clients_cannot_read_is_refused() {
    let game = package(
        SCENE,
        &[(
            "scripts/ServerScriptService/Test.luau",
            r##"local crate = World.Spawn("Box", Vector3.new(3, 1, 0))
                local function refusal(value)
                    local ok, why = pcall(function() crate.SetAttribute("Bad", value) end)
                    return if ok then "taken" else tostring(why)
                end
                crate.SetAttribute("NotFinite", refusal(Vector3.new(0 / 0, 0, 0)))
                crate.SetAttribute("TooLong", refusal(string.rep("x", 9000)))
                local room = 8192
                while not pcall(function() crate.SetAttribute("Full", string.rep("x", room)) end) do
                    room -= 1
                end
                crate.Color = "#010203"
                crate.Opacity = 0.5
                crate.Scale = Vector3.new(1, 2, 3)"##,
        )],
    );
    let mut run = Run::new(&game, 3, Quality::GOOD);
    let player = run.join("Ada");
    run.for_ms(1_000);
    let logs = run.world_mut().take_logs();
    assert!(logs.is_empty(), "{logs:?}");
    let events = run.take_events(player).into_iter();
    let mut sent = events.filter_map(|event| match event {
        ClientEvent::Details { details, .. } => Some(details),
        _ => None,
    });
    let details = sent.next_back().expect("the client received details");
    let text = |name: &str| match details.attributes.get(name) {
        Some(Value::String(text)) => text.clone(),
        other => panic!("{name} is {other:?}"),
    };
    assert!(
        text("NotFinite").contains("finite"),
        "{}",
        text("NotFinite")
    );
    assert!(
        text("TooLong").contains("8192 bytes"),
        "{}",
        text("TooLong")
    );
    assert!(text("Full").len() > 7_900, "{}", text("Full").len());
    assert_eq!(details.attributes.len(), 3, "what was refused is not there");
    let looks = details.looks;
    assert_eq!((looks.color, looks.opacity), (Some([1, 2, 3]), Some(0.5)));
    assert_eq!(looks.scale, Some([1.0, 2.0, 3.0]));
}

/// Whichever of the two entered the world first.
#[test]
fn what_hangs_on_a_platform_arrives_where_it_was_on_it() {
    run_script(
        r#"
        local older, base, younger = World.Spawn("Box"), World.Spawn("Box"), World.Spawn("Box")
        older.Position, younger.Position = Vector3.new(0, 1, 0), Vector3.new(0, 2, 0)
        older.Parent, younger.Parent = base, base
        base.MoveTo(Vector3.new(8, 0, 0), 0.2)
        task.wait(0.1)
        local way = base.Position
        assert(way.X > 2 and way.X < 6, tostring(way))
        assert(older.Position == way + Vector3.new(0, 1, 0), tostring(older.Position))
        assert(younger.Position == way + Vector3.new(0, 2, 0), tostring(younger.Position))
        task.wait(0.2)
        assert(base.Position == Vector3.new(8, 0, 0), tostring(base.Position))
        assert(older.Position == Vector3.new(8, 1, 0), tostring(older.Position))
        assert(younger.Position == Vector3.new(8, 2, 0), tostring(younger.Position))
        print("done")
        "#,
    );
}

#[test]
fn parents_make_no_circles_and_no_endless_families() {
    run_script(
        r#"
        local a, b = World.Spawn("Box"), World.Spawn("Box")
        a.Parent = b
        assert(not pcall(function() b.Parent = a end) and not pcall(function() a.Parent = a end))
        assert(not pcall(function() a.Parent = 5 end) and not pcall(function() a.Parent = { Id = 1 } end))
        local gone = World.Spawn("Box")
        gone:Destroy()
        assert(not pcall(function() a.Parent = gone end) and not pcall(function() gone.Parent = a end))
        -- A chain without end would overflow the stack of a recursive
        -- traversal.
        local top, depth = World.Spawn("Box"), 1
        while depth < 100 do
            local above = World.Spawn("Box")
            local ok = pcall(function() top.Parent = above end)
            if not ok then
                break
            end
            top = above
            depth += 1
        end
        assert(depth == 32, depth)
        local below = World.Spawn("Box")
        assert(pcall(function() below.Parent = top end))
        print("done")
        "#,
    );
}

#[test]
fn team_and_leaderstats_are_replicated_to_all_but_not_every_change() {
    let script = r#"
        Players.PlayerJoined:Connect(function(player)
            player.Team = "Red"
            player.leaderstats.Coins = 0
            player.leaderstats.Rank = "Gold"
        end)
        function OnTick()
            for _, player in Players.All() do
                player.leaderstats.Coins += 1
            end
        end"#;
    let game = package(SCENE, &[("scripts/ServerScriptService/Test.luau", script)]);
    let mut run = Run::new(&game, 1, Quality::GOOD);
    let (a, _) = (run.join("Ada"), run.join("Ben"));
    run.for_ms(3_000);
    let mut updates = 0;
    let mut last = None;
    for event in run.take_events(a) {
        if let ClientEvent::Players { changed, .. } = event {
            updates += 1;
            last = changed.into_iter().find(|p| p.name == "Ben").or(last);
        }
    }
    let ben = last.expect("Ben was replicated");
    assert_eq!(ben.team.as_deref(), Some("Red"));
    let figure = |name: &str| ben.stats.iter().find(|stat| stat.name == name).cloned();
    assert!(figure("Coins").and_then(|stat| stat.number) > Some(60.0));
    assert_eq!(figure("Rank").map(|stat| stat.text), Some("Gold".into()));
    assert!(
        (8..30).contains(&updates),
        "{updates} times in three seconds"
    );
}

#[test]
fn the_time_of_day_is_an_input_and_repeats() {
    let script = r#"
        local start = DateTime.Now.UnixTimestamp
        World.Spawn("Box").Attributes.Start = start
        function OnTick()
            local box = World.Find("Box")
            box.Attributes.Now = DateTime.Now.UnixTimestampMillis
        end"#;
    let game = package(SCENE, &[("scripts/ServerScriptService/Test.luau", script)]);
    let options = WorldOptions {
        started_unix_ms: 1_800_000_000_000,
        record: Some(RecordOptions {
            hash_every_ticks: Some(1),
            ..RecordOptions::default()
        }),
        ..WorldOptions::default()
    };
    let mut world = World::load(&game, options).expect("it loads");
    for tick in 0..120_u64 {
        if tick % 60 == 0 {
            // Clocks are set back and forth.
            world.apply(input::WallClock {
                unix_ms: 1_800_000_000_000 + tick * 977,
            });
        }
        world.apply(input::Step);
    }
    world.end_recording(Ending::Complete);
    let bytes = world.take_recording();
    let report = replay(&game, &bytes).expect("it can be replayed");
    assert_eq!((report.difference, report.ticks), (None, 120));
}

#[test]
fn an_unreliable_event_comes_or_is_lost_and_never_counts() {
    let script = r#"
        local received = 0
        Network.Declare("Aim", { at = "any" }, { rate = 1000, burst = 1000 })
        Network.OnClientEvent("Aim", function(player)
            received += 1
            player.leaderstats.Received = received
        end)"#;
    let game = package(SCENE, &[("scripts/ServerScriptService/Test.luau", script)]);
    let mut run = Run::new(&game, 3, Quality::AWFUL);
    let a = run.join("Ada");
    run.for_ms(2_000);
    for n in 0..60 {
        let args = Args(vec![Value::Number(f64::from(n))]);
        run.client_mut(a).fire_server_unreliable("Aim".into(), args);
        run.for_ms(50);
    }
    // Arguments too long for a datagram are sent reliably.
    let long = Args(vec![Value::String("x".repeat(5_000))]);
    run.client_mut(a).fire_server_unreliable("Aim".into(), long);
    run.for_ms(3_000);
    let players = run.world().players();
    let received = players[0].stats.first().and_then(|stat| stat.number);
    let received = received.expect("some came");
    assert!((20.0..61.0).contains(&received), "{received} of 61 came");
    // A flood stays here.
    for _ in 0..10_000 {
        let args = Args(vec![Value::Nil]);
        run.client_mut(a).fire_server_unreliable("Aim".into(), args);
    }
    let mut waiting = 0;
    while run.client_mut(a).take_datagram().is_some() {
        waiting += 1;
    }
    assert!(waiting <= 200, "{waiting} datagrams wait");
}
