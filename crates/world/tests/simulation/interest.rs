//! Who is told of what: radius, distance, budget, and worlds that heal.

use frolic_client::ClientEvent;
use frolic_protocol::{EntityState, Value};
use frolic_sim::random::Random;
use frolic_sim::{Buttons, CharacterInput, Vec3};
use frolic_world::{ClientView, Delivery, InterestPolicy, World, WorldOptions};

use crate::harness::{Run, package, walk};
use crate::link::Quality;

/// How far the far corner of a square is from its near one, borders
/// included, as a share of the radius.
const SQUARE: f32 = 0.4 * 1.2 * 1.42;

/// Balls that roam, come and go, and change colour and attributes.
fn playground() -> frolic_package::Package {
    package(
        r##"{"format":1,"prefabs":{"Ball":{"components":{"Shape":{"type":"sphere","radius":0.5},"Material":{"color":"#ff0000"}}}},
            "entities":[
            {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[800,1,800]}}},
            {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}},
            {"id":3,"name":"Door","components":{"Transform":{"position":[20,1,0]},"Shape":{"type":"box","size":[2,2,2]}}}]}"##,
        &[(
            "scripts/ServerScriptService/Balls.luau",
            r##"local random = Random.new(7)
               local function number(from, to) return from + random.NextNumber() * (to - from) end
               task.spawn(function()
                   for round = 1, 40 do
                       local ball = World.Spawn("Ball", Vector3.new(number(-120, 120), 1, number(-120, 120)))
                       ball.SetVelocity(Vector3.new(number(-9, 9), 0, number(-9, 9)))
                       ball.SetAttribute("Round", round)
                       if round % 3 == 0 then ball.Color = "#00ff88" end
                       if round % 5 == 0 then ball.AddTag("AlwaysRelevant") end
                       task.delay(number(2, 9), function()
                           if round % 4 == 0 then ball.Destroy() else
                               ball.SetVelocity(Vector3.new(0, 0, 0))
                               ball.SetAttribute("Round", -round)
                           end
                       end)
                       task.wait(0.15)
                   end
                   World.Find("Door").Destroy()
               end)"##,
        )],
    )
}

fn known(run: &Run, peer: usize) -> Vec<EntityState> {
    run.client(peer).entities().copied().collect()
}

#[test]
fn a_broken_line_never_leaves_a_wrong_world_behind() {
    let policies = [
        None,
        Some(InterestPolicy::within(40.0)),
        Some(InterestPolicy::EVERYTHING),
    ];
    let deliveries = [Delivery::Lossy, Delivery::Ordered];
    let kinds = deliveries.map(|delivery| policies.map(|policy| (delivery, policy)));
    for (seed, (delivery, policy)) in (1u64..).zip(kinds.into_iter().flatten()) {
        let mut run = Run::with_interest(&playground(), seed, Quality::AWFUL, policy);
        run.delivery = delivery;
        let players: Vec<usize> = (0..4).map(|n| run.join(&format!("P{n}"))).collect();
        let mut random = Random::new(seed);
        for _ in 0..30 {
            for &player in &players {
                let yaw = random.range(-3.0, 3.0);
                let input = CharacterInput::new(0.0, 1.0, yaw, 0.1, Buttons::RUN);
                run.steer(player, input);
            }
            run.for_ms(400);
        }
        run.heal();
        for &player in &players {
            run.steer(player, CharacterInput::default());
        }
        run.for_ms(4_000);
        for &player in &players {
            let (known, all) = (known(&run, player), run.everything());
            // What is in view leaves it a little further out than it came in.
            let seen = run.visible_from(player);
            let missing = seen.iter().find(|state| !known.contains(state));
            assert_eq!(missing, None, "seed {seed}, player {player}: missing");
            let wrong = known.iter().find(|state| !all.contains(state));
            assert_eq!(wrong, None, "seed {seed}, player {player}: wrong");
            let eye = run.server_character(player).feet;
            let reach = policy.and_then(|policy| policy.radius);
            let extra = known.iter().filter(|state| !seen.contains(state));
            for state in extra {
                let distance = (state.place() - eye).length();
                assert!(
                    distance < reach.unwrap_or(0.0) * (1.15 + SQUARE),
                    "{distance} m: {state:?}"
                );
            }
            assert!(known.len() > 4, "there was something to see");
        }
        let mut balls = Vec::new();
        for event in run.take_events(players[0]) {
            if let ClientEvent::Details { entity, details } = event {
                balls.retain(|(id, _)| *id != entity);
                balls.push((entity, details));
            }
        }
        let stopped = balls.iter().filter(|(id, details)| {
            let round = details.attributes.get("Round");
            let still = known(&run, players[0]).iter().any(|state| state.id == *id);
            still && matches!(round, Some(Value::Number(round)) if *round < 0.0)
        });
        assert!(stopped.count() > 3, "attributes that changed late arrived");
    }
}

