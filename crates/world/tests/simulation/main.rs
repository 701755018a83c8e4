//! Whole worlds on a virtual clock: real client cores, a network that loses,
//! delays, repeats and reorders, and nothing that depends on the wall clock.
//! Every run is decided by its seed, so a failure repeats exactly.

mod arrival_of_inputs;
mod arriving;
mod bytes;
mod closing;
mod facing;
mod feel;
mod format_1;
mod harness;
mod interacting;
mod interest;
mod introductions;
mod json_budget;
mod json_details;
mod lives;
mod meshes;
mod network;
mod npcs;
mod persistence;
mod physics;
mod presence;
mod reach;
mod reloading;
mod remote_commands;
mod replaying;
mod resending;
mod resolving;
mod resuming;
mod rewinding;
mod samples;
mod scripting;
mod seeing;
mod shooting;
mod sight;
mod silence;
mod solids;
mod spawning;
mod spells;
mod steady;
mod terraforming;
mod triggers;

use frolic_client::ClientEvent;
use frolic_protocol::{Args, Value};
use frolic_sim::{Buttons, CharacterInput, Vec3};
use harness::{Run, obby, package, walk};
use network::Quality;

#[test]
fn a_client_converges_to_the_server_once_the_connection_heals() {
    for seed in 1..=8 {
        let mut run = Run::new(&obby(), seed, Quality::AWFUL);
        let (a, b) = (run.join("Ada"), run.join("Ben"));
        run.for_ms(3_000);
        run.steer(a, walk(0.7));
        run.steer(b, walk(-2.0));
        run.for_ms(6_000);
        run.heal();
        run.steer(a, CharacterInput::default());
        run.steer(b, CharacterInput::default());
        run.for_ms(3_000);
        for client in [a, b] {
            let truth = run.server_character(client);
            let known = run.client(client).own_state().copied();
            assert_eq!(known, Some(truth), "seed {seed}: own character");
        }
        // Both stand still, so what one draws of the other is where it is.
        let drawn = run.drawn(a).into_iter().find(|d| d.id == run.entity(b));
        let drawn = drawn.expect("a sees b").position;
        let truth = run.server_character(b).feet;
        assert!(
            (drawn - truth).length() < 0.01,
            "seed {seed}: {drawn} is not {truth}"
        );
    }
}

/// The yaw from the spawn point to `KillBrick1`.
const TOWARDS_KILL_BRICK: f32 = 0.4;

#[test]
fn the_kill_brick_sends_back_and_the_count_arrives() {
    let mut run = Run::new(&obby(), 1, Quality::GOOD);
    let player = run.join("Ada");
    run.for_ms(1_500);
    let spawn = run.server_character(player).feet;
    run.steer(player, walk(TOWARDS_KILL_BRICK));
    let mut counts = Vec::new();
    for _ in 0..80 {
        run.for_ms(100);
        counts.extend(falls(&mut run, player));
        if counts.contains(&1.0) {
            break;
        }
    }
    run.steer(player, CharacterInput::default());
    run.for_ms(1_000);
    counts.extend(falls(&mut run, player));
    assert_eq!(counts, [0.0, 1.0], "FallCount events");
    let feet = run.server_character(player).feet;
    assert!(
        (feet - spawn).length() < 3.0,
        "back at the spawn point: {feet}"
    );
}

fn falls(run: &mut Run, player: usize) -> Vec<f64> {
    let events = run.take_events(player);
    events
        .into_iter()
        .filter_map(|event| match event {
            ClientEvent::Remote {
                name,
                args: Args(args),
            } if name == "FallCount" => match args.first() {
                Some(Value::Number(count)) => Some(*count),
                _ => None,
            },
            _ => None,
        })
        .collect()
}

#[test]
fn the_same_inputs_and_seed_give_the_same_world() {
    let play = |seed: u64| {
        let mut run = Run::new(&obby(), seed, Quality::AWFUL);
        let player = run.join("Ada");
        let mut hashes = Vec::new();
        for turn in 0..40 {
            let buttons = if turn % 3 == 0 {
                Buttons::JUMP
            } else {
                Buttons::RUN
            };
            let input = CharacterInput::new(0.2, 1.0, turn as f32 * 0.7, 0.0, buttons);
            run.steer(player, input);
            run.for_ms(250);
            hashes.push(run.world().state_hash());
        }
        hashes
    };
    assert_eq!(play(5), play(5));
    assert_ne!(play(5), play(6), "the network's seed must matter");
}

#[test]
fn a_player_who_leaves_is_gone_everywhere() {
    let mut run = Run::new(&obby(), 2, Quality::BAD);
    let (a, b) = (run.join("Ada"), run.join("Ben"));
    run.for_ms(2_000);
    let entity = run.entity(b);
    assert!(run.drawn(a).iter().any(|d| d.id == entity));
    run.leave(b);
    run.for_ms(2_000);
    assert!(!run.drawn(a).iter().any(|d| d.id == entity));
    assert!(run.client_mut(a).take_removed().contains(&entity));
}

#[test]
fn noise_on_the_connection_never_crashes_a_client() {
    let mut run = Run::new(&obby(), 4, Quality::GOOD);
    let player = run.join("Ada");
    run.for_ms(1_000);
    run.inject_noise(player, 500);
    run.steer(player, walk(0.0));
    run.for_ms(500);
    let moved = run.server_character(player).velocity.length();
    assert!(moved > 1.0, "still plays after the noise");
}

/// A flat world.
fn meadow() -> frolic_package::Package {
    package(
        r#"{"format":1,"prefabs":{},"entities":[
            {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[800,1,800]}}},
            {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"#,
        &[],
    )
}

#[test]
fn triggers_and_scripts_reach_spawned_things() {
    let mut run = Run::new(
        &package(
            r##"{"format":1,"prefabs":{"Ball":{"components":{"Shape":{"type":"sphere","radius":0.5},"Material":{"color":"#ff0000"}}}},
                "entities":[
                {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[100,1,100]}}},
                {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"##,
            &[(
                "scripts/ServerScriptService/Gun.luau",
                r#"Network.OnClientEvent("FireGun", function(player, dir)
                       local bullet = World.Spawn("Ball", Vector3.new(0, 2, 0))
                       bullet.SetVelocity(dir * 10)
                       Network.Broadcast("PlaySound", "shoot.wav")
                   end)"#,
            )],
        ),
        9,
        Quality::GOOD,
    );
    let player = run.join("Ada");
    run.for_ms(1_000);
    run.take_events(player);
    let args = Args(vec![Value::Vector(Vec3::X.to_array())]);
    run.client_mut(player).fire_server("FireGun".into(), args);
    run.for_ms(1_500);
    let ball = run.drawn(player).into_iter().find(|d| d.definition == 1);
    let ball = ball.expect("the ball is drawn");
    assert!(
        ball.position.x > 3.0 && (ball.velocity.x - 10.0).abs() < 0.1,
        "{ball:?}"
    );
    let received = run
        .take_events(player)
        .into_iter()
        .any(|event| matches!(event, ClientEvent::Remote { name, .. } if name == "PlaySound"));
    assert!(received, "the broadcast arrived");
}
