//! Many NPCs, the same in every run, and components that mean harm.

use frolic_package::Package;
use frolic_protocol::npc::NpcState;
use frolic_sim::{Buttons, CharacterInput, Vec3};
use frolic_world::replay::{Ending, RecordOptions, replay};
use frolic_world::{World, WorldOptions, input};

use super::{Stage, boxed, game, guard};
use crate::harness::Run;
use crate::network::Quality;

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
fn five_hundred_take_turns_and_the_same_inputs_give_the_same_hash() {
    let play = || {
        let mut world = World::load(&crowd(), WorldOptions::default()).expect("it loads");
        for at in 0..50 {
            let number = world.apply(input::Join::new(format!("client_{at}"), format!("P{at}")));
            let place = Vec3::new(
                (at % 10) as f32 * 9.0 - 40.0,
                0.0,
                (at / 10) as f32 * 14.0 - 30.0,
            );
            world.apply(input::Teleport::new(number, place));
        }
        let (mut most, mut sum) = (0, 0);
        let mut hashes = Vec::new();
        for tick in 0..240 {
            world.apply(input::Step);
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
    assert!(sum > 2_000, "{sum} rays: too few NPCs look");
    assert!(excited > 100, "{excited} of 500 have noticed a player");
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
fn hostile_components_are_refused_and_harmless() {
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
