//! Triggers in a whole world: each crossing is reported exactly once, for any
//! entity and speed, whatever handlers do inside.

use frolic_script::LogLevel;
use frolic_world::{World, WorldOptions, input};

use crate::harness::package;

/// A sheet of a millimetre across the way, and a room to be in.
const SCENE: &str = r#"{"format": 1, "prefabs": {
    "Bullet": {"components": {"Shape": {"type": "sphere", "radius": 0.05}}},
    "Sheet": {"components": {"Shape": {"type": "box", "size": [20, 20, 0.001]}, "Trigger": {}}}},
    "entities": [
    {"id": 1, "name": "Ground", "components": {"Shape": {"type": "box", "size": [400, 1, 400]}}},
    {"id": 2, "name": "Spawn", "components": {"Transform": {"position": [0, 2, 0]}, "SpawnPoint": {}}},
    {"id": 3, "name": "Sheet", "components": {"Transform": {"position": [0, 10, -50]},
        "Shape": {"type": "box", "size": [20, 20, 0.001]}, "Trigger": {}}},
    {"id": 4, "name": "Room", "components": {"Transform": {"position": [50, 10, 0]},
        "Shape": {"type": "box", "size": [10, 10, 10]}, "Trigger": {}}}]}"#;

const WATCH: &str = r#"
    local seen = {}
    local function called(other)
        return if other.Exists then other.Name else "gone"
    end
    local function watch(name, trigger)
        seen[name] = {}
        trigger.TriggerEntered:Connect(function(other) table.insert(seen[name], "+" .. called(other)) end)
        trigger.TriggerExited:Connect(function(other) table.insert(seen[name], "-" .. called(other)) end)
    end
    local function expect(name, wanted)
        local found = table.concat(seen[name], " ")
        assert(found == wanted, `{name}: "{found}", not "{wanted}"`)
    end
    watch("Sheet", World.Find("Sheet"))
    watch("Room", World.Find("Room"))
"#;

/// Runs a server script until it says that it is done, and fails on errors.
fn run(source: &str) {
    let source = format!("{WATCH}\n{source}\nprint(\"done\")");
    let game = package(SCENE, &[("scripts/ServerScriptService/Test.luau", &source)]);
    let mut world = World::load(&game, WorldOptions::default()).expect("it loads");
    world.apply(input::Join::new("user_1", "Ada"));
    for _ in 0..600 {
        world.apply(input::Step);
        for line in world.take_logs() {
            assert_ne!(line.level, LogLevel::Error, "{}", line.message);
            if line.message == "done" {
                return;
            }
        }
    }
    panic!("the script did not come to its end");
}

#[test]
fn a_bullet_of_any_speed_is_noticed_by_a_sheet() {
    run(r#"
        for _, speed in { 3, 50, 700, 6000 } do
            seen.Sheet = {}
            local bullet = World.Spawn("Bullet", Vector3.new(0.3, 10, -49.9))
            bullet.SetVelocity(Vector3.new(0, 0, -speed))
            task.wait(0.15)
            bullet:Destroy()
            task.wait()
            expect("Sheet", "+Bullet -Bullet")
        end
    "#);
}

#[test]
fn a_way_beside_a_trigger_is_none_through_it() {
    run(r#"
        local bullet = World.Spawn("Bullet", Vector3.new(10.2, 10, 0))
        bullet.SetVelocity(Vector3.new(0, 0, -3000))
        task.wait(0.3)
        expect("Sheet", "")
    "#);
}

#[test]
fn an_entity_that_vanishes_inside_has_left() {
    run(r#"
        local bullet = World.Spawn("Bullet", Vector3.new(40, 10, 0))
        bullet.MoveTo(Vector3.new(50, 10, 0), 0.2)
        task.wait(0.3)
        expect("Room", "+Bullet")
        bullet:Destroy()
        task.wait()
        expect("Room", "+Bullet -gone")
        task.wait(0.1)
        expect("Room", "+Bullet -gone")
    "#);
}

#[test]
fn a_trigger_that_vanishes_is_left_by_all() {
    run(r#"
        local bullet = World.Spawn("Bullet", Vector3.new(40, 10, 0))
        bullet.MoveTo(Vector3.new(50, 10, 0), 0.2)
        task.wait(0.3)
        local room = World.Find("Room")
        local left = 0
        room.TriggerExited:Connect(function() left += 1 end)
        room:Destroy()
        task.wait(0.1)
        assert(left == 1, left)
    "#);
}

#[test]
fn a_trigger_that_sweeps_over_a_player_reports_it() {
    run(r#"
        task.wait(0.5)
        local character = Players:GetPlayers()[1].Character
        local sheet = World.Spawn("Sheet", character.Position + Vector3.new(0, 0, 30))
        watch("Sweep", sheet)
        sheet.SetVelocity(Vector3.new(0, 0, -1500))
        task.wait(0.1)
        sheet:Destroy()
        task.wait()
        expect("Sweep", "+Ada -Ada")
    "#);
}

#[test]
fn a_teleport_enters_where_it_ends_and_leaves_where_it_began() {
    run(r#"
        task.wait(0.2)
        local player = Players:GetPlayers()[1]
        player.Teleport(Vector3.new(50, 8, 0))
        task.wait(0.1)
        expect("Room", "+Ada")
        player.Teleport(Vector3.new(0, 2, 0))
        task.wait(0.1)
        expect("Room", "+Ada -Ada")
        expect("Sheet", "")
    "#);
}
