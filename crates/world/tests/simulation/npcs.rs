//! NPCs in whole worlds: what they see and hear, what they do, and what scripts
//! and clients learn of it.

mod blocks;
mod crowd;
mod ways;

use frolic_client::ClientEvent;
use frolic_package::Package;
use frolic_protocol::npc::NpcState;
use frolic_script::LogLevel;
use frolic_sim::{Buttons, CharacterInput, Vec3};
use frolic_world::{JsonView, NpcReport, PlayerNumber, World, WorldOptions, input};

use crate::harness::{Run, package};
use crate::network::Quality;

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
        let number = self
            .world
            .apply(input::Join::new(format!("client_{name}"), name));
        self.world
            .apply(input::Teleport::new(number, Vec3::from(feet)));
        number
    }

    fn seconds(&mut self, seconds: f32) {
        for _ in 0..(seconds * 60.0) as u32 {
            self.world.apply(input::Step);
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
            self.world.apply(input::Step);
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
fn sees_who_is_in_front_and_not_who_is_behind_or_far_away() {
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
fn does_not_see_through_a_wall_but_over_a_low_one() {
    for (height, sees) in [(3.0, false), (1.0, true)] {
        let wall = boxed(11, "Wall", [0.0, height / 2.0, -3.0], [8.0, height, 0.5]);
        let mut stage = Stage::new(&[guard(""), wall]);
        stage.player("Ada", [0.0, 0.0, -6.0]);
        stage.seconds(3.0);
        assert_eq!(stage.guard().suspicion > 0.2, sees, "a wall of {height} m");
    }
}

#[test]
fn suspicion_rises_faster_when_near_and_falls_without_a_target() {
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
    stage
        .world
        .apply(input::Teleport::new(ada, Vec3::new(0.0, 0.0, 30.0)));
    stage.until(12.0, "calm", |guard| guard.suspicion == 0.0);
    stage.until(12.0, "idle", |guard| guard.state == NpcState::Idle);
    assert!(near_home(&stage), "{:?}", stage.guard());
}

fn near_home(stage: &Stage) -> bool {
    near(stage.guard().position, [0.0, 0.0, 0.0], 1.1)
}

#[test]
fn teams_hiding_and_noise() {
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
            stage.world.apply(input::Controls::new(ada, [numbered]));
            stage.world.apply(input::Step);
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
fn chases_catches_loses_searches_and_returns() {
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
    stage
        .world
        .apply(input::Teleport::new(ada, Vec3::new(0.0, 0.0, 50.0)));
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
fn scripts_take_over_and_let_go() {
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
fn clients_see_it_walk_and_change_its_mind() {
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
    run.world_mut().apply(input::Teleport::new(number, feet));
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

#[test]
fn a_shot_in_flight_meets_an_npc_and_a_script_decides_what_comes_of_it() {
    let script = r#"
        Projectile.Define("Blaster", { Speed = 60, Damage = 20 })
        Projectile.Hit:Connect(function(hit)
            print(hit.Entity.Name, hit.Damage)
            hit.Entity.Destroy()
        end)
        task.wait(0.5)
        Projectile.Fire({ Weapon = "Blaster", From = Vector3.new(0, 1, -12), Direction = Vector3.new(0, 0, 1) })"#;
    let mut stage = Stage::with_script(&[guard("")], script);
    stage.seconds(2.0);
    let logs = stage.world.take_logs();
    let lines: Vec<&str> = logs.iter().map(|line| line.message.as_str()).collect();
    assert_eq!(lines, ["Guard 0"]);
    assert!(stage.world.npcs().is_empty());
}
