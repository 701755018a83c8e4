//! NPCs in whole worlds: what they see, where they walk, what they give up.

use frolic_client::ClientEvent;
use frolic_package::Package;
use frolic_protocol::npc::NpcState;
use frolic_script::LogLevel;
use frolic_sim::{Buttons, CharacterInput, Vec3};
use frolic_world::replay::{Ending, RecordOptions, replay};
use frolic_world::{JsonView, NpcReport, PlayerNumber, World, WorldOptions};

use crate::harness::{Run, package};
use crate::link::Quality;

/// A meadow with a spawn point, and more entities.
fn scene(more: &str) -> String {
    format!(
        r#"{{"format":1,"prefabs":{{
            "Crate":{{"components":{{"Shape":{{"type":"box","size":[1,1,1]}}}}}},
            "Guard":{{"components":{{"Npc":{{}}}}}}}},"entities":[
        {{"id":1,"name":"Ground","components":{{"Transform":{{"position":[0,-0.5,0]}},"Shape":{{"type":"box","size":[120,1,120]}}}}}},
        {{"id":2,"name":"Spawn","components":{{"Transform":{{"position":[0,0.1,40]}},"SpawnPoint":{{}}}}}}{}{more}]}}"#,
        if more.is_empty() { "" } else { "," }
    )
}