/// Balls by the hundred that start and stop within one square: what there is to
/// tell of it does not fit a datagram.
fn ball_pit() -> frolic_package::Package {
    package(
        r##"{"format":1,"prefabs":{"Ball":{"components":{"Shape":{"type":"sphere","radius":0.1}}}},
            "entities":[
            {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[800,1,800]}}},
            {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"##,
        &[(
            "scripts/ServerScriptService/Balls.luau",
            r##"local random = Random.new(3)
               local function number() return random.NextNumber() * 2 - 1 end
               local balls = {}
               for i = 1, 240 do
                   balls[i] = World.Spawn("Ball", Vector3.new(5 + number() * 3, 2 + number(), 5 + number() * 3))
               end
               for round = 1, 30 do
                   for _, ball in balls do
                       local sign = if round % 2 == 0 then 1 else -1
                       ball.SetVelocity(Vector3.new(sign * number(), 0, sign * number()))
                   end
                   task.wait(0.2)
               end
               for _, ball in balls do ball.SetVelocity(Vector3.new(0, 0, 0)) end"##,
        )],
    )
}

#[test]
fn what_travels_in_parts_survives_a_broken_line() {
    for seed in [11, 12] {
        let mut run = Run::new(&ball_pit(), seed, Quality::AWFUL);
        let player = run.join("Ada");
        run.for_ms(8_000);
        let cut = run.cut_snapshots(player);
        assert!(cut > 20, "{cut} snapshots went in parts");
        run.heal();
        run.for_ms(4_000);
        let (known, all) = (known(&run, player), run.everything());
        assert_eq!(known.len(), all.len(), "seed {seed}");
        let wrong = known.iter().find(|state| !all.contains(state));
        assert_eq!(wrong, None, "seed {seed}");
    }
}

#[test]
fn nothing_outside_the_radius_reaches_a_client() {
    let policy = Some(InterestPolicy::within(30.0));
    let mut run = Run::with_interest(&playground(), 3, Quality::GOOD, policy);
    let (near, walker) = (run.join("Ada"), run.join("Ben"));
    run.steer(walker, walk(0.0));
    let mut seen_far = 0;
    let (mut left, mut returned) = (false, false);
    for turn in 0..220 {
        if turn == 110 {
            run.steer(walker, walk(core::f32::consts::PI));
        }
        run.for_ms(100);
        let eye = run.server_character(near).feet;
        for state in known(&run, near) {
            let far = (state.place() - eye).length();
            // The square that a thing is in may be 30 m away at its near side.
            let allowed = 30.0 * (1.15 + SQUARE) + 2.0;
            let everywhere = far > allowed && state.definition == 1;
            seen_far += u32::from(everywhere);
            assert!(
                far <= allowed || everywhere,
                "{far} m away: {state:?} in turn {turn}"
            );
        }
        let entity = run.entity(walker);
        let sees = known(&run, near).iter().any(|state| state.id == entity);
        let distance = (run.server_character(walker).feet - eye).length();
        left |= distance > 50.0 && !sees;
        returned |= left && distance < 25.0 && sees;
        assert!(sees || distance > 20.0, "{distance} m away and not seen");
    }
    assert!(left, "the walker went out of view");
    assert!(returned, "and came back into it");
    assert!(seen_far > 0, "balls that are always relevant were seen");
}

