//! Aiming at what one sees: the server looks at the moment the shooter saw.

use frolic_client::ClientEvent;
use frolic_protocol::{Args, Value};
use frolic_sim::{Buttons, CharacterInput, Vec3};
use frolic_world::lag_compensation::REWIND_MAX_MS;
use frolic_world::replay::{Ending, RecordOptions, replay};
use frolic_world::{World, input};

use crate::harness::{Run, package};
use crate::network::Quality;

/// A connection without jitter or loss.
fn network(way_ms: u32) -> Quality {
    Quality {
        delay_ms: f64::from(way_ms),
        jitter_ms: 0.0,
        loss: 0.0,
        duplicated: 0.0,
    }
}

fn meadow() -> frolic_package::Package {
    package(
        r#"{"format":1,"prefabs":{},"entities":[
            {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[800,1,800]}}},
            {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"#,
        &[
            (
                "scripts/ServerScriptService/Jump.luau",
                r#"Network.OnClientEvent("Jump", function(player)
                       player.Teleport(Vector3.new(0, 0.1, -60))
                   end)"#,
            ),
            (
                "scripts/ServerScriptService/Shots.luau",
                r#"Network.OnClientEvent("Shot", function(player, eye, direction, at)
                       local hit = World.Raycast(eye, direction, { MaxDistance = 500, SeenBy = player })
                       local now = World.Raycast(eye, direction, { MaxDistance = 500 })
                       local near = #World.InRadius(at, 0.6, { SeenBy = player })
                       local near_now = #World.InRadius(at, 0.6)
                       Network.FireClient(player, "Hit", hit and hit.Entity, now and now.Entity, near, near_now)
                   end)"#,
            ),
        ],
    )
}

/// Runs sideways at 8 m/s, changing direction now and then.
fn strafe(right: f32) -> CharacterInput {
    CharacterInput::new(right, 0.0, 0.0, 0.0, Buttons::RUN)
}

/// Where the shooter sees the target.
fn seen_by(run: &mut Run, shooter: usize, target: u32) -> Vec3 {
    let drawn = run.drawn(shooter).into_iter().find(|d| d.id == target);
    drawn.expect("the runner is in sight").position
}

/// Makes a client's word count, whatever it said before.
fn say(run: &mut Run, player: u32, tick: u32, fraction: u8) {
    run.world_mut().apply(input::Shown {
        player,
        tick: u32::MAX,
        fraction: 0,
    });
    run.world_mut().apply(input::Shown {
        player,
        tick,
        fraction,
    });
}

/// A ray from the shooter's eyes to the middle of where the target seems to be.
fn aim(world: &World, shooter: u32, at: Vec3) -> (Vec3, Vec3) {
    let feet = world.character(shooter).expect("it is there").feet;
    let eye = feet + Vec3::Y * 1.6;
    (eye, at + Vec3::Y * 0.9 - eye)
}

/// Forty shots at a runner over a connection: how many hit as seen and as it
/// is, and the error of the server's estimate of what was seen.
fn shooting(way_ms: u32, distance_m: f32) -> (u32, u32, f32) {
    let mut run = Run::new(&meadow(), 1, network(way_ms));
    let (shooter, runner) = (run.join("Ada"), run.join("Ben"));
    let (number, target) = (run.number(shooter), run.entity(runner));
    run.for_ms(1_000);
    let place = Vec3::new(0.0, 0.1, distance_m);
    run.world_mut().apply(input::Teleport::new(number, place));
    run.for_ms(2_000);
    run.steer(
        shooter,
        CharacterInput::new(0.0, 1.0, 3.1, 0.0, Buttons::default()),
    );
    run.for_ms(4_000);
    run.steer(shooter, CharacterInput::default());
    // How often a player is replicated shows when they move.
    for right in [1.0, -1.0] {
        run.steer(runner, strafe(right));
        run.for_ms(1_000);
    }
    let (mut hits, mut plain_hits, mut worst) = (0, 0, 0.0f32);
    for round in 0..40 {
        run.steer(runner, strafe(if round % 4 < 2 { 1.0 } else { -1.0 }));
        run.for_ms(437);
        // The drawn moment is sent with the inputs of the next frame.
        let drawn = seen_by(&mut run, shooter, target);
        let shown = run.client(shooter).shown().expect("it shows others");
        run.for_ms(way_ms);
        let said = run.world().as_seen_by(number).expect("it is here").tick();
        let late = said - f64::from(shown.tick);
        // A frame to send it, a tick to take it in, and what is cut off.
        assert!(late.abs() < 4.0, "what arrived is {late} ticks off");
        say(&mut run, number, shown.tick, shown.fraction);
        let world = run.world();
        let seen = world.as_seen_by(number).expect("it is here");
        let rewound = seen.position(target).expect("it was there");
        worst = worst.max((rewound - drawn).length());
        let (eye, direction) = aim(world, number, drawn);
        let hit = seen.raycast(eye, direction, 500.0, &[]);
        hits += u32::from(hit.is_some_and(|hit| hit.entity == target));
        drop(seen);
        // The same shot at the world of now.
        let now = world.tick();
        say(&mut run, number, now, 0);
        let now = run.world().as_seen_by(number).expect("it is here");
        let hit = now.raycast(eye, direction, 500.0, &[]);
        plain_hits += u32::from(hit.is_some_and(|hit| hit.entity == target));
    }
    println!(
        "{} ms: {hits} of 40 hit, {worst:.3} m off at most; as it is now: {plain_hits}",
        way_ms * 2
    );
    (hits, plain_hits, worst)
}

