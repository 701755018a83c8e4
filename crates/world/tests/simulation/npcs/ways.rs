//! Where NPCs walk: around, through, over, and what they give up.

use frolic_protocol::npc::NpcState;
use frolic_sim::Vec3;
use frolic_world::input;

use super::{Stage, boxed, guard, near, near_home};

#[test]
fn patrols_between_points_and_names_and_stands_at_each() {
    let settings = r#""patrol":[[6,0,0],"Post"],"patrol_wait":0.5"#;
    let post = r#"{"id":12,"name":"Post","components":{"Transform":{"position":[0,0,-6]}}}"#;
    let mut stage = Stage::new(&[guard(settings), post.to_owned()]);
    for _ in 0..2 {
        stage.until(8.0, "at 1", |g| near(g.position, [6.0, 0.0, 0.0], 0.6));
        stage.until(8.0, "at 2", |g| near(g.position, [0.0, 0.0, -6.0], 0.6));
    }
    assert_eq!(stage.state(), NpcState::Idle);
}

#[test]
fn walks_around_what_stands_in_its_way() {
    let wall = boxed(11, "Wall", [0.0, 1.5, -4.0], [12.0, 3.0, 0.5]);
    let mut stage = Stage::new(&[guard(r#""patrol":[[0,0,-8]],"hostile":"nobody""#), wall]);
    let took = stage.until(20.0, "there", |g| near(g.position, [0.0, 0.0, -8.0], 0.7));
    assert!(took > 6.0, "not through it: {took} s");
}

/// A room without a door but one; the patrol leads out of it.
fn room() -> Vec<String> {
    vec![
        guard(r#""patrol":[[0,0,-10]],"patrol_wait":0.2,"hostile":"nobody""#),
        boxed(20, "North", [0.0, 1.5, -4.0], [8.0, 3.0, 0.5]),
        boxed(21, "South", [0.0, 1.5, 4.0], [8.5, 3.0, 0.5]),
        boxed(22, "West", [-4.0, 1.5, 0.0], [0.5, 3.0, 8.0]),
        boxed(23, "East", [4.0, 1.5, 0.0], [0.5, 3.0, 8.0]),
    ]
}

#[test]
fn goes_through_a_door_that_opens_later_and_is_stopped_by_one_that_closes() {
    let script = r#"
        local door = World.Find("North")
        task.delay(20, function() door.MoveTo(door.Position + Vector3.new(0, 4, 0), 1) end)"#;
    let mut stage = Stage::with_script(&room(), script);
    stage.seconds(19.0);
    let waits = stage.guard().position;
    assert!(waits.z > -4.0, "shut in: {waits}");
    stage.until(25.0, "out", |g| near(g.position, [0.0, 0.0, -10.0], 0.7));

    // The same the other way round: a wall falls across its way.
    let mut open = room();
    open[1] = boxed(20, "North", [0.0, 5.5, -4.0], [8.0, 3.0, 0.5]);
    let script = r#"
        local door = World.Find("North")
        task.wait(0.1)
        door.MoveTo(door.Position - Vector3.new(0, 4, 0), 0.2)"#;
    let mut stage = Stage::with_script(&open, script);
    stage.seconds(15.0);
    assert!(stage.guard().position.z > -4.0, "{:?}", stage.guard());
    stage.no_errors();
}

#[test]
fn climbs_over_a_wall_of_crates_that_a_script_builds_before_its_nose() {
    let mut scene = room();
    // A corridor instead of a door, and crates all across it.
    scene[1] = boxed(20, "Lintel", [0.0, 4.5, -4.0], [8.0, 1.0, 0.5]);
    let script = r#"
        task.wait(0.5)
        for x = -4, 4 do
            World.Spawn("Crate", Vector3.new(x, 0.5, -2.5))
            World.Spawn("Crate", Vector3.new(x, 0.5, -3.5))
        end"#;
    let mut stage = Stage::with_script(&scene, script);
    stage.until(25.0, "over it", |g| {
        near(g.position, [0.0, 0.0, -10.0], 0.7)
    });
    stage.no_errors();
}

#[test]
fn gives_up_what_it_cannot_reach_and_never_stands_there_for_ever() {
    // A player on a roof: it sees them, chases, cannot get up, loses them.
    let roof = boxed(30, "Roof", [0.0, 2.0, -8.0], [3.0, 4.0, 3.0]);
    let mut stage = Stage::new(&[guard(r#""sight_distance":20"#), roof]);
    let ada = stage.player("Ada", [0.0, 4.0, -7.0]);
    stage.until(10.0, "chasing", |guard| guard.state == NpcState::Chase);
    stage.seconds(15.0);
    let guard = stage.guard();
    assert!(
        guard.position.z > -6.5 && guard.position.y < 1.0,
        "{guard:?}"
    );
    stage
        .world
        .apply(input::Teleport::new(ada, Vec3::new(0.0, 0.0, 50.0)));
    stage.until(30.0, "back", |guard| guard.state == NpcState::Idle);
    assert!(near_home(&stage), "{:?}", stage.guard());
    // Walled in on its way back: it calms down where it is.
    let script = r#"
        local npc = World.Find("Guard").Npc
        npc.MoveTo(Vector3.new(20, 0, 0), true)
        npc.Arrived:Wait()
        for x = -2, 2 do
            for y = 0, 2 do
                World.Spawn("Crate", Vector3.new(20 + x, y + 0.5, -2))
                World.Spawn("Crate", Vector3.new(20 + x, y + 0.5, 2))
                World.Spawn("Crate", Vector3.new(18, y + 0.5, x))
                World.Spawn("Crate", Vector3.new(22, y + 0.5, x))
            end
        end
        npc.SetState("return")
        npc.Release()"#;
    let mut stage = Stage::with_script(&[self::guard("")], script);
    stage.until(10.0, "off", |guard| guard.state == NpcState::Return);
    stage.until(100.0, "resigned", |guard| guard.state == NpcState::Idle);
    stage.no_errors();
}

#[test]
fn rides_on_what_it_stands_on_and_comes_back_from_a_fall() {
    let lift = r#"{"id":31,"name":"Lift","components":{"Transform":{"position":[0,0.25,0]},
        "Shape":{"type":"box","size":[4,0.5,4]},"Body":{"type":"kinematic"}}}"#;
    let script = r#"
        local lift = World.Find("Lift")
        World.Find("Guard").Npc.Stop()
        task.wait(0.5)
        lift.MoveTo(lift.Position + Vector3.new(3, 2, 0), 2)
        task.wait(3)
        World.Find("Guard").Position = Vector3.new(90, 5, 0)
        World.Find("Guard").Npc.Release()"#;
    let stands =
        r#"{"id":10,"name":"Guard","components":{"Transform":{"position":[0,0.6,0]},"Npc":{}}}"#;
    let mut stage = Stage::with_script(&[lift.to_owned(), stands.to_owned()], script);
    stage.seconds(2.8);
    let guard = stage.guard().position;
    assert!(guard.y > 2.3 && guard.x > 2.0, "{guard}");
    stage.until(6.0, "beyond the edge", |g| g.position.x > 80.0);
    stage.until(10.0, "home", |g| g.position.x < 5.0);
    stage.no_errors();
}