/// An NPC that looks along -z from the origin.
fn guard(settings: &str) -> String {
    format!(r#"{{"id":10,"name":"Guard","components":{{"Npc":{{{settings}}}}}}}"#)
}

fn boxed(id: u32, name: &str, at: [f32; 3], size: [f32; 3]) -> String {
    format!(
        r#"{{"id":{id},"name":"{name}","components":{{"Transform":{{"position":{at:?}}},"Shape":{{"type":"box","size":{size:?}}}}}}}"#
    )
}

struct Stage {
    world: World,
}

impl Stage {
    fn new(more: &[String]) -> Self {
        Self::with_script(more, "")
    }

    fn with_script(more: &[String], script: &str) -> Self {
        let game = game(more, script);
        let world = World::load(&game, WorldOptions::default()).expect("it loads");
        Self { world }
    }

    fn player(&mut self, name: &str, feet: [f32; 3]) -> PlayerNumber {
        let number = self.world.join(format!("client_{name}"), name.to_owned());
        self.world.teleport(number, Vec3::from(feet));
        number
    }

    fn seconds(&mut self, seconds: f32) {
        for _ in 0..(seconds * 60.0) as u32 {
            self.world.step();
        }
    }

    fn guard(&self) -> NpcReport {
        let npcs = self.world.npcs();
        *npcs.first().expect("there is one")
    }

    fn state(&self) -> NpcState {
        self.guard().state
    }

    /// Steps until something is so; says how many seconds that took.
    fn until(&mut self, seconds_max: f32, what: &str, done: impl Fn(&NpcReport) -> bool) -> f32 {
        let mut ticks = 0;
        while !done(&self.guard()) {
            let guard = self.guard();
            let seconds = ticks as f32 / 60.0;
            assert!(
                seconds < seconds_max,
                "not {what} after {seconds} s: {guard:?}"
            );
            self.world.step();
            ticks += 1;
        }
        ticks as f32 / 60.0
    }

    fn no_errors(&mut self) {
        let logs = self.world.take_logs();
        let errors = logs.iter().filter(|line| line.level == LogLevel::Error);
        let errors: Vec<&String> = errors.map(|line| &line.message).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}

fn game(more: &[String], script: &str) -> Package {
    package(
        &scene(&more.join(",")),
        &[("scripts/ServerScriptService/Test.luau", script)],
    )
}

fn near(a: Vec3, b: [f32; 3], metres: f32) -> bool {
    (a - Vec3::from(b)).length() < metres
}

#[test]
fn sim_6_sees_who_is_in_front_and_not_who_is_behind_or_far_away() {
    for (feet, sees) in [
        ([0.0, 0.0, -6.0], true),
        ([4.0, 0.0, -6.0], true),
        ([0.0, 0.0, 6.0], false),
        ([8.0, 0.0, -2.0], false),
        ([0.0, 0.0, -16.0], false),
    ] {
        let mut stage = Stage::new(&[guard("")]);
        stage.player("Ada", feet);
        // Not longer: then it turns its head.
        stage.seconds(0.7);
        let guard = stage.guard();
        assert_eq!(guard.suspicion > 0.1, sees, "{feet:?}: {guard:?}");
        assert_eq!(guard.target.is_some(), sees, "{feet:?}");
    }
}

#[test]
fn sim_6_does_not_see_through_a_wall_but_over_a_low_one() {
    for (height, sees) in [(3.0, false), (1.0, true)] {
        let wall = boxed(11, "Wall", [0.0, height / 2.0, -3.0], [8.0, height, 0.5]);
        let mut stage = Stage::new(&[guard(""), wall]);
        stage.player("Ada", [0.0, 0.0, -6.0]);
        stage.seconds(3.0);
        assert_eq!(stage.guard().suspicion > 0.2, sees, "a wall of {height} m");
    }
}

#[test]
fn suspicion_rises_faster_when_near_and_falls_when_nobody_is_there() {
    let alerted_after = |distance: f32| {
        let mut stage = Stage::new(&[guard("")]);
        stage.player("Ada", [0.0, 0.0, -distance]);
        stage.until(10.0, "alert", |guard| guard.state == NpcState::Alert)
    };
    let (near, middle, far) = (alerted_after(2.0), alerted_after(7.0), alerted_after(13.0));
    assert!(near < middle && middle < far, "{near} {middle} {far}");
    assert!((0.9..1.6).contains(&middle), "half its sight: {middle} s");

    let mut stage = Stage::new(&[guard("")]);
    let ada = stage.player("Ada", [0.0, 0.0, -8.0]);
    stage.until(5.0, "suspicious", |guard| {
        guard.state == NpcState::Suspicious
    });
    stage.world.teleport(ada, Vec3::new(0.0, 0.0, 30.0));
    stage.until(12.0, "calm", |guard| guard.suspicion == 0.0);
    stage.until(12.0, "idle", |guard| guard.state == NpcState::Idle);
    assert!(near_home(&stage), "{:?}", stage.guard());
}

fn near_home(stage: &Stage) -> bool {
    near(stage.guard().position, [0.0, 0.0, 0.0], 1.1)
}

#[test]
fn teams_hiding_and_hearing() {
    let suspicion = |settings: &str, script: &str, feet: [f32; 3], runs: bool| {
        let mut stage = Stage::with_script(&[guard(settings)], script);
        let ada = stage.player("Ada", feet);
        for seq in 1..40 {
            let buttons = if runs {
                Buttons::RUN
            } else {
                Buttons::default()
            };
            let input = CharacterInput::new(1.0, 0.0, 0.0, 0.0, buttons);
            let numbered = frolic_protocol::NumberedInput { seq, input };
            stage.world.receive_inputs(ada, &[numbered]);
            stage.world.step();
        }
        stage.no_errors();
        stage.guard().suspicion
    };
    let red = r#"Players.PlayerJoined:Connect(function(player) player.Team = "Red" end)"#;
    let ahead = [-2.0, 0.0, -6.0];
    let own = r#""team":"Red","hostile":"other_teams""#;
    assert_eq!(suspicion(own, red, ahead, false), 0.0);
    assert!(suspicion(own, "", ahead, false) > 0.0);
    assert!(suspicion("", red, ahead, false) > 0.0);
    assert_eq!(suspicion(r#""hostile":"nobody""#, red, ahead, false), 0.0);
    let hides =
        r#"Players.PlayerJoined:Connect(function(player) player.Character.AddTag("Hidden") end)"#;
    assert_eq!(suspicion("", hides, ahead, false), 0.0);
    let behind = [-2.0, 0.0, 3.0];
    assert_eq!(suspicion("", "", behind, false), 0.0, "on tiptoe");
    assert!(suspicion("", "", behind, true) > 0.0, "at a run");
    assert_eq!(suspicion(r#""hearing_distance":1"#, "", behind, true), 0.0);
}

#[test]
fn sim_6_chases_catches_loses_searches_and_returns() {
    let script = r#"
        local npc = World.Find("Guard").Npc
        local function tell(name)
            npc[name]:Connect(function(first) print(name, if type(first) == "table" then first.Name else first) end)
        end
        tell("StateChanged") tell("Saw") tell("Lost") tell("Caught")"#;
    let mut stage = Stage::with_script(&[guard("")], script);
    let ada = stage.player("Ada", [0.0, 0.0, -9.0]);
    stage.until(10.0, "chasing", |guard| guard.state == NpcState::Chase);
    let took = stage.until(4.0, "near", |g| near(g.position, [0.0, 0.0, -9.0], 1.3));
    assert!(took > 0.8, "it runs, it does not fly: {took} s");
    stage.seconds(0.5);
    stage.world.teleport(ada, Vec3::new(0.0, 0.0, 50.0));
    stage.until(4.0, "searching", |guard| guard.state == NpcState::Search);
    let began = stage.guard().position;
    stage.seconds(5.0);
    assert!(
        (stage.guard().position - began).length() > 1.0,
        "it looks around"
    );
    stage.until(8.0, "going back", |guard| guard.state == NpcState::Return);
    stage.until(20.0, "idle", |guard| guard.state == NpcState::Idle);
    assert!(near_home(&stage), "{:?}", stage.guard());
    let logs = stage.world.take_logs();
    let lines: Vec<&str> = logs.iter().map(|line| line.message.as_str()).collect();
    let expected = [
        "Saw Ada",
        "StateChanged suspicious",
        "StateChanged alert",
        "StateChanged chase",
        "Caught Ada",
        "Lost Ada",
        "StateChanged search",
        "StateChanged return",
        "StateChanged idle",
    ];
    assert_eq!(lines, expected);
}

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
fn sim_6_walks_around_what_stands_in_its_way() {
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
    // Somebody on a roof: it sees them, chases, cannot get up, loses them.
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
    stage.world.teleport(ada, Vec3::new(0.0, 0.0, 50.0));
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

#[test]
fn scr_12_scripts_take_over_and_let_go() {
    let script = r#"
        local npc = World.Find("Guard").Npc
        assert(npc.State == "idle" and not npc.Overridden)
        npc.MoveTo(Vector3.new(5, 0, 0))
        assert(npc.Arrived:Wait() == true)
        assert((npc.Entity.Position - Vector3.new(5, 0, 0)).Magnitude < 0.8)
        npc.LookAt(Vector3.new(5, 0, 20))
        task.wait(2)
        assert(math.abs(npc.Entity.Rotation.Y) > 170, tostring(npc.Entity.Rotation))
        npc.SetState("search")
        assert(npc.State == "search" and npc.Overridden)
        task.wait(12)
        assert(npc.State == "search", "it stays so")
        npc.Release()
        npc.LookAt(nil)
        task.wait(0.2)
        assert(npc.State == "return" and not npc.Overridden)
        assert(not pcall(npc.Entity.MoveTo, Vector3.zero, 1), "NPCs walk")
        npc.Patrol({ Vector3.new(0, 0, 8) })
        task.wait(9)
        assert((npc.Entity.Position - Vector3.new(0, 0, 8)).Magnitude < 1, tostring(npc.Entity.Position))
        local other = World.Spawn("Guard", Vector3.new(30, 0, 30))
        assert(#Npc.All() == 2 and other.Npc.State == "idle")
        other.ApplyImpulse(Vector3.new(0, 8, 0))
        task.wait(0.2)
        assert(other.Position.Y > 0.5, "off the ground")
        npc.MoveTo(Vector3.new(1e5, 0, 0))
        assert(npc.Arrived:Wait() == false)
        other.Destroy()
        assert(#Npc.All() == 1)
        print("done")"#;
    let mut stage = Stage::with_script(&[guard("")], script);
    stage.seconds(200.0);
    let logs = stage.world.take_logs();
    let lines: Vec<&str> = logs.iter().map(|line| line.message.as_str()).collect();
    assert_eq!(lines, ["done"]);
}

#[test]
fn net_14_clients_see_it_walk_and_change_its_mind() {
    let game = game(&[guard(r#""patrol":[[8,0,20],[-8,0,20]]"#)], "");
    let mut run = Run::new(&game, 3, Quality::BAD);
    let player = run.join("Ada");
    run.for_ms(4_000);
    let drawn = |run: &mut Run| {
        let drawn = run.drawn(player).into_iter().find(|d| d.id == 10);
        drawn.expect("the guard is drawn")
    };
    let before = drawn(&mut run);
    assert_eq!(before.mood.state(), Some(NpcState::Idle));
    run.for_ms(2_000);
    let after = drawn(&mut run);
    assert!(
        (after.position - before.position).length() > 1.0,
        "it walks"
    );
    let truth = run.world().npcs()[0].position;
    assert!((after.position - truth).length() < 1.5);
    run.take_events(player);
    let feet = truth + Vec3::new(0.0, 0.0, 4.0);
    let number = run.number(player);
    run.world_mut().teleport(number, feet);
    run.for_ms(8_000);
    let mut states = Vec::new();
    for event in run.take_events(player) {
        if let ClientEvent::Npc(event) = event {
            assert_eq!(event.entity, 10);
            states.push(event.state);
        }
    }
    assert!(states.contains(&NpcState::Suspicious), "{states:?}");
    assert_ne!(drawn(&mut run).mood.state(), Some(NpcState::Idle));

    let world = run.world();
    let mut view = JsonView::new(1);
    let text = world.json_snapshot(&mut view).expect("a snapshot");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let npc = &json["features"]["npc"]["npcs"][0];
    assert_eq!(npc["id"], 10);
    assert!(npc["suspicion"].as_f64().is_some_and(|s| s > 0.0), "{npc}");
}

#[test]
fn shots_as_seen_meet_npcs_too() {
    let mut stage = Stage::new(&[guard(r#""hostile":"nobody""#)]);
    let ada = stage.player("Ada", [0.0, 0.0, -10.0]);
    stage.seconds(0.5);
    let seen = stage.world.as_seen_by(ada).expect("she is here");
    let (from, ahead) = (Vec3::new(0.0, 1.0, -10.0), Vec3::Z);
    let hit = seen.raycast(from, ahead, 50.0, &[]).expect("a hit");
    assert_eq!(hit.entity, 10);
}

/// Five hundred on patrol in a field of pillars, and fifty players among them.
fn crowd() -> Package {
    let mut more = Vec::new();
    for at in 0..500 {
        let (x, z) = ((at % 25) as f32 * 4.0 - 48.0, (at / 25) as f32 * 4.0 - 40.0);
        more.push(format!(
            r#"{{"id":{},"name":"Guard","components":{{"Transform":{{"position":[{x},0,{z}]}},"Npc":{{"patrol":[[{x},0,{z}],[{},0,{}]]}}}}}}"#,
            1000 + at,
            x + 3.0,
            z + 3.0
        ));
    }
    for at in 0..60 {
        let (x, z) = (
            (at % 10) as f32 * 10.0 - 46.0,
            (at / 10) as f32 * 12.0 - 38.0,
        );
        more.push(boxed(2000 + at, "Pillar", [x, 1.5, z], [1.0, 3.0, 1.0]));
    }
    game(&more, "")
}

#[test]
fn sim_6_five_hundred_take_turns_and_the_same_inputs_give_the_same_hash() {
    let play = || {
        let mut world = World::load(&crowd(), WorldOptions::default()).expect("it loads");
        for at in 0..50 {
            let number = world.join(format!("client_{at}"), format!("P{at}"));
            let place = Vec3::new(
                (at % 10) as f32 * 9.0 - 40.0,
                0.0,
                (at / 10) as f32 * 14.0 - 30.0,
            );
            world.teleport(number, place);
        }
        let (mut most, mut sum) = (0, 0);
        let mut hashes = Vec::new();
        for tick in 0..240 {
            world.step();
            most = most.max(world.npc_rays());
            sum += world.npc_rays();
            if tick % 40 == 0 {
                hashes.push(world.state_hash());
            }
        }
        let excited = world
            .npcs()
            .iter()
            .filter(|npc| npc.suspicion > 0.0)
            .count();
        (most, sum, excited, hashes)
    };
    let (most, sum, excited, hashes) = play();
    // 500 NPCs, each every sixth tick, with two rays to each of two persons.
    assert!(most <= 84 * 4, "{most} rays in one tick");
    assert!(sum > 2_000, "{sum} rays: nobody looks");
    assert!(excited > 100, "{excited} of 500 have noticed somebody");
    assert_eq!(hashes, play().3);
}

#[test]
fn a_session_with_npcs_replays_to_the_same_hash() {
    let script = r#"
        local npc = World.Find("Guard").Npc
        npc.Caught:Connect(function(character)
            character.Player.Respawn()
            npc.Forget()
        end)
        task.delay(2, function() World.Spawn("Guard", Vector3.new(3, 0, 30)) end)"#;
    let settings = r#""patrol":[[8,0,30],[-8,0,30]],"field_of_view":360,"sight_distance":30"#;
    let game = game(&[guard(settings)], script);
    let options = WorldOptions {
        record: Some(RecordOptions {
            hash_every_ticks: Some(1),
            ..RecordOptions::default()
        }),
        ..WorldOptions::default()
    };
    let mut run = Run::with(&game, options, 7, Quality::BAD);
    let player = run.join("Ada");
    run.for_ms(1_000);
    for turn in 0..20 {
        let input = CharacterInput::new(0.3, 1.0, turn as f32, 0.0, Buttons::RUN);
        run.steer(player, input);
        run.for_ms(700);
    }
    let states: Vec<NpcState> = run.world().npcs().iter().map(|npc| npc.state).collect();
    assert_eq!(states.len(), 2);
    run.world_mut().end_recording(Ending::Complete);
    let bytes = run.world_mut().take_recording();
    let report = replay(&game, &bytes).expect("it can be replayed");
    assert_eq!(report.difference, None);
}

#[test]
fn hostile_components_are_refused_and_hurt_nobody() {
    let script = r#"
        local function refused(npc)
            assert(not pcall(World.Spawn, { Npc = npc }), "it was taken")
        end
        refused({ walk_speed = 0 / 0 })
        refused({ run_speed = math.huge })
        refused({ sight_distance = 1e30 })
        refused({ field_of_view = -5 })
        refused({ patrol = table.create(10000, { 0, 0, 0 }) })
        refused({ patrol = { { 0 / 0, 0, 0 } } })
        refused({ suspicion_rise = 0 })
        refused({ wings = 2 })
        refused(5)
        -- The most that is allowed.
        local points = {}
        for at = 1, 256 do
            points[at] = { at * 1000, at * 50, -at * 1000 }
        end
        local wild = World.Spawn({ Npc = { walk_speed = 20, run_speed = 20, sight_distance = 200,
            field_of_view = 360, hearing_distance = 200, patrol = points, patrol_wait = 0,
            suspicion_rise = 0.05, suspicion_fall = 0.05, search_time = 0, reach = 10 } })
        wild.SetVelocity(Vector3.new(1e6, 1e6, 0))
        World.Spawn({ Npc = {}, Transform = { position = { 900000, 0, 900000 } } })
        World.Spawn({ Npc = { patrol = { "Nowhere", "" .. "Guard" } } })
        local made, problem = 0, nil
        repeat
            local ok, why = pcall(World.Spawn, "Guard", Vector3.new(made % 50, 0, made // 50))
            made += 1
            problem = not ok and why
            if made % 200 == 0 then task.wait() end
        until problem or made > 2000
        assert(string.find(problem, "1000 NPCs"), problem)
        print("done")"#;
    let mut stage = Stage::with_script(&[guard("")], script);
    stage.player("Ada", [0.0, 0.0, 3.0]);
    stage.seconds(3.0);
    let npcs = stage.world.npcs();
    assert_eq!(npcs.len(), 1000);
    assert!(
        npcs.iter()
            .all(|npc| npc.position.is_finite() && npc.yaw.is_finite())
    );
    let logs = stage.world.take_logs();
    let lines: Vec<&str> = logs.iter().map(|line| line.message.as_str()).collect();
    assert_eq!(lines, ["done"]);
}