#[test]
fn who_aims_at_what_they_see_hits_it_at_200_ms() {
    let (hits, plain_hits, worst) = shooting(100, 0.0);
    assert_eq!((hits, plain_hits), (40, 0));
    // Way, buffer and way again are 275 ms and more, of which 250 count: what
    // is cut off at 8 m/s is still inside the capsule.
    assert!(worst < 0.4, "the server is {worst} m off what was seen");
}

#[test]
fn within_the_bound_the_server_knows_to_the_hand_what_was_seen() {
    let (hits, plain_hits, worst) = shooting(50, 0.0);
    assert_eq!(hits, 40);
    assert!(plain_hits < 4, "{plain_hits} of 40 hit without rewinding");
    assert!(worst < 0.1, "the server is {worst} m off what was seen");
}

/// A far player is replicated in every second update, then every fourth, and
/// drawn later accordingly.
#[test]
fn who_is_far_away_is_seen_later_and_the_server_knows() {
    // With 130 m it is a quarter of a second in all, and some is cut off.
    for (way_ms, distance_m, off_m) in [(50, 70.0, 0.15), (10, 130.0, 0.4)] {
        let (hits, plain_hits, worst) = shooting(way_ms, distance_m);
        assert_eq!(hits, 40, "at {distance_m} m");
        assert!(plain_hits < 12, "{plain_hits} of 40 hit without rewinding");
        assert!(
            worst < off_m,
            "{worst} m off what was seen at {distance_m} m"
        );
    }
}

/// The path of a moving part is sent once and known until its end: it is drawn
/// at the same moment as players, and the server assumes that.
#[test]
fn a_platform_is_seen_where_the_server_thinks() {
    let scene = r#"{"format":1,"prefabs":{},"entities":[
        {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[100,1,100]}}},
        {"id":2,"name":"Lift","components":{"Transform":{"position":[0,3,-9]},"Shape":{"type":"box","size":[2,0.4,2]},"Body":{"type":"kinematic"}}},
        {"id":3,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"#;
    let sways = (
        "scripts/ServerScriptService/Lift.luau",
        r#"local lift = World.Find("Lift")
           while true do
               lift.MoveTo(Vector3.new(8, 3, -9), 2)
               task.wait(2)
               lift.MoveTo(Vector3.new(-8, 3, -9), 2)
               task.wait(2)
           end"#,
    );
    let mut run = Run::new(&package(scene, &[sways]), 8, network(20));
    let player = run.join("Ada");
    let number = run.number(player);
    run.for_ms(9_000);
    let mut worst = 0.0f32;
    for _ in 0..40 {
        run.for_ms(331);
        let drawn = seen_by(&mut run, player, 2);
        let shown = run.client(player).shown().expect("it shows others");
        say(&mut run, number, shown.tick, shown.fraction);
        let seen = run.world().as_seen_by(number).expect("it is here");
        let rewound = seen.position(2).expect("it is there");
        worst = worst.max((rewound - drawn).length());
    }
    println!("a platform at 8 m/s is {worst:.3} m off at most");
    assert!(worst < 0.2, "the platform is {worst} m off what was seen");
}