/// A crowd on a meadow, without a network between.
fn crowd(players: u32, area: f32, interest: Option<InterestPolicy>) -> (World, Vec<ClientView>) {
    let options = WorldOptions {
        interest,
        ..WorldOptions::default()
    };
    let mut world = World::load(&crate::meadow(), options).expect("the world loads");
    let mut random = Random::new(5);
    let mut views = Vec::new();
    for n in 0..players {
        let number = world.join(format!("p{n}"), format!("P{n}"));
        let place = Vec3::new(random.range(-area, area), 0.1, random.range(-area, area)) * 0.5;
        world.teleport(number, place);
        views.push(ClientView::new(number, Delivery::Ordered));
    }
    (world, views)
}

/// Bytes that each client is sent in each of so many seconds.
fn bytes_per_s(
    world: &mut World,
    views: &mut [ClientView],
    seconds: u32,
    pressure: u8,
) -> Vec<f64> {
    let mut random = Random::new(9);
    let mut bytes = vec![0usize; views.len()];
    for tick in 0..seconds * world.tick_hz() {
        for (n, view) in views.iter().enumerate() {
            if (tick as usize + n).is_multiple_of(40) {
                let input = walk(random.range(-3.0, 3.0));
                let seq = tick + 1;
                let inputs: Vec<_> = (0..40)
                    .map(|at| frolic_protocol::NumberedInput {
                        seq: seq + at,
                        input,
                    })
                    .collect();
                world.receive_inputs(view.player(), &inputs);
            }
        }
        world.step();
        world.look();
        for (view, bytes) in views.iter_mut().zip(&mut bytes) {
            if world.update_is_due(view.player()) {
                world.snapshot(view, pressure, &mut |packet| *bytes += packet.len());
            }
        }
    }
    bytes
        .iter()
        .map(|b| *b as f64 / f64::from(seconds))
        .collect()
}

#[test]
fn a_crowd_in_one_place_stays_within_the_budget() {
    let policy = InterestPolicy {
        bytes_per_s: Some(8 * 1024),
        ..InterestPolicy::default()
    };
    let (mut world, mut views) = crowd(300, 60.0, Some(policy));
    bytes_per_s(&mut world, &mut views, 3, 0);
    let after = bytes_per_s(&mut world, &mut views, 5, 0);
    let most = after.iter().copied().fold(0.0, f64::max);
    // The budget is for cells; a header of 40 bytes goes with each update.
    assert!(
        most < 8.0 * 1024.0 * 1.1 + 20.0 * 50.0,
        "{most} bytes a second"
    );
    assert!(most > 6.0 * 1024.0, "and uses it: {most} bytes a second");
}

#[test]
fn distance_and_pressure_lower_the_rate() {
    let spread = |policy, pressure| {
        let (mut world, mut views) = crowd(200, 400.0, Some(policy));
        bytes_per_s(&mut world, &mut views, 2, pressure);
        let bytes = bytes_per_s(&mut world, &mut views, 3, pressure);
        bytes.iter().sum::<f64>() / bytes.len() as f64
    };
    let all = spread(InterestPolicy::EVERYTHING, 0);
    let by_distance = spread(InterestPolicy::default(), 0);
    let pressed = spread(InterestPolicy::default(), 2);
    println!("bytes/s: all {all:.0}, by distance {by_distance:.0}, under pressure {pressed:.0}");
    assert!(by_distance < all * 0.7, "{by_distance} of {all}");
    assert!(pressed < by_distance * 0.8, "{pressed} of {by_distance}");
}

#[test]
fn updates_are_spread_over_the_ticks_and_keep_their_rate() {
    let (mut world, views) = crowd(300, 50.0, None);
    let mut per_tick = Vec::new();
    let mut per_player = vec![0; views.len()];
    for _ in 0..120 {
        world.step();
        let due = views.iter().enumerate();
        let due: Vec<usize> = due
            .filter(|(_, view)| world.update_is_due(view.player()))
            .map(|(n, _)| n)
            .collect();
        due.iter().for_each(|n| per_player[*n] += 1);
        per_tick.push(due.len());
    }
    assert!(per_player.iter().all(|n| *n == 40), "20 a second each");
    let (least, most) = (per_tick.iter().min(), per_tick.iter().max());
    assert!(
        least >= Some(&90) && most <= Some(&110),
        "{least:?} {most:?}"
    );
}