/// Twenty scripted shots at a runner: how many were announced, how many hit
/// what the shooter saw, and how many the runner's current position.
fn shots_by_script(quality: Quality) -> [u32; 3] {
    let mut run = Run::new(&meadow(), 9, quality);
    let (shooter, runner) = (run.join("Ada"), run.join("Ben"));
    let (number, target) = (run.number(shooter), run.entity(runner));
    run.for_ms(1_000);
    run.world_mut()
        .apply(input::Teleport::new(number, Vec3::new(0.0, 0.1, 12.0)));
    run.for_ms(2_000);
    let [mut shots, mut hits, mut plain_hits] = [0; 3];
    for round in 0..20 {
        run.steer(runner, strafe(if round % 4 < 2 { 1.0 } else { -1.0 }));
        run.for_ms(437);
        let drawn = seen_by(&mut run, shooter, target);
        let (eye, direction) = aim(run.world(), number, drawn);
        let vector = |v: Vec3| Value::Vector(v.to_array());
        let args = Args(vec![vector(eye), vector(direction), vector(drawn)]);
        run.take_events(shooter);
        run.client_mut(shooter).fire_server("Shot".into(), args);
        run.for_ms(900);
        for event in run.take_events(shooter) {
            let ClientEvent::Remote { name, args } = event else {
                continue;
            };
            assert_eq!(name, "Hit");
            let [hit, now, Value::Number(near), Value::Number(near_now)] = args.0.as_slice() else {
                panic!("{args:?}");
            };
            shots += 1;
            hits += u32::from(*hit == Value::Entity(target) && *near == 1.0);
            plain_hits += u32::from(*near_now > 0.0);
            assert_ne!(*now, Value::Entity(target), "a plain ray meets solids");
        }
    }
    [shots, hits, plain_hits]
}

/// The same from a script: who aims at what they see hits it.
#[test]
fn a_script_hits_what_its_player_saw() {
    assert_eq!(shots_by_script(network(50)), [20, 20, 0]);
}

/// With jitter and loss the moment that a client says it shows, and the shot
/// itself, come as they may; a lost shot comes a round trip later, when more
/// than the quarter of a second that counts may have gone by.
#[test]
fn a_script_hits_what_its_player_saw_on_a_bad_connection() {
    let quality = Quality {
        delay_ms: 40.0,
        ..Quality::BAD
    };
    let [shots, hits, plain_hits] = shots_by_script(quality);
    println!("{hits} of {shots} hit on a bad connection, {plain_hits} as they are now");
    assert_eq!(shots, 20);
    assert!(hits >= 17, "{hits} of {shots} hit");
    assert!(plain_hits <= 2, "{plain_hits} hit without rewinding");
}

#[test]
fn rewinding_is_limited_to_a_quarter_of_a_second() {
    let mut run = Run::new(&meadow(), 2, Quality::GOOD);
    let (shooter, runner) = (run.join("Ada"), run.join("Ben"));
    let (number, target) = (run.number(shooter), run.entity(runner));
    run.for_ms(1_500);
    run.steer(runner, strafe(1.0));
    run.for_ms(2_000);
    let now = run.world().tick();
    let feet = run.server_character(runner).feet;
    let distance = |run: &mut Run, tick: u32, fraction: u8| {
        say(run, number, tick, fraction);
        let seen = run.world().as_seen_by(number).expect("it is here");
        (seen.position(target).expect("it runs") - feet).length()
    };
    let longest = 8.0 * REWIND_MAX_MS as f32 / 1000.0;
    for ancient in [0, 1, now - 100, now - 16] {
        let back = distance(&mut run, ancient, 200);
        assert!((back - longest).abs() < 0.01, "{ancient}: {back} m");
    }
    for future in [now, now + 1, u32::MAX] {
        assert!(distance(&mut run, future, 255) < 1e-4, "{future}");
    }
    // Between two ticks it is between two places.
    let half = distance(&mut run, now - 3, 128);
    assert!((half - 2.5 * 8.0 / 60.0).abs() < 0.01, "{half} m");
}

#[test]
fn a_client_that_does_not_say_is_taken_to_be_a_tenth_late() {
    let mut run = Run::new(&meadow(), 3, Quality::GOOD);
    let (shooter, runner) = (run.join("Ada"), run.join("Ben"));
    let (number, target) = (run.number(shooter), run.entity(runner));
    run.for_ms(1_500);
    run.steer(runner, strafe(1.0));
    run.for_ms(2_000);
    let feet = run.server_character(runner).feet;
    // Nothing is known of a client that has just come.
    run.world_mut().apply(input::Reconnect { player: number });
    let back = |run: &Run| {
        let seen = run.world().as_seen_by(number).expect("it is here");
        (seen.position(target).expect("it runs") - feet).length()
    };
    assert!((back(&run) - 0.8).abs() < 0.01, "{}", back(&run));
    run.world_mut().apply(input::RoundTrip {
        player: number,
        ms: 50,
    });
    assert!((back(&run) - 1.2).abs() < 0.01, "{}", back(&run));
    run.world_mut().apply(input::RoundTrip {
        player: number,
        ms: 60_000,
    });
    assert!((back(&run) - 2.0).abs() < 0.01, "{}", back(&run));
}

#[test]
fn a_teleport_has_no_way_between() {
    let mut run = Run::new(&meadow(), 4, Quality::GOOD);
    let (shooter, jumper) = (run.join("Ada"), run.join("Ben"));
    let (number, target) = (run.number(shooter), run.entity(jumper));
    run.for_ms(1_500);
    let before = run.server_character(jumper).feet;
    let args = Args::default();
    run.client_mut(jumper).fire_server("Jump".into(), args);
    while run.server_character(jumper).feet.z > -50.0 {
        run.for_ms(1);
    }
    let (after, now) = (run.server_character(jumper).feet, run.world().tick());
    let mut places = Vec::new();
    for step in (0..=10 * 256).step_by(32) {
        let at = (u64::from(now - 10) << 8) + step;
        say(&mut run, number, (at >> 8) as u32, at as u8);
        let seen = run.world().as_seen_by(number).expect("it is here");
        let place = seen.position(target).expect("it is there");
        let nearest = (place - before).length().min((place - after).length());
        assert!(nearest < 0.5, "{place} at {step}");
        places.push(place.z);
    }
    assert!(places[0] > -1.0 && places[places.len() - 1] < -50.0);
}

#[test]
fn walls_of_now_stop_a_shot_and_the_own_character_does_not() {
    let scene = r#"{"format":1,"prefabs":{},"entities":[
        {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[100,1,100]}}},
        {"id":2,"name":"Wall","components":{"Transform":{"position":[0,2,-5]},"Shape":{"type":"box","size":[10,4,0.5]}}},
        {"id":3,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"#;
    let mut run = Run::new(&package(scene, &[]), 5, Quality::GOOD);
    let (shooter, other) = (run.join("Ada"), run.join("Ben"));
    let (number, target) = (run.number(shooter), run.entity(other));
    run.for_ms(1_000);
    let seen = run.world().as_seen_by(number).expect("it is here");
    assert_eq!(seen.characters().count(), 1, "the others");
    let feet = seen.position(target).expect("it stands there");
    let from = feet + Vec3::new(0.0, 1.0, -8.0);
    let hit = seen.raycast(from, Vec3::Z, 100.0, &[]).expect("the wall");
    assert_eq!(hit.entity, 2);
    let hit = seen.raycast(from, Vec3::Z, 100.0, &[2]).expect("the other");
    assert_eq!(hit.entity, target);
    assert!((hit.distance - 7.6).abs() < 0.01, "{hit:?}");
    assert!(
        seen.raycast(from, Vec3::Z, 7.0, &[2]).is_none(),
        "out of reach"
    );
    assert!(seen.raycast(from, Vec3::Z, 100.0, &[2, target]).is_none());
    let own = run.server_character(shooter).feet + Vec3::Y;
    let hit = seen.raycast(own + Vec3::Y * 3.0, -Vec3::Y, 100.0, &[]);
    assert_eq!(hit.map(|hit| hit.entity), Some(1), "through oneself");
    for nonsense in [Vec3::NAN, Vec3::INFINITY] {
        assert!(seen.raycast(nonsense, Vec3::Z, 9.0, &[]).is_none());
        assert!(seen.raycast(own, nonsense, 9.0, &[]).is_none());
    }
    assert!(seen.position(99).is_none());
    assert!(run.world().as_seen_by(77).is_none());
}

#[test]
fn what_clients_show_is_part_of_a_recording() {
    let game = meadow();
    let options = frolic_world::WorldOptions {
        record: Some(RecordOptions {
            hash_every_ticks: Some(1),
            ..RecordOptions::default()
        }),
        ..Default::default()
    };
    let mut run = Run::with(&game, options, 6, Quality::GOOD);
    let player = run.join("Ada");
    let number = run.number(player);
    for tick in 0..60 {
        run.world_mut().apply(input::Shown {
            player: number,
            tick,
            fraction: tick as u8,
        });
        run.world_mut().apply(input::RoundTrip {
            player: number,
            ms: tick as u16 / 7,
        });
        run.for_ms(17);
    }
    run.world_mut().end_recording(Ending::Complete);
    let report = replay(&game, &run.world_mut().take_recording()).expect("it can be read");
    assert_eq!(
        (report.difference, report.ending),
        (None, Some(Ending::Complete))
    );
}
